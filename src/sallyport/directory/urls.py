"""Where a directory is, as its appUrl says: one URL or, of an LDAP directory, several."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from sallyport.directory.model import DirectoryKind

_OKTA: Final = (".okta.com", ".oktapreview.com", ".okta-emea.com")
_PORTS: Final = {"ldaps": 636, "https": 443, "http": 80}
_LDAP_PORT: Final = 389


def hosts_of(app_url: str) -> list[tuple[str, int]]:
    """The hosts, in lower case, and their ports; what is no URL is left out."""
    return list(_hosts(app_url))


def kind_of(app_url: str) -> DirectoryKind:
    """What is at a URL, as far as it tells."""
    host = next((host for host, _ in _hosts(app_url)), "")
    if host.endswith(_OKTA):
        return DirectoryKind.OKTA
    return DirectoryKind.GRAPH if host == "graph.microsoft.com" else DirectoryKind.LDAP


def _hosts(app_url: str) -> Iterator[tuple[str, int]]:
    for each in app_url.replace(",", " ").split():
        try:
            parts = urlsplit(each if "//" in each else f"//{each}")
            host, port = parts.hostname, parts.port
        except ValueError:
            continue
        if host:
            yield host, port or _PORTS.get(parts.scheme, _LDAP_PORT)
