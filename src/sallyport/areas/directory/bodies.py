"""Request and answer bodies of directories: people and groups, configuration, imports."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, TypeAdapter

from sallyport.areas.directory.directory import Directory, DirectoryKind, Group, User
from sallyport.areas.directory.entry.dn import parsed
from sallyport.areas.directory.reading.fields import Filter
from sallyport.base.addresses import is_loopback
from sallyport.base.errors import Invalid
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Between, unfit
from sallyport.outgoing.fields import Certificates, HostName
from sallyport.web.bodies import (
    DomainId,
    Flag,
    Id,
    InDomain,
    IsMinimum,
    LongText,
    Name,
    NameOrNone,
    OfDomain,
    Paged,
    ScopedIfGiven,
    Search,
    Text,
    TotalCount,
    Whole,
)

LDAPS_PORTS: Final = frozenset({636, 3269})

_FILTER: Final = TypeAdapter[str](Filter)
_PEM: Final = TypeAdapter[str](Certificates)

Secret = Annotated[SecretStr, Field(max_length=8192)]
"""A password, a token, or a private key in PEM."""


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _base(value: str) -> str:
    try:
        parsed(value)
    except Invalid:
        raise unfit("must be a distinguished name such as dc=example,dc=com") from None
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
_AUTHORITIES: Final = "Certificates in PEM. They are trusted instead of the certificates of the operating system."
DirectoryName = Annotated[Name, Field(description="Name of the directory in its domain; case-insensitive.")]


# --- /ad/ -----------------------------------------------------------------------------------------------------------


class ListDirectoryGroups(InDomain, Paged):
    """Request body of the operation `GetAllGroupsByDomain`."""

    search: Search = Field(
        default="", description="Part of the name of a group, case-insensitive. Leave it empty to list all groups."
    )
    directoryId: Id = Field(
        default=0,
        description="Id of a directory. Only its groups are listed. Leave it 0 to list the groups of all directories.",
    )


@answer_of(Group)
class DirectoryGroup(Model):
    """A group of a directory."""


class DirectoryGroupList(Model):
    """Response body of the operation `GetAllGroupsByDomain`."""

    groups: list[DirectoryGroup] = Field(description="Groups of this page, ordered by id.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False


class ListDirectoryUsers(InDomain, Paged):
    """Request body of the operations `GetAllAdUsers` and `GetCloudUsers`."""

    search: Search = Field(
        default="", description="Part of a name or a mail address, case-insensitive. Leave it empty to list all people."
    )


class ListUsersOfDirectoryGroup(ListDirectoryUsers):
    """Request body of the operation `GetAllUsersByGroup`."""

    groupId: Id = Field(description="Id of the group, as GetAllGroupsByDomain gives it.")


@answer_of(User)
class DirectoryUser(Model):
    """A person of a directory."""


class DirectoryUserList(Model):
    """Response body of the operations `GetAllUsersByGroup`, `GetAllAdUsers` and `GetCloudUsers`."""

    users: list[DirectoryUser] = Field(description="People of this page, ordered by id.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False


# --- configuration --------------------------------------------------------------------------------------------------


class SaveDirectory(OfDomain):
    """A directory, as an element of the body of saveDirectoryConfig. If a field is absent, the stored value is kept. If
    a field is empty, the stored value is cleared. But if the secret is empty, the stored secret is kept."""

    directoryName: DirectoryName
    accountName: Text | None = Field(
        default=None,
        description="Name of the account that reads the directory. It is not used if bindDN or clientId is set.",
    )
    appUrl: LongText | None = Field(
        default=None,
        description="URL of the directory, such as ldaps://dc1.example.com. An LDAP directory can have several URLs.",
    )
    kind: AnyKind | None = Field(
        default=None, description="Kind of the directory. If it is absent, the appUrl determines the kind."
    )
    baseDN: Base | None = Field(default=None, description="LDAP: distinguished name below which entries are read.")
    filter: AnyFilter | None = Field(
        default=None,
        description="LDAP: filter (RFC 4515) that selects the accounts. Leave it empty to read all accounts.",
    )
    bindDN: LongText | None = Field(
        default=None,
        description="LDAP: distinguished name or UPN of the account that reads the directory. Leave it empty for an "
        "anonymous bind.",
    )
    startTls: Flag | None = Field(default=None, description="LDAP: encrypt an ldap:// connection with StartTLS.")
    caCertificate: Authorities | None = Field(default=None, description=_AUTHORITIES)
    tenant: Text | None = Field(default=None, description="Graph: id or name of the Entra ID tenant.")
    clientId: Text | None = Field(
        default=None,
        description="Graph and Okta: client id of the application. Leave it empty for Okta with an API token.",
    )
    readDevices: Flag | None = Field(
        default=None,
        description="Graph: read the devices of Entra ID too, for certificates of computers. The application needs the "
        "permission Device.Read.All.",
    )
    secret: Secret | None = Field(
        default=None,
        validation_alias=AliasChoices("bindPassword", "bindSecret", "clientSecret", "apiToken"),
        description="Password of bindDN, client secret or private key of the application, or API token. Required "
        "if a changed setting would send the secret to another server.",
    )

    def settings(self) -> dict[str, str | None]:
        """Return the settings of the directory. A setting is None if the body does not contain the field."""
        return {
            "baseDN": self.baseDN,
            "filter": self.filter,
            "bindDN": self.bindDN,
            "startTls": None if self.startTls is None else "true" if self.startTls else "",
            "caCertificate": self.caCertificate,
            "tenant": self.tenant,
            "clientId": self.clientId,
            "readDevices": None if self.readDevices is None else "true" if self.readDevices else "",
        }


class CheckDirectory(SaveDirectory):
    """Request body of the operation `directory/check`. It has the same fields as the body of saveDirectoryConfig. The
    check uses the given fields instead of the stored values."""


class DirectoryChecked(Done):
    """Response body of the operation `directory/check`."""

    usable: bool = Field(description="true: the directory answers and has accounts. false: message gives the reason.")


class ListDirectories(OfDomain, Paged):
    """Request body of the operation `directory/list`."""


@answer_of(Directory)
class DirectoryEntry(Model):
    """A directory with its settings, without its secret."""


class DirectoryList(Done):
    """Response body of the operation `directory/list`."""

    directories: list[DirectoryEntry] = Field(description="Directories of this page, ordered by id.")
    totalCount: TotalCount


class DeleteDirectory(OfDomain):
    """An element of the body of deleteDirectoryConfig: a directory to remove."""

    directoryName: DirectoryName


Complete = Annotated[
    Flag, Field(description="true: remove the people, groups and units that the import does not find.")
]


class ImportLdif(OfDomain):
    """The form fields of importLdif, in addition to `file`."""

    fileName: Text = Field(
        default="",
        description="File name that is shown in lists. If it is empty, the name of the uploaded file is shown.",
    )
    directoryName: NameOrNone = Field(
        default="", description="Name of the directory that gets the entries. If it is empty, the name is LDIF."
    )
    complete: Complete = False


class ImportUsers(ScopedIfGiven):
    """An LDAP server, as an element of the body of importUsers. The import uses these settings, and ignores the stored
    settings of the directory."""

    ldapHost: HostName = Field(description="Host name or IP address of the LDAP server.")
    ldapPort: Annotated[Whole, Between(1, 65_535), BeforeValidator(_port)] = Field(
        default=389, description="Port of the LDAP server. The ports 636 and 3269 use LDAPS."
    )
    baseDN: Base = Field(description="Distinguished name below which entries are read.")
    filter: AnyFilter = Field(
        default="", description="Filter (RFC 4515) that selects the accounts. Leave it empty to read all accounts."
    )
    bindDN: LongText = Field(
        default="", description="Name of the account that reads the directory. Leave it empty for an anonymous bind."
    )
    domainID: DomainId = Field(validation_alias=AliasChoices("domainID", "domainId"))
    bindPassword: Secret | None = Field(
        default=None,
        validation_alias=AliasChoices("bindPassword", "bindSecret"),
        description="Password of the account in bindDN. It is deleted when the import has ended.",
    )
    useTls: Flag | None = Field(
        default=None,
        description=(
            "true: encrypt the connection, with LDAPS on the ports 636 and 3269, and with StartTLS on other "
            "ports. If useTls is absent, StartTLS is not used for a loopback address."
        ),
    )
    caCertificate: Authorities = Field(default="", description=_AUTHORITIES)
    directoryName: NameOrNone = Field(
        default="",
        description=(
            "Name of the directory that gets the entries. If it is empty, the import uses the directory whose"
            " appUrl has this host and port. If there is no such directory, the name is the host."
        ),
    )
    complete: Complete = False

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainID,)

    def source(self) -> dict[str, str]:
        """Return the source of the import: the appUrl and the settings of the LDAP server. The keys are those of
        `imports.job.DirectorySource.settings`."""
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
