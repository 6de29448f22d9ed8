"""Request and answer bodies of directories: people and groups, configuration, imports."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, TypeAdapter

from sallyport.base.errors import Invalid
from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit
from sallyport.directory.directory import DirectoryKind
from sallyport.directory.dn import parsed
from sallyport.directory.reading.fields import Filter
from sallyport.outgoing.fields import HostName, is_loopback
from sallyport.outgoing.pem import Certificates
from sallyport.web.paging import IsMinimum, Paged
from sallyport.web.scope import Flag, Id, InDomain, LongText, Name, NameOrNone, OfDomain, ScopedIfGiven, Text, Whole

LDAPS_PORTS: Final = frozenset({636, 3269})

_FILTER: Final = TypeAdapter[str](Filter)
_PEM: Final = TypeAdapter[str](Certificates)

Secret = Annotated[SecretStr, Field(max_length=8192)]  # which may be a private key in PEM


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _base(value: str) -> str:
    try:
        parsed(value)
    except Invalid:
        raise unfit("a distinguished name") from None
    return value.strip()


def _filter(value: str) -> str:
    return value.strip() and _FILTER.validate_python(value)


def _authorities(value: str) -> str:
    return value.strip() and _PEM.validate_python(value)


def _port(value: object) -> object:
    return 389 if value in ("", None) else value


AnyKind = Annotated[DirectoryKind, BeforeValidator(_lower)]
Base = Annotated[LongText, AfterValidator(_base)]
AnyFilter = Annotated[LongText, AfterValidator(_filter)]
Authorities = Annotated[str, Field(max_length=65_536), AfterValidator(_authorities)]


# --- /ad/ -----------------------------------------------------------------------------------------------------------


class ListGroups(InDomain, Paged):
    """Body of GetAllGroupsByDomain. search: a part of a name."""

    search: Text = ""


class GroupEntry(Model):
    """A group. memberCount: the people and groups in it itself; directoryName is an addition."""

    groupId: int
    groupName: str
    dn: str
    memberCount: int
    directoryName: str = ""


class GroupList(Model):
    """Answer of GetAllGroupsByDomain."""

    groups: list[GroupEntry]
    totalCount: int
    totalIsMinimum: IsMinimum = False


class ListUsers(InDomain, Paged):
    """Body of GetAllAdUsers and GetCloudUsers. search: a part of a name or an address."""

    search: Text = ""


class ListUsersOfGroup(ListUsers):
    """Body of GetAllUsersByGroup."""

    groupId: Id


class UserEntry(Model):
    """A person of a directory. source: the kind of the directory; groups: those that say so themselves. directoryName
    and fields, which the mapping makes, are additions."""

    userId: int
    userName: str
    displayName: str
    email: str
    upn: str
    dn: str
    status: str
    source: str
    groups: list[str]
    directoryName: str
    fields: dict[str, str]


class UserList(Model):
    """Answer of GetAllUsersByGroup, GetAllAdUsers and GetCloudUsers."""

    users: list[UserEntry]
    totalCount: int
    totalIsMinimum: IsMinimum = False


# --- configuration --------------------------------------------------------------------------------------------------


class SaveDirectory(OfDomain):
    """An entry of saveDirectoryConfig. What is absent stays; what is empty is cleared, but for secrets.

    kind: what it is; else by appUrl. The others are additions, of which each kind has its own: ldap {baseDN, filter,
    bindDN, bindPassword, startTls, caCertificate}, graph {tenant, clientId, clientSecret}, okta {clientId,
    clientSecret or apiToken}.
    """

    directoryName: Name
    accountName: Text | None = None
    appUrl: LongText | None = None
    kind: AnyKind | None = None
    baseDN: Base | None = None
    filter: AnyFilter | None = None
    bindDN: LongText | None = None
    startTls: Flag | None = None
    caCertificate: Authorities | None = None
    tenant: Text | None = None
    clientId: Text | None = None
    secret: Secret | None = Field(
        default=None, validation_alias=AliasChoices("bindPassword", "bindSecret", "clientSecret", "apiToken")
    )

    def settings(self) -> dict[str, str | None]:
        """What is said of how it is read; None: nothing."""
        return {
            "baseDN": self.baseDN,
            "filter": self.filter,
            "bindDN": self.bindDN,
            "startTls": None if self.startTls is None else "true" if self.startTls else "",
            "caCertificate": self.caCertificate,
            "tenant": self.tenant,
            "clientId": self.clientId,
        }


class DeleteDirectory(OfDomain):
    """An entry of deleteDirectoryConfig."""

    directoryName: Name


class ImportLdif(OfDomain):
    """The fields of importLdif beside `file`. fileName: else the file's own. directoryName: which directory of the
    domain it is of; else `LDIF`. complete: who is not in the file is removed."""

    fileName: Text = ""
    directoryName: NameOrNone = ""
    complete: Flag = False


class ImportUsers(ScopedIfGiven):
    """An entry of importUsers. bindPassword (or bindSecret) is kept as long as the import takes; what is stored of a
    directory is not used. useTls: LDAPS on its ports, else StartTLS; the default is true, but for this machine itself.
    directoryName: which directory of the domain it is; else the one whose appUrl has that host and port, else one of
    the host's name. complete: who is not found is removed."""

    ldapHost: HostName
    ldapPort: Annotated[Whole, Between(1, 65_535), BeforeValidator(_port)] = 389
    baseDN: Base
    filter: AnyFilter = ""
    bindDN: LongText = ""
    domainID: Whole = Field(validation_alias=AliasChoices("domainID", "domainId"))
    bindPassword: Secret | None = Field(default=None, validation_alias=AliasChoices("bindPassword", "bindSecret"))
    useTls: Flag | None = None
    caCertificate: Authorities = ""
    directoryName: NameOrNone = ""
    complete: Flag = False

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainID,)

    def source(self) -> dict[str, str]:
        """What is read, as `Source.settings` has it, and its appUrl."""
        tls = not is_loopback(self.ldapHost) if self.useTls is None else self.useTls
        secure = self.ldapPort in LDAPS_PORTS and (tls or self.useTls is None)
        host = f"[{self.ldapHost}]" if ":" in self.ldapHost else self.ldapHost
        return {
            "appUrl": f"{'ldaps' if secure else 'ldap'}://{host}:{self.ldapPort}",
            "baseDN": self.baseDN,
            "filter": self.filter,
            "bindDN": self.bindDN,
            "startTls": "true" if tls and not secure else "",
            "caCertificate": self.caCertificate,
        }


# --- imports --------------------------------------------------------------------------------------------------------


class ImportStatus(ScopedIfGiven):
    """An entry of getImportStatus. domainId: where several domains have a directory of that name."""

    DirectoryName: Name = Field(validation_alias=AliasChoices("DirectoryName", "directoryName"))
    domainId: Whole | None = None

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


class JobCounts(Model):
    """What has become of the entries of an import. total: 0 until it is known."""

    total: int
    added: int
    updated: int
    removed: int
    skipped: int
    failed: int


class JobError(Model):
    """One of the first entries that could not be used. where: a line, a distinguished name, or both."""

    where: str
    message: str


class JobEntry(Model):
    """An import. needsConfirmation: it has stopped before it removes most of what was known, see confirmImport. Times
    as ISO 8601; empty: not yet."""

    jobId: int
    domainId: int
    directoryName: str
    kind: str
    state: str
    fileName: str
    counts: JobCounts
    errors: list[JobError]
    message: str
    needsConfirmation: bool
    createdAt: str
    startedAt: str
    endedAt: str


class JobList(Model):
    """Answer of getImportStatus: the last imports of the directories, the newest first."""

    message: str
    status: str = "Success"
    jobs: list[JobEntry]


class OneImport(OfDomain):
    """Body of cancelImport and confirmImport."""

    jobId: Id
