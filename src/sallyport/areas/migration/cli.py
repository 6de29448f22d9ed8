"""The commands `sallyport import ...`: read the configuration of another server, show the plan, and write it with
`--yes`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from pathlib import Path
from typing import Final, cast

import click

from sallyport.areas.migration.child import translate
from sallyport.areas.migration.groups import resolved, sids_of
from sallyport.areas.migration.merging import admitting, merged, present_kinds, row_of
from sallyport.areas.migration.tables import FIELDS, TAG
from sallyport.areas.migration.translation import Decision, Options, Translation, Weight
from sallyport.areas.users import commands as users
from sallyport.base.errors import NotFound, StartError
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, entries
from sallyport.shell.options import NUMBER, Group, InputFile, Pair, as_json

FINDINGS: Final = ("weight", "name", "source", "text")
_COLOURS: Final = {"+": "green", "~": "yellow", "-": "red"}
_file = click.argument("file", type=InputFile())
_timezone = click.option("--timezone", default="", help="Time zone of the old server, such as Europe/Berlin.")
_decide = click.option(
    "--decide",
    "decisions",
    type=Pair(),
    multiple=True,
    metavar="NAME=block|skip",
    help="What to do with a policy that denies and cannot be expressed: block more, or leave it out; repeatable.",
)
_group = click.option(
    "--group", "groups", type=Pair(), multiple=True, metavar="SID=NAME", help="Name of a group; repeatable."
)


@dataclass(frozen=True, slots=True)
class Target:
    """The options of all commands. domain: the name of the domain that gets the rules. yes: whether to write the
    plan."""

    domain: str
    org: int
    tenant: int
    yes: bool
    as_json: bool


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of all commands, which the command gets as `target`."""

    def run(*args: object, domain: str, org: int, tenant: int, yes: bool, as_json: bool, **own: object) -> None:
        command(*args, target=Target(domain, org, tenant, yes, as_json), **own)

    wrapped: Callable[..., None] = update_wrapper(run, command)
    for option in (
        as_json,
        click.option("--yes", is_flag=True, help="Write the plan. Without it, nothing is changed."),
        click.option("--tenant", type=NUMBER, default=1, show_default=True, help="tenantId of the tenant."),
        click.option("--org", type=NUMBER, default=1, show_default=True, help="orgId of the tenant."),
        click.option("--domain", default="default", show_default=True, help="Name of the domain that gets the rules."),
    ):
        wrapped = option(wrapped)
    return wrapped


@click.group("import", cls=Group)
def import_() -> None:
    """Move the configuration of another RADIUS server here: the plan first, then --yes."""


@import_.command()
@_file
@_timezone
@_group
@_decide
@click.option(
    "--no-dial-in-permissions",
    is_flag=True,
    help="Confirm that no account of the directory has a dial-in permission of its own.",
)
@_common
@click.pass_obj
def nps(
    line: CommandLine,
    *,
    file: Path,
    target: Target,
    timezone: str,
    groups: Sequence[Row],
    decisions: Sequence[Row],
    no_dial_in_permissions: bool,
) -> None:
    """Import an export of NPS (`netsh nps export`): clients, network policies, realms. The file has secrets in clear
    text: delete it afterwards."""
    named = {str(each["name"]).upper(): str(each["value"]) for each in groups}
    options = Options("", timezone, named, _decisions(decisions), no_dial_in_permissions)
    _run(line, "nps", file, options, target)


@import_.command()
@_file
@_common
@click.pass_obj
def ise(line: CommandLine, *, file: Path, target: Target) -> None:
    """Import the network devices of Cisco ISE from its CSV file."""
    _run(line, "ise", file, Options(""), target)


@import_.command()
@_file
@_common
@click.pass_obj
def clearpass(line: CommandLine, *, file: Path, target: Target) -> None:
    """Import the network devices of Aruba ClearPass from its XML file."""
    _run(line, "clearpass", file, Options(""), target)


@import_.command("csv")
@_file
@click.option(
    "--map",
    "columns",
    type=Pair(),
    multiple=True,
    metavar="FIELD=COLUMN",
    help=f"Column of a field; repeatable. Fields: {', '.join(FIELDS)}, {TAG}KEY.",
)
@_common
@click.pass_obj
def csv_(line: CommandLine, *, file: Path, target: Target, columns: Sequence[Row]) -> None:
    """Import RADIUS clients from any CSV file, such as an export of NetBox or a spreadsheet."""
    named = {str(each["name"]): str(each["value"]) for each in columns}
    _run(line, "csv", file, Options("", columns=named), target)


@import_.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@_decide
@_common
@click.pass_obj
def freeradius(
    line: CommandLine,
    *,
    folder: Path,
    target: Target,
    decisions: Sequence[Row],
) -> None:
    """Import a folder of FreeRADIUS 3: clients, huntgroups, the users file, lists of MAC addresses."""
    _run(line, "freeradius", folder, Options("", decisions=_decisions(decisions)), target)


def _decisions(given: Sequence[Row]) -> dict[str, Decision]:
    try:
        return {str(each["name"]): Decision(str(each["value"])) for each in given}
    except ValueError:
        raise click.UsageError("--decide: give NAME=block or NAME=skip") from None


# --- plan and apply ---------------------------------------------------------------------------------------------------


def _run(line: CommandLine, form: str, path: Path, options: Options, target: Target) -> None:
    """Read a file, print the plan, and write it if the admin has confirmed it. options: without the domain."""
    domain = _domain_name(line, target)
    found = translate(form, path, replace(options, domain=domain))
    if sids_of(found):
        found = resolved(found, {**_groups(line, domain, sids_of(found)), **options.groups}, options.decisions)
    own: Row = {"org": target.org, "tenant": target.tenant}
    kinds = present_kinds(found)
    present = line.row("configuration.export", **own, only=list[JSON](kinds)) if kinds else {}
    found = merged(found, domain, {kind: entries(objects) for kind, objects in present.items()})
    people = [each for each in found.items if each.kind == "user"]
    items: list[JSON] = [row_of(each) for each in found.items if each.kind != "user"]
    arguments: Row = {**own, "items": items, "manages": False, "override": line.override}
    plan = line.row("configuration.apply", **arguments)
    undecided = found.named(Weight.UNDECIDED)
    applied = target.yes and not undecided
    if target.as_json:
        findings: list[JSON] = [each.as_json() for each in found.findings]
        line.print_json({"applied": applied, "steps": plan["steps"], "findings": findings, "users": len(people)})
    else:
        _print(line, plan, found, len(people))
    if target.yes and undecided:
        names = ", ".join(each.name for each in undecided)
        raise StartError(f"{counted(len(undecided), 'policy', 'policies')} must be decided first: {names}")
    if not applied:
        line.note("nothing is changed; write the plan with --yes")
        return
    line.row("configuration.apply", **arguments, apply=True)
    if people:
        rows = [{"line": number, **_of_user(each.fields)} for number, each in enumerate(people, 1)]
        users.import_rows(
            line, "user.import", target.domain, rows, dry_run=False, skip_refused=True, as_json=target.as_json
        )
    line.note("the plan is written; delete the file if it has secrets")


def _domain_name(line: CommandLine, target: Target) -> str:
    """Return the name of the domain, which may be given by its id. A domain that does not exist will be added."""
    own = (target.org, target.tenant)
    for each in line.listed_everywhere("/ad/GetAllDomains", "domains", size=100):
        if str(each["domainId"]) == target.domain and (each.get("orgId", own[0]), each.get("tenantId", own[1])) == own:
            return str(each["domainName"])
    return target.domain


def _groups(line: CommandLine, domain: str, sids: Sequence[str]) -> dict[str, str]:
    """Return the names of groups by SID, from the directories of the domain. A new domain has none."""
    try:
        found = line.row("directory.groups_by_sid", domain=domain, sids=list[JSON](sids))
    except NotFound:
        return {}
    return {sid: str(name) for sid, name in found.items()}


def _of_user(fields: Mapping[str, object]) -> Row:
    return {"userName": str(fields["userName"]), "password": str(fields["password"])}


def _print(line: CommandLine, plan: Row, found: Translation, people: int) -> None:
    """Print what changes, what cannot be expressed, and the sums."""
    for step in entries(plan["steps"]):
        colour = _COLOURS[str(step["sign"])]
        line.print(f"{step['sign']} {step['kind']} {step['name']} ({step['source']})", colour=colour)
        for name, values in cast(Row, step["fields"]).items():
            before, after = cast(list[JSON], values)
            line.print(f"    {name}: {before} -> {after}", colour=colour)
    findings: list[Row] = [each.as_json() for each in found.findings]
    if findings:
        line.print_rows(findings, FINDINGS)
    if allows := admitting(found):
        line.note(f"{counted(allows, 'rule')} will admit logins without a second factor, as the old server does")
    counts = cast(dict[str, int], plan["counts"])
    line.note(
        f"{counted(counts['added'], 'object')} to add, {counts['changed']} to change, {counts['unchanged']} unchanged"
        + (f"; {counted(people, 'user')} to import" if people else "")
    )
    sums = ", ".join(f"{len(found.named(each))} {each.value}" for each in Weight if found.named(each))
    if sums:
        line.note(f"findings: {sums}")
