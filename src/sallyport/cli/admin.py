"""`sallyport admin`: local administrators of the console, people of identity providers, and the sessions of signed-in
people."""

import click

from sallyport.base.errors import Invalid
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.fields import password_option, read_password
from sallyport.shell.options import NUMBER, Group, json_answer, json_form

COLUMNS = ("id", "name", "role", "org", "tenant", "created")
SESSION_COLUMNS = ("id", "kind", "name", "role", "org", "tenant", "from", "began", "seen", "ends")
IDENTITY_COLUMNS = ("id", "name", "role", "org", "tenant", "issuer", "subject", "signed_in")


@click.group(cls=Group)
def admin() -> None:
    """Local administrators of the console, identities, and sessions."""


@admin.command()
@click.argument("name")
@click.option("--org", type=NUMBER, help="orgId of the tenant; default: the whole installation.")
@click.option("--tenant", type=NUMBER, help="tenantId of the tenant; default: the whole installation.")
@click.option(
    "--role",
    type=click.Choice(["admin", "operator", "auditor"]),
    help="Role in the tenant; default: admin. Without a tenant, the administrator has every role.",
)
@password_option
@json_answer
@click.pass_obj
def add(
    line: CommandLine, *, name: str, org: int | None, tenant: int | None, role: str | None, password: str | None
) -> None:
    """Add an administrator, and show the QR code of the one-time codes."""
    if (org is None) != (tenant is None):
        raise click.UsageError("--org and --tenant go together: give both or neither")
    if role is not None and org is None:
        raise click.UsageError("--role needs --org and --tenant")
    secret = _read(line, password)
    made = line.row("admin.add", name=name, password=secret, org=org, tenant=tenant, role=role or "admin")
    _show(line, made)


@admin.command("list")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, form: Form | None) -> None:
    """List the administrators."""
    line.print_rows(line.rows("admin.list"), COLUMNS, form)


@admin.command()
@click.argument("name")
@click.pass_obj
def remove(line: CommandLine, *, name: str) -> None:
    """Remove an administrator and end its sessions."""
    removed = line.row("admin.remove", name=name)
    line.note(f"administrator {removed['name']} is removed")


@admin.command("password")
@click.argument("name")
@password_option
@click.pass_obj
def password_(line: CommandLine, *, name: str, password: str | None) -> None:
    """Set the password of an administrator and end its sessions."""
    line.row("admin.password", name=name, password=_read(line, password))
    line.note(f"the password of {name} is set; its sessions have ended")


@admin.command()
@click.argument("name")
@json_answer
@click.pass_obj
def totp(line: CommandLine, *, name: str) -> None:
    """Make a new seed for one-time codes and show its QR code."""
    _show(line, line.row("admin.totp", name=name))


@admin.command()
@json_form
@click.pass_obj
def sessions(line: CommandLine, *, form: Form | None) -> None:
    """List the sessions of the console."""
    line.print_rows(line.rows("admin.sessions"), SESSION_COLUMNS, form)


@admin.command()
@click.argument("session", type=NUMBER)
@click.pass_obj
def revoke(line: CommandLine, *, session: int) -> None:
    """End a session of the console at once."""
    ended = line.row("admin.revoke", session=session)
    line.note(f"session {session} of {ended['name']} has ended")


@admin.command()
@json_form
@click.pass_obj
def identities(line: CommandLine, *, form: Form | None) -> None:
    """List the people that signed in through an identity provider."""
    line.print_rows(line.rows("admin.identities"), IDENTITY_COLUMNS, form)


@admin.command()
@click.argument("identity", type=NUMBER)
@click.pass_obj
def forget(line: CommandLine, *, identity: int) -> None:
    """Remove a person of an identity provider and end the person's sessions."""
    removed = line.row("admin.forget", identity=identity)
    line.note(f"{removed['name']} is removed; a group with a role in the settings lets the person sign in again")


def _show(line: CommandLine, made: Row) -> None:
    from sallyport.base.totp import qr_code

    uri = str(made["otpauth"])
    line.print_answer(made, f"{qr_code(uri, 'terminal')}\n{uri}")
    line.note(f"scan the code with an authenticator app; {made['name']} signs in with the password and a code")


def _read(line: CommandLine, password: str | None) -> str:
    """Read a password from standard input, or prompt for it twice."""
    try:
        return read_password(line, password).decode()
    except UnicodeDecodeError:
        raise Invalid("the password is not UTF-8") from None
