"""`sallyport token` and `sallyport tenant`: access tokens of the API, and the tenants of the installation."""

import click

from sallyport.base.errors import StartError
from sallyport.shell.command import CommandLine, Form, note_new
from sallyport.shell.options import FUTURE, Group

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


TENANT_COLUMNS = ("org", "tenant", "organization", "name", "domains", "clients", "tokens", "created")


@click.group(cls=Group)
def tenant() -> None:
    """Organizations and their tenants. `token create` and `domain add` create them."""


@tenant.command("list")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def list_tenants(line: CommandLine, *, form: Form | None) -> None:
    """List the tenants with the numbers of their domains, RADIUS clients and active tokens."""
    line.print_rows(line.rows("tenant.list", counts=True), TENANT_COLUMNS, form)


@tenant.command()
@click.argument("name")
@click.option("--org", type=NUMBER, required=True, help="orgId of the tenant.")
@click.option("--tenant", "number", type=NUMBER, help="tenantId. Without it, the organization is renamed.")
@click.pass_obj
def rename(line: CommandLine, *, name: str, org: int, number: int | None) -> None:
    """Give a tenant or an organization another name. The numbers, which requests contain, stay."""
    line.call("tenant.rename", org=org, tenant=number, name=name)
    line.note(f"{'organization' if number is None else f'tenant {number} of organization'} {org} is now {name}")


@tenant.command()
@click.option("--org", type=NUMBER, required=True, help="orgId of the tenant.")
@click.option("--tenant", "number", type=NUMBER, required=True, help="tenantId of the tenant.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def remove(line: CommandLine, *, org: int, number: int, yes: bool) -> None:
    """Remove a tenant and its tokens, such as one of a mistyped number. The audit trail stays.

    Domains, RADIUS clients, password policies and administrators of the tenant must be removed first. If the
    organization has no other tenant, it is removed too.
    """
    what = f"tenant {number} of organization {org}"
    if not yes and not click.confirm(f"Remove {what} with its access tokens?", err=True):
        raise StartError("nothing was changed")
    line.call("tenant.remove", org=org, tenant=number)
    line.note(f"{what} is removed")
