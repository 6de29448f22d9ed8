"""`sallyport directory`: the directories of a domain, their imports, and the fields that are taken from them."""

import time
from pathlib import Path

import click

from sallyport.base.command import CommandLine, Form
from sallyport.base.errors import StartError
from sallyport.base.wire import JSON, Row

COLUMNS = ("id", "name", "kind", "app_url", "account", "secret")
JOB_COLUMNS = (
    "id",
    "directory",
    "kind",
    "state",
    "total",
    "added",
    "updated",
    "removed",
    "skipped",
    "failed",
    "message",
)
SCHEDULE_COLUMNS = ("directory", "every", "times", "zone", "full_every", "next", "last")
MAPPING_COLUMNS = ("directory", "group", "field", "attribute")
LOOK_S = 0.5
OVER = {"DONE", "FAILED", "CANCELLED"}

domain = click.option("--domain", required=True, help="The domain's name or domainId.")
json_form = click.option("--json", "form", flag_value="json", help="As JSON.")
wait = click.option("--wait", is_flag=True, help="Wait until the import is over; exit status 1 where it fails.")


@click.group()
def directory() -> None:
    """Directories: people and groups that other systems keep."""


@directory.command("list")
@domain
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the directories of a domain."""
    line.print_rows(line.rows("directory.list", domain=domain), COLUMNS, form)


@directory.command()
@click.argument("name")
@domain
@click.pass_obj
def show(line: CommandLine, *, name: str, domain: str) -> None:
    """Show a directory with its settings, its mapping and its last imports, as JSON."""
    line.print_json(line.row("directory.show", name=name, domain=domain))


@directory.command()
@click.argument("name")
@domain
@click.pass_obj
def remove(line: CommandLine, *, name: str, domain: str) -> None:
    """Remove a directory with its people and groups in the background; prints the number of the job."""
    line.print(str(line.call("directory.remove", name=name, domain=domain)))
    line.note(f"{name} is removed; it is done once the directory is not listed any more")


@directory.command("import-ldif")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@domain
@click.option("--directory", default="", help="Which directory the file is of; otherwise LDIF.")
@click.option("--complete", is_flag=True, help="Who is not in the file is removed.")
@wait
@click.pass_obj
def import_ldif(line: CommandLine, *, file: Path, domain: str, directory: str, complete: bool, wait: bool) -> None:
    """Import an LDIF file in the background; prints the number of the import."""
    path = str(file.absolute())
    job = line.call("directory.import_ldif", path=path, domain=domain, directory=directory, complete=complete)
    _queued(line, job, wait=wait)


@directory.command()
@click.argument("name")
@domain
@click.option("--full", is_flag=True, help="All of it, not only what has changed.")
@wait
@click.pass_obj
def sync(line: CommandLine, *, name: str, domain: str, full: bool, wait: bool) -> None:
    """Read a directory in the background; prints the number of the import."""
    _queued(line, line.call("directory.sync", name=name, domain=domain, full=full), wait=wait)


@directory.command()
@click.argument("name", required=False)
@domain
@click.option("--every", type=int, default=0, help="Minutes from one reading to the next.")
@click.option("--at", "times", multiple=True, metavar="HH:MM", help="A time of the day; may be given several times.")
@click.option("--zone", default="UTC", show_default=True, help="The time zone of --at.")
@click.option("--full-every", type=int, default=24, show_default=True, help="Each so-many-th reading is of everything.")
@click.option("--off", is_flag=True, help="Read it on request alone.")
@json_form
@click.pass_obj
def schedule(
    line: CommandLine,
    *,
    name: str | None,
    domain: str,
    every: int,
    times: tuple[str, ...],
    zone: str,
    full_every: int,
    off: bool,
    form: Form | None,
) -> None:
    """Set when a directory is read by itself; without --every, --at or --off, show the schedules of the domain."""
    if not (every or times or off):
        line.print_rows(line.rows("directory.schedules", domain=domain), SCHEDULE_COLUMNS, form)
        return
    if name is None or (off and (every or times)):
        raise click.UsageError("a directory, with --every, --at or --off")
    told: dict[str, JSON] = {"times": list(times), "zone": zone, "full_every": full_every}
    following = line.call("directory.schedule", name=name, domain=domain, every=every, **told)
    line.note(f"{name} is read next at {following}" if following else f"{name} is read on request alone")


@directory.command()
@domain
@json_form
@click.pass_obj
def jobs(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the imports of a domain, the newest first."""
    line.print_rows(line.rows("directory.jobs", domain=domain), JOB_COLUMNS, form)


@directory.command()
@click.argument("job", type=int)
@click.pass_obj
def cancel(line: CommandLine, *, job: int) -> None:
    """Cancel an import; what it has written stays."""
    line.call("directory.cancel", job=job)
    line.note(f"import {job} is cancelled")


@directory.command()
@click.argument("job", type=int)
@wait
@click.pass_obj
def confirm(line: CommandLine, *, job: int, wait: bool) -> None:
    """Let an import that has stopped before it removes most of a directory go on and remove it."""
    line.call("directory.confirm", job=job)
    _queued(line, job, wait=wait)


@directory.command()
@click.argument("name")
@domain
@click.argument("fields", nargs=-1, metavar="[FIELD=ATTRIBUTE]...")
@click.option("--group", default="", help="For the people of this group alone.")
@click.option("--apply", is_flag=True, help="To who is there already, too.")
@click.pass_obj
def mapping(line: CommandLine, *, name: str, domain: str, fields: tuple[str, ...], group: str, apply: bool) -> None:
    """Set which attributes become which fields, such as email=mail; without any, show what is set."""
    if not fields:
        rows = [row for row in line.rows("directory.mappings", domain=domain) if _is_named(row, name)]
        line.print_rows(rows, MAPPING_COLUMNS)
        return
    pairs = [field.partition("=") for field in fields]
    if not all(mark for _, mark, _ in pairs):
        raise click.UsageError("a field and its attribute, such as email=mail")
    told: dict[str, JSON] = {field: attribute for field, _, attribute in pairs}
    line.call("directory.map", name=name, domain=domain, group=group, fields=told, apply=apply)
    line.note(f"the mapping of {name} is set")


def _is_named(row: Row, name: str) -> bool:
    return str(row["directory"]).casefold() == name.casefold()


def _queued(line: CommandLine, job: JSON, *, wait: bool) -> None:
    line.print(str(job))
    if not wait:
        line.note("the import goes on in the background of the service")
        return
    while (row := line.row("directory.job", job=job))["state"] not in OVER:
        time.sleep(LOOK_S)
    line.note(", ".join(f"{row[name]} {name}" for name in JOB_COLUMNS[4:10]))
    if row["state"] != "DONE":
        errors = row["errors"] if isinstance(row["errors"], list) else []
        raise StartError("; ".join(map(str, [f"the import is {row['state']}", row["message"], *errors])))
