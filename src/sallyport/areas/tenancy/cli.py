"""`sallyport token` and `sallyport tenant`: access tokens of the API, and the tenants of the installation."""

import click

from sallyport.base.errors import StartError
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, note_new
from sallyport.shell.fields import field_argument, field_option, pass_body
from sallyport.shell.options import FUTURE, NUMBER, Group, json_answer, json_form

COLUMNS = ("id", "org", "tenant", "role", "name", "status", "created", "expires")


@click.group(cls=Group)
def token() -> None:
    """Access tokens of the API."""


@token.command()
@field_option("org", "--org", type=NUMBER, required=True, help="orgId of the token.")
@field_option("tenant", "--tenant", type=NUMBER, required=True, help="tenantId of the token.")
@field_option(
    "role",
    "--role",
    type=click.Choice(["admin", "operator", "auditor"]),
    default="admin",
    show_default=True,
    help=(
        "An auditor may only read. An operator may change everything except tokens, modes, and settings that decide "
        "which logins are trusted."
    ),
)
@field_option("name", "--name", help="Name of the token in lists and in the audit trail. The default is the role.")
@field_option(
    "expires",
    "--expires",
    type=FUTURE,
    help="Expiry: a span such as 90d or 12h, or a time such as 2027-11-23. By default, the token does not expire.",
)
@json_answer
@pass_body
def create(line: CommandLine, body: Row) -> None:
    """Create a token and print it. The token cannot be shown again."""
    made = line.row("token.create", **body)
    note_new(line, made)
    line.print_answer(made, str(made["token"]))


@token.command("list")
@field_option("org", "--org", type=NUMBER, help="Show only tokens of this organization (orgId).")
@field_option("tenant", "--tenant", type=NUMBER, help="Show only tokens of tenants with this tenantId.")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, form: Form | None) -> None:
    """List the tokens without their secrets."""
    line.print_rows(line.rows("token.list", **body), COLUMNS, form)


@token.command()
@field_argument("token", "token", metavar="ID|NAME")
@field_option("org", "--org", type=NUMBER, help="Search only the tokens of this organization (orgId).")
@field_option("tenant", "--tenant", type=NUMBER, help="Search only the tokens of tenants with this tenantId.")
@pass_body
def revoke(line: CommandLine, body: Row) -> None:
    """Revoke a token. The service rejects the token from then on."""
    revoked = line.row("token.revoke", **body)
    line.note(f"token {revoked['id']} ({revoked['name']}) is revoked")


TENANT_COLUMNS = ("org", "tenant", "organization", "name", "domains", "clients", "tokens", "created")


@click.group(cls=Group)
def tenant() -> None:
    """Organizations and their tenants. `token create` and `domain add` create them."""


@tenant.command("list")
@json_form
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
