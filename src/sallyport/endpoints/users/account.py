"""An endpoint user as admins manage it: its stored fields, changes of them, and lists."""

from collections.abc import Sequence
from dataclasses import dataclass

from sallyport.base.wire import JSON
from sallyport.store.audit import HIDDEN

LOCAL, LISTED_LOCAL = "Local", "Local User"
"""The type of a user of the service itself: as requests spell it, and as lists show it."""
PASSWORD = "Password"  # noqa: S105  the name of a kind of credential
NOT_PRIVILEGED = "false"
DISCOVERED = "discovered"
"""The source of a user that an agent has found on its machine, and that no admin has added or taken over yet."""
DIRECT, THROUGH_GROUP, FOUND = range(3)
"""The reasons for an instance of a user: direct assignment, assignment of an active group, or discovery on the
instance."""
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
"""The columns of a list's filter by their names in `filterBy`, which may have any case and underscores."""


@dataclass(frozen=True, slots=True)
class UserChange:
    """New values of a user's fields. None keeps the old value, empty text clears it. motp: a seed in base32."""

    name: str | None = None
    user_type: str | None = None
    credential_type: str | None = None
    password: bytes | None = None
    privileged_user: str | None = None
    ssh_key: str | None = None
    motp: str | None = None
    did: str | None = None

    def columns(self) -> dict[str, str]:
        """Return the new values of the columns that are not secret. A cleared value becomes the default."""
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
        """Return HIDDEN for each secret that changes."""
        return {name: HIDDEN for name in ("password", "motp") if getattr(self, name) is not None}

    def audited(self) -> dict[str, JSON]:
        """Return the new values as the audit trail keeps them."""
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
        """The user's type as lists show it."""
        return LISTED_LOCAL if self.user_type == LOCAL else self.user_type


@dataclass(frozen=True, slots=True)
class UserInstance:
    """An instance of a user. source: DIRECT, THROUGH_GROUP or FOUND; the first of these that applies."""

    user_id: int
    id: int
    name: str
    host_name: str
    source: int

    @property
    def host(self) -> str:
        """The instance's host name, else its name."""
        return self.host_name or self.name


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user in a list. groups: names of the groups. credential: the id of the user's credential, or empty."""

    account: Account
    instances: Sequence[UserInstance]
    groups: Sequence[str]
    credential: str

    @property
    def is_assigned(self) -> bool:
        """Whether the user is assigned to any instance, directly or through an active group."""
        return any(instance.source != FOUND for instance in self.instances)


@dataclass(frozen=True, slots=True)
class UserQuery:
    """A query for users of a domain. column: one of COLUMNS' values, or empty. instance_ids: only users of these
    instances; None: all users."""

    domain_id: int
    column: str = ""
    value: str = ""
    instance_ids: Sequence[int] | None = None
    offset: int = 0
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Removal:
    """A user to delete, or to take off an instance. user_id: 0 to select by name. name: empty to select by id.
    instance_id: 0 to delete the user."""

    user_id: int
    name: str
    instance_id: int


@dataclass(frozen=True, slots=True)
class WalletAssignment:
    """Wallet users and credentials for endpoint users of a domain. several: add them to the present ones; otherwise
    they replace these. issuer_id 0: any issuer."""

    domain_id: int
    user_ids: Sequence[int]
    wallet_user_ids: Sequence[int]
    credential_ids: Sequence[int]
    credential_type: str
    issuer_id: int
    several: bool


@dataclass(frozen=True, slots=True)
class WalletChange:
    """A request of updateUserWallet. user_type, privileged_user: None keeps the old value."""

    wallet: WalletAssignment
    group_ids: Sequence[int]
    instance_ids: Sequence[int]
    user_type: str | None
    privileged_user: str | None
