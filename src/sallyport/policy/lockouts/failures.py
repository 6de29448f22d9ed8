"""This module counts the failures of each name within a window, and has the locks. Times are in microseconds. The
caller passes the present time."""

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
"""The id of the domain, and the case-folded name of a user or the octets of a station in lower case."""


_FAILURE, _LOCK, _FORGIVEN, _UNLOCKED = "failure", "lock", "forgiven", "unlocked"


def _as_json(key: Key) -> tuple[JSON, ...]:
    domain_id, name = key
    return (domain_id, True, name) if isinstance(name, str) else (domain_id, False, name.hex())


class Kind(StrEnum):
    """Kinds of names that can be locked out."""

    USER = "user"
    STATION = "station"


class Failure(Enum):
    """The kinds of failures that count. A refusal for another reason does not, such as a disabled account."""

    PASSWORD = auto()
    UNKNOWN_USER = auto()
    CODE = auto()


@dataclass(slots=True)
class Lock:
    """A lock of a name. at: the time of the failure that led to it. holds: whether the lock applies.

    A station's lock does not apply until a transaction confirms it. If it is not confirmed, it expires at once, and the
    next failure tries to make a new lock.
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
    """The failures and locks of one kind of names. limit: number of failures in the window that locks a name.

    lock_us: duration of a lock. The tables of failures and of locks are bounded, with a share for each tenant: the
    oldest name of the largest tenant is evicted first. tell: passes a change to the other nodes, whose `adopt` gets it.
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
        self._lock_us = lock_us
        self._tell = tell
        self._failed = BoundedMap[Key, list[_Failure]](max_names)
        self.locks = BoundedMap[Key, Lock](max_names)

    def __len__(self) -> int:
        """Return the number of names with failures plus the number of locks."""
        return len(self._failed) + len(self.locks)

    @property
    def locked(self) -> int:
        """The number of locks that apply."""
        return sum(lock.holds for lock in self.locks.values())

    def is_locked(self, key: Key, now: int) -> bool:
        """Return whether a name is locked out now."""
        lock = self.locks.get(key)
        return lock is not None and lock.holds and now < lock.until

    def knows(self, key: Key, now: int) -> bool:
        """Return whether a name has a lock now, even if it is not confirmed yet."""
        lock = self.locks.get(key)
        return lock is not None and now < lock.until

    def fail(self, key: Key, tenant_id: int, at: int, proof: bytes = b"", *, of_code: bool = False) -> int:
        """Count a failure, and return the number of failures within the window; 0 for a repeated guess.

        proof: octets that identify the guess; a failure with a known proof is a repeated guess. of_code: whether the
        failure is a wrong code.
        """
        before = self._failed.get(key) or ()
        if proof and any(each.proof == proof for each in before):
            return 0
        failures = [each for each in before if each.at > at - WINDOW_US]
        failures = [*failures, _Failure(at, proof, of_code)][-self.limit :]
        self._failed.put(key, failures, tenant_id)
        self._tell(_FAILURE, *_as_json(key), tenant_id, proof.hex(), of_code)
        return len(failures)

    def lock(self, key: Key, tenant_id: int, at: int, now: int, failures: int, *, holds: bool = True) -> Lock:
        """Lock a name. at: the time of the failure that led to the lock."""
        lock = Lock(at, now + self._lock_us, failures, holds)
        self.restore(key, tenant_id, lock)
        if holds:
            self._tell(_LOCK, *_as_json(key), tenant_id, failures)
        return lock

    def confirm(self, key: Key, tenant_id: int, lock: Lock) -> None:
        """Let a lock apply that was made with `holds=False`."""
        lock.holds = True
        self._tell(_LOCK, *_as_json(key), tenant_id, lock.failures)

    def restore(self, key: Key, tenant_id: int, lock: Lock) -> None:
        """Add a lock that was read from the store."""
        self.locks.put(key, lock, tenant_id)

    def forgive(self, key: Key, *, codes: bool) -> bool:
        """Reset the count after a success. Return whether there was a count. codes: whether wrong codes are reset too,
        because the second factor was approved."""
        is_changed = self._keep(key, lambda failure: failure.of_code and not codes)
        if is_changed:
            self._tell(_FORGIVEN, *_as_json(key), codes)
        return is_changed

    def unlock(self, key: Key) -> None:
        """Remove the lock and the count of a name."""
        self._failed.pop(key)
        self.locks.pop(key)
        self._tell(_UNLOCKED, *_as_json(key))

    def adopt(self, change: Sequence[JSON], at: int) -> None:
        """Apply a change by another node. at: the time of the change by this node's clock."""
        what, domain_id, is_text, name, *values = change
        text = str(name)
        key: Key = (int(str(domain_id)), text) if is_text else (int(str(domain_id)), bytes.fromhex(text))
        tell, self._tell = self._tell, lambda *_change: None
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
            self._tell = tell

    def take_back(self, key: Key, at: int) -> None:
        """Remove a failure that could not be recorded, and its lock. at: time of the failure."""
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

    def sweep(self, now: int) -> int:
        """Remove expired failures and locks, and return the number of expired locks."""
        self._failed.pop_oldest_while(lambda failures: failures[-1].at <= now - WINDOW_US)
        return len(self.locks.pop_oldest_while(lambda lock: lock.until <= now))

    def clear(self) -> None:
        """Remove all failures and locks."""
        self._failed.clear()
        self.locks.clear()
