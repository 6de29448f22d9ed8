"""`sallyport token`: access tokens of the API."""

import click

from sallyport.base.command import CommandLine, Form, note_new
from sallyport.base.options import FUTURE, Group

COLUMNS = ("id", "org", "tenant", "role", "name", "status", "created", "expires")
NUMBER = click.IntRange(min=1)


@click.group(cls=Group)
def token() -> None:
    """Access tokens of the API."""


@token.command()
@click.option("--org", type=NUMBER, required=True, help="orgId of the token.")
@click.option("--tenant", type=NUMBER, required=True, help="tenantId of the token.")
@click.option(
    "--role",
    type=click.Choice(["admin", "operator", "auditor"]),
    default="admin",
    show_default=True,
    help=(
        "An auditor may only read. An operator may change everything except tokens, modes, and settings that decide "
        "which logins are trusted."
    ),
)
@click.option("--name", help="Name of the token in lists and in the audit trail. The default is the role.")
@click.option(
    "--expires",
    type=FUTURE,
    help="Expiry: a span such as 90d or 12h, or a time such as 2027-11-23. By default, the token does not expire.",
)
@click.pass_obj
def create(line: CommandLine, *, org: int, tenant: int, role: str, name: str | None, expires: str | None) -> None:
    """Create a token and print it. The token cannot be shown again."""
    made = line.row("token.create", org=org, tenant=tenant, role=role, name=name, expires=expires)
    note_new(line, made)
    line.print(str(made["token"]))


@token.command("list")
@click.option("--org", type=NUMBER, help="Show only tokens of this organization (orgId).")
@click.option("--tenant", type=NUMBER, help="Show only tokens of tenants with this tenantId.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def list_(line: CommandLine, *, org: int | None, tenant: int | None, form: Form | None) -> None:
    """List the tokens without their secrets."""
    line.print_rows(line.rows("token.list", org=org, tenant=tenant), COLUMNS, form)


@token.command()
@click.argument("token", metavar="ID|NAME")
@click.option("--org", type=NUMBER, help="Search only the tokens of this organization (orgId).")
@click.option("--tenant", type=NUMBER, help="Search only the tokens of tenants with this tenantId.")
@click.pass_obj
def revoke(line: CommandLine, *, token: str, org: int | None, tenant: int | None) -> None:
    """Revoke a token. The service rejects the token from then on."""
    revoked = line.row("token.revoke", token=token, org=org, tenant=tenant)
    line.note(f"token {revoked['id']} ({revoked['name']}) is revoked")
