"""The desired accounts of an instance, and the orders for its agent."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from sallyport.base.agentwire.fields import HASH, MAX_USERS, Id, Moment, Name, Number, Path, StateKey
from sallyport.base.errors import WireError
from sallyport.base.wire import Many, Text, Whole

FORMAT: Final = 1
"""Another number is another protocol; what is only added needs none."""
_KEY: Final = (
    r"(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)"
    r" [A-Za-z0-9+/]{32,16384}={0,3}(?: .*)?"
)


class Removal(StrEnum):
    """The fate of an account that the agent has made and that the state no longer has. An older account is locked."""

    DELETE = "delete"
    LOCK = "lock"


class TriggerKind(StrEnum):
    """A kind of order to an agent."""

    SYNC = "sync"
    DISCOVER = "discover"
    ROTATE = "rotate"


@dataclass(frozen=True, slots=True)
class DesiredUser:
    """An account that should be there.

    uid: None lets the host choose. groups: beside its own. home, shell: empty is the host's default. ssh_keys: OpenSSH
    public keys without options. password_hash: as shadow(5) has it; NO_PASSWORD closes it to passwords; empty leaves
    the password alone. expires: from then on the account is locked, even while the service is away; None never.
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
    """A group that should be there. gid: None lets the host choose."""

    name: Name
    gid: Id | None = None


class First(StrEnum):
    """The class of the first character of a password."""

    UPPERCASE = "uppercase"
    LOWERCASE = "lowercase"
    DIGIT = "digit"


@dataclass(frozen=True, slots=True)
class Quality:
    """Parameters of libpwquality. minlen None: no length is demanded, so that a credit above 0 means nothing.

    credits: of digits, uppercase, lowercase and others; n above 0: up to n of them count twice for minlen; n below 0:
    at least -n of them. 0 in the others demands nothing, and so does a maxclassrepeat of 1.
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
            raise WireError("credits: not four numbers")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a password policy. None, or allowed, demands nothing.

    both_cases: whether one password may have uppercase and lowercase letters. quality: None leaves out libpwquality,
    also the checks that it always makes (palindromes).
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
    """How an agent behaves.

    put_back_privileges: rights that a managed account has and should not have are taken from it. remove_unknown_keys:
    keys of managed accounts that are not in the state are removed. remove_homes: with the account; else the home
    directory is handed to root. sudo_without_password: for privileged users. end_sessions: of accounts that are locked
    or deleted. privilege_s, discover_s: how often, in seconds.
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
    """An order to act now, part of the state until a report has its outcome. users: whose passwords to rotate."""

    id: Number
    kind: TriggerKind
    users: Annotated[tuple[Name, ...], Many(MAX_USERS)] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The desired state of an instance. takeover: accounts that were there before and may be managed. key: by which
    later states are signed; empty: by the same."""

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
        """The user of that name."""
        return next((user for user in self.users if user.name == name), None)
