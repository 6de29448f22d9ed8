"""`sallyport policy`: what the passwords of endpoint machines must be like."""

import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

import click

from sallyport.base.command import CommandLine, Form
from sallyport.base.wire import JSON, Row

COLUMNS = ("id", "name", "template", "rules", "instances")
NUMBER = click.IntRange(min=1)
# The options and the fields that they are: those of the interface, then libpwquality's under its own names.
FIELDS = {
    "template": "templateName",
    "min-len": "minLen",
    "max-len": "maxLen",
    "first-char": "firstChar",
    "allow-upper-lower": "allowUpperLower",
    "allow-special": "allowSpecial",
    "allow-numeric": "allowNumeric",
    "minlen": "minlen",
    "dcredit": "dcredit",
    "ucredit": "ucredit",
    "lcredit": "lcredit",
    "ocredit": "ocredit",
    "minclass": "minclass",
    "maxrepeat": "maxrepeat",
    "maxclassrepeat": "maxclassrepeat",
    "maxsequence": "maxsequence",
    "usercheck": "usercheck",
}
_HELP = {
    "template": "Name of the template that it was made from.",
    "min-len": "Fewest characters.",
    "max-len": "Most characters.",
    "first-char": "What it begins with: uppercase, lowercase or digit.",
    "allow-upper-lower": "Whether both letter cases may stand in one password: yes or no.",
    "allow-special": "Whether it may have special characters: yes or no.",
    "allow-numeric": "Whether it may have digits: yes or no.",
}

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def _of_tenant(work: CommandT) -> CommandT:
    """The options that say whose policies are meant."""
    work = click.option("--tenant", type=NUMBER, required=True, help="tenantId of the policy.")(work)
    return click.option("--org", type=NUMBER, required=True, help="orgId of the policy.")(work)


def _described(work: CommandT) -> CommandT:
    """The options that add and update share; an empty value takes away."""
    for name, field in reversed(FIELDS.items()):
        work = click.option(f"--{name}", field, help=_HELP.get(name, "As in pwquality.conf(5)."))(work)
    return work


@click.group()
def policy() -> None:
    """Password policies: what the passwords of endpoint machines must be like."""


@policy.command()
@click.argument("name")
@_of_tenant
@_described
@click.pass_obj
def add(line: CommandLine, /, *, name: str, org: int, tenant: int, **given: str | None) -> None:
    """Add a policy and print its policyId. What is not given demands nothing."""
    made = line.call("policy.add", org=org, tenant=tenant, policyName=name, **_fields(given))
    line.print(str(made))


@policy.command()
@click.argument("policy_id", type=NUMBER)
@click.option("--name")
@_of_tenant
@_described
@click.pass_obj
def update(
    line: CommandLine, /, *, policy_id: int, name: str | None, org: int, tenant: int, **given: str | None
) -> None:
    """Change a policy. What is not given stays, an empty value takes it away, as in --minlen ''."""
    line.call("policy.update", org=org, tenant=tenant, policy=policy_id, **_fields({"policyName": name, **given}))
    line.note(f"policy {policy_id} is changed")


@policy.command("list")
@_of_tenant
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def list_(line: CommandLine, *, org: int, tenant: int, form: Form | None) -> None:
    """List the policies of a tenant."""
    rows = line.rows("policy.list", org=org, tenant=tenant)
    line.print_rows(rows if form == "json" else map(_shown, rows), COLUMNS, form)


@policy.command()
@click.argument("policy_ids", type=NUMBER, nargs=-1, required=True)
@_of_tenant
@click.pass_obj
def remove(line: CommandLine, *, policy_ids: tuple[int, ...], org: int, tenant: int) -> None:
    """Remove policies, all or none; they apply to no machine any more."""
    removed = line.call("policy.remove", org=org, tenant=tenant, policies=list(policy_ids))
    line.note(f"{removed} policies removed")


@policy.command()
@click.argument("policy_id", type=NUMBER)
@click.argument("instance_ids", type=NUMBER, nargs=-1, required=True)
@_of_tenant
@click.pass_obj
def assign(line: CommandLine, *, policy_id: int, instance_ids: tuple[int, ...], org: int, tenant: int) -> None:
    """Assign a policy to machines, beside those that they have."""
    line.call("policy.assign", org=org, tenant=tenant, policy=policy_id, instances=list(instance_ids))
    line.note(f"policy {policy_id} is assigned")


@policy.command()
@click.argument("policy_id", type=NUMBER)
@click.argument("instance_ids", type=NUMBER, nargs=-1, required=True)
@_of_tenant
@click.pass_obj
def unassign(line: CommandLine, *, policy_id: int, instance_ids: tuple[int, ...], org: int, tenant: int) -> None:
    """Take a policy off machines."""
    line.call("policy.unassign", org=org, tenant=tenant, policy=policy_id, instances=list(instance_ids))
    line.note(f"policy {policy_id} is taken off")


@policy.command()
@click.argument("instance_id", type=NUMBER)
@_of_tenant
@click.option("--user", default="", help="Whose password it is to be.")
@click.option("--password", metavar="-", help="- reads the first line of standard input; else it is asked for.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def validate(
    line: CommandLine,
    *,
    instance_id: int,
    org: int,
    tenant: int,
    user: str,
    password: str | None,
    form: Form | None,
) -> None:
    """Tell which rules of a machine's policies a password does not meet; exit code 1 where there are any."""
    if password not in (None, "-"):
        raise click.UsageError("--password takes - only: all users of a machine see its command lines")
    if password is None and not sys.stdin.isatty():
        raise click.UsageError("--password - reads the password from standard input, which is no terminal")
    octets = line.read_secret("Password", confirm=False)
    failed = line.rows(
        "policy.validate", org=org, tenant=tenant, instance=instance_id, user=user, password=octets.hex()
    )
    if failed or form:
        line.print_rows(failed, ("rule", "message"), form)
    if failed:
        raise click.exceptions.Exit(1)
    line.note("the password meets the policy")


def _fields(given: Mapping[str, str | None]) -> dict[str, JSON]:
    return {field: value for field, value in given.items() if value is not None}


def _shown(row: Row) -> Row:
    """A policy as a line of a table: only the rules that have a value."""
    rules = [f"{field}={row[field]}" for field in FIELDS.values() if row[field] and field != "templateName"]
    machines = row["instances"]
    return {
        "id": row["id"],
        "name": row["policyName"],
        "template": row["templateName"],
        "rules": " ".join(rules) or "none",
        "instances": ", ".join(map(str, machines)) if isinstance(machines, list) else "",
    }
