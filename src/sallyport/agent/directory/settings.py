"""The `[directory]` table of the agent's configuration file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from sallyport.agent.file import AgentFile, SettingsTable
from sallyport.areas.directory.directory import in_clear
from sallyport.areas.directory.reading.connection import Account
from sallyport.areas.directory.reading.fields import Filter, LdapUrl, Line, Name
from sallyport.areas.directory.reading.reader import LdapSource
from sallyport.areas.directory.reading.search import ACCOUNTS
from sallyport.areas.directory.reading.server import Server
from sallyport.base.validation import refusal
from sallyport.outgoing.fields import Certificates

MAX_SERVERS: Final = 8
MAX_ATTRIBUTES: Final = 64
_MAX_ID: Final = 2**63 - 1
_MAX_PEM: Final = 65_536


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """The settings of a directory agent. name: the name that the directory has in the service."""

    domain_id: int
    name: str
    source: LdapSource
    interval_s: float
    full_every_s: float


def settings_of(file: AgentFile) -> DirectorySettings:
    """Return the settings in the `[directory]` table of an agent's file. Raises ConfigError if a key is missing,
    unknown or wrong. The message does not contain values."""
    table = file.own
    found = DirectorySettings(
        domain_id=table.number("domain", 0, 1, _MAX_ID),
        name=table.text("name"),
        source=_source(table),
        interval_s=60.0 * table.number("interval_minutes", 5, 1, 7 * 24 * 60),
        full_every_s=3600.0 * table.number("full_every_hours", 24, 1, 366 * 24),
    )
    table.end()
    return found


def _source(table: SettingsTable) -> LdapSource:
    start_tls = table.flag("start_tls", False)
    urls = [_checked(LdapUrl, table, "servers", url) for url in table.texts("servers")]
    if not 1 <= len(urls) <= MAX_SERVERS:
        raise table.wrong("servers", f"must be 1 to {MAX_SERVERS} URLs such as ldaps://dc1.example.com")
    if any(in_clear(url) for url in urls) and not start_tls:
        raise table.wrong(
            "servers",
            "must begin with ldaps://, or start_tls must be true; otherwise passwords would be sent unencrypted",
        )
    attributes = table.texts("attributes")
    if len(attributes) > MAX_ATTRIBUTES or not all(each.isascii() and _is_attribute(each) for each in attributes):
        raise table.wrong("attributes", f"must be at most {MAX_ATTRIBUTES} names of attributes")
    pattern = table.text("filter", "")
    return LdapSource(
        servers=[Server(url, start_tls, trusted="ca_certificate") for url in urls],
        base=_checked(Name, table, "base_dn", table.text("base_dn")),
        account=_account(table),
        accounts=_checked(Filter, table, "filter", pattern) if pattern else ACCOUNTS,
        attributes=attributes,
        authorities=_authorities(table),
    )


def _account(table: SettingsTable) -> Account | None:
    name, secret = table.text("bind_dn", ""), table.text("bind_secret", "")
    if bool(name) != bool(secret):
        raise table.wrong("bind_secret" if name else "bind_dn", "is missing")
    return Account(_checked(Line, table, "bind_dn", name), secret) if name else None


def _authorities(table: SettingsTable) -> str | None:
    """Return the trusted certificates in PEM, or None if the file has no ca_certificate. The value of ca_certificate is
    either the certificates themselves or the path of a PEM file."""
    text = table.long_text("ca_certificate")
    if not text:
        return None
    if not text.lstrip().startswith("-----BEGIN"):
        try:
            with Path(text).open(encoding="ascii") as file:
                text = file.read(_MAX_PEM + 1)
        except (OSError, ValueError) as error:
            raise table.wrong("ca_certificate", "is not a PEM file of certificates") from error
    return _checked(Certificates, table, "ca_certificate", text)


def _checked(kind: type[str], table: SettingsTable, name: str, value: str) -> str:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        wanted = refusal(error)
        raise table.wrong(name, wanted.fields[0].message if wanted.fields else str(wanted)) from None


def _is_attribute(name: str) -> bool:
    return name[:1].isalpha() and all(each.isalnum() or each in "-.;" for each in name)
