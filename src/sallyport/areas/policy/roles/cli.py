"""`sallyport role`: roles, which are named sets of reply attributes."""

from collections.abc import Iterator
from typing import Final

import click

from sallyport.areas.policy.roles.bodies import ListRoles, RemoveRole, SetRole
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, entries
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.options import Group, Pair, as_json, in_domain, json_form

COLUMNS: Final = ("role", "for", "sends", "usedBy")
SETS: Final = ("for", "sends")


@click.group(cls=Group, first=("set", "list"))
def role() -> None:
    """Roles: named sets of reply attributes, one for each product."""


@role.command("set")
@field_argument("role", "name")
@in_domain
@options(SetRole, "product", "tag", "vlan")
@option(SetRole, "replyAttributes", "--reply", type=Pair(), metavar="NAME=VALUE")
@options(SetRole, "template")
@pass_body
def set_(line: CommandLine, body: Row, *, domain: str) -> None:
    """Set the reply attributes of a role for a product, a tag or all others. A role that does not exist is added."""
    line.note(str(line.run("/ad/SetRole", body, domain=domain)["message"]))


@role.command("list")
@in_domain
@options(ListRoles, "search")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the roles of a domain. Each set of a role has a line."""
    rows = list(line.listed("/ad/ListRoles", "roles", body, domain=domain))
    line.print_rows(rows if form == "json" else [set_ for row in rows for set_ in _sets(row)], COLUMNS, form)


@role.command()
@field_argument("role", "name")
@in_domain
@as_json
@pass_body
def show(line: CommandLine, body: Row, *, domain: str, as_json: bool) -> None:
    """Show a role: what each product gets, and what uses the role."""
    found = line.run("/ad/ShowRole", body, domain=domain)
    if as_json:
        return line.print_json(found)
    line.print_rows(list(_sets(found)), SETS)
    users = found["usedBy"]
    return line.print(f"used by: {', '.join(map(str, users)) if isinstance(users, list) and users else 'nothing'}")


@role.command()
@field_argument("role", "name")
@in_domain
@options(RemoveRole, "product", "tag")
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str) -> None:
    """Remove a role, or its set for one product or tag. A role that is used is not removed."""
    line.note(str(line.run("/ad/RemoveRole", body, domain=domain)["message"]))


def _sets(row: Row) -> Iterator[Row]:
    """Yield a line for each set of a role."""
    for each in entries(row["sets"]) or [{}]:
        sent = each.get("attributes")
        yield {
            "role": row["role"],
            "for": each.get("tag") or each.get("product") or ("all others" if each else ""),
            "sends": ", ".join(map(str, sent)) if isinstance(sent, list) and sent else "nothing",
            "usedBy": row["usedBy"],
        }
