"""What an endpoint user is to who manages them, and the bodies of the operations."""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.base.wire import JSON
from sallyport.endpoints.bodies import MAX_ENTRIES, FlagText
from sallyport.endpoints.users.values import (
    LISTED_LOCAL,
    LOCAL,
    CredentialType,
    Did,
    Password,
    Seed,
    SshKeys,
    UserName,
    UserType,
)
from sallyport.store.audit import HIDDEN
from sallyport.web.paging import IsMinimum, Paged
from sallyport.web.scope import Body, Flag, Id, Many, OfDomain, Text

PASSWORD = "Password"  # noqa: S105  the name of a kind of credential
NOT_PRIVILEGED = "false"
DISCOVERED = "discovered"
DIRECT, THROUGH_GROUP, FOUND = range(3)
"""The ways of a user to an instance: assigned to it, in a group that grants it, or discovered on it."""
"""The source of a user that an agent has found on its machine, and that nobody has added or taken over yet."""
COLUMNS = {
    "userName": "name",
    "userId": "id",
    "userType": "user_type",
    "credType": "credential_type",
    "source": "source",
    "assign": "assigned",
    "instanceIds": "instance",
    "hostNames": "host",
    "credentialId": "credential",
}
"""The columns of a list's filter by their names in `filterBy`, which any case and underscores may spell."""
EXPORTED = {
    "userName": "name",
    "userType": "type",
    "credType": "credential",
    "privilegedUser": "privileged",
    "sshKey": "ssh_keys",
    "did": "did",
    "instances": "instances",
    "groups": "groups",
}
"""What a file says of a user, by the field of the command line's list; secrets are taken and never given."""
FILE_COLUMNS = (*EXPORTED, "password", "motp")
_NEXT_KEY = re.compile(r",\s*(?=(?:ssh|ecdsa|sk)-)")


class UserFields(Body):
    """What is said of a user, by an operation or in a file; None: nothing."""

    userName: UserName | None = None
    userType: UserType | None = None
    credType: CredentialType | None = None
    password: Password | None = None
    privilegedUser: FlagText | None = None
    sshKey: SshKeys | None = None
    motp: Seed | None = None
    did: Did | None = None

    @property
    def said(self) -> "Said":
        """The same as the service takes it; an empty password says nothing."""
        return Said(
            name=self.userName,
            user_type=self.userType,
            credential_type=self.credType,
            password=self.password.encode() if self.password else None,
            privileged_user=self.privilegedUser,
            ssh_key=self.sshKey,
            motp=self.motp,
            did=self.did,
        )


def in_a_cell(names: Iterable[str]) -> str:
    """Names as a file has them in a cell: with commas between them, and quoted where one has a comma itself."""
    return ", ".join('"{}"'.format(name.replace('"', '""')) if set(name) & set(',"') else name for name in names)


def _listed(value: object) -> object:
    """A list, also as `in_a_cell` writes it."""
    if not isinstance(value, str):
        return value
    try:
        return [name.strip() for row in csv.reader([value], skipinitialspace=True, strict=True) for name in row]
    except csv.Error:
        raise unfit("names with commas between them, and in quotation marks where one has a comma itself") from None


def _keys(value: object) -> object:
    """Keys as a file has them: a list, or in a cell one behind the other."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return _NEXT_KEY.sub("\n", value) if isinstance(value, str) else value


class ImportedUser(UserFields):
    """A row of a file. What it does not say stays; instances and groups, by name, come beside those that the user is
    in."""

    userName: UserName
    sshKey: Annotated[SshKeys | None, BeforeValidator(_keys)] = None
    instances: Annotated[list[Text], BeforeValidator(_listed)] = Field(default_factory=list)
    groups: Annotated[list[Text], BeforeValidator(_listed)] = Field(default_factory=list)


class AddUser(UserFields, OfDomain):
    """Body of addEpmUserInfo. instanceIds: where the user is assigned from the beginning."""

    userName: UserName
    instanceIds: Many[Id] = Field(default_factory=list, max_length=1000)


class UpdateUser(UserFields, OfDomain):
    """Body of updateEpmUserInfo. What is absent stays, what is empty is cleared; an empty password stays."""

    userId: Id


class UserSaved(Model):
    """Answer of addEpmUserInfo and updateEpmUserInfo."""

    status: str = "Success"
    message: str
    userId: str


class OneUser(OfDomain):
    """Body of getEpmUserDetail."""

    userId: Id


class UserDetail(Model):
    """Answer of getEpmUserDetail. password, motp: HIDDEN for an auditor; empty if not set. credentialType: as
    updateUserWallet gave it with the user's newest credential."""

    domainId: int
    userId: int
    userType: str
    credType: str
    password: str
    privilegedUser: str
    userName: str
    sshKey: str
    motp: str
    did: str
    credentialType: str


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, bool) else value


class Filter(Body):
    """filter of listAllEpmUsers; an empty filterBy or value is no filter."""

    filterBy: Text = ""
    value: Annotated[Text, BeforeValidator(_as_text)] = ""


class ListUsers(OfDomain, Paged):
    """Body of listAllEpmUsers. instanceIds: only users whose instanceIds have one of these."""

    filter: Filter | None = None
    instanceIds: Many[Id] | None = None


class UserEntry(Model):
    """A user in the list. instanceIds: of the instances that the user is assigned to, directly or through a group that
    grants, and of those on which a user whose source is `discovered` was found; hostNames are in the same order.
    assign: whether the user is assigned to any."""

    credType: str
    userId: int
    userName: str
    source: str
    userType: str
    instanceIds: list[int]
    assign: bool
    credentialId: str
    hostNames: list[str]


class UserList(Model):
    """Answer of listAllEpmUsers."""

    totalCount: int
    totalIsMinimum: IsMinimum = False
    epmUsers: list[UserEntry]


class UpdateWallet(OfDomain):
    """Body of updateUserWallet. platformUserNames: wallet users' ids."""

    epmUserId: Many[Id] = Field(min_length=1, max_length=MAX_ENTRIES)
    platformUserNames: Many[Id] = Field(
        default_factory=list,
        max_length=MAX_ENTRIES,
        validation_alias=AliasChoices("platformUserNames", "sallyportUserNames"),
    )
    groupId: Many[Id] = Field(default_factory=list)
    instanceId: Many[Id] = Field(default_factory=list)
    assignMultiple: Flag = False
    userType: UserType | None = None
    privilegedUser: FlagText | None = None
    credentialId: Many[Id] = Field(default_factory=list, max_length=MAX_ENTRIES)
    credentialType: Text = ""
    issuerId: Id = 0

    @model_validator(mode="after")
    def _one_unless_multiple(self) -> "UpdateWallet":
        if not self.assignMultiple and max(len(self.platformUserNames), len(self.credentialId)) > 1:
            raise unfit("several wallet users or credentials need assignMultiple", "assignMultiple")
        return self


def _none_is_zero(value: object) -> object:
    return 0 if value is None or value == "" else value


class Removed(Body):
    """One of epmUsers in deleteEpmUser: by epmUserId, else by userName. instanceId 0: of none."""

    epmUserId: Annotated[Id, BeforeValidator(_none_is_zero)] = 0
    userName: Text = ""
    instanceId: Annotated[Id, BeforeValidator(_none_is_zero)] = 0

    @model_validator(mode="after")
    def _names_somebody(self) -> "Removed":
        if not self.epmUserId and not self.userName:
            raise unfit("epmUserId or userName is needed", "epmUserId", "userName")
        return self


class DeleteUsers(OfDomain):
    """Body of deleteEpmUser. key `delete`: the users are deleted, whatever their instanceId."""

    key: Text = ""
    epmUsers: Many[Removed] = Field(min_length=1, max_length=MAX_ENTRIES)


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a user. None: nothing, and what is there stays. Empty text clears; motp is a seed in base32."""

    name: str | None = None
    user_type: str | None = None
    credential_type: str | None = None
    password: bytes | None = None
    privileged_user: str | None = None
    ssh_key: str | None = None
    motp: str | None = None
    did: str | None = None

    def columns(self) -> dict[str, str]:
        """What is said by the columns that hold it as it is; a default stands for what is cleared."""
        said = {
            "name": self.name,
            "user_type": _or_default(self.user_type, LOCAL),
            "credential_type": _or_default(self.credential_type, PASSWORD),
            "privileged_user": _or_default(self.privileged_user, NOT_PRIVILEGED),
            "ssh_key": self.ssh_key,
            "did": self.did,
        }
        return {column: value for column, value in said.items() if value is not None}

    def secrets(self) -> dict[str, JSON]:
        """The secrets that are said, HIDDEN."""
        return {name: HIDDEN for name in ("password", "motp") if getattr(self, name) is not None}

    def told(self) -> dict[str, JSON]:
        """What is said, as the audit trail keeps it."""
        return {**self.columns(), **self.secrets()}


def _or_default(text: str | None, default: str) -> str | None:
    return default if text == "" else text


@dataclass(frozen=True, slots=True)
class Account:
    """A user as it is stored, without secrets. Times in microseconds; has_password, has_totp, assigned: 0 or 1."""

    id: int
    domain_id: int
    name: str
    user_type: str
    credential_type: str
    privileged_user: str
    ssh_key: str
    did: str
    source: str
    assigned: int
    created_at: int
    updated_at: int
    has_password: int
    has_totp: int

    @property
    def listed_type(self) -> str:
        """The user's type as lists have it."""
        return LISTED_LOCAL if self.user_type == LOCAL else self.user_type


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance of a user. way: DIRECT, THROUGH_GROUP or FOUND; the first of these where there are several."""

    user_id: int
    id: int
    name: str
    host_name: str
    way: int

    @property
    def host(self) -> str:
        """Its host name, else its name."""
        return self.host_name or self.name


@dataclass(frozen=True, slots=True)
class Listed:
    """A user in a list. groups: by name. credential: the id of the credential that the user has, or empty."""

    account: Account
    machines: Sequence[Machine]
    groups: Sequence[str]
    credential: str

    @property
    def is_assigned(self) -> bool:
        """Whether the user is assigned to any instance, directly or through a group that grants."""
        return any(machine.way != FOUND for machine in self.machines)


@dataclass(frozen=True, slots=True)
class UserQuery:
    """Which users of a domain. column: one of COLUMNS' values, or empty. instance_ids: users of one of these; None for
    any user."""

    domain_id: int
    column: str = ""
    value: str = ""
    instance_ids: Sequence[int] | None = None
    offset: int = 0
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to be removed: a user of that id (0: any) and name (empty: any), or its assignment to an instance."""

    user_id: int
    name: str
    instance_id: int
