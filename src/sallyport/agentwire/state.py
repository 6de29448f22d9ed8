"""The state: the desired accounts of an instance, and the orders for its agent."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from sallyport.agentwire.fields import HASH, MAX_USERS, Id, Moment, Name, Number, Path, StateKey
from sallyport.base.errors import WireError
from sallyport.base.wire import Many, Text, Whole

FORMAT: Final = 1
"""Version of the state's format. Incompatible changes increase the version; additional fields do not."""
_KEY: Final = (
    r"(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
    r" [A-Za-z0-9+/]{32,16384}={0,3}(?: .*)?"
)


class Removal(StrEnum):
    """What the agent does to an account that is no longer in the state. This applies only to accounts that the agent
    created.

    An account that existed before the agent took it over is always locked, and never deleted.
    """

    DELETE = "delete"
    LOCK = "lock"


class TriggerKind(StrEnum):
    """A kind of order to an agent."""

    SYNC = "sync"
    DISCOVER = "discover"
    ROTATE = "rotate"


@dataclass(frozen=True, slots=True)
class DesiredUser:
    """An account that should exist on the host.

    uid: the user id; None lets the host choose. groups: groups in addition to the account's own group. home, shell:
    empty for the host's default. ssh_keys: OpenSSH public keys without options. password_hash: a hash in the form of
    shadow(5); NO_PASSWORD disables the password; empty leaves the password unchanged. expires: the time from which the
    account is locked, even if the agent cannot reach the service; None for never.
    """

    name: Name
    uid: Id | None = None
    groups: Annotated[tuple[Name, ...], Many(64)] = ()
    privileged: bool = False
    home: Path = ""
    shell: Path = ""
    ssh_keys: Annotated[tuple[Annotated[str, Text(20_000, _KEY, "an OpenSSH public key")], ...], Many(100)] = ()
    password_hash: Annotated[str, Text(512, rf"(?:{HASH}|\*)?", "a hash of crypt(5)")] = field(default="", repr=False)
    expires: Moment | None = None


@dataclass(frozen=True, slots=True)
class DesiredGroup:
    """A group that should exist on the host. gid: the group id; None lets the host choose."""

    name: Name
    gid: Id | None = None


class First(StrEnum):
    """The kind of character with which a password may begin."""

    UPPERCASE = "uppercase"
    LOWERCASE = "lowercase"
    DIGIT = "digit"


@dataclass(frozen=True, slots=True)
class Quality:
    """Parameters of libpwquality (pwquality.conf(5)).

    minlen: the minimum length; None for no minimum. credits: four numbers, one each for digits, uppercase letters,
    lowercase letters and other characters. If a number n is above 0, up to n of these characters count twice for
    minlen; without a minimum, this has no effect. If n is below 0, a password needs at least -n of these characters.
    Each other parameter requires nothing if it is 0. maxclassrepeat also requires nothing if it is 1.
    """

    minlen: Annotated[int, Whole(0, 1024)] | None = None
    credits: Annotated[tuple[Annotated[int, Whole(-1024, 1024)], ...], Many(4)] = (0, 0, 0, 0)
    minclass: Annotated[int, Whole(0, 4)] = 0
    maxrepeat: Annotated[int, Whole(0, 1024)] = 0
    maxclassrepeat: Annotated[int, Whole(0, 1024)] = 0
    maxsequence: Annotated[int, Whole(0, 1024)] = 0
    usercheck: bool = False

    def __post_init__(self) -> None:
        if len(self.credits) != 4:
            raise WireError("credits: must be an array of four numbers")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a password policy. The defaults require nothing.

    both_cases: whether a password may contain uppercase and lowercase letters at the same time. quality: the parameters
    of libpwquality; None disables all checks of libpwquality.
    """

    min_length: Annotated[int, Whole(0, 1024)] | None = None
    max_length: Annotated[int, Whole(1, 1024)] | None = None
    first: First | None = None
    both_cases: bool = True
    special: bool = True
    digits: bool = True
    quality: Quality | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an agent.

    put_back_privileges: whether to remove root's rights from a managed account that should not have them.
    remove_unknown_keys: whether to remove SSH keys that the state does not contain from managed accounts. remove_homes:
    whether to delete the home directory with the account; if this is false, root becomes the owner of the directory.
    sudo_without_password: whether privileged users need no password for sudo. end_sessions: whether to end the sessions
    of an account when it is locked or deleted. privilege_s, discover_s: the intervals of privilege statuses and of
    discoveries, in seconds.
    """

    put_back_privileges: bool = False
    remove_unknown_keys: bool = False
    removal: Removal = Removal.DELETE
    remove_homes: bool = False
    sudo_without_password: bool = False
    end_sessions: bool = True
    privilege_s: Annotated[int, Whole(10, 604_800)] = 900
    discover_s: Annotated[int, Whole(60, 2_592_000)] = 86_400


@dataclass(frozen=True, slots=True)
class Trigger:
    """An order to the agent to act now. It stays in the state until the agent reports its outcome. users: the accounts
    whose passwords must be rotated."""

    id: Number
    kind: TriggerKind
    users: Annotated[tuple[Name, ...], Many(MAX_USERS)] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The desired state of an instance.

    takeover: existing accounts that the agent may manage. key: the new public key for the signatures of later states;
    empty if the key does not change.
    """

    instance: Number
    version: Number
    issued: Moment
    users: Annotated[tuple[DesiredUser, ...], Many(MAX_USERS)] = ()
    groups: Annotated[tuple[DesiredGroup, ...], Many(MAX_USERS)] = ()
    takeover: Annotated[tuple[Name, ...], Many(MAX_USERS)] = ()
    policies: Annotated[tuple[Rules, ...], Many(100)] = ()
    settings: Settings = Settings()
    triggers: Annotated[tuple[Trigger, ...], Many(100)] = ()
    key: StateKey = ""
    format: Annotated[int, Whole(FORMAT, FORMAT)] = FORMAT

    def user(self, name: str) -> DesiredUser | None:
        """Return the desired user with this name. Return None if the state has no such user."""
        return next((user for user in self.users if user.name == name), None)
