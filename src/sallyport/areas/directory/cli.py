"""`sallyport directory`: the directories of a domain, their people, groups, imports and field mappings."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from sallyport.areas.directory.bodies import ListDirectoryGroups, ListDirectoryUsers
from sallyport.areas.directory.mappings.bodies import ReConfigure
from sallyport.areas.directory.schedules.bodies import SetSchedule, SyncNow
from sallyport.areas.directory.set_cli import LIST, add, check, set_
from sallyport.base.errors import NotFound, StartError
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, domains, entries, named
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.options import Group, InputFile, in_domain, json_answer, json_form

COLUMNS = (
    "directoryId",
    "directoryName",
    "domain",
    "kind",
    "appUrl",
    "baseDN",
    "filter",
    "bindDN",
    "accountName",
    "clientId",
    "readAt",
    "hasSecret",
)
COUNTS = ("total", "added", "updated", "removed", "skipped", "failed")
JOB_COLUMNS = ("jobId", "directoryName", "kind", "state", *COUNTS, "message")
SCHEDULE_COLUMNS = (
    "directoryName",
    "everyMinutes",
    "timesOfDay",
    "timeZone",
    "fullEvery",
    "nextRun",
    "lastState",
)
MAPPING_COLUMNS = ("directoryName", "groupName", "field", "attribute")
LOOK_S = 0.5
STATUS = "/api/v1/getImportStatus"
OVER = {"DONE", "FAILED", "CANCELLED"}

wait = click.option(
    "--wait", is_flag=True, help="Wait until the import has ended. The exit status is 1 if the import failed."
)


PEOPLE = ("userId", "userName", "displayName", "email", "status", "directoryName", "groups")
GROUPS = ("groupId", "groupName", "memberCount", "directoryName", "dn")

_directory = click.option("--directory", metavar="NAME", help="Show only entries of this directory.")
_limit = click.option(
    "--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Maximum number of rows."
)


@click.command()
@in_domain
@options(ListDirectoryUsers, "search")
@_directory
@click.option("--group", metavar="NAME", help="Show only people in this group or its nested groups.")
@_limit
@json_form
@pass_body
def people(
    line: CommandLine,
    body: Row,
    *,
    domain: str,
    directory: str | None,
    group: str | None,
    limit: int,
    form: Form | None,
) -> None:
    """List the people that were read from directories."""
    path = "/ad/GetAllAdUsers"
    if group is not None:
        path, body["groupId"] = "/ad/GetAllUsersByGroup", group_id(line, domain, group, directory)
    _print(line, _of(line.listed(path, "users", body, domain=domain), directory), PEOPLE, limit, form)


@click.command()
@in_domain
@options(ListDirectoryGroups, "search")
@_directory
@_limit
@json_form
@pass_body
def groups(line: CommandLine, body: Row, *, domain: str, directory: str | None, limit: int, form: Form | None) -> None:
    """List the groups that were read from directories."""
    found = line.listed("/ad/GetAllGroupsByDomain", "groups", body, domain=domain)
    _print(line, _of(found, directory), GROUPS, limit, form)


def group_id(line: CommandLine, domain: str, name: str, directory: str | None) -> JSON:
    """Return the id of a group. Raises NotFound if the group does not exist. Raises StartError if several groups have
    the name.

    directory: the name of the group's directory, or None to search all directories of the domain.
    """
    listed = line.listed("/ad/GetAllGroupsByDomain", "groups", {"search": name}, domain=domain)
    found = [each for each in _of(listed, directory) if fold(str(each["groupName"])) == fold(name)]
    if not found:
        raise NotFound(f"--group: no group {name}{f' in {directory}' if directory is not None else ''}")
    if len(found) > 1:
        names = ", ".join(sorted({str(each["directoryName"]) for each in found}))
        raise StartError(
            f"--group: {len(found)} groups have the name {name}, in {names}: select a directory with --directory"
        )
    return found[0]["groupId"]


def _of(rows: Iterator[Row], directory: str | None) -> Iterator[Row]:
    return (each for each in rows if directory is None or fold(str(each["directoryName"])) == fold(directory))


def _print(line: CommandLine, rows: Iterator[Row], columns: tuple[str, ...], limit: int, form: Form | None) -> None:
    line.print_rows(islice(rows, limit), columns, form)
    if next(rows, None) is not None:
        line.note(f"more than {limit} entries match: use --search, or a larger --limit")


@click.group(
    cls=Group,
    first=(
        "add",
        "list",
        "show",
        "set",
        "check",
        "people",
        "groups",
        "sync",
        "schedule",
        "jobs",
        "import-ldif",
        "mapping",
    ),
)
def directory() -> None:
    """Directories: people and groups that other systems keep."""


for each in (add, set_, check, people, groups):
    directory.add_command(each)


@directory.command("list")
@click.option("--domain", help="Only this domain (name or domainId).")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str | None, form: Form | None) -> None:
    """List directories with their settings, without secrets."""
    rows = (each for one in domains(line, domain) for each in _directories(line, one))
    line.print_rows(rows if form else ({**_settings(row), **row} for row in rows), COLUMNS, form)


@directory.command()
@field_argument("directoryName", "name", expose_value=True)
@in_domain
@json_answer
@click.pass_obj
def show(line: CommandLine, *, name: str, domain: str) -> None:
    """Show a directory with its settings, its mapping and its last imports, as JSON."""
    found = named(line.listed(*LIST, domain=domain), "directoryName", name, "directory")
    line.print_json({**found, "jobs": line.run(STATUS, [{"DirectoryName": name}], domain=domain)["jobs"]})


@directory.command()
@field_argument("directoryName", "name", expose_value=True)
@in_domain
@json_answer
@click.pass_obj
def remove(line: CommandLine, *, name: str, domain: str) -> None:
    """Remove a directory with its people and groups in the background, and print the number of the job."""
    queued = line.run("/api/v1/deleteDirectoryConfig", [{"directoryName": name}], domain=domain)
    job = str(queued["message"]).rpartition(" ")[2]
    line.print_answer({"jobId": int(job)}, job)
    line.note(f"{name} is being removed in the background; it is listed until the removal has ended")


@directory.command("import-ldif")
@click.argument("file", type=InputFile())
@in_domain
@click.option("--directory", default="", help="Name of the directory that gets the entries (default: LDIF).")
@click.option("--complete", is_flag=True, help="Remove people and groups that are not in the file.")
@wait
@json_answer
@click.pass_obj
def import_ldif(line: CommandLine, *, file: Path, domain: str, directory: str, complete: bool, wait: bool) -> None:
    """Import an LDIF file in the background and print the number of the import."""
    path = str(file.absolute())
    job = line.call("directory.import_ldif", path=path, domain=domain, directory=directory, complete=complete)
    _queued(line, job, wait=wait)


@directory.command()
@field_argument("directoryName", "name")
@in_domain
@options(SyncNow, "full")
@wait
@json_answer
@pass_body
def sync(line: CommandLine, body: Row, *, domain: str, wait: bool) -> None:
    """Read a directory in the background and print the number of the import."""
    queued = line.run("/api/v1/directory/sync", body, domain=domain)
    _queued(line, queued["jobId"], wait=wait)


@directory.command()
@field_argument("directoryName", "name", expose_value=True, required=False)
@in_domain
@option(SetSchedule, "everyMinutes", "--every")
@option(SetSchedule, "timesOfDay", "--at", metavar="HH:MM")
@option(SetSchedule, "timeZone", "--zone")
@options(SetSchedule, "fullEvery")
@click.option("--off", is_flag=True, help="Read the directory on request only.")
@json_form
@pass_body
def schedule(line: CommandLine, body: Row, *, name: str | None, domain: str, off: bool, form: Form | None) -> None:
    """Set the schedule of a directory. Without --every, --at and --off, show the schedules of the domain."""
    is_timed = bool(body.get("everyMinutes") or body.get("timesOfDay"))
    if not is_timed and not off:
        shown = line.run("/api/v1/directory/listSchedules", domain=domain)
        line.print_rows(entries(shown["schedules"]), SCHEDULE_COLUMNS, form)
        return
    if name is None or (off and is_timed):
        raise click.UsageError(
            "NAME is missing, or --off is combined with --every or --at: give NAME, and either --off or a time"
        )
    body = {"directoryName": name, "everyMinutes": 0, **body}
    following = line.run("/api/v1/directory/setSchedule", body, domain=domain)["nextRun"]
    line.note(f"{name} is read next at {following}" if following else f"{name} is read on request only")


@directory.command()
@in_domain
@json_form
@click.pass_obj
def jobs(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the imports of a domain, the newest first."""
    rows = line.rows("directory.jobs", domain=domain)
    line.print_rows(rows if form else [{**row, **_counts(row)} for row in rows], JOB_COLUMNS, form)


@directory.command()
@click.argument("job", type=int)
@click.pass_obj
def cancel(line: CommandLine, *, job: int) -> None:
    """Cancel an import. Entries that the import has already written are kept."""
    line.run("/api/v1/cancelImport", {"jobId": job}, domain=_domain_of(line, job))
    line.note(f"import {job} is cancelled")


@directory.command()
@click.argument("job", type=int)
@wait
@json_answer
@click.pass_obj
def confirm(line: CommandLine, *, job: int, wait: bool) -> None:
    """Continue an import that has stopped because it would remove most entries of a directory."""
    line.run("/api/v1/confirmImport", {"jobId": job}, domain=_domain_of(line, job))
    _queued(line, job, wait=wait)


@directory.command()
@field_argument("directoryName", "name", expose_value=True)
@in_domain
@click.argument("fields", nargs=-1, metavar="[FIELD=ATTRIBUTE]...")
@click.option("--group", default="", help="Only for the people of this group.")
@options(ReConfigure, "apply")
@json_form
@pass_body
def mapping(
    line: CommandLine, body: Row, *, name: str, domain: str, fields: tuple[str, ...], group: str, form: Form | None
) -> None:
    """Map attributes to fields, such as email=mail. Without FIELD=ATTRIBUTE, show the mapping."""
    if not fields:
        line.print_rows([row for row in _mappings(line, domain) if _is_named(row, name)], MAPPING_COLUMNS, form)
        return
    pairs = [field.partition("=") for field in fields]
    if not all(mark for _, mark, _ in pairs):
        raise click.UsageError("an argument has no '='; give a field and its attribute, such as email=mail")
    of: Row = {"groupID": group_id(line, domain, group, name)} if group else {"directoryName": name}
    taken: Row = {field: attribute for field, _, attribute in pairs}
    line.run("/api/v1/reConfigure", {**body, **of, "fieldMappings": taken}, domain=domain)
    line.note(f"the mapping of {name} is set")


def _directories(line: CommandLine, domain: Row) -> Iterator[Row]:
    for each in line.listed(*LIST, domain=str(domain["domainId"])):
        yield {"domain": domain["domainName"], **each}


def _settings(directory: Row) -> Row:
    return directory["settings"] if isinstance(directory["settings"], dict) else {}


def _mappings(line: CommandLine, domain: str) -> Iterator[Row]:
    for each in line.listed("/api/v1/mapping/list", "mappings", domain=domain):
        taken = each["fieldMappings"]
        for field, attribute in sorted(taken.items()) if isinstance(taken, dict) else ():
            yield {**each, "field": field, "attribute": attribute}


def _is_named(row: Row, name: str) -> bool:
    return fold(str(row["directoryName"])) == fold(name)


def _domain_of(line: CommandLine, job: int) -> str:
    return str(line.row("directory.job", job=job)["domainId"])


def _counts(job: Row) -> Row:
    return job["counts"] if isinstance(job["counts"], dict) else {}


def _queued(line: CommandLine, job: JSON, *, wait: bool) -> None:
    line.print_answer({"jobId": job}, str(job))
    if not wait:
        line.note("the import continues in the background of the service")
        return
    while (row := line.row("directory.job", job=job))["state"] not in OVER:
        time.sleep(LOOK_S)
    line.note(", ".join(f"{_counts(row)[name]} {name}" for name in COUNTS))
    if row["state"] != "DONE":
        errors = [f"{each['where']}: {each['message']}" for each in entries(row["errors"])]
        raise StartError("; ".join([f"the import is {row['state']}", str(row["message"]), *errors]))
