"""`sallyport user`: the commands for the endpoint users of a domain."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from sallyport.areas.users import commands
from sallyport.areas.users.accounts.bodies import EXPORTED, FILE_COLUMNS, in_a_cell
from sallyport.base.errors import Invalid
from sallyport.base.text import plain_code
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, note_warnings
from sallyport.shell.fields import field_argument, pass_body, password_option, read_password
from sallyport.shell.files import read_rows, source
from sallyport.shell.options import Group, as_json, in_domain, json_form

COLUMNS = ("userId", "userName", "source", "userType", "hasTotp", "updated")
TRIES = 5
"""Number of wrong codes that end an enrolment."""


@click.group(cls=Group, first=("add", "list", "totp", "password", "import", "export"))
def user() -> None:
    """Endpoint users: users whose passwords are stored in the service."""


@user.command()
@field_argument("userName", "name")
@in_domain
@password_option
@pass_body
def add(line: CommandLine, body: Row, *, domain: str, password: str | None) -> None:
    """Add a user. The user can log in at once."""
    octets = _read(line, password)
    line.run("/api/v1/endpointUsers/addEpmUserInfo", {**body, "password": {"hex": octets.hex()}}, domain=domain)
    line.note(f"user {body['userName']} was added to {domain}")


@user.command("password")
@click.argument("name")
@in_domain
@password_option
@click.pass_obj
def password_(line: CommandLine, *, name: str, domain: str, password: str | None) -> None:
    """Set a user's password. The password must meet the password policies of the user's machines."""
    body: Row = {"userId": commands.user_id(line, domain, name), "password": {"hex": _read(line, password).hex()}}
    line.run("/api/v1/endpointUsers/updateEpmUserInfo", body, domain=domain)
    line.note(f"user {name} has a new password")


def _read(line: CommandLine, password: str | None) -> bytes:
    """Read a password that must not be empty."""
    octets = read_password(line, password)
    if not octets:
        raise click.UsageError("the password is empty")
    return octets


@user.command("list")
@in_domain
@click.option("--search", default="", help="Part of the name of a user.")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, search: str, form: Form | None) -> None:
    """List the users of a domain."""
    body: Row = {"filter": {"filterBy": "userName", "value": search}}
    line.print_rows(line.listed(*commands.USERS, body, domain=domain), COLUMNS, form)


@user.command()
@field_argument("epmUsers.userName", "name", expose_value=True)
@in_domain
@click.pass_obj
def remove(line: CommandLine, *, name: str, domain: str) -> None:
    """Remove a user. The user cannot log in any more."""
    line.run("/api/v1/endpointUsers/deleteEpmUser", {"key": "delete", "epmUsers": [{"userName": name}]}, domain=domain)
    line.note(f"user {name} was removed from {domain}")


@user.command("import")
@source
@in_domain
@commands.dry_run
@commands.skip_refused
@as_json
@click.pass_obj
def import_(line: CommandLine, *, file: Path, domain: str, dry_run: bool, skip_refused: bool, as_json: bool) -> None:
    """Import users from a CSV or JSON file in the format of `user export`. If a user with the name exists already,
    change this user.

    The file may also have the columns password and motp (a one-time-password seed). Instances and groups are given by
    name. They are added to the instances and groups that the user already has.
    """
    rows = read_rows(file, FILE_COLUMNS)
    commands.import_rows(line, "user.import", domain, rows, dry_run=dry_run, skip_refused=skip_refused, as_json=as_json)


@user.command()
@in_domain
@json_form
@click.pass_obj
def export(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """Export the users of a domain as CSV or JSON, without passwords and seeds."""
    rows = _exported(line, domain)
    if form is None:
        rows = ({column: _cell(column, value) for column, value in row.items()} for row in rows)
    line.print_rows(rows, EXPORTED, form or "csv")


def _exported(line: CommandLine, domain: str) -> Iterator[Row]:
    after = 0
    while page := line.rows("user.export", domain=domain, after=after):
        yield from page
        after += len(page)


def _cell(column: str, value: JSON) -> JSON:
    if column in ("instances", "groups") and isinstance(value, list):
        return in_a_cell(map(str, value))
    return value


@user.command()
@field_argument("userName", "name", expose_value=True)
@in_domain
@click.option("--code", metavar="CODE", help="First code of the pending seed, to confirm the seed.")
@click.option("--remove", "removal", is_flag=True, help="Remove the user's seed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and do not prompt for the first code.")
@click.pass_obj
def totp(line: CommandLine, *, name: str, domain: str, code: str | None, removal: bool, as_json: bool) -> None:
    """Generate a one-time-password seed for a user, and show its QR code.

    The seed becomes valid when its first correct code is typed, either into this command or on the page behind the
    link. Until then, the old seed remains valid.
    """
    if removal + (code is not None) + as_json > 1:
        raise click.UsageError("--code, --remove and --json exclude each other")
    if removal:
        removed = line.call("user.totp.remove", name=name, domain=domain)
        line.note(
            f"user {name} {'has no one-time-password seed any more' if removed else 'had no one-time-password seed'}"
        )
    elif code is not None:
        _confirm(line, name, domain, code)
    else:
        _enrol(line, name, domain, as_json=as_json)


def _enrol(line: CommandLine, name: str, domain: str, *, as_json: bool) -> None:
    made = line.run("/api/v1/endpointUsers/enrolTotp", {"userName": name}, domain=domain)
    if as_json:
        line.print_json(made)
        return
    from sallyport.base.totp import qr_code

    for text in (qr_code(str(made["otpauth"]), "terminal"), str(made["otpauth"]), str(made["link"])):
        line.print(text)
    line.note(
        f"send the link to the user; it is valid until {made['expiresAt']}; the seed becomes valid with "
        "its first correct code"
    )
    note_warnings(line, made["warnings"])
    if sys.stdin.isatty():
        _ask_for_the_first_code(line, name, domain)


def _ask_for_the_first_code(line: CommandLine, name: str, domain: str) -> None:
    try:
        for _ in range(TRIES):
            try:
                _confirm(line, name, domain, click.prompt("First code", err=True, value_proc=_six_digits))
            except Invalid as error:
                line.note(str(error))
            else:
                return
    except click.Abort:
        line.note("\nthe seed is pending; confirm it on the page, or with --code")


def _six_digits(text: str) -> str:
    digits = plain_code(text)
    if not re.fullmatch("[0-9]{6}", digits):
        raise click.UsageError("the code must have six digits")
    return digits


def _confirm(line: CommandLine, name: str, domain: str, code: str) -> None:
    """Confirm a pending seed. Raises Invalid if the code is wrong. Raises NotFound if the user has no pending seed."""
    line.run("/api/v1/endpointUsers/confirmTotp", {"userName": name, "code": code}, domain=domain)
    line.note(f"user {name} has a one-time-password seed")
