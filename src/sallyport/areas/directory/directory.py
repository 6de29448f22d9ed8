"""The values of directories: a directory, its configuration, and the people and groups in lists."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit


class DirectoryKind(StrEnum):
    """The kind of a directory, which says where its entries come from."""

    LDAP = "ldap"
    GRAPH = "graph"
    OKTA = "okta"
    AGENT = "agent"
    LDIF = "ldif"


CLOUD: Final = frozenset({DirectoryKind.GRAPH, DirectoryKind.OKTA})
READ_BY_SERVICE: Final = frozenset({DirectoryKind.LDAP, *CLOUD})
LDIF_NAME: Final = "LDIF"
"""The name of the directory for LDIF files that are imported without a directory name."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A stored directory. settings, mapping: JSON objects. secret: the encrypted secret."""

    id: int
    domain_id: int
    name: str
    kind: str
    account_name: str
    app_url: str
    settings: str
    secret: bytes | None
    cursor: str
    mapping: str
    created_at: int
    updated_at: int

    def __repr__(self) -> str:
        return f"Directory(id={self.id}, domain_id={self.domain_id}, name={self.name!r})"


USER_COUNT: Final = "directory_users"
CLOUD_USER_COUNT: Final = "directory_users/cloud"
GROUP_COUNT: Final = "directory_groups"
"""The names of a domain's counters (`store.counters`)."""


@dataclass(frozen=True, slots=True)
class User:
    """A person of a directory. login: the login name in the directory. name: the login name after field mapping.
    source: the kind of the directory. fields: the mapped fields as JSON."""

    id: int
    domain_id: int
    directory_id: int
    dn: str
    login: str
    name: str
    display_name: str
    email: str
    upn: str
    status: str
    fields: str
    source: str
    directory_name: str


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a directory. members: the number of direct members. mapping: the group's own mapping as JSON."""

    id: int
    domain_id: int
    directory_id: int
    dn: str
    name: str
    members: int
    mapping: str


@dataclass(frozen=True, slots=True)
class DirectoryConfiguration:
    """New values of a directory. None keeps the stored value. An empty secret keeps the stored secret."""

    name: str
    kind: DirectoryKind | None = None
    account_name: str | None = None
    app_url: str | None = None
    settings: Mapping[str, str | None] | None = None
    secret: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request to read a directory once.

    name: the name of the directory. If the name is empty, the directory is found by the host and port of the appUrl.
    source: the appUrl and the settings, with the keys of `DirectorySource.settings`. complete: whether the import
    removes stored entries that the reading does not find.
    """

    domain_id: int
    name: str
    source: Mapping[str, str]
    secret: bytes | None
    complete: bool


@dataclass(frozen=True, slots=True)
class PersonPreview:
    """The fields of a person before and after a change of the mapping."""

    user_id: int
    dn: str
    before: Mapping[str, str]
    after: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredMapping:
    """The mapping of a directory or of a group. group_id: the id of the group; 0 for the mapping of the directory."""

    directory_name: str
    group_id: int
    group_name: str
    field_mappings: Mapping[str, str]


_OKTA: Final = (".okta.com", ".oktapreview.com", ".okta-emea.com")
_PORTS: Final = {"ldaps": 636, "https": 443, "http": 80}
_LDAP_PORT: Final = 389


def hosts_of(app_url: str) -> list[tuple[str, int]]:
    """Return the (host, port) pairs of an appUrl. An appUrl is one URL, or several URLs for LDAP. Hosts are in lower
    case. Text that is not a URL is ignored."""
    return list(_hosts(app_url))


def kind_of(app_url: str) -> DirectoryKind:
    """Return the kind of directory that an appUrl suggests."""
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
