"""`sallyport client set`: change a RADIUS client."""

from collections.abc import Sequence

import click

from sallyport.base.secret import new_shared_secret
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, named

LIST = "/network_device/ListClients"
NUMBER = click.IntRange(min=1)
SIGNATURES = click.Choice(["yes", "no", "auto"])
MAC_FORM = click.Choice(["login-user", "authenticate-only", "no-station", "password"])
ONLY_STDIN = "accepts only -, because all users of a machine can see its command lines"
_YES_NO = click.Choice(["yes", "no"])
_FIELDS = {
    "new_name": "name",
    "address": "address",
    "product": "product",
    "require_message_authenticator": "requireMessageAuthenticator",
    "limit_proxy_state": "limitProxyState",
    "coa_port": "coaPort",
    "tls_name": "tlsName",
    "tls_fingerprint": "tlsFingerprint",
}

any_org = click.option("--org", type=NUMBER, help="orgId of the client, if several tenants have a client of that name.")
any_tenant = click.option("--tenant", type=NUMBER, help="tenantId of the client.")


@click.command("set")
@click.argument("name")
@any_org
@any_tenant
@click.option("--name", "new_name", metavar="NAME", help="New name.")
@click.option("--address", help="New IP address, or network such as 192.0.2.0/24.")
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
@click.option("--product", help="Product, such as `Cisco ISE`. Give '' to detect the product from packets.")
@click.option(
    "--require-message-authenticator",
    type=SIGNATURES,
    help="Drop unsigned requests. A new value resets the learned setting.",
)
@click.option(
    "--limit-proxy-state",
    type=SIGNATURES,
    help="Drop unsigned requests with Proxy-State. A new value resets the learned setting.",
)
@click.option(
    "--password-verified", type=_YES_NO, help="Whether the client checks passwords itself (first factor `none`)."
)
@click.option(
    "--coa-port",
    type=click.IntRange(0, 65535),
    help="UDP port for Disconnect and CoA requests. 0 if the client accepts no such requests.",
)
@click.option(
    "--mac-form",
    "mac_forms",
    type=MAC_FORM,
    multiple=True,
    help="Form of MAC authentication bypass; repeatable. The given forms replace the present ones.",
)
@click.option("--no-mac-form", is_flag=True, help="Remove all forms of MAC authentication bypass.")
@click.option("--mac-password", metavar="-", help="Password of all stations, for the form `password`. Give -.")
@click.option("--tls-name", help="RadSec: name in the client's certificate. Give '' to remove it.")
@click.option("--tls-fingerprint", help="RadSec: SHA-256 of the client's certificate. Give '' to remove it.")
@click.pass_obj
def set_(
    line: CommandLine,
    /,
    *,
    name: str,
    org: int | None,
    tenant: int | None,
    secret: str | None,
    new_secret: bool,
    domains: tuple[str, ...],
    all_domains: bool,
    password_verified: str | None,
    mac_forms: tuple[str, ...],
    no_mac_form: bool,
    mac_password: str | None,
    **settings: str | int | None,
) -> None:
    """Change a RADIUS client. The change applies to the client's next packet. Settings without an option keep their
    values."""
    if secret is not None and new_secret:
        raise click.UsageError("--secret and --new-secret cannot be used together")
    if domains and all_domains:
        raise click.UsageError("--domain and --all-domains cannot be used together")
    if mac_forms and no_mac_form:
        raise click.UsageError("--mac-form and --no-mac-form cannot be used together")
    if secret not in (None, "-"):
        raise click.UsageError(f"--secret {ONLY_STDIN}")
    made = new_shared_secret() if new_secret else None
    given: Row = {_FIELDS[option]: value for option, value in settings.items() if value is not None}
    given |= mac_settings(line, mac_forms, mac_password, secret)
    if password_verified is not None:
        given["passwordVerified"] = password_verified == "yes"  # noqa: S105
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
    if made is not None:
        line.print(made)
    called = given.get("name") or found["name"]
    line.note(f"RADIUS client {called} is changed")
    if "address" in given and changed["signatureRequired"] and given.get("requireMessageAuthenticator") != "yes":
        line.note(f"unsigned packets are still dropped; if the client does not sign: sallyport client unlatch {called}")
    warn(line, changed["warnings"])


def mac_settings(line: CommandLine, forms: Sequence[str], password: str | None, secret: str | None) -> Row:
    """Return the fields of MAC authentication bypass for AddClient and UpdateClient. The password is read from standard
    input. password, secret: the options."""
    given: Row = {"macForms": list[JSON](forms)} if forms else {}
    if password is None:
        return given
    if password != "-":  # noqa: S105
        raise click.UsageError(f"--mac-password {ONLY_STDIN}")
    if secret == "-":  # noqa: S105
        raise click.UsageError("--secret and --mac-password cannot both read standard input: set one of them later")
    octets = line.read_secret("Password of all stations")
    if not octets:
        raise click.UsageError("--mac-password is empty")
    return {**given, "macPassword": {"hex": octets.hex()}}


def find(line: CommandLine, name: str, org: int | None, tenant: int | None) -> Row:
    """Return the RADIUS client with a name, including its orgId and tenantId. Raises NotFound."""
    if (org is None) != (tenant is None):
        raise click.UsageError("--org and --tenant go together: give both or neither")
    if org is not None:
        scope: Row = {"orgId": org, "tenantId": tenant}
        return named(line.listed(LIST, "clients", scope), "name", name, "RADIUS client") | scope
    found = named(line.listed_everywhere(LIST, "clients"), "name", name, "RADIUS client")
    return found | {"orgId": found["org"], "tenantId": found["tenant"]}


def warn(line: CommandLine, warnings: JSON) -> None:
    """Print the weaknesses of a client on standard error."""
    for warning in warnings if isinstance(warnings, list) else ():
        line.note(f"warning: {warning}")
