"""The memory of the agent: the accounts that it manages, its last actions, and the service's time at a known moment.
The memory is one file that is always rewritten as a whole.

An account belongs to the agent only if three conditions are met. The memory contains the account, the account still has
the uid in the memory, and the account is in the group `sallyport-managed`. So if only the memory file is outdated, or
if only the group was changed, the agent does not change the account of somebody else. The flag `making` is written
before useradd begins. If a crash interrupts useradd, this flag shows that the account belongs to the agent.
"""

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from sallyport.agent.endpoint.accounts import Account, Accounts
from sallyport.agentwire.envelope import Position
from sallyport.agentwire.fields import MAX_FOUND, AnyId, HostName, Moment, Name, Number
from sallyport.agentwire.report import Outcome
from sallyport.base.clock import now_us
from sallyport.base.errors import ConfigError, WireError
from sallyport.base.wire import Many, Text, decode, dumps, loads
from sallyport.host import disk

_MAX_OCTETS: Final = 8_000_000
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
ANYBODY: Final = "*"
"""The value in place of the user's name if the user of an unfinished rotation is unknown."""
_Digest = Annotated[str, Text(64, "[0-9a-f]*", "a digest")]


@dataclass(frozen=True, slots=True)
class ManagedAccount:
    """An account that the agent manages.

    made: True if the agent created the account, False if the agent took it over. making: whether the creation or the
    take-over is not completed yet. granted: the groups to which the agent added the account. wanted: the digest of the
    last password hash that the agent took from a state and set. own: the digest of the last password hash that the
    agent set, either from a state or by a rotation.
    """

    name: Name
    uid: AnyId = 0
    made: bool = True
    making: bool = False
    granted: Annotated[tuple[Name, ...], Many(MAX_FOUND)] = ()
    wanted: _Digest = ""
    own: _Digest = ""


@dataclass(frozen=True, slots=True)
class DeletedAccount:
    """An account that the agent deletes or has deleted. Its uid is reserved for an account with the same name.

    home: the path of the old home directory, which belongs to root now, or empty if there is none.
    """

    name: Name
    uid: AnyId
    home: Annotated[str, Text(512)] = ""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One moment on two clocks, in microseconds. issued: the service's time at this moment. ticks: the time since the
    host booted. The host's wall clock is not used, because it may be wrong.

    boot: the id of the boot to which `ticks` refers.
    """

    boot: Annotated[str, Text(64)]
    ticks: Moment
    issued: Moment


@dataclass(frozen=True, slots=True)
class Memory:
    """The content of the memory.

    version, content: the version and the digest of the last accepted state. groups: the groups that the agent created.
    outcomes: the outcomes of the triggers in the last state. privileged: the accounts that had root privileges at the
    agent's first check, without the accounts that the agent managed, or None before this check. sudoers: the digest of
    the agent's file in sudoers.d.
    """

    version: Number = 0
    content: _Digest = ""
    kept: Annotated[tuple[ManagedAccount, ...], Many(MAX_FOUND)] = ()
    groups: Annotated[tuple[Name, ...], Many(MAX_FOUND)] = ()
    former: Annotated[tuple[DeletedAccount, ...], Many(MAX_FOUND)] = ()
    outcomes: Annotated[tuple[Outcome, ...], Many(100)] = ()
    privileged: Annotated[tuple[HostName, ...], Many(MAX_FOUND)] | None = None
    anchor: Anchor | None = None
    sudoers: _Digest = ""

    def of(self, name: str) -> ManagedAccount | None:
        """Return the entry of an account, or None if the memory does not contain the account."""
        return next((kept for kept in self.kept if kept.name == name), None)

    def owns(self, accounts: Accounts, account: Account) -> ManagedAccount | None:
        """Return the entry of an account if the account belongs to the agent, else None."""
        kept = self.of(account.name)
        if kept is None or kept.making:
            return kept
        return kept if kept.uid == account.uid and accounts.in_managed_group(account.name) else None

    def former_of(self, name: str) -> DeletedAccount | None:
        """Return the deleted account with this name, or None."""
        return next((former for former in self.former if former.name == name), None)

    @property
    def position(self) -> Position:
        """The version and the digest of the last accepted state."""
        return Position(self.version, self.content)


class MemoryFile:
    """The file with the agent's memory. write: a function that replaces a file atomically."""

    def __init__(self, path: Path, write: Callable[[Path, bytes], None] = disk.write) -> None:
        self._path = path
        self._write = write
        self.now = self._load()

    def _load(self) -> Memory:
        """Read the file. If the file does not exist, the memory is empty. Raises ConfigError if the file is invalid or
        unreadable."""
        try:
            octets = self._path.read_bytes()
        except FileNotFoundError:
            return Memory()
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}") from None
        try:
            return decode(Memory, loads(octets, most=_MAX_OCTETS))
        except WireError as error:
            raise ConfigError(
                f"{self._path}: {error}; remove the file, and the agent takes over the accounts in the managed group"
            ) from None

    def change(self, memory: Memory) -> None:
        """Store the memory. When this method returns, the memory is on disk.

        Raises ConfigError if the disk is full, or if the memory exceeds the limits of `_load`. In both cases, nothing
        is changed.
        """
        if memory == self.now:
            return
        lists = memory.kept, memory.groups, *(each.granted for each in memory.kept)
        octets = dumps(memory)
        if max(map(len, lists)) > MAX_FOUND or len(octets) > _MAX_OCTETS:
            raise ConfigError(
                f"{self._path}: the agent has more than {MAX_FOUND} accounts or groups; delete accounts that are no "
                "longer needed"
            )
        self._write(self._path, octets + b"\n")
        self.now = memory

    def keep(self, kept: ManagedAccount) -> None:
        """Store the entry of an account. The entry replaces the old entry of the account."""
        others = tuple(each for each in self.now.kept if each.name != kept.name)
        self.change(replace(self.now, kept=(*others, kept)))

    def former(self, name: str, former: DeletedAccount | None) -> None:
        """Store the uid and home directory of a deleted account. If `former` is None, delete this entry, because the
        account exists again."""
        others = tuple(each for each in self.now.former if each.name != name)
        self.change(replace(self.now, former=others if former is None else (*others, former)[-MAX_FOUND:]))

    def forget(self, name: str) -> None:
        """Delete the entry of an account."""
        self.change(replace(self.now, kept=tuple(each for each in self.now.kept if each.name != name)))

    def group(self, name: str, *, made: bool) -> None:
        """Record that the agent has created a group. If `made` is False, record that the group is deleted."""
        others = tuple(each for each in self.now.groups if each != name)
        self.change(replace(self.now, groups=(*others, name) if made else others))

    def ended(self, outcomes: Iterable[Outcome], *, listed: Iterable[int]) -> None:
        """Store outcomes of triggers, and forget the outcomes of triggers that are not in the state any more.

        listed: the ids of the triggers in the state.
        """
        still = set(listed)
        known = {each.trigger: each for each in (*self.now.outcomes, *outcomes) if each.trigger in still}
        self.change(replace(self.now, outcomes=tuple(known.values())))


def digest(text: str) -> str:
    """Return the SHA-256 digest of a text in hexadecimal. The digest of an empty text is empty."""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def boot_id() -> str:
    """Return the id of the present boot, or an empty text if it is unknown."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def ticks() -> int:
    """Return the time since the host booted, in microseconds. The time in suspend is included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class ServiceClock:
    """The agent's estimate of the service's time. The host's wall clock may be wrong by hours, or may be set at any
    time.

    Each new state contains the time at which the service issued it. The host's boot clock, which nobody can set,
    measures how long ago the agent received the state. The estimate is the sum of the two times. After a reboot, the
    agent uses the wall clock, but never a time before the last state was issued.

    wall: a function that returns the wall clock, in microseconds. since_boot: a function that returns the time since
    the host booted, in microseconds. boot: the id of the present boot.
    """

    def __init__(
        self, wall: Callable[[], int] = now_us, since_boot: Callable[[], int] = ticks, boot: str | None = None
    ) -> None:
        self._wall = wall
        self._since_boot = since_boot
        self._boot = boot_id() if boot is None else boot

    def anchor(self, issued: int) -> Anchor:
        """Return the anchor to store when a new state arrives. issued: the time at which the service issued the
        state."""
        return Anchor(self._boot, self._since_boot(), issued)

    def now(self, anchor: Anchor | None) -> int:
        """Return the estimated time of the service, in microseconds since 1970 (UTC)."""
        if anchor is None:
            return self._wall()
        passed = self._since_boot() - anchor.ticks
        if anchor.boot == self._boot and self._boot and passed >= 0:
            return anchor.issued + passed
        return max(self._wall(), anchor.issued)

    def ahead(self, anchor: Anchor | None) -> int:
        """Return by how many microseconds the host's wall clock is ahead of the service's time. The result is negative
        if the wall clock is behind."""
        return self._wall() - self.now(anchor)
