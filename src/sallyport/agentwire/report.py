"""Messages from agents: polls, reports, privilege statuses, rotations. The API reference contains the docstrings of the
fields."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from sallyport.agentwire.fields import (
    HASH,
    MAX_FOUND,
    MAX_REPORT,
    MAX_WAIT_S,
    AnyId,
    HostName,
    Line,
    Moment,
    Name,
    Number,
    StateKey,
)
from sallyport.base.errors import WireError
from sallyport.base.wire import LATEST, Many, Text, Whole, decode, loads


class Phase(StrEnum):
    """A step in the rotation of a password."""

    ESCROW = "escrow"
    CONFIRM = "confirm"
    ABANDON = "abandon"


class DriftKind(StrEnum):
    """A kind of unexpected change on a host: a change that the agent did not make."""

    PRIVILEGE = "privilege"
    SUDOERS = "sudoers"
    KEY = "key"
    PASSWORD = "password"  # noqa: S105
    ACCOUNT = "account"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Poll:
    """Body of a request to the path STATE: the agent asks for a newer state."""

    version: Number = 0
    """Version of the state that the agent has; 0 for none."""
    wait_s: Annotated[int, Whole(0, MAX_WAIT_S)] = 0
    """Maximum wait for a newer state, in seconds; then the answer is `unchanged`."""
    key: StateKey = ""
    """Ed25519 public key in base64 with which the agent verifies states; empty for the service's current key."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the agent that succeeded or failed."""

    kind: Annotated[str, Text(32, "[a-z-]+", "a kind of action")]
    """Kind of the action, such as create, change, lock, delete or keys."""
    name: HostName = ""
    """Account, group or file."""
    detail: Line = ""
    """Action in words."""
    error: Line = ""
    """Reason of a failure; empty on success."""


@dataclass(frozen=True, slots=True)
class Drift:
    """An unexpected change on a host: a change that the agent did not make."""

    kind: DriftKind
    """Kind of the change."""
    name: HostName = ""
    """Account or file that was changed."""
    detail: Line = ""
    """Change in words."""
    put_back: bool = False
    """Whether the agent has undone the change."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trigger that the agent has carried out."""

    trigger: Number
    """Id of the trigger."""
    error: Line = ""
    """Reason of a failure; empty on success."""


@dataclass(frozen=True, slots=True)
class Managed:
    """An account that the agent manages."""

    name: Name
    """Name of the account."""
    uid: AnyId
    """User id of the account."""
    made: bool
    """True if the agent created the account; false if the agent took over an existing account."""
    locked: bool = False
    """Whether the account is locked or expired."""


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A line of authorized_keys."""

    type: Annotated[str, Text(64)]
    """Type of the key, such as ssh-ed25519."""
    fingerprint: Annotated[str, Text(64)]
    """Fingerprint of the key: `SHA256:` and base64, as in the output of ssh-keygen."""
    comment: Line = ""
    """Comment of the key."""
    managed: bool = False
    """Whether the agent added the key."""


@dataclass(frozen=True, slots=True)
class FoundAccount:
    """A local account that a discovery has found."""

    name: HostName
    """Name of the account."""
    uid: AnyId
    """User id."""
    gid: AnyId
    """Id of the account's primary group."""
    full_name: Line = ""
    """Full name (GECOS)."""
    home: Line = ""
    """Home directory."""
    shell: Line = ""
    """Login shell."""
    groups: Annotated[tuple[HostName, ...], Many(256)] = ()
    """Names of the account's groups."""
    sudo: Annotated[tuple[Line, ...], Many(64)] = ()
    """Rules of sudoers(5) for the account."""
    keys: Annotated[tuple[FoundKey, ...], Many(100)] = ()
    """Keys in the account's authorized_keys."""
    last_login: Moment | None = None
    """Time of the last login, microseconds UTC."""
    expires: Moment | None = None
    """Expiry of the account, microseconds UTC."""
    locked: bool = False
    """Whether the account is locked."""
    managed: bool = False
    """Whether the agent manages the account."""


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A local group that a discovery has found."""

    name: HostName
    """Name of the group."""
    gid: AnyId
    """Group id."""
    members: Annotated[tuple[HostName, ...], Many(MAX_FOUND)] = ()
    """Names of the group's members."""
    managed: bool = False
    """Whether the agent created the group."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of a discovery: the local accounts and groups of a host."""

    at: Moment
    """Time of the discovery, microseconds UTC."""
    accounts: Annotated[tuple[FoundAccount, ...], Many(MAX_FOUND)] = ()
    """Local accounts."""
    groups: Annotated[tuple[FoundGroup, ...], Many(MAX_FOUND)] = ()
    """Local groups."""
    complete: bool = True
    """True if the lists are complete; false if a list was cut at its maximum length."""


@dataclass(frozen=True, slots=True)
class Report:
    """Body of a request to the path REPORT: the actions and findings of an agent."""

    id: Annotated[str, Text(64, "[A-Za-z0-9_-]{8,}", "a random name")]
    """Random id of the report; a repeated report has the same id."""
    at: Moment
    """Time of the report, microseconds UTC."""
    version: Number
    """Version of the state that the agent acted on."""
    agent: Annotated[str, Text(64)] = ""
    """Version of the agent's program."""
    system: Annotated[str, Text(200)] = ""
    """Operating system and its version."""
    host: Annotated[str, Text(253)] = ""
    """Host name."""
    clock_us: Annotated[int, Whole(-LATEST, LATEST)] = 0
    """Time by which the host's clock is ahead of the service's clock, in microseconds."""
    managed: Annotated[tuple[Managed, ...], Many(MAX_FOUND)] = ()
    """Accounts that the agent manages."""
    actions: Annotated[tuple[Action, ...], Many(MAX_FOUND)] = ()
    """Actions of the agent since the last report."""
    drift: Annotated[tuple[Drift, ...], Many(MAX_FOUND)] = ()
    """Changes that the agent did not make."""
    outcomes: Annotated[tuple[Outcome, ...], Many(100)] = ()
    """Outcomes of triggers."""
    discovery: Discovery | None = None
    """Local accounts and groups; null if there was no discovery."""


@dataclass(frozen=True, slots=True)
class Privilege:
    """An account with root's rights."""

    name: HostName
    """Name of the account."""
    via: Annotated[tuple[Line, ...], Many(64)] = ()
    """Groups and sudo rules that grant the rights: `group sudo`, or the rule with its file."""
    managed: bool = False
    """Whether the agent manages the account."""
    wanted: bool = False
    """Whether the state grants the rights."""


@dataclass(frozen=True, slots=True)
class PrivilegeStatus:
    """Body of a request to the path PRIVILEGES: the accounts with root's rights."""

    at: Moment
    """Time of the status, microseconds UTC."""
    version: Number
    """Version of the state that the agent has."""
    privileged: Annotated[tuple[Privilege, ...], Many(MAX_FOUND)] = ()
    """Accounts with root's rights."""
    drift: Annotated[tuple[Drift, ...], Many(MAX_FOUND)] = ()
    """Changes of rights that the agent did not make."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """Body of a request to the path ROTATION: a step in the rotation of a password."""

    id: Annotated[str, Text(64, "[A-Za-z0-9_-]{8,}", "a random name")]
    """Random id of the rotation."""
    user: Name
    """Account whose password is rotated."""
    phase: Phase
    """Step of the rotation."""
    trigger: Number = 0
    """Id of the trigger that ordered the rotation; 0 for none."""
    password: Annotated[str, Text(1024)] = field(default="", repr=False)
    """New password; only with escrow."""
    password_hash: Annotated[str, Text(512, rf"(?:{HASH})?", "a hash of crypt(5)")] = field(default="", repr=False)
    """Hash of the new password in the form of shadow(5); only with escrow."""
    reason: Line = ""
    """Reason of an abandon."""


def rotation(octets: bytes, *, strict: bool = False) -> Rotation:
    """Parse a rotation message. strict: whether unknown fields are errors.

    Raises WireError if the message is malformed, or if an escrow contains no password.
    """
    message = decode(Rotation, loads(octets, most=MAX_REPORT), strict=strict)
    escrow = message.phase is Phase.ESCROW
    if not bool(message.password) == bool(message.password_hash) == escrow:
        raise WireError("password: an escrow needs password and passwordHash; other phases must not have them")
    return message
