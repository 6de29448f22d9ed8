"""`sallyport domain first-factor` and `domain check`: the first factor of a domain, and a trial login."""

import os
import sys
from pathlib import Path

import click

from sallyport.base.command import CommandLine
from sallyport.base.options import InputFile
from sallyport.base.wire import Row

_FILE = InputFile()
KINDS = ("local", "ldap", "radius", "none")


@click.command("first-factor")
@click.argument("name", metavar="NAME|ID")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.option("--ldap-server", "servers", multiple=True, metavar="URL", help="ldaps:// or ldap://; may be repeated.")
@click.option("--base-dn", metavar="DN", help="Where users are looked for.")
@click.option("--bind-dn", metavar="DN", help="The account for the search; anonymous without it.")
@click.option("--bind-password", type=click.Choice(["-"]), help="Its password, from standard input.")
@click.option("--user-filter", metavar="FILTER", help="Finds a user; {user} is the name.")
@click.option("--start-tls/--no-start-tls", default=None, help="Encrypt ldap:// connections.")
@click.option("--ca-certificate", type=_FILE, help="In PEM.")
@click.option("--cache-seconds", type=int, metavar="N", help="How long a right password is remembered.")
@click.option("--timeout-seconds", type=int, metavar="N", help="For a login in all.")
@click.option("--code-digits", type=click.Choice(["6", "8"]), help="How long a code typed behind the password is.")
@click.option("--winbind/--no-winbind", default=None, help="Check MS-CHAP through the host's winbind.")
@click.option("--winbind-domain", metavar="NAME", help="The domain's name there; without it, the host's own.")
@click.option("--radius-server", "radius_servers", multiple=True, metavar="HOST[:PORT]", help="May be repeated.")
@click.option("--radius-secret", type=click.Choice(["-"]), help="The RADIUS servers' secret, from standard input.")
@click.option("--radius-tls", type=_FILE, metavar="FILE.pem", help="RadSec: our certificate, with FILE.key beside it.")
@click.option("--radius-tls-ca", type=_FILE, metavar="FILE", help="Who signs the servers' certificates, in PEM.")
@click.option("--radius-tls-name", metavar="NAME", help="In the servers' certificates, where it is not the host.")
@click.pass_obj
def first_factor(
    line: CommandLine,
    *,
    name: str,
    kind: str | None,
    servers: tuple[str, ...],
    base_dn: str | None,
    bind_dn: str | None,
    bind_password: str | None,
    user_filter: str | None,
    start_tls: bool | None,
    ca_certificate: Path | None,
    cache_seconds: int | None,
    timeout_seconds: int | None,
    code_digits: str | None,
    winbind: bool | None,
    winbind_domain: str | None,
    radius_servers: tuple[str, ...],
    radius_secret: str | None,
    radius_tls: Path | None,
    radius_tls_ca: Path | None,
    radius_tls_name: str | None,
) -> None:
    """Set the first factor of a domain; without a kind, show it without its secrets.

    The options of a kind replace its former configuration; without options, the former one is kept.
    """
    ldap: Row = {
        "servers": list(servers) or None,
        "baseDN": base_dn,
        "bindDN": bind_dn,
        "userFilter": user_filter,
        "startTls": start_tls,
        "caCertificate": ca_certificate.read_text(errors="replace") if ca_certificate else None,
        "cacheSeconds": cache_seconds,
        "timeoutSeconds": timeout_seconds,
        "winbind": winbind,
        "winbindDomain": winbind_domain,
    }
    code: Row = {"codeDigits": None if code_digits is None else int(code_digits)}
    fields: dict[str, Row] = {
        "ldap": _given(
            ldap
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
        raise click.UsageError(f"options of {misplaced[0]} are for `first-factor NAME {misplaced[0]}`")
    if kind is None:
        line.print_json(_shown(line, name))
        return
    chosen: Row = {kind: fields[kind]} if fields.get(kind) else {}
    line.run("/ad/SetFirstFactor", {"firstFactor": kind, **chosen}, domain=name)
    line.print_json(_shown(line, name))


@click.command()
@click.argument("name", metavar="NAME|ID")
@click.option("--user", required=True, help="As a person types it at a device.")
@click.option("--password", type=click.Choice(["-"]), help="- reads standard input; else it is asked for.")
@click.option("--mschap", is_flag=True, help="Bring it by MS-CHAPv2, as Wi-Fi and VPN clients do, not by PAP.")
@click.pass_context
def check(ctx: click.Context, *, name: str, user: str, password: str | None, mschap: bool) -> None:
    """Check a name and a password at a domain's first factor, and print each step.

    It is not recorded as a login and asks for no second factor; a directory counts a wrong password as usual.
    """
    line: CommandLine = ctx.obj
    if password is None and not sys.stdin.isatty():
        raise click.UsageError("--password - reads the password from standard input, which is no terminal")
    octets = line.read_secret("Password", confirm=False)
    body: Row = {"userName": user, "password": {"hex": octets.hex()}, "mschap": mschap}
    told = line.run("/ad/CheckFirstFactor", body, domain=name)
    steps = told["steps"]
    for step in steps if isinstance(steps, list) else ():
        line.print(str(step))
    ctx.exit(1 if told["reason"] else 0)


def _shown(line: CommandLine, name: str) -> Row:
    return _given({**line.run("/ad/GetFirstFactor", domain=name), "code": None, "status": None})


def _radius(servers: tuple[str, ...], secret: str | None, tls: Row | None) -> Row:
    shared = _given({"secret": secret, "tls": tls})
    return {"servers": [{**_split(server), **shared} for server in servers]} if servers else shared


def _tls(ours: Path | None, authority: Path | None, name: str | None) -> Row | None:
    """Return the TLS fields; None without a client certificate. `cert issue` makes one, with its key beside it."""
    if ours is None:
        if authority is not None or name is not None:
            raise click.UsageError("--radius-tls-ca and --radius-tls-name need --radius-tls")
        return None
    key = ours.with_suffix(".key")
    if not key.is_file():
        raise click.UsageError(f"--radius-tls needs the key of the certificate at {key}")
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
