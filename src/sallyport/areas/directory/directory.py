"""The values of directories: a directory, its configuration, and the people and groups in lists."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import urlsplit

from sallyport.base.addresses import is_host, is_loopback
from sallyport.base.answer import Wire
from sallyport.base.clock import iso, iso_or_empty


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


def texts_of(text: str) -> dict[str, str]:
    """Return the texts of a JSON object."""
    found: dict[str, str] = json.loads(text)
    return found


@dataclass(frozen=True, slots=True)
class Directory:
    """A stored directory. settings, mapping: JSON objects. secret: the encrypted secret."""

    id: Annotated[int, Wire("Id of the directory.", "directoryId")]
    domain_id: int
    name: Annotated[str, Wire("Name of the directory.", "directoryName")]
    kind: Annotated[str, Wire("Kind of the directory.", kind=DirectoryKind)]
    account_name: Annotated[
        str,
        Wire("Account that reads the directory, unless bindDN or clientId is set.", "accountName", after="appUrl"),
    ]
    app_url: Annotated[
        str,
        Wire(
            "URL of the directory. LDAP directories can have several URLs. Other directories may have none.", "appUrl"
        ),
    ]
    settings: Annotated[
        str,
        Wire(
            "All other settings that are not empty. The keys are the field names of saveDirectoryConfig.",
            convert=texts_of,
            after="accountName",
        ),
    ]
    secret: bytes | None
    cursor: str
    mapping: Annotated[
        str,
        Wire(
            "For each field, the attributes that fill the field, separated by commas.",
            "fieldMappings",
            convert=texts_of,
            after="hasSecret",
        ),
    ]
    created_at: Annotated[
        int, Wire("Time when the directory was added, ISO 8601.", "createdAt", convert=iso, after="fieldMappings")
    ]
    updated_at: Annotated[int, Wire("Time of the last change, ISO 8601.", "updatedAt", convert=iso, after="createdAt")]
    read_at: Annotated[
        int,
        Wire(
            "Time of the data: when the last successful reading of the directory began, ISO 8601. Empty if it was "
            "never read completely.",
            "readAt",
            convert=iso_or_empty,
            after="updatedAt",
        ),
    ]

    @Wire("true: a password, a token or a key is stored.", "hasSecret", after="settings")
    def has_secret(self) -> bool:
        """Return whether the directory has a secret."""
        return self.secret is not None

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

    id: Annotated[int, Wire("Id of the person.", "userId")]
    domain_id: int
    directory_id: int
    dn: Annotated[
        str,
        Wire("Distinguished name. A person of a cloud directory has `id:` followed by the identifier.", after="upn"),
    ]
    login: str
    name: Annotated[str, Wire("Login name, as the field mapping gives it.", "userName")]
    display_name: Annotated[str, Wire("Name for display; may be empty.", "displayName")]
    email: Annotated[str, Wire("Mail address; may be empty.")]
    upn: Annotated[str, Wire("userPrincipalName in Active Directory or Entra ID. It is empty in other directories.")]
    status: Annotated[str, Wire("State of the account in its directory: active, disabled, locked or expired.")]
    fields: Annotated[
        str,
        Wire("Values of all other mapped fields, by the name of the field.", convert=texts_of, after="directoryName"),
    ]
    source: Annotated[str, Wire("Kind of the directory: ldap, graph, okta, agent or ldif.", after="status")]
    directory_name: Annotated[str, Wire("Name of the person's directory.", "directoryName", after="groups")]

    @Wire("Names of the groups that the person is a direct member of.", after="source")
    def groups(self, groups_of: Mapping[int, list[str]]) -> list[str]:
        """Return the names of the person's groups. groups_of: these names by the id of the person."""
        return groups_of[self.id]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a directory. members: the number of direct members. mapping: the group's own mapping as JSON."""

    id: Annotated[int, Wire("Id of the group.", "groupId")]
    domain_id: int
    directory_id: int
    dn: Annotated[
        str,
        Wire(
            "Distinguished name. A group of a cloud directory has `id:` followed by its identifier.",
            after="groupName",
        ),
    ]
    name: Annotated[str, Wire("Name of the group.", "groupName")]
    members: Annotated[int, Wire("Number of people and groups that are direct members.", "memberCount")]
    mapping: str

    @Wire("Name of the group's directory.", "directoryName")
    def directory_name(self, directory_names: Mapping[int, str]) -> str:
        """Return the name of the group's directory. directory_names: the names of directories by id."""
        return directory_names.get(self.directory_id, "")


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


def split_url(url: str) -> tuple[str, str, int]:
    """Return the scheme, the host without brackets, and the port of an LDAP URL. Raises ValueError if the text is
    not an LDAP URL."""
    parts = urlsplit(url)  # urlsplit removes some control characters, so `url` is checked below
    if (
        not url.isprintable()
        or parts.scheme not in ("ldap", "ldaps")
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
        or "@" in url
        or parts.hostname is None
        or not is_host(parts.hostname)
    ):
        raise ValueError("the text is not the URL of a directory server")
    default = 636 if parts.scheme == "ldaps" else 389
    return parts.scheme, parts.hostname, parts.port or default


def in_clear(url: str) -> bool:
    """Return whether a connection to an LDAP URL would cross a network without encryption."""
    scheme, host, _ = split_url(url)
    return scheme == "ldap" and not is_loopback(host)


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
