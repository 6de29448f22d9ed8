"""The command `sallyport domain first-factor`, which sets the first factor of a domain, and the command `domain check`,
which tries a login."""

import os
import sys
from pathlib import Path
from shlex import quote

import click

from sallyport.areas.domains.cli import domain
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.first.fields import LdapFields
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, note_warnings
from sallyport.shell.exits import ExitStatus
from sallyport.shell.fields import field_option, option, pass_body
from sallyport.shell.options import InputFile, json_answer

_FILE = InputFile()
_PEM = "-----BEGIN CERTIFICATE-----"


def _text(_context: click.Context, _option: click.Parameter, path: Path | None) -> str | None:
    return None if path is None else path.read_text(errors="replace")


@domain.command("first-factor")
@click.argument("name", metavar="NAME|ID")
@click.argument("kind", type=click.Choice([kind.value for kind in FirstFactor]), required=False)
@option(LdapFields, "ldap.servers", "--ldap-server", required=False, metavar="URL")
@option(LdapFields, "ldap.baseDN", required=False, metavar="DN")
@option(LdapFields, "ldap.bindDN", metavar="DN")
@click.option(
    "--bind-password",
    type=click.Choice(["-"]),
    help="Password of the account in --bind-dn. Give - to read the password from standard input.",
)
@option(LdapFields, "ldap.userFilter", metavar="FILTER")
@option(LdapFields, "ldap.startTls", "--start-tls/--no-start-tls", default=None)
@option(
    LdapFields,
    "ldap.caCertificate",
    type=_FILE,
    callback=_text,
    help="PEM file of the authorities that sign the LDAP servers' certificates.",
)
@option(LdapFields, "ldap.cacheSeconds")
@option(LdapFields, "ldap.timeoutSeconds")
@click.option(
    "--code-digits",
    type=click.Choice(["6", "8"]),
    help="Number of digits of the one-time code that users append to the password.",
)
@option(LdapFields, "ldap.winbind", "--winbind/--no-winbind", default=None)
@option(LdapFields, "ldap.winbindDomain", metavar="NAME")
@field_option(
    "radius.servers",
    "--radius-server",
    "radius_servers",
    multiple=True,
    expose_value=True,
    metavar="HOST[:PORT]",
    help="Address of a RADIUS server; repeatable.",
)
@field_option(
    "radius.servers.secret",
    "--radius-secret",
    "radius_secret",
    type=click.Choice(["-"]),
    expose_value=True,
    help="Shared secret of the RADIUS servers. Give - to read the secret from standard input.",
)
@field_option(
    "radius.servers.tls",
    "--radius-tls",
    "radius_tls",
    type=_FILE,
    expose_value=True,
    metavar="FILE.pem",
    help="RadSec: PEM file of the client certificate; its key is in FILE.key.",
)
@field_option(
    "radius.servers.tls.caCertificate",
    "--radius-tls-ca",
    "radius_tls_ca",
    type=_FILE,
    expose_value=True,
    metavar="FILE",
    help="RadSec: PEM file of the authorities that sign the RADIUS servers' certificates.",
)
@field_option(
    "radius.servers.tls.serverName",
    "--radius-tls-name",
    "radius_tls_name",
    metavar="NAME",
    expose_value=True,
    help="RadSec: name in the RADIUS servers' certificates, if it differs from the host.",
)
@json_answer
@pass_body
def first_factor(
    line: CommandLine,
    body: Row,
    *,
    name: str,
    kind: str | None,
    bind_password: str | None,
    code_digits: str | None,
    radius_servers: tuple[str, ...],
    radius_secret: str | None,
    radius_tls: Path | None,
    radius_tls_ca: Path | None,
    radius_tls_name: str | None,
) -> None:
    """Set the first factor of a domain. Without a kind, show the first factor without its secrets.

    If options of a kind are given, they replace the former configuration of this kind. Without options, the former
    configuration stays.
    """
    code: Row = {"codeDigits": None if code_digits is None else int(code_digits)}
    ldap = body.get("ldap", {})
    fields: dict[str, Row] = {
        "ldap": _given(
            (ldap if isinstance(ldap, dict) else {})
            | {"bindPassword": _secret(line, "Password of the account", bind_password)}
            | (code if kind != "radius" else {})
        ),
        "radius": _radius(
            radius_servers,
            _secret(line, "Secret", radius_secret),
            _tls(radius_tls, radius_tls_ca, radius_tls_name),
        )
        | (_given(code) if kind == "radius" else {}),
    }
    misplaced = [other for other, values in fields.items() if values and other != kind]
    if misplaced:
        raise click.UsageError(
            f"some options are for the kind {misplaced[0]}: give them with `first-factor NAME {misplaced[0]}`"
        )
    if kind is None:
        line.print_json(_shown(line, name))
        return
    chosen: Row = {kind: fields[kind]} if fields.get(kind) else {}
    warnings = line.run("/ad/SetFirstFactor", {"firstFactor": kind, **chosen}, domain=name)["warnings"]
    line.print_json(_shown(line, name))
    hint = "" if kind == "web" else f"; see: sallyport domain check {quote(name)} --user USER"
    note_warnings(line, warnings, hint)


@domain.command()
@click.argument("name", metavar="NAME|ID")
@field_option("userName", "--user", "user", expose_value=True, required=True, help="User name, as typed at a device.")
@click.option(
    "--password",
    type=click.Choice(["-"]),
    help="Password of the user. Give - to read the password from standard input. Default: the command asks for "
    "the password.",
)
@click.option(
    "--mschap", is_flag=True, help="Check the password by MS-CHAPv2, as Wi-Fi and VPN clients do, instead of PAP."
)
@json_answer
@click.pass_context
def check(ctx: click.Context, *, name: str, user: str, password: str | None, mschap: bool) -> None:
    """Check a name and a password with a domain's first factor, and print each step.

    The check is not recorded as a login, and asks for no second factor. A directory counts a wrong password as usual.
    """
    line: CommandLine = ctx.obj
    if password is None and not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal: add --password - to read the password from it")
    octets = line.read_secret("Password", confirm=False)
    body: Row = {"userName": user, "password": {"hex": octets.hex()}, "mschap": mschap}
    told = line.run("/ad/CheckFirstFactor", body, domain=name)
    steps = told["steps"]
    line.print_answer(told, "\n".join(map(str, steps if isinstance(steps, list) else ())))
    ctx.exit(ExitStatus.FAILED if told["reason"] else ExitStatus.DONE)


def _shown(line: CommandLine, name: str) -> Row:
    found = _given({**line.run("/ad/GetFirstFactor", domain=name), "code": None, "status": None})
    return {field: _without_pem(value) for field, value in found.items()}


def _without_pem(value: JSON) -> JSON:
    """Return a value without its PEM texts. Each PEM text is replaced by the subject, the fingerprint and the end time
    of its certificates."""
    if isinstance(value, dict):
        return {name: _without_pem(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_pem(each) for each in value]
    return _certificates(value) if isinstance(value, str) and _PEM in value else value


def _certificates(text: str) -> list[JSON]:
    # these imports take 30 ms, and other commands do not need them
    from cryptography import x509

    from sallyport.certs.authority import fingerprint

    return [
        {
            "subject": each.subject.rfc4514_string(),
            "sha256": fingerprint(each),
            "notAfter": f"{each.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}",
        }
        for each in x509.load_pem_x509_certificates(text.encode())
    ]


def _radius(servers: tuple[str, ...], secret: str | None, tls: Row | None) -> Row:
    shared = _given({"secret": secret, "tls": tls})
    return {"servers": [{**_split(server), **shared} for server in servers]} if servers else shared


def _tls(ours: Path | None, authority: Path | None, name: str | None) -> Row | None:
    """Return the fields for RADIUS over TLS. Return None if no client certificate is given.

    ours: the file of the client certificate. The file of its key must be in the same directory, as `cert issue` stores
    it.
    """
    if ours is None:
        if authority is not None or name is not None:
            raise click.UsageError("--radius-tls-ca and --radius-tls-name require --radius-tls")
        return None
    key = ours.with_suffix(".key")
    if not key.is_file():
        raise click.UsageError(f"--radius-tls requires the key of the certificate in the file {key}")
    trusted = authority.read_text(errors="replace") if authority else None
    pair = {"clientCertificate": ours.read_text(errors="replace"), "clientKey": key.read_text(errors="replace")}
    return _given({**pair, "caCertificate": trusted, "serverName": name})


def _split(server: str) -> Row:
    host, colon, port = server.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.startswith("[")):
        return {"host": host.strip("[]"), "port": int(port)}
    return {"host": server.strip("[]")}


def _secret(line: CommandLine, prompt: str, source: str | None) -> str | None:
    return None if source is None else os.fsdecode(line.read_secret(prompt))


def _given(values: Row) -> Row:
    return {name: value for name, value in values.items() if value is not None}
