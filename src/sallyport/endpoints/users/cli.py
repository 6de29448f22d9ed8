"""`sallyport user`: endpoint users of a domain."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from sallyport.base.command import CommandLine, Form, pages
from sallyport.base.wire import JSON, Row
from sallyport.endpoints import files
from sallyport.endpoints.users.bodies import EXPORTED, FILE_COLUMNS, in_a_cell

COLUMNS = ("id", "name", "type", "totp", "updated")


@click.group()
def user() -> None:
    """Endpoint users: the people whose password the service checks itself."""


_password = click.option(
    "--password", metavar="-", help="- reads the first line of standard input; else it is asked for."
)


@user.command()
@click.argument("name")
@files.domain
@_password
@click.pass_obj
def add(line: CommandLine, *, name: str, domain: str, password: str | None) -> None:
    """Add a user, who can log in at once."""
    line.call("user.add", name=name, domain=domain, password=_read(line, password).hex())
    line.note(f"user {name} is added to {domain}")


@user.command("password")
@click.argument("name")
@files.domain
@_password
@click.pass_obj
def password_(line: CommandLine, *, name: str, domain: str, password: str | None) -> None:
    """Set a user's password, which holds for the next login; it meets the policies of the user's machines."""
    line.call("user.password", name=name, domain=domain, password=_read(line, password).hex())
    line.note(f"user {name} has another password")


def _read(line: CommandLine, password: str | None) -> bytes:
    """A password from standard input, or asked for twice."""
    if password not in (None, "-"):
        raise click.UsageError("--password takes - only: all users of a machine see its command lines")
    if password is None and not sys.stdin.isatty():
        raise click.UsageError("--password - reads the password from standard input, which is no terminal")
    octets = line.read_secret("Password")
    if not octets:
        raise click.UsageError("the password is empty")
    return octets


@user.command("list")
@files.domain
@click.option("--search", default="", help="A part of the name.")
@files.json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, search: str, form: Form | None) -> None:
    """List the users of a domain."""
    line.print_rows(pages(line, "user.list", domain=domain, search=search), COLUMNS, form)


@user.command()
@click.argument("name")
@files.domain
@click.pass_obj
def remove(line: CommandLine, *, name: str, domain: str) -> None:
    """Remove a user; the next login is refused."""
    line.call("user.remove", name=name, domain=domain)
    line.note(f"user {name} is removed from {domain}")


@user.command("import")
@files.source
@files.domain
@files.dry_run
@files.skip_refused
@files.as_json
@click.pass_obj
def import_(line: CommandLine, *, file: Path, domain: str, dry_run: bool, skip_refused: bool, as_json: bool) -> None:
    """Import users from CSV or JSON, as `user export` writes them; those of the same name are updated.

    The columns password and motp (a one-time-password seed) are taken too. Instances and groups are named, and come
    beside those that a user is in.
    """
    rows = files.read(file, FILE_COLUMNS)
    files.import_rows(line, "user.import", domain, rows, dry_run=dry_run, skip_refused=skip_refused, as_json=as_json)


@user.command()
@files.domain
@files.json_form
@click.pass_obj
def export(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """Export the users of a domain as CSV, or as JSON: never a password, and never a seed."""
    found = pages(line, "user.list", domain=domain)
    rows: Iterator[Row] = ({column: row[name] for column, name in EXPORTED.items()} for row in found)
    if form is None:
        rows = ({column: _cell(column, value) for column, value in row.items()} for row in rows)
    line.print_rows(rows, tuple(EXPORTED), form or "csv")


def _cell(column: str, value: JSON) -> JSON:
    if column in ("instances", "groups") and isinstance(value, list):
        return in_a_cell(map(str, value))
    return value


@user.command()
@click.argument("name")
@files.domain
@click.option("--code", metavar="CODE", help="Confirm the seed that was made before with its first code.")
@click.option("--remove", "removal", is_flag=True, help="Take the user's seed away.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, and ask for no code.")
@click.pass_obj
def totp(line: CommandLine, *, name: str, domain: str, code: str | None, removal: bool, as_json: bool) -> None:
    """Make a one-time-password seed for a user and show its QR code.

    The seed counts after its first right code, typed here or on the page that the link opens; until then the one
    before stays valid.
    """
    if removal + (code is not None) + as_json > 1:
        raise click.UsageError("one of --code, --remove and --json")
    if removal:
        removed = line.call("user.totp.remove", name=name, domain=domain)
        line.note(f"user {name} {'has no one-time-password seed any more' if removed else 'had none'}")
    elif code is not None:
        if not _confirm(line, name, domain, code)["right"]:
            raise click.exceptions.Exit(1)
    else:
        _enrol(line, name, domain, as_json=as_json)


def _enrol(line: CommandLine, name: str, domain: str, *, as_json: bool) -> None:
    made = line.row("user.totp", name=name, domain=domain)
    if as_json:
        line.print_json(made)
        return
    from sallyport.endpoints.totp import qr_blocks

    for text in (qr_blocks(str(made["otpauth"])), str(made["otpauth"]), str(made["link"])):
        line.print(text)
    line.note(f"the link is for the user, until {made['expires']}; the seed counts after its first right code")
    if sys.stdin.isatty():
        _ask_for_the_first_code(line, name, domain)


def _ask_for_the_first_code(line: CommandLine, name: str, domain: str) -> None:
    try:
        while True:
            checked = _confirm(line, name, domain, click.prompt("First code", err=True, value_proc=_six_digits))
            if checked["right"] or not checked["left"]:
                return
    except click.Abort:
        line.note("\nthe seed waits; confirm it on the page, or with --code")


def _six_digits(text: str) -> str:
    digits = "".join(text.split())
    if not re.fullmatch("[0-9]{6}", digits):
        raise click.UsageError("a code is six digits")
    return digits


def _confirm(line: CommandLine, name: str, domain: str, code: str) -> Row:
    """right: whether the code was; left: how many more may be tried. SallyportError: nothing waits for a code."""
    checked = line.row("user.totp.confirm", name=name, domain=domain, code=code)
    if checked["right"]:
        line.note(f"user {name} has a one-time-password seed")
    elif checked["left"]:
        line.note(f"that code is not right; {checked['left']} more can be tried")
    else:
        line.note("that code is not right; the enrolment has ended")
    return checked
