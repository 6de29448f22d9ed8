"""What an agent tells the service."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from sallyport.base.agentwire.fields import (
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
    """How far a rotation has come."""

    ESCROW = "escrow"
    CONFIRM = "confirm"
    ABANDON = "abandon"


class DriftKind(StrEnum):
    """What was changed on a host by someone else."""

    PRIVILEGE = "privilege"
    SUDOERS = "sudoers"
    KEY = "key"
    PASSWORD = "password"  # noqa: S105
    ACCOUNT = "account"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Poll:
    """Body of STATE. version: of the state that the agent has, 0 for none. wait_s: how long the service may wait for a
    newer one before it says UNCHANGED. key: by which the agent knows states."""

    version: Number = 0
    wait_s: Annotated[int, Whole(0, MAX_WAIT_S)] = 0
    key: StateKey = ""


@dataclass(frozen=True, slots=True)
class Action:
    """What was done, or was to be. kind: create, change, lock, delete, keys, ... error: why not; empty: it was done."""

    kind: Annotated[str, Text(32, "[a-z-]+", "a kind of action")]
    name: HostName = ""
    detail: Line = ""
    error: Line = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """What someone else changed. put_back: whether the agent made it as it was."""

    kind: DriftKind
    name: HostName = ""
    detail: Line = ""
    put_back: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trigger. error: empty: it was done."""

    trigger: Number
    error: Line = ""


@dataclass(frozen=True, slots=True)
class Managed:
    """An account that the agent manages. made: by the agent, not taken over. locked: or expired."""

    name: Name
    uid: AnyId
    made: bool
    locked: bool = False


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A line of authorized_keys. fingerprint: `SHA256:` and base64, as ssh-keygen shows it. managed: put there by the
    agent."""

    type: Annotated[str, Text(64)]
    fingerprint: Annotated[str, Text(64)]
    comment: Line = ""
    managed: bool = False


@dataclass(frozen=True, slots=True)
class FoundAccount:
    """A local account. sudo: rules of sudoers(5) that hold for it. expires: microseconds."""

    name: HostName
    uid: AnyId
    gid: AnyId
    full_name: Line = ""
    home: Line = ""
    shell: Line = ""
    groups: Annotated[tuple[HostName, ...], Many(256)] = ()
    sudo: Annotated[tuple[Line, ...], Many(64)] = ()
    keys: Annotated[tuple[FoundKey, ...], Many(100)] = ()
    last_login: Moment | None = None
    expires: Moment | None = None
    locked: bool = False
    managed: bool = False


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A local group. managed: made by the agent."""

    name: HostName
    gid: AnyId
    members: Annotated[tuple[HostName, ...], Many(MAX_FOUND)] = ()
    managed: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """The local accounts and groups. complete: no bound cut anything off."""

    at: Moment
    accounts: Annotated[tuple[FoundAccount, ...], Many(MAX_FOUND)] = ()
    groups: Annotated[tuple[FoundGroup, ...], Many(MAX_FOUND)] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent did and found.

    id: another for each report; one that comes twice has the same. version: of the state that it acted on. agent,
    system, host: versions and names for people. clock_us: how far the host's clock is ahead of the service's.
    discovery: None where it was not looked for.
    """

    id: Annotated[str, Text(64, "[A-Za-z0-9_-]{8,}", "a random name")]
    at: Moment
    version: Number
    agent: Annotated[str, Text(64)] = ""
    system: Annotated[str, Text(200)] = ""
    host: Annotated[str, Text(253)] = ""
    clock_us: Annotated[int, Whole(-LATEST, LATEST)] = 0
    managed: Annotated[tuple[Managed, ...], Many(MAX_FOUND)] = ()
    actions: Annotated[tuple[Action, ...], Many(MAX_FOUND)] = ()
    drift: Annotated[tuple[Drift, ...], Many(MAX_FOUND)] = ()
    outcomes: Annotated[tuple[Outcome, ...], Many(100)] = ()
    discovery: Discovery | None = None


@dataclass(frozen=True, slots=True)
class Privilege:
    """An account that may do what root may. via: `group sudo`, or the rule with its file. wanted: the state says so."""

    name: HostName
    via: Annotated[tuple[Line, ...], Many(64)] = ()
    managed: bool = False
    wanted: bool = False


@dataclass(frozen=True, slots=True)
class PrivilegeStatus:
    """Body of PRIVILEGES."""

    at: Moment
    version: Number
    privileged: Annotated[tuple[Privilege, ...], Many(MAX_FOUND)] = ()
    drift: Annotated[tuple[Drift, ...], Many(MAX_FOUND)] = ()


@dataclass(frozen=True, slots=True)
class Rotation:
    """Body of ROTATION. trigger: which ordered it, 0 for none. password, password_hash: of an escrow alone. reason: of
    an abandon."""

    id: Annotated[str, Text(64, "[A-Za-z0-9_-]{8,}", "a random name")]
    user: Name
    phase: Phase
    trigger: Number = 0
    password: Annotated[str, Text(1024)] = field(default="", repr=False)
    password_hash: Annotated[str, Text(512, rf"(?:{HASH})?", "a hash of crypt(5)")] = field(default="", repr=False)
    reason: Line = ""


def rotation(octets: bytes) -> Rotation:
    """A message of a rotation. WireError: it is none, or an escrow without its password."""
    message = decode(Rotation, loads(octets, most=MAX_REPORT))
    escrow = message.phase is Phase.ESCROW
    if not bool(message.password) == bool(message.password_hash) == escrow:
        raise WireError("password: an escrow has password and passwordHash, and nothing else has")
    return message
