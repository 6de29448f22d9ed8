"""`sallyport client set`: change a RADIUS client."""

import click

from sallyport.areas.clients.bodies import UpdateClient
from sallyport.base.secret import new_shared_secret
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, named, note_warnings
from sallyport.shell.fields import check_is_dash, field_option, option, options, pass_body
from sallyport.shell.options import NUMBER, json_answer

LIST = "/network_device/ListClients"
any_org = click.option("--org", type=NUMBER, help="orgId of the client, if several tenants have a client of that name.")
any_tenant = click.option("--tenant", type=NUMBER, help="tenantId of the client.")
mac_password = field_option(
    "macPassword",
    "--mac-password",
    "mac_password",
    expose_value=True,
    metavar="-",
    help="Password of all stations, instead of their address. Give - to read it from standard input.",
)


@click.command("set")
@click.argument("name")
@any_org
@any_tenant
@option(UpdateClient, "name", "--name", metavar="NAME", help="New name.")
@options(UpdateClient, "address")
@click.option("--secret", metavar="-", help="New shared secret. Give - to read the secret from standard input.")
@click.option("--new-secret", is_flag=True, help="Generate a new shared secret and print it.")
@click.option(
    "--domain",
    "domains",
    multiple=True,
    help=(
        "Name or domainId of a domain; repeatable. The given domains replace all domains of the client. The first is "
        "the default."
    ),
)
@click.option("--all-domains", is_flag=True, help="Give the client all domains of the tenant.")
@options(
    UpdateClient, "product", "requireMessageAuthenticator", "limitProxyState", "passwordVerified", "shadow", "coaPort"
)
@options(UpdateClient, "macForms")
@click.option("--no-mac-form", is_flag=True, help="Remove all forms of MAC authentication bypass.")
@mac_password
@options(UpdateClient, "tlsName", "tlsFingerprint", "tags", "note")
@json_answer
@pass_body
def set_(
    line: CommandLine,
    given: Row,
    *,
    name: str,
    org: int | None,
    tenant: int | None,
    secret: str | None,
    new_secret: bool,
    domains: tuple[str, ...],
    all_domains: bool,
    no_mac_form: bool,
    mac_password: str | None,
) -> None:
    """Change a RADIUS client. The change applies to the client's next packet. Settings without an option keep their
    values."""
    if secret is not None and new_secret:
        raise click.UsageError("--secret and --new-secret cannot be used together")
    if domains and all_domains:
        raise click.UsageError("--domain and --all-domains cannot be used together")
    if given.get("macForms") and no_mac_form:
        raise click.UsageError("--mac-form and --no-mac-form cannot be used together")
    check_is_dash(secret, "--secret")
    made = new_shared_secret() if new_secret else None
    given |= mac_fields(line, mac_password, secret)
    if made is not None:
        given["secret"] = made
    elif secret is not None:
        octets = line.read_secret("Secret")
        if not octets:
            raise click.UsageError("--secret is empty")
        given["secret"] = {"hex": octets.hex()}
    if no_mac_form:
        given["macForms"] = list[JSON]()
    if not given and not domains and not all_domains:
        raise click.UsageError("nothing to change: give an option, such as --address")
    found = find(line, name, org, tenant)
    body: Row = {field: found[field] for field in ("orgId", "tenantId", "clientId")}
    changed = line.run(
        "/network_device/UpdateClient", {**body, **given}, domains=domains if domains or all_domains else None
    )
    line.print_answer({**changed, "secret": made or ""}, made or "")
    called = given.get("name") or found["name"]
    line.note(f"RADIUS client {called} is changed")
    if "address" in given and changed["signatureRequired"] and given.get("requireMessageAuthenticator") != "yes":
        line.note(f"unsigned packets are still dropped; if the client does not sign: sallyport client unlatch {called}")
    note_warnings(line, changed["warnings"])


def mac_fields(line: CommandLine, password: str | None, secret: str | None) -> Row:
    """Return the field `macPassword` for AddClient and UpdateClient, read from standard input. password, secret: the
    options."""
    check_is_dash(password, "--mac-password")
    if password is None:
        return {}
    if secret == "-":  # noqa: S105
        raise click.UsageError("--secret and --mac-password cannot both read standard input: set one of them later")
    octets = line.read_secret("Password of all stations")
    if not octets:
        raise click.UsageError("--mac-password is empty")
    return {"macPassword": {"hex": octets.hex()}}


def find(line: CommandLine, name: str, org: int | None, tenant: int | None) -> Row:
    """Return the RADIUS client with a name, including its orgId and tenantId. Raises NotFound."""
    if (org is None) != (tenant is None):
        raise click.UsageError("--org and --tenant go together: give both or neither")
    if org is not None:
        scope: Row = {"orgId": org, "tenantId": tenant}
        return named(line.listed(LIST, "clients", scope), "name", name, "RADIUS client") | scope
    found = named(line.listed_everywhere(LIST, "clients"), "name", name, "RADIUS client")
    return found | {"orgId": found["org"], "tenantId": found["tenant"]}
