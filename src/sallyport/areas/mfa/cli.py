"""`sallyport provider`: the MFA providers of a domain."""

import os
import sys
from pathlib import Path
from typing import Final

import click

from sallyport.areas.mfa.bodies import GetMfaProvider, SetMfaProvider
from sallyport.areas.mfa.fields import BUILT_IN, Fields, secret_field
from sallyport.base.text import nearest
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, domains, entries
from sallyport.shell.fields import CommandT, option, options, parameter_of, pass_body
from sallyport.shell.options import Group, as_json, json_form, option_name

_OTHER_NAMES: Final = {"domain": "--okta-domain"}
"""The options of fields whose name is that of an argument."""


COLUMNS: Final = ("provider", "isDefault", "strongest", "timeoutSeconds", "usedBy", "workedAt", "lastError")

_one = option(GetMfaProvider, "provider", help="Name of one of the domain's providers. Default: the default provider.")


def _plain(fields: type[Fields]) -> list[str]:
    """Return the fields of a provider that are not secret."""
    return [name for name in fields.model_fields if name != secret_field(fields)]


def _provider_options(command: CommandT) -> CommandT:
    """Add an option to a command for each field of the built-in providers that is not secret. The help says which
    providers have the field."""
    having: dict[str, dict[str, type[Fields]]] = {}
    for kind, fields in BUILT_IN.items():
        for name in _plain(fields):
            having.setdefault(name, {})[kind] = fields
    for name, kinds in reversed(having.items()):
        text = " ".join(f"{kind}: {fields.model_fields[name].description}" for kind, fields in kinds.items())
        names = [_OTHER_NAMES[name]] if name in _OTHER_NAMES else []
        command = option(next(iter(kinds.values())), name, *names, required=False, help=text)(command)
    return command


def _configuration(command: CommandT) -> CommandT:
    """Add options and arguments to a command: those of a provider's configuration."""
    command = options(SetMfaProvider, "timeoutSeconds")(command)
    command = click.option(
        "--secret-field", "name_of_secret", metavar="NAME", help="Name of the secret field of an installed provider."
    )(command)
    command = click.option(
        "--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of an installed provider."
    )(command)
    command = click.option(
        "--secret",
        metavar="-|FILE",
        help="File with the secret (skey, API token, admin token or shared secret) in its first line. Give - to read "
        "the secret from standard input.",
    )(command)
    command = _provider_options(command)
    command = click.argument("kind", metavar="PROVIDER")(command)
    return click.argument("domain", metavar="DOMAIN")(command)


@click.group(cls=Group, first=("set", "check", "add"))
def provider() -> None:
    """The MFA providers of a domain: set, check, show or remove them."""


@provider.command("set")
@_configuration
@pass_body
def set_(line: CommandLine, given: Row, /, *, domain: str, kind: str, **further: object) -> None:
    """Set the default MFA provider of a domain. It applies from the next login on.

    PROVIDER is totp, duo, okta, privacyidea, webhook, radius, wallet, own (the factors of this service, such as
    passkeys), or the name of an installed provider. The help of an option names the providers that have it.
    """
    body = _body(line, given, kind.casefold(), **further)  # type: ignore[arg-type]  # options of `_configuration`
    line.run("/ad/SetMFAProvider", body, domain=domain)
    _note_what_own_cannot_do(line, body, domain)
    line.note(f"{body['provider']} is the MFA provider of {domain}; try it: sallyport provider check {domain}")


@provider.command()
@_configuration
@pass_body
def add(line: CommandLine, given: Row, /, *, domain: str, kind: str, **further: object) -> None:
    """Add an MFA provider beside the default one of a domain, or change it. Only login rules that name it ask it.

    PROVIDER and the options are those of `provider set`.
    """
    body = _body(line, given, kind.casefold(), **further)  # type: ignore[arg-type]  # options of `_configuration`
    line.run("/ad/AddMFAProvider", body, domain=domain)
    _note_what_own_cannot_do(line, body, domain)
    line.note(
        f"{body['provider']} is an MFA provider of {domain}; a rule names it: sallyport rule add NAME --action "
        f"mfa_required --provider {body['provider']} --domain {domain}"
    )


def _note_what_own_cannot_do(line: CommandLine, body: Row, domain: str) -> None:
    """Print the result of the check of the provider `own`. The check asks no server, and names the products of the
    domain that cannot have the binding."""
    if body["provider"] == "own":
        line.note(str(line.run("/ad/CheckMFAProvider", {"provider": "own"}, domain=domain)["message"]))


def _body(
    line: CommandLine,
    given: Row,
    kind: str,
    *,
    secret: str | None,
    fields: tuple[str, ...],
    name_of_secret: str | None,
) -> Row:
    """Return the body of a request that stores a provider. Raises UsageError."""
    for name in given.keys() - SetMfaProvider.model_fields.keys():
        if kind in BUILT_IN and name not in BUILT_IN[kind].model_fields:
            takes = " ".join(map(_option, _plain(BUILT_IN[kind]))) or "none"
            raise click.UsageError(f"{_option(name)} is no option of {kind}; its options are: {takes}")
    given = given | _fields(kind, fields)
    own = _secret_name(kind)
    secret_name = own or name_of_secret
    if secret is not None:
        if secret_name is None:
            hint = "has no secret" if kind in BUILT_IN else "needs --secret-field NAME, the name of its secret field"
            raise click.UsageError(f"{kind} {hint}{nearest(kind, BUILT_IN)}")
        given[secret_name] = _secret(line, secret_name, secret)
    elif own is not None and BUILT_IN[kind].model_fields[own].is_required():
        raise click.UsageError(f"{kind} needs its {secret_name}: --secret - (standard input) or --secret FILE")
    return {**given, "provider": kind}


@provider.command("list")
@click.argument("domain", metavar="DOMAIN")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the MFA providers of a domain, the default one first, with the login rules that name them."""
    found = line.run("/ad/ListMFAProviders", domain=domain)["providers"]
    line.print_rows(entries(found), COLUMNS, form)


@provider.command()
@click.argument("domain", metavar="DOMAIN")
@_one
@as_json
@pass_body
def show(line: CommandLine, body: Row, *, domain: str, as_json: bool) -> None:
    """Show an MFA provider of a domain, without its secrets."""
    told = line.run("/ad/GetMFAProvider", body, domain=domain)
    fields = {name: value for name, value in told.items() if name not in ("code", "status")}
    if as_json:
        line.print_json(fields)
        return
    line.print_rows([{"field": name, "value": value} for name, value in fields.items()], ("field", "value"))


@provider.command()
@click.argument("domain", metavar="DOMAIN")
@_one
@as_json
@pass_body
def check(line: CommandLine, body: Row, *, domain: str, as_json: bool) -> None:
    """Test whether an MFA provider of a domain answers and accepts its keys. No prompt is sent.

    If the provider does not work, the command prints the cause and ends with exit status 1.
    """
    told = line.run("/ad/CheckMFAProvider", body, domain=domain)
    if as_json:
        line.print_json({name: told[name] for name in ("provider", "works", "message", "problem")})
    else:
        line.print(f"{told['provider']}: {told['message']}")
    click.get_current_context().exit(0 if told["works"] else 1)


@provider.command()
@click.argument("domain", metavar="DOMAIN")
@_one
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str, yes: bool) -> None:
    """Remove an MFA provider of a domain. A provider that login rules name is not removed.

    Without a default provider, the domain's fallback action decides each login in enforce mode that no other provider
    is named for.
    """
    for each in () if body else domains(line, domain):
        if each["enforcementMode"] == "enforce" and not yes:
            outcome = (
                f"without a provider, the fallback action of the domain ({each['fallbackAction']}) decides each login"
            )
            if not sys.stdin.isatty():
                raise click.UsageError(f"{outcome}; --yes removes the provider")
            click.confirm(f"{outcome}. Remove the provider?", abort=True, err=True)
    line.run("/ad/DeleteMFAProvider", body, domain=domain)
    line.note(f"the MFA provider {body.get('provider', '')} of {domain} is removed".replace("  ", " "))


def _option(field: str) -> str:
    """Return the option that fills a field of a provider."""
    found = parameter_of([field], set_.params)
    return field if found is None else option_name(found)


def _secret_name(kind: str) -> str | None:
    return secret_field(BUILT_IN[kind]) if kind in BUILT_IN else None


def _fields(kind: str, given: tuple[str, ...]) -> Row:
    """Parse options of the form NAME=VALUE. A secret is refused, because all users of the machine can see a command
    line."""
    fields: Row = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.UsageError("--field is not understood; give NAME=VALUE")
        if name == _secret_name(kind):
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
