"""An endpoint user as admins see it: the stored fields of the user, changes of these fields, and lists of users."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.wire import JSON
from sallyport.store.audit import HIDDEN

LOCAL, LISTED_LOCAL = "Local", "Local User"
"""The type of a user that the service itself manages. The first constant is the form in requests and in the store, the
second constant is the form in lists."""
PASSWORD = "Password"  # noqa: S105  the name of a kind of credential
NOT_PRIVILEGED = "false"
DISCOVERED = "discovered"
"""The source of a user whose account an agent has discovered on a machine. The source changes when an admin adds the
user or takes over the account."""
DIRECTORY = "directory"
"""The source of a user that was added because a person of a directory or of the first factor has enrolled for codes.
The source changes when an admin adds the user."""
DIRECTORY_USER = "Directory User"
"""The type of a user with the source DIRECTORY."""
DIRECT, THROUGH_GROUP, FOUND = range(3)
"""The reasons why an instance is listed for a user: the user is assigned directly, an active group of the user is
assigned, or the user's account was discovered on the instance."""
COLUMNS = {
    "userName": "name",
    "userId": "id",
    "userType": "user_type",
    "credType": "credential_type",
    "source": "source",
    "assign": "assigned",
    "instanceIds": "instance",
    "hostNames": "host",
    "groupId": "group",
    "credentialId": "credential",
}
"""The columns by which a list can be filtered. The keys are the names in `filterBy` (case-insensitive, underscores
allowed)."""


@dataclass(frozen=True, slots=True)
class UserChange:
    """The new values of a user's fields. None keeps the old value. An empty text clears the value. motp: the
    one-time-password seed in base32."""

    name: str | None = None
    user_type: str | None = None
    credential_type: str | None = None
    password: bytes | None = None
    privileged_user: str | None = None
    ssh_key: str | None = None
    motp: str | None = None
    did: str | None = None

    def columns(self) -> dict[str, str]:
        """Return the new values of the columns that are not secret. If a column is cleared and has a default, its new
        value is the default."""
        values = {
            "name": self.name,
            "user_type": _or_default(self.user_type, LOCAL),
            "credential_type": _or_default(self.credential_type, PASSWORD),
            "privileged_user": _or_default(self.privileged_user, NOT_PRIVILEGED),
            "ssh_key": self.ssh_key,
            "did": self.did,
        }
        return {column: value for column, value in values.items() if value is not None}

    def secrets(self) -> dict[str, JSON]:
        """Return the names of the secrets that this change sets. Each name is a key whose value is HIDDEN."""
        return {name: HIDDEN for name in ("password", "motp") if getattr(self, name) is not None}

    def audited(self) -> dict[str, JSON]:
        """Return the new values for the audit trail, with HIDDEN in place of secrets."""
        return {**self.columns(), **self.secrets()}


def _or_default(text: str | None, default: str) -> str | None:
    return default if text == "" else text


@dataclass(slots=True)  # not frozen, because a list has up to 1000, and freezing takes most of the time to make one
class Account:
    """A stored user without the secrets. Times are in microseconds. has_password, has_totp, assigned: 1 for true, 0 for
    false. instances, groups, credential: only lists of users have these values."""

    credential_type: Annotated[str, Wire("Type of the credential, such as Password.", "credType", title="Credential")]
    id: Annotated[int, Wire("Id of the user.", "userId", title="Id")]
    name: Annotated[str, Wire("Login name of the user.", "userName", title="User")]
    source: Annotated[
        str,
        Wire(
            "Source of the user: Local; discovered if an agent has found the account on its machine; directory if a "
            "person of a directory has enrolled for one-time codes."
        ),
    ]
    has_password: Annotated[
        int, Wire("Whether the user has a password.", "hasPassword", bool, kind=bool, title="Password")
    ]
    has_totp: Annotated[
        int,
        Wire(
            "Whether the user has a confirmed one-time-password seed.",
            "hasTotp",
            bool,
            kind=bool,
            title="One-time codes",
        ),
    ]
    privileged_user: Annotated[
        str,
        Wire("Whether the user has root privileges on instances, as set by an admin.", "privilegedUser", look="none"),
    ]
    did: Annotated[str, Wire("DID of the user; empty if there is none.", title="DID", look="code")]
    created_at: Annotated[int, Wire("Time when the user was added, ISO 8601 UTC.", "created", iso, title="Added")]
    updated_at: Annotated[int, Wire("Time of the last change, ISO 8601 UTC.", "updated", iso, title="Changed")]
    domain_id: Annotated[int, Wire("Id of the domain, as GetAllDomains gives it.", "domainId", detail=True)]
    ssh_key: Annotated[str, Wire("OpenSSH public keys, one in each line.", "sshKey", detail=True)]
    user_type: str
    assigned: int
    _: KW_ONLY
    instances: "Sequence[UserInstance]" = ()
    groups: Annotated[
        Sequence[str],
        Wire("Names of the groups to which the user belongs.", convert=list, kind=list[str], after="hostNames"),
    ] = ()
    credential: Annotated[
        str, Wire("Id of the user's credential; empty if there is none.", "credentialId", after="assign", look="none")
    ] = ""

    @property
    @Wire("Type of the user, such as Local User.", "userType", after="source", title="Type")
    def listed_type(self) -> str:
        """The type of the user in the form that lists show."""
        return LISTED_LOCAL if self.user_type == LOCAL else self.user_type

    @property
    @Wire(
        "Ids of the instances to which the user is assigned, directly or through an active group. For a user with the "
        "source discovered, also the instances on which an agent has found the account.",
        "instanceIds",
        after="userType",
        look="none",
    )
    def instance_ids(self) -> list[int]:
        """The ids of the instances."""
        return [each.id for each in self.instances]

    @property
    @Wire("Whether the user is assigned to any instance.", "assign", after="instanceIds", look="none")
    def is_assigned(self) -> bool:
        """Whether the user is assigned to any instance, directly or through an active group."""
        return any(instance.source != FOUND for instance in self.instances)

    @property
    @Wire("Host names of the instances, in the order of instanceIds.", "hostNames", after="credentialId", look="none")
    def host_names(self) -> list[str]:
        """The host names of the instances. If a host name is unknown, the name of the instance."""
        return [each.host_name or each.name for each in self.instances]


@dataclass(slots=True)
class UserInstance:
    """An instance in the list of a user's instances. source: the reason why the instance is in the list: DIRECT,
    THROUGH_GROUP or FOUND. If several reasons apply, `source` is the first of them in this order."""

    user_id: int
    id: int
    name: str
    host_name: str
    source: int


@dataclass(frozen=True, slots=True)
class UserQuery:
    """A query for users of a domain. column: the column to filter by, one of the values of COLUMNS, or empty for no
    filter. instance_ids: the ids of instances; only the users of these instances match. If it is None, users match
    whatever instances they have."""

    domain_id: int
    column: str = ""
    value: str = ""
    instance_ids: Sequence[int] | None = None
    offset: int = 0
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Removal:
    """A user to delete, or to remove from an instance.

    user_id: the id of the user, or 0 to select the user by name. name: the name of the user, or empty to select the
    user by id. instance_id: the instance from which to remove the user, or 0 to delete the user.
    """

    user_id: int
    name: str
    instance_id: int


@dataclass(frozen=True, slots=True)
class WalletAssignment:
    """Wallet users and credentials to assign to endpoint users of a domain.

    several: True to add the wallet users and credentials to those that the endpoint users already have, False to
    replace those. issuer_id: the id of the issuer that must have issued the credentials, or 0 for any issuer.
    """

    domain_id: int
    user_ids: Sequence[int]
    wallet_user_ids: Sequence[int]
    credential_ids: Sequence[int]
    credential_type: str
    issuer_id: int
    several: bool


@dataclass(frozen=True, slots=True)
class WalletChange:
    """A request to assign wallet users, credentials, groups and instances to users (updateUserWallet). user_type,
    privileged_user: the new values, or None to keep the old values."""

    wallet: WalletAssignment
    group_ids: Sequence[int]
    instance_ids: Sequence[int]
    user_type: str | None
    privileged_user: str | None
