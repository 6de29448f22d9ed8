"""The requests and answers of endpoint users and their one-time-password seeds."""

import csv
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from sallyport.areas.users.accounts.account import COLUMNS, Account, UserChange
from sallyport.areas.users.accounts.fields import CredentialType, Did, Password, Seed, SshKeys, UserName, UserType
from sallyport.areas.users.bodies import MAX_ENTRIES, Privileged, StatusAnswer
from sallyport.areas.users.user import UserKey
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import unfit
from sallyport.web.bodies import Body, Flag, Id, IsMinimum, Many, OfDomain, Paged, Text, TotalCount

EXPORTED = ("userName", "userType", "credType", "privilegedUser", "sshKey", "did", "instances", "groups")
"""The columns of an export file. The file contains no secrets."""
FILE_COLUMNS = (*EXPORTED, "password", "motp")
_NEXT_KEY = re.compile(r",\s*(?=(?:ssh|ecdsa|sk)-)")
_HIDDEN = "An auditor gets ********. It is empty if there is none."
UserId = Annotated[Id, Field(description="Id of the endpoint user, as listAllEpmUsers returns it.")]


class UserFields(Body):
    """The values of a user in a request or in a row of an import file."""

    userName: UserName | None = None
    userType: UserType | None = None
    credType: CredentialType | None = None
    password: Password | None = Field(
        default=None,
        description='Password of the user, as text or as octets: {"hex": "..."}. '
        "An empty password keeps the old password.",
    )
    privilegedUser: Privileged | None = None
    sshKey: SshKeys | None = None
    motp: Seed | None = None
    did: Did | None = None

    @property
    def change(self) -> UserChange:
        """The change in the form that the service takes. An empty password keeps the old password."""
        return UserChange(
            name=self.userName,
            user_type=self.userType,
            credential_type=self.credType,
            password=(self.password.get_secret_value() or None) if self.password else None,
            privileged_user=self.privilegedUser,
            ssh_key=self.sshKey,
            motp=self.motp,
            did=self.did,
        )


def in_a_cell(names: Iterable[str]) -> str:
    """Return names as the text of a CSV cell, separated by commas. A name that contains a comma or a quotation mark is
    quoted."""
    return ", ".join('"{}"'.format(name.replace('"', '""')) if set(name) & set(',"') else name for name in names)


def _names(value: object) -> object:
    """Return a list of names. If the value is a text as `in_a_cell` returns it, split the text into names."""
    if not isinstance(value, str):
        return value
    try:
        return [name.strip() for row in csv.reader([value], skipinitialspace=True, strict=True) for name in row]
    except csv.Error:
        raise unfit(
            "must be names separated by commas, with quotation marks around each name that contains a comma"
        ) from None


def _keys(value: object) -> object:
    """Return SSH keys as a text with one key in each line. value: either a list of keys, or the text of a CSV cell in
    which commas separate the keys."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return _NEXT_KEY.sub("\n", value) if isinstance(value, str) else value


class ImportedUser(UserFields):
    """A row of an import file. If the row has no value for a field, an existing user keeps its value. The instances and
    groups in the row are added to those that the user already has."""

    userName: UserName
    sshKey: Annotated[SshKeys | None, BeforeValidator(_keys)] = None
    instances: Annotated[list[Text], BeforeValidator(_names)] = Field(default_factory=list)
    groups: Annotated[list[Text], BeforeValidator(_names)] = Field(default_factory=list)


class AddUser(UserFields, OfDomain):
    """Request body of the operation `addEpmUserInfo`."""

    userName: UserName
    instanceIds: Many[Id] = Field(
        default_factory=list, max_length=1000, description="Ids of the instances to which the user is assigned."
    )


class UpdateUser(UserFields, OfDomain):
    """Request body of the operation `updateEpmUserInfo`. An absent field keeps its value. An empty field clears the
    value."""

    userId: UserId


class UserSaved(StatusAnswer):
    """Response body of the operations `addEpmUserInfo` and `updateEpmUserInfo`."""

    userId: str = Field(description="Id of the user.")


class OneUser(OfDomain):
    """Request body of the operation `getEpmUserDetail`."""

    userId: UserId


@answer_of(Account, *("domainId", "userId", "credType", "privilegedUser", "userName", "sshKey", "did"), detail=True)
class UserDetail(Model):
    """Response body of the operation `getEpmUserDetail`."""

    userType: str = Field(description="Type of the user, such as Local.")
    password: str = Field(description=f"Password of the user. {_HIDDEN}")
    motp: str = Field(description=f"Confirmed one-time-password seed in base32. {_HIDDEN}")
    credentialType: str = Field(
        description="credentialType of the user's newest credential, as updateUserWallet has set it."
    )


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, bool) else value


class Filter(Body):
    """The filter of the operation `listAllEpmUsers`. If filterBy or value is empty, all users are listed."""

    filterBy: Text = Field(
        default="",
        description=f"Column to filter by (case-insensitive): {', '.join(COLUMNS)}. If it is empty, all users are "
        "listed.",
    )
    value: Annotated[Text, BeforeValidator(_as_text)] = Field(
        default="",
        description="Value of the column; for userName, a part of the name. If it is empty, all users are listed.",
    )


class ListUsers(OfDomain, Paged):
    """Request body of the operation `listAllEpmUsers`."""

    filter: Filter | None = Field(default=None, description="Column and value by which the users are filtered.")
    instanceIds: Many[Id] | None = Field(
        default=None, description="Ids of instances, to list only the users of these instances."
    )


@answer_of(Account)
class UserEntry(Model):
    """A user in the answer of `listAllEpmUsers`."""


class UserList(Model):
    """Response body of the operation `listAllEpmUsers`."""

    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False
    epmUsers: list[UserEntry] = Field(description="Users on this page, ordered by id.")


class UpdateWallet(OfDomain):
    """Request body of the operation `updateUserWallet`."""

    epmUserId: Many[Id] = Field(
        min_length=1, max_length=MAX_ENTRIES, description="Ids of the endpoint users to change."
    )
    platformUserNames: Many[Id] = Field(
        default_factory=list,
        max_length=MAX_ENTRIES,
        validation_alias=AliasChoices("platformUserNames", "sallyportUserNames"),
        description="Ids of the wallet users to assign. Several ids are allowed only with assignMultiple.",
    )
    groupId: Many[Id] = Field(default_factory=list, description="Ids of the groups to which the users are added.")
    instanceId: Many[Id] = Field(
        default_factory=list, description="Ids of the instances to which the users are assigned."
    )
    assignMultiple: Flag = Field(
        default=False,
        description="true: add the wallet users and credentials to the existing ones of each user; false: replace the "
        "existing ones.",
    )
    userType: UserType | None = None
    privilegedUser: Privileged | None = None
    credentialId: Many[Id] = Field(
        default_factory=list,
        max_length=MAX_ENTRIES,
        description="Ids of the credentials to assign. Several ids are allowed only with assignMultiple.",
    )
    credentialType: Text = Field(
        default="", description="Type of the credentials. getEpmUserDetail shows it as credentialType."
    )
    issuerId: Id = Field(default=0, description="Id of the issuer that the credentials must have, or 0 for any issuer.")

    @model_validator(mode="after")
    def _one_unless_multiple(self) -> "UpdateWallet":
        if not self.assignMultiple and max(len(self.platformUserNames), len(self.credentialId)) > 1:
            raise unfit(
                "several wallet users or credentials can be assigned only with assignMultiple", "assignMultiple"
            )
        return self


def _none_is_zero(value: object) -> object:
    return 0 if value is None or value == "" else value


class Removed(Body):
    """A user in the list epmUsers of the operation `deleteEpmUser`. epmUserId selects the user. Without epmUserId,
    userName selects the user."""

    epmUserId: Annotated[Id, BeforeValidator(_none_is_zero)] = Field(
        default=0, description="Id of the endpoint user, or 0 to select the user by userName."
    )
    userName: Text = Field(
        default="",
        description="Login name of the endpoint user. If epmUserId is given as well, both must belong to the same "
        "user.",
    )
    instanceId: Annotated[Id, BeforeValidator(_none_is_zero)] = Field(
        default=0, description="Id of the instance from which to remove the user, or 0 to delete the user."
    )

    @model_validator(mode="after")
    def _selects_a_user(self) -> "Removed":
        if not self.epmUserId and not self.userName:
            raise unfit("epmUserId or userName is needed", "epmUserId", "userName")
        return self


class DeleteUsers(OfDomain):
    """Request body of the operation `deleteEpmUser`."""

    key: Text = Field(default="", description="delete: delete all users in epmUsers, and ignore instanceId.")
    epmUsers: Many[Removed] = Field(
        min_length=1, max_length=MAX_ENTRIES, description="Users to delete, or to remove from instances."
    )


class OfUser(OfDomain):
    """A body that selects one user of a domain. userId selects the user. Without userId, userName selects the user."""

    userId: Id | None = Field(
        default=None, description="Id of the endpoint user. If it is absent, userName selects the user."
    )
    userName: Text = Field(default="", description="Login name of the endpoint user. It is ignored if userId is given.")

    @model_validator(mode="after")
    def _selects_a_user(self) -> "OfUser":
        if self.userId is None and not self.userName:
            raise unfit("userId or userName is needed", "userId", "userName")
        return self

    @property
    def user(self) -> UserKey:
        """The id of the user, or the name if the body has no id."""
        return self.userName if self.userId is None else self.userId


class EnrolTotp(OfUser):
    """Request body of the operation `enrolTotp`. The name may be that of a person of a directory or of the first
    factor. The person then becomes a user without a password."""


class TotpEnrolled(Done):
    """Response body of the operation `enrolTotp`."""

    userId: int = Field(description="Id of the user.")
    otpauth: str = Field(description="URI of the seed for an authenticator app (otpauth://).")
    seed: str = Field(description="One-time-password seed in base32.")
    qrCode: str = Field(description="QR code of the URI, as a data URI of an SVG image.")
    link: str = Field(
        description="URL of a page for the user. The page shows the QR code and has a field for the first code."
    )
    expiresAt: str = Field(description="Time when the link and the pending seed expire, ISO 8601 UTC.")
    warnings: list[str] = Field(description="Why users may be unable to open the link; empty if nothing is known.")


class ConfirmTotp(OfUser):
    """Request body of the operation `confirmTotp`."""

    code: Text = Field(description="First code that the user's app shows for the new seed: six digits.")
