"""`sallyport provider`: the MFA provider of a domain."""

import os
import sys
from pathlib import Path
from typing import Final

import click

from sallyport.areas.mfa.bodies import SetMfaProvider
from sallyport.base.text import nearest
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, domains
from sallyport.shell.fields import field_option, options, parameter_of, pass_body
from sallyport.shell.options import Group, as_json, option_name

SECRETS: Final = {
    "duo": "skey",
    "okta": "apiToken",
    "privacyidea": "adminToken",
    "webhook": "secret",
    "radius": "secret",
}
"""The name of the secret field, for each built-in provider that has one."""
PLAIN: Final[dict[str, tuple[str, ...]]] = {
    "totp": (),
    "duo": ("ikey", "host"),
    "okta": ("domain",),
    "privacyidea": ("url", "realm"),
    "webhook": ("url",),
    "radius": ("host", "port"),
    "wallet": ("issuerDid", "schemaId"),
}
"""The names of the fields that are not secret, for each built-in provider."""


@click.group(cls=Group, first=("set", "check"))
def provider() -> None:
    """The MFA provider of a domain: set, check, show or remove it."""


@provider.command("set")
@click.argument("domain", metavar="DOMAIN")
@click.argument("kind", metavar="PROVIDER")
@field_option("ikey", "--ikey", help="duo: the integration key.")
@field_option("host", "--host", help="duo: the API host. radius: the name or address of the server.")
@field_option("domain", "--okta-domain", metavar="HOST", help="okta: Okta domain, such as example.okta.com.")
@field_option("url", "--url", help="privacyidea, webhook: URL of the server, https://...")
@field_option("realm", "--realm", help="privacyidea: the realm of the users. Default: the server's own default.")
@field_option("port", "--port", type=int, help="radius: UDP port of the server. Default: 1812.")
@field_option("issuerDid", "--issuer-did", metavar="DID", help="wallet: the DID of the issuer of the credential.")
@field_option("schemaId", "--schema-id", type=int, metavar="N", help="wallet: the id of the credential's schema.")
@click.option(
    "--secret",
    metavar="-|FILE",
    help="File with the secret (skey, API token, admin token or shared secret) in its first line. Give - to read the "
    "secret from standard input.",
)
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of an installed provider.")
@click.option("--secret-field", metavar="NAME", help="Name of the secret field of an installed provider.")
@options(SetMfaProvider, "timeoutSeconds")
@pass_body
def set_(
    line: CommandLine,
    given: Row,
    *,
    domain: str,
    kind: str,
    secret: str | None,
    fields: tuple[str, ...],
    secret_field: str | None,
) -> None:
    """Set the MFA provider of a domain. It applies from the next login on.

    PROVIDER is totp, duo (--ikey --host --secret), okta (--okta-domain --secret), privacyidea (--url --realm --secret),
    webhook (--url --secret), radius (--host --port --secret), wallet (--issuer-did --schema-id), or the name of an
    installed provider.
    """
    kind = kind.casefold()
    for name in given.keys() - SetMfaProvider.model_fields.keys():
        if kind in PLAIN and name not in PLAIN[kind]:
            takes = " ".join(map(_option, PLAIN[kind])) or "none"
            raise click.UsageError(f"{_option(name)} is no option of {kind}; its options are: {takes}")
    given |= _fields(kind, fields)
    secret_name = SECRETS.get(kind, secret_field)
    if secret is not None:
        if secret_name is None:
            hint = "has no secret" if kind in PLAIN else "needs --secret-field NAME, the name of its secret field"
            raise click.UsageError(f"{kind} {hint}{nearest(kind, PLAIN)}")
        given[secret_name] = _secret(line, secret_name, secret)
    elif kind in SECRETS and kind != "privacyidea":
        raise click.UsageError(f"{kind} needs its {secret_name}: --secret - (standard input) or --secret FILE")
    line.run("/ad/SetMFAProvider", {**given, "provider": kind}, domain=domain)
    line.note(f"{kind} is the MFA provider of {domain}; try it: sallyport provider check {domain}")


@provider.command()
@click.argument("domain", metavar="DOMAIN")
@as_json
@click.pass_obj
def show(line: CommandLine, *, domain: str, as_json: bool) -> None:
    """Show the MFA provider of a domain, without its secrets."""
    told = line.run("/ad/GetMFAProvider", domain=domain)
    fields = {name: value for name, value in told.items() if name not in ("code", "status")}
    if as_json:
        line.print_json(fields)
        return
    line.print_rows([{"field": name, "value": value} for name, value in fields.items()], ("field", "value"))


@provider.command()
@click.argument("domain", metavar="DOMAIN")
@as_json
@click.pass_context
def check(ctx: click.Context, *, domain: str, as_json: bool) -> None:
    """Test whether the MFA provider of a domain answers and accepts its keys. No prompt is sent.

    If the provider does not work, the command prints the cause and ends with exit status 1.
    """
    line: CommandLine = ctx.obj
    told = line.run("/ad/CheckMFAProvider", domain=domain)
    if as_json:
        line.print_json({name: told[name] for name in ("provider", "works", "message", "problem")})
    else:
        line.print(f"{told['provider']}: {told['message']}")
    ctx.exit(0 if told["works"] else 1)


@provider.command()
@click.argument("domain", metavar="DOMAIN")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def remove(line: CommandLine, *, domain: str, yes: bool) -> None:
    """Remove the MFA provider of a domain. In enforce mode, the domain's fallback action then decides each login."""
    for each in domains(line, domain):
        if each["enforcementMode"] == "enforce" and not yes:
            outcome = (
                f"without a provider, the fallback action of the domain ({each['fallbackAction']}) decides each login"
            )
            if not sys.stdin.isatty():
                raise click.UsageError(f"{outcome}; --yes removes the provider")
            click.confirm(f"{outcome}. Remove the provider?", abort=True, err=True)
    line.run("/ad/DeleteMFAProvider", domain=domain)
    line.note(f"the MFA provider of {domain} is removed")


def _option(field: str) -> str:
    """Return the option that fills a field of a provider."""
    found = parameter_of([field], set_.params)
    return field if found is None else option_name(found)


def _fields(kind: str, given: tuple[str, ...]) -> Row:
    """Parse options of the form NAME=VALUE. A secret is refused, because all users of the machine can see a command
    line."""
    fields: Row = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.UsageError("--field is not understood; give NAME=VALUE")
        if name == SECRETS.get(kind):
            raise click.UsageError(f"{name} is a secret: --secret - (standard input) or --secret FILE")
        fields[name] = value
    return fields


def _secret(line: CommandLine, name: str, source: str) -> str:
    if source == "-":
        octets = line.read_secret(name)
    else:
        try:
            octets = Path(source).read_bytes().partition(b"\n")[0].removesuffix(b"\r")
        except OSError as error:
            raise click.UsageError(
                f"--secret takes - (standard input) or a file that can be read: {error.strerror}"
            ) from error
    if not octets:
        raise click.UsageError(f"the {name} is empty")
    return os.fsdecode(octets)
