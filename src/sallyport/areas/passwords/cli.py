"""`sallyport policy`: the commands for password policies of endpoint machines."""

from collections.abc import Callable
from typing import TypeVar

import click

from sallyport.areas.passwords.bodies import PolicyFields, ValidatePolicy
from sallyport.base.errors import Invalid
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.exits import ExitStatus
from sallyport.shell.fields import (
    field_argument,
    of_tenant,
    option,
    pass_body,
    password_option,
    read_password,
)
from sallyport.shell.options import NUMBER, Group, json_answer, json_form

COLUMNS = ("policyId", "policyName", "templateName", "rules", "instanceIds")
# API fields by option: first the fields that the API defines, then those of libpwquality, whose options begin with PWQ.
PWQ = "pwq-"
FIELDS = {
    "template": "templateName",
    "min-length": "minLen",
    "max-length": "maxLen",
    "first-char": "firstChar",
    "allow-upper-lower": "allowUpperLower",
    "allow-special": "allowSpecial",
    "allow-numeric": "allowNumeric",
    **{
        PWQ + name: name
        for name in (
            "minlen", "dcredit", "ucredit", "lcredit", "ocredit", "minclass", "maxrepeat", "maxclassrepeat",
            "maxsequence", "usercheck",
        )
    },
}  # fmt: skip
OPTIONS = {field: name for name, field in FIELDS.items()}
CommandT = TypeVar("CommandT", bound=Callable[..., object])


def _settings(command: CommandT) -> CommandT:
    """Add options to a command: one for each field of a policy. The commands `add` and `update` have these options."""
    for name, field in reversed(FIELDS.items()):
        command = option(PolicyFields, field, f"--{name}")(command)
    return of_tenant("policy")(command)


@click.group(cls=Group, first=("add", "list", "assign", "validate"))
def policy() -> None:
    """Password policies of endpoint machines."""


@policy.command()
@field_argument("policyName", "name")
@_settings
@json_answer
@pass_body
def add(line: CommandLine, body: Row) -> None:
    """Add a policy and print its policyId. An option that is absent requires nothing.

    A password must meet all options that are given, including those of libpwquality (--pwq-..., pwquality.conf(5)). If
    --min-length and --pwq-minlen are given, both apply. --min-length counts characters. --pwq-minlen counts octets, and
    credits reduce it.
    """
    made = line.run("/api/v1/instances/addPasswordPolicy", body)
    line.print_answer(made, str(made["policyId"]))
    if made["warnings"]:  # the only warning names fields of the API
        line.note("warning: the policy has no rule, so it accepts every password: give options such as --min-length")


@policy.command()
@field_argument("policyId", "policy_id", type=NUMBER)
@option(PolicyFields, "policyName", "--name", help="New name.")
@_settings
@pass_body
def update(line: CommandLine, body: Row) -> None:
    """Change a policy. An option that is absent keeps the value. An empty option, such as --min-length '', clears the
    value."""
    line.run("/api/v1/instances/updatePasswordPolicy", [body])
    line.note(f"policy {body['policyId']} was changed")


@policy.command("list")
@of_tenant("policy")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, form: Form | None) -> None:
    """List the policies of a tenant."""
    rows = line.listed("/api/v1/instances/listAllPasswordPolicy", "passwordPolicies", body)
    line.print_rows(rows if form == "json" else map(_shown, rows), COLUMNS, form)


@policy.command()
@click.argument("policy_ids", type=NUMBER, nargs=-1, required=True)
@of_tenant("policy")
@pass_body
def remove(line: CommandLine, body: Row, *, policy_ids: tuple[int, ...]) -> None:
    """Remove policies and their assignments. If one policy does not exist, none is removed."""
    line.run("/api/v1/instances/deletePasswordPolicy", [{**body, "policyId": each} for each in policy_ids])
    line.note(f"{counted(len(set(policy_ids)), 'policy', 'policies')} removed")


@policy.command()
@field_argument("policyId", "policy_id", type=NUMBER)
@click.argument("instance_ids", type=NUMBER, nargs=-1, required=True)
@of_tenant("policy")
@pass_body
def assign(line: CommandLine, body: Row, *, instance_ids: tuple[int, ...]) -> None:
    """Assign a policy to machines. The machines keep their other policies."""
    _assign(line, body, instance_ids, "add")
    line.note(f"policy {body['policyId']} was assigned")


@policy.command()
@field_argument("policyId", "policy_id", type=NUMBER)
@click.argument("instance_ids", type=NUMBER, nargs=-1, required=True)
@of_tenant("policy")
@pass_body
def unassign(line: CommandLine, body: Row, *, instance_ids: tuple[int, ...]) -> None:
    """Remove the assignments of a policy to machines."""
    _assign(line, body, instance_ids, "remove")
    line.note(f"the assignments of policy {body['policyId']} were removed")


@policy.command()
@field_argument("machineId", "instance_id", type=NUMBER)
@of_tenant("policy")
@option(ValidatePolicy, "userName", "--user", help="Login name of the user.")
@password_option
@json_form
@pass_body
def validate(line: CommandLine, body: Row, *, password: str | None, form: Form | None) -> None:
    """Check a password, and show which rules of a machine's policies the password does not meet.

    The exit status is 1 if the password does not meet all rules. In the table, a rule has the name of its option in
    `policy add`. Rules of libpwquality have a name that begins with pwq-. In JSON, a rule has the name of its field in
    the API.
    """
    octets = read_password(line, password, confirm=False)
    failed: list[Row] = []
    try:
        line.run("/api/v1/instances/validatePolicy", {**body, "password": {"hex": octets.hex()}})
    except Invalid as error:
        failed = [{"rule": each.field, "message": each.message} for each in error.fields]
        if not failed:
            raise
    if not form:
        failed = [{**each, "rule": OPTIONS.get(str(each["rule"]), each["rule"])} for each in failed]
    if failed or form:
        line.print_rows(failed, ("rule", "message"), form)
    if failed:
        raise click.exceptions.Exit(ExitStatus.FAILED)
    line.note("the password meets the policy")


def _assign(line: CommandLine, body: Row, instance_ids: tuple[int, ...], action: str) -> None:
    entries = [{**body, "instanceId": each, "action": action} for each in instance_ids]
    line.run("/api/v1/instances/assignPolicyToMachine", entries)


def _shown(row: Row) -> Row:
    """Return a policy as a table row. The column `rules` shows the fields that have a value."""
    rules = [f"{name}={row[field]}" for name, field in FIELDS.items() if row[field] and field != "templateName"]
    return {**row, "rules": " ".join(rules) or "none"}
