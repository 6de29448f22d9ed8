"""Failures by name within a window, and the names that are locked out. Times in microseconds; time is passed in."""

from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from sallyport.base.clock import SECOND

WINDOW_US: Final = 300 * SECOND
MAX_NAMES: Final = 65_536

Key = tuple[int, str] | tuple[int, bytes]
"""Domain, and a user's name or a station's octets, without case."""


@dataclass(slots=True)
class Lock:
    """One that is locked out. at: of the failure that did it. holds: False until the store has agreed to it; where it
    does not, the lock is over at once, and the next failure asks again."""

    at: int
    until: int
    failures: int
    holds: bool = True


class _Failure(NamedTuple):
    at: int
    proof: bytes
    of_code: bool


class Failures:
    """The names of one sort. limit: so many failures within the window lock a name, for `lock_us`.

    Both tables are bounded; the one that failed, or was locked, longest ago makes room.
    """

    def __init__(self, limit: int, lock_us: int, *, max_names: int = MAX_NAMES) -> None:
        self.limit = limit
        self._lock_us = lock_us
        self._max_names = max_names
        self._failed: dict[Key, list[_Failure]] = {}
        self.locks: dict[Key, Lock] = {}

    def __len__(self) -> int:
        """How many names are remembered."""
        return len(self._failed) + len(self.locks)

    @property
    def locked(self) -> int:
        """How many are locked out."""
        return sum(lock.holds for lock in tuple(self.locks.values()))

    def is_locked(self, key: Key, now: int) -> bool:
        """Whether a name is locked out now."""
        lock = self.locks.get(key)
        return lock is not None and lock.holds and now < lock.until

    def knows(self, key: Key, now: int) -> bool:
        """Whether a name is locked out now, or the store is being asked about it."""
        lock = self.locks.get(key)
        return lock is not None and now < lock.until

    def fail(self, key: Key, at: int, proof: bytes = b"", *, of_code: bool = False) -> int:
        """Count a failure: how many there are within the window, this one among them; 0 where it is none.

        proof: tells this guess from others. One that was counted already within the window is the same again. of_code:
        it was the second factor's.
        """
        before = self._failed.get(key, ())
        if proof and any(each.proof == proof for each in before):
            return 0
        self._failed.pop(key, None)
        failures = [each for each in before if each.at > at - WINDOW_US]
        if len(self._failed) >= self._max_names:
            del self._failed[next(iter(self._failed))]
        failures = [*failures, _Failure(at, proof, of_code)][-self.limit :]
        self._failed[key] = failures  # a dictionary keeps its order
        return len(failures)

    def lock(self, key: Key, at: int, now: int, failures: int, *, holds: bool = True) -> Lock:
        """Lock a name out. at: of the failure that did it."""
        lock = Lock(at, now + self._lock_us, failures, holds)
        self.restore(key, lock)
        return lock

    def restore(self, key: Key, lock: Lock) -> None:
        """A lock that the store has."""
        self.locks.pop(key, None)
        if len(self.locks) >= self._max_names:
            del self.locks[next(iter(self.locks))]
        self.locks[key] = lock

    def forgive(self, key: Key, *, codes: bool) -> None:
        """A success: what was counted is forgotten. codes: wrong codes too: the second factor was a success as well."""
        self._keep(key, [] if codes else [each for each in self._failed.get(key, ()) if each.of_code])

    def unlock(self, key: Key) -> None:
        """An admin says so: as if nothing had been."""
        self._failed.pop(key, None)
        self.locks.pop(key, None)

    def take_back(self, key: Key, at: int) -> None:
        """A failure that could not be recorded, so that nobody was answered, was none; nor was its lock."""
        self._keep(key, [each for each in self._failed.get(key, ()) if each.at != at])
        lock = self.locks.get(key)
        if lock is not None and lock.at == at:
            del self.locks[key]

    def _keep(self, key: Key, failures: list[_Failure]) -> None:
        if failures:
            self._failed[key] = failures
        else:
            self._failed.pop(key, None)

    def sweep(self, now: int) -> int:
        """Forget what is over; how many locks have ended. The oldest are first."""
        failed = list(takewhile(lambda key: self._failed[key][-1].at <= now - WINDOW_US, self._failed))
        ended = list(takewhile(lambda key: self.locks[key].until <= now, self.locks))
        for key in failed:
            del self._failed[key]
        for key in ended:
            del self.locks[key]
        return len(ended)

    def clear(self) -> None:
        """Forget everything."""
        self._failed.clear()
        self.locks.clear()
