"""`sallyport directory add`, `set` and `check`: the settings of a directory. `add` and `set` test the settings before
they save them."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from sallyport.areas.directory.bodies import SaveDirectory
from sallyport.areas.directory.directory import READ_BY_SERVICE, DirectoryKind, kind_of
from sallyport.base.errors import Invalid, StartError
from sallyport.base.text import fold
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, named
from sallyport.shell.fields import by_options, check_is_dash, field_argument, field_option, option, pass_body
from sallyport.shell.options import in_domain

LIST = ("/api/v1/directory/list", "directories")
_MAX_FILE_SIZE = 1 << 20
_NEXT = {
    DirectoryKind.AGENT: "sallyport agent key create --kind directory --directory-name {name} --domain {domain} ...",
    DirectoryKind.LDIF: "sallyport directory import-ldif FILE --domain {domain} --directory {name}",
}
_OPTION_OF = {"clientSecret": "--client-secret", "apiToken": "--api-token", "tenant": "--entra-tenant"}
_FIELD = re.compile(rf"\b({'|'.join(_OPTION_OF)})\b")
_SYNC = "sallyport directory sync {name} --domain {domain} --wait; then `directory schedule`"


def _joined(_context: click.Context, _option: click.Parameter, urls: tuple[str, ...]) -> str:
    return " ".join(urls)


def _certificates(_context: click.Context, _option: click.Parameter, path: str | None) -> str | None:
    return _text(path) if path else path


_OPTIONS = (
    in_domain,
    option(SaveDirectory, "kind"),
    option(SaveDirectory, "appUrl", "--url", multiple=True, callback=_joined, metavar="URL"),
    option(SaveDirectory, "baseDN", "--base-dn", metavar="DN"),
    option(SaveDirectory, "filter", metavar="FILTER"),
    option(SaveDirectory, "bindDN", "--bind-dn", metavar="DN"),
    option(SaveDirectory, "startTls", "--start-tls/--no-start-tls"),
    option(
        SaveDirectory,
        "caCertificate",
        callback=_certificates,
        metavar="FILE",
        help="PEM file with trusted authorities. An empty name selects those of the system.",
    ),
    option(SaveDirectory, "tenant", "--entra-tenant", metavar="TENANT"),
    option(SaveDirectory, "clientId", metavar="ID"),
    option(SaveDirectory, "accountName", "--account", metavar="NAME"),
    option(SaveDirectory, "readDevices", "--read-devices/--no-read-devices"),
    field_option(
        "bindPassword",
        "--bind-password",
        "--client-secret",
        "--api-token",
        "secret",
        expose_value=True,
        metavar="-",
        help="The secret. Give - to read the secret from standard input.",
    ),
    click.option("--secret-file", metavar="FILE", help="Read the password, the token or the private key from a file."),
    click.option("--no-check", is_flag=True, help="Save the settings without a test."),
)
CommandT = TypeVar("CommandT", bound=Callable[..., object])


def _settings(command: CommandT) -> CommandT:
    for decorate in reversed(_OPTIONS):
        command = decorate(command)
    return command


@click.command()
@field_argument("directoryName", "name", expose_value=True)
@_settings
@pass_body
def add(
    line: CommandLine,
    given: Row,
    *,
    name: str,
    domain: str,
    secret: str | None,
    secret_file: str | None,
    no_check: bool,
) -> None:
    """Add a directory: LDAP, Entra ID, Okta, entries from an agent, or LDIF files. The settings are tested first."""
    given |= _secret(line, secret, secret_file)
    if any(fold(str(each["directoryName"])) == fold(name) for each in line.listed(*LIST, domain=domain)):
        raise StartError(f"the domain already has a directory {name}: change it with `sallyport directory set`")
    if not given.get("kind") and not given.get("appUrl"):
        raise click.UsageError("--url is missing: give it, or --kind agent, or --kind ldif")
    kind = DirectoryKind(str(given.get("kind") or kind_of(str(given["appUrl"]))))
    _save(line, domain, {"directoryName": name, **given}, check=not no_check and kind in READ_BY_SERVICE)
    line.note(f"directory {name} is added to {domain}")
    line.note("next: " + _NEXT.get(kind, _SYNC).format(name=shlex.quote(name), domain=shlex.quote(domain)))


@click.command("set")
@field_argument("directoryName", "name", expose_value=True)
@_settings
@pass_body
def set_(
    line: CommandLine,
    given: Row,
    *,
    name: str,
    domain: str,
    secret: str | None,
    secret_file: str | None,
    no_check: bool,
) -> None:
    """Change settings of a directory. The settings are tested before they are saved. Settings that are not given keep
    their values, and the secret too."""
    given |= _secret(line, secret, secret_file)
    if not given:
        raise click.UsageError("nothing to change: give an option, such as --filter")
    known = named(line.listed(*LIST, domain=domain), "directoryName", name, "directory")
    kind = str(given.get("kind") or known["kind"])
    if kind == DirectoryKind.LDIF and given.get("appUrl"):
        kind = kind_of(str(given["appUrl"]))
    _save(
        line, domain, {"directoryName": known["directoryName"], **given}, check=not no_check and kind in READ_BY_SERVICE
    )
    line.note(f"directory {known['directoryName']} is changed; the change takes effect when the directory is read next")


@click.command()
@click.argument("name")
@in_domain
@click.pass_obj
def check(line: CommandLine, *, name: str, domain: str) -> None:
    """Test a directory: connect, log in, read the first accounts."""
    found = named(line.listed(*LIST, domain=domain), "directoryName", name, "directory")
    tried = line.run("/api/v1/directory/check", {"directoryName": found["directoryName"]}, domain=domain)
    if not tried["usable"]:
        raise StartError(f"{found['directoryName']}: {_reason(tried)}")
    line.note(str(tried["message"]))


def _save(line: CommandLine, domain: str, body: Row, *, check: bool) -> None:
    """Save settings. If `check` is set, test them first. If the test fails, save nothing and raise StartError."""
    try:
        if check:
            tried = line.run("/api/v1/directory/check", body, domain=domain)
            if not tried["usable"]:
                raise StartError(f"nothing is saved: {_reason(tried)} (to save in spite of this: --no-check)")
            line.note(str(tried["message"]))
        line.run("/api/v1/saveDirectoryConfig", [body], domain=domain)
    except Invalid as error:
        if "needed again" not in str(error):
            raise
        raise StartError(
            "nothing is saved: the change would use the stored secret for another server or account; give the secret "
            "again with --bind-password - or --secret-file FILE"
        ) from None


def _reason(tried: Row) -> str:
    """Return the reason why a directory is not usable. Where the API's text names a field, the returned text names an
    option of `directory add` and `set`."""
    return by_options(_FIELD.sub(lambda found: _OPTION_OF[found[0]], str(tried["message"])), set_.params)


def _secret(line: CommandLine, secret: str | None, file: str | None) -> Row:
    """Return the field with the secret, if it is given on standard input or in a file."""
    check_is_dash(secret, "--bind-password", "--client-secret", "--api-token")
    if secret is not None and file is not None:
        raise click.UsageError("give either --secret-file, or one of --bind-password, --client-secret and --api-token")
    if file is None and secret is None:
        return {}
    text = _text(file).rstrip("\r\n") if file is not None else _utf8(line.read_secret("Secret"), "standard input")
    if not text:
        raise click.UsageError("the secret is empty: give it on standard input or in --secret-file")
    return {"bindPassword": text}


def _text(path: str) -> str:
    """Return the text of a file. Raises StartError."""
    try:
        with Path(path).open("rb") as file:
            octets = file.read(_MAX_FILE_SIZE)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
    return _utf8(octets, path)


def _utf8(octets: bytes, source: str) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise StartError(f"{source}: the secret is not UTF-8 text") from None
