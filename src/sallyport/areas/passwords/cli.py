"""`sallyport policy`: the commands for password policies of endpoint machines."""

import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

import click

from sallyport.base.errors import Invalid
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import Group

COLUMNS = ("policyId", "policyName", "templateName", "rules", "instanceIds")
NUMBER = click.IntRange(min=1)
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
_HELP = {
    "template": "Name of the template from which the policy was made.",
    "min-length": "Minimum number of characters, in any script.",
    "max-length": "Maximum number of characters, in any script.",
    "first-char": "First character: uppercase, lowercase or digit.",
    "allow-upper-lower": "Whether a password may have both uppercase and lowercase letters: yes or no.",
    "allow-special": "Whether special characters are allowed: yes or no.",
    "allow-numeric": "Whether digits are allowed: yes or no.",
    "pwq-minlen": "Minimum length, which credits reduce; at least 6.",
    "pwq-dcredit": "Credit for digits. -N requires N digits. N reduces pwq-minlen by one for each digit, at most by N.",
    "pwq-ucredit": "Credit for uppercase letters, in the form of pwq-dcredit.",
    "pwq-lcredit": "Credit for lowercase letters, in the form of pwq-dcredit.",
    "pwq-ocredit": "Credit for other characters, in the form of pwq-dcredit.",
    "pwq-minclass": "Minimum number of character classes in a password: 0 to 4.",
    "pwq-maxrepeat": "Maximum number of equal characters in a row; 0 for no limit.",
    "pwq-maxclassrepeat": "Maximum number of characters of one class in a row; 0 for no limit.",
    "pwq-maxsequence": "Maximum length of a sequence such as abcd or 4321; 0 for no limit.",
    "pwq-usercheck": "Whether passwords that contain the user name are refused: 1 or 0.",
}

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def _of_tenant(work: CommandT) -> CommandT:
    """Add the options that select the tenant to a command."""
    work = click.option("--tenant", type=NUMBER, required=True, help="tenantId of the policy.")(work)
    return click.option("--org", type=NUMBER, required=True, help="orgId of the policy.")(work)


def _described(work: CommandT) -> CommandT:
    """Add options to a command: one option for each field of a policy. The commands `add` and `update` have these
    options."""
    for name, field in reversed(FIELDS.items()):
        work = click.option(f"--{name}", field, help=_HELP[name])(work)
    return work


@click.group(cls=Group, first=("add", "list", "assign", "validate"))
def policy() -> None:
    """Password policies of endpoint machines."""


@policy.command()
@click.argument("name")
@_of_tenant
@_described
@click.pass_obj
def add(line: CommandLine, /, *, name: str, org: int, tenant: int, **given: str | None) -> None:
    """Add a policy and print its policyId. An option that is absent requires nothing.

    A password must meet all options that are given, including those of libpwquality (--pwq-..., pwquality.conf(5)). If
    --min-length and --pwq-minlen are given, both apply. --min-length counts characters. --pwq-minlen counts octets, and
    credits reduce it.
    """
    body = {"policyName": name, **_fields(given)}
    made = line.run("/api/v1/instances/addPasswordPolicy", {**_scope(org, tenant), **body})
    line.print(str(made["policyId"]))
    if made["warnings"]:  # the only warning names fields of the API
        line.note("warning: the policy has no rule, so it accepts every password: give options such as --min-length")


@policy.command()
@click.argument("policy_id", type=NUMBER)
@click.option("--name", help="New name.")
@_of_tenant
@_described
@click.pass_obj
def update(
    line: CommandLine, /, *, policy_id: int, name: str | None, org: int, tenant: int, **given: str | None
) -> None:
    """Change a policy. An option that is absent keeps the value. An empty option, such as --min-length '', clears the
    value."""
    body = {"policyId": policy_id, **_fields({"policyName": name, **given})}
    line.run("/api/v1/instances/updatePasswordPolicy", [{**_scope(org, tenant), **body}])
    line.note(f"policy {policy_id} was changed")


@policy.command("list")
@_of_tenant
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def list_(line: CommandLine, *, org: int, tenant: int, form: Form | None) -> None:
    """List the policies of a tenant."""
    rows = line.listed("/api/v1/instances/listAllPasswordPolicy", "passwordPolicies", _scope(org, tenant))
    line.print_rows(rows if form == "json" else map(_shown, rows), COLUMNS, form)


@policy.command()
@click.argument("policy_ids", type=NUMBER, nargs=-1, required=True)
@_of_tenant
@click.pass_obj
def remove(line: CommandLine, *, policy_ids: tuple[int, ...], org: int, tenant: int) -> None:
    """Remove policies and their assignments. If one policy does not exist, none is removed."""
    body = [{**_scope(org, tenant), "policyId": each} for each in policy_ids]
    line.run("/api/v1/instances/deletePasswordPolicy", body)
    line.note(f"{counted(len(set(policy_ids)), 'policy', 'policies')} removed")


@policy.command()
@click.argument("policy_id", type=NUMBER)
@click.argument("instance_ids", type=NUMBER, nargs=-1, required=True)
@_of_tenant
@click.pass_obj
def assign(line: CommandLine, *, policy_id: int, instance_ids: tuple[int, ...], org: int, tenant: int) -> None:
    """Assign a policy to machines. The machines keep their other policies."""
    _assign(line, policy_id, instance_ids, "add", _scope(org, tenant))
    line.note(f"policy {policy_id} was assigned")


@policy.command()
@click.argument("policy_id", type=NUMBER)
@click.argument("instance_ids", type=NUMBER, nargs=-1, required=True)
@_of_tenant
@click.pass_obj
def unassign(line: CommandLine, *, policy_id: int, instance_ids: tuple[int, ...], org: int, tenant: int) -> None:
    """Remove the assignments of a policy to machines."""
    _assign(line, policy_id, instance_ids, "remove", _scope(org, tenant))
    line.note(f"the assignments of policy {policy_id} were removed")


@policy.command()
@click.argument("instance_id", type=NUMBER)
@_of_tenant
@click.option("--user", default="", help="Login name of the user.")
@click.option(
    "--password",
    metavar="-",
    help=(
        "Password of the user. Give - to read the password from standard input. Default: the command asks for "
        "the password."
    ),
)
@click.option("--json", "form", flag_value="json", help="Print JSON.")
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
    """Check a password, and show which rules of a machine's policies the password does not meet.

    The exit status is 1 if the password does not meet all rules. In the table, a rule has the name of its option in
    `policy add`. Rules of libpwquality have a name that begins with pwq-. In JSON, a rule has the name of its field in
    the API.
    """
    if password not in (None, "-"):
        raise click.UsageError(
            "--password accepts only - (read the password from standard input), because all users of a machine can see "
            "command lines"
        )
    if password is None and not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal: add --password - to read the password from it")
    octets = line.read_secret("Password", confirm=False)
    body: Row = {"machineId": instance_id, "userName": user, "password": {"hex": octets.hex()}}
    failed: list[Row] = []
    try:
        line.run("/api/v1/instances/validatePolicy", {**_scope(org, tenant), **body})
    except Invalid as error:
        failed = [{"rule": each.field, "message": each.message} for each in error.fields]
        if not failed:
            raise
    if not form:
        failed = [{**each, "rule": OPTIONS.get(str(each["rule"]), each["rule"])} for each in failed]
    if failed or form:
        line.print_rows(failed, ("rule", "message"), form)
    if failed:
        raise click.exceptions.Exit(1)
    line.note("the password meets the policy")


def _assign(line: CommandLine, policy_id: int, instance_ids: tuple[int, ...], action: str, scope: Row) -> None:
    entries = [{**scope, "policyId": policy_id, "instanceId": each, "action": action} for each in instance_ids]
    line.run("/api/v1/instances/assignPolicyToMachine", entries)


def _scope(org: int, tenant: int) -> Row:
    return {"orgId": org, "tenantId": tenant}


def _fields(given: Mapping[str, str | None]) -> dict[str, JSON]:
    return {field: value for field, value in given.items() if value is not None}


def _shown(row: Row) -> Row:
    """Return a policy as a table row. The column `rules` shows the fields that have a value."""
    rules = [f"{name}={row[field]}" for name, field in FIELDS.items() if row[field] and field != "templateName"]
    return {**row, "rules": " ".join(rules) or "none"}
