"""Count the failures of each name within a window, and keep the locks. This module reads no clock: the caller passes
the time, in microseconds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final, NamedTuple

from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND
from sallyport.base.wire import JSON

WINDOW_US: Final = 300 * SECOND
MAX_NAMES: Final = 65_536

Key = tuple[int, str] | tuple[int, bytes]
"""The id of the domain, and a name: the case-folded name of a user, or the Calling-Station-Id of a station in lower
case."""


_FAILURE, _LOCK, _FORGIVEN, _UNLOCKED = "failure", "lock", "forgiven", "unlocked"


def _as_json(key: Key) -> tuple[JSON, ...]:
    domain_id, name = key
    return (domain_id, True, name) if isinstance(name, str) else (domain_id, False, name.hex())


class LockoutKind(StrEnum):
    """The kinds of names that can be locked out."""

    USER = "user"
    STATION = "station"


class Failure(Enum):
    """The kinds of failures that are counted. Refusals for other reasons, for example because of a disabled account,
    are not counted.

    NO_CODE_LEFT: the nodes together have checked as many wrong codes of the user as the limit allows, so that no node
    checks another one. It locks the user at once.
    """

    PASSWORD = auto()
    UNKNOWN_USER = auto()
    CODE = auto()
    NO_CODE_LEFT = auto()


@dataclass(slots=True)
class Lock:
    """A lock of a name.

    at: the time of the failure that caused the lock, in microseconds. until: the end of the lock. holds: whether the
    lock applies. The lock of a station applies only after a transaction has confirmed the lock. If the transaction does
    not confirm the lock, the lock expires at once. The next failure then makes a new lock.
    """

    at: int
    until: int
    failures: int
    holds: bool = True


class _Failure(NamedTuple):
    at: int
    proof: bytes
    of_code: bool


class Failures:
    """The failures and locks of users, or of stations.

    limit: the number of failures within the window after which a name is locked. lock_us: the duration of a lock, in
    microseconds. max_names: the maximum number of names in each table. If a table is full, the tenant with the most
    names loses its oldest name. tell: a function that sends a change to the other nodes; `adopt` applies the change
    there.
    """

    def __init__(
        self,
        limit: int,
        lock_us: int,
        *,
        max_names: int = MAX_NAMES,
        tell: Callable[..., None] = lambda *_change: None,
    ) -> None:
        self.limit = limit
        self.lock_us = lock_us
        self._tell = self._tell_always = tell
        self._failed = BoundedMap[Key, list[_Failure]](max_names)
        self.locks = BoundedMap[Key, Lock](max_names)

    def __len__(self) -> int:
        """Return the number of names with failures, plus the number of locks."""
        return len(self._failed) + len(self.locks)

    @property
    def locked(self) -> int:
        """The number of locks that apply. Locks that still wait for a confirmation are not included."""
        return sum(lock.holds for lock in self.locks.values())

    def is_locked(self, key: Key, now: int) -> bool:
        """Return whether a lock of this name applies now."""
        lock = self.locks.get(key)
        return lock is not None and lock.holds and now < lock.until

    def knows(self, key: Key, now: int) -> bool:
        """Return whether a name has a lock now. A lock that is not confirmed counts too."""
        lock = self.locks.get(key)
        return lock is not None and now < lock.until

    def has(self, key: Key, proof: bytes) -> bool:
        """Return whether a guess was already counted as a failure of this name. proof: octets that identify the
        guess."""
        return any(each.proof == proof for each in self._failed.get(key) or ())

    def fail(self, key: Key, tenant_id: int, at: int, proof: bytes = b"", *, of_code: bool = False) -> int:
        """Count a failure. Return the number of failures within the window. If the same guess was already counted,
        return 0.

        proof: octets that identify the guess. They serve to recognize a repeated guess. of_code: whether the failure is
        a wrong code.
        """
        before = self._failed.get(key) or ()
        if proof and self.has(key, proof):
            return 0
        failures = [each for each in before if each.at > at - WINDOW_US]
        failures = [*failures, _Failure(at, proof, of_code)][-self.limit :]
        self._failed.put(key, failures, tenant_id)
        self._tell(_FAILURE, *_as_json(key), tenant_id, proof.hex(), of_code)
        return len(failures)

    def lock(self, key: Key, tenant_id: int, at: int, now: int, failures: int, *, holds: bool = True) -> Lock:
        """Lock a name, and return the lock. at: the time of the failure that caused it. holds: whether the lock applies
        at once."""
        lock = Lock(at, now + self.lock_us, failures, holds)
        self.restore(key, tenant_id, lock)
        if holds:
            self._tell(_LOCK, *_as_json(key), tenant_id, failures)
        return lock

    def confirm(self, key: Key, tenant_id: int, lock: Lock) -> None:
        """Confirm a lock that was made with `holds=False`, so that it applies. This runs in the thread of the writer,
        while `adopt` may have silenced `_tell`."""
        lock.holds = True
        self._tell_always(_LOCK, *_as_json(key), tenant_id, lock.failures)

    def restore(self, key: Key, tenant_id: int, lock: Lock) -> None:
        """Add a lock that was read from the store."""
        self.locks.put(key, lock, tenant_id)

    def forgive(self, key: Key, *, codes: bool) -> bool:
        """Reset the count of a name after a successful login. Return whether there was anything to reset.

        codes: whether to reset the count of wrong codes too. This is True if the second factor was approved.
        """
        is_changed = self._keep(key, lambda failure: failure.of_code and not codes)
        if is_changed:
            self._tell(_FORGIVEN, *_as_json(key), codes)
        return is_changed

    def unlock(self, key: Key) -> None:
        """Remove the lock and all failures of a name."""
        self._failed.pop(key)
        self.locks.pop(key)
        self._tell(_UNLOCKED, *_as_json(key))

    def adopt(self, change: Sequence[JSON], at: int) -> tuple[int, str] | None:
        """Apply a change that another node has made. at: the time of the change, by this node's clock. Return the key
        of the user that it unlocks, or None."""
        what, domain_id, is_text, name, *values = change
        text = str(name)
        key: Key = (int(str(domain_id)), text) if is_text else (int(str(domain_id)), bytes.fromhex(text))
        self._tell = lambda *_change: None
        try:
            if what == _FAILURE:
                self.fail(key, int(str(values[0])), at, bytes.fromhex(str(values[1])), of_code=bool(values[2]))
            elif what == _LOCK:
                self.lock(key, int(str(values[0])), at, at, int(str(values[1])))
            elif what == _FORGIVEN:
                self.forgive(key, codes=bool(values[0]))
            elif what == _UNLOCKED:
                self.unlock(key)
        finally:
            self._tell = self._tell_always
        return (key[0], key[1]) if what == _UNLOCKED and isinstance(key[1], str) else None

    def take_back(self, key: Key, at: int) -> None:
        """Remove a failure whose event could not be stored. If this failure has caused a lock, remove the lock too. at:
        the time of the failure."""
        self._keep(key, lambda failure: failure.at != at)
        lock = self.locks.get(key)
        if lock is not None and lock.at == at:
            self.locks.pop(key)

    def _keep(self, key: Key, stays: Callable[[_Failure], bool]) -> bool:
        failures = self._failed.get(key)
        if failures is None:
            return False
        failures[:] = filter(stays, failures)
        if not failures:
            self._failed.pop(key)
        return True

    def set_back(self, now: int) -> None:
        """Move failures and locks of the future to the present time, because the clock was set back. So each lock ends
        after its duration."""
        for failures in self._failed.values():
            failures[:] = [each._replace(at=min(each.at, now)) for each in failures]
        for lock in self.locks.values():
            ahead = max(0, lock.at - now)
            lock.at, lock.until = lock.at - ahead, lock.until - ahead

    def sweep(self, now: int) -> int:
        """Remove expired failures and locks, and return the number of expired locks."""
        self._failed.pop_oldest_while(lambda failures: failures[-1].at <= now - WINDOW_US)
        return len(self.locks.pop_oldest_while(lambda lock: lock.until <= now))

    def clear(self) -> None:
        """Remove all failures and locks, before the stored locks are loaded."""
        self._failed.clear()
        self.locks.clear()
