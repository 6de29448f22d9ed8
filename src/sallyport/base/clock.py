"""Time: integer microseconds UTC inside the program, text in input and output. The waits after failures."""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

SECOND = 1_000_000

Clock = Callable[[], int]
"""A function that returns the current time in microseconds since 1970-01-01 UTC."""

_TIME_ERROR = 5
_TIMEX = 256  # octets, more than the size of struct timex
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_us() -> int:
    """Return the time of the wall clock in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def is_synchronized() -> bool | None:
    """Return whether the kernel reports a synchronized clock (adjtimex(2), TIME_ERROR). Return None if the kernel
    cannot be asked."""
    import ctypes  # only the service asks; the agents are smaller without it

    asked = ctypes.create_string_buffer(_TIMEX)  # a struct timex; if it contains only zeros, the call only reads
    try:
        state = int(ctypes.CDLL(None).adjtimex(asked))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR


def from_us(at: int) -> datetime:
    """Return a time in microseconds as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


def iso(at: int) -> str:
    """Return a time in microseconds as ISO 8601 UTC with microseconds, such as 2026-01-31T08:00:00.000000Z."""
    seconds, fraction = divmod(at, SECOND)
    return f"{_to_the_second(seconds)}.{fraction:06}Z"


def iso_or_empty(at: int | None) -> str:
    """Return what `iso` returns, or an empty text if there is no time (None or 0)."""
    return iso(at) if at else ""


def iso_seconds(at: int) -> str:
    """Return a time in microseconds as ISO 8601 UTC without a fraction, such as 2026-01-31T08:00:00Z."""
    return f"{_to_the_second(at // SECOND)}Z"


@lru_cache(1024)  # cached, because a busy service formats thousands of times within one second
def _to_the_second(seconds: int) -> str:
    return from_us(seconds * SECOND).replace(tzinfo=None).isoformat()


def from_iso(text: str) -> int:
    """Parse an ISO 8601 text, and return the time in microseconds. A text without a time zone is UTC. Raises
    ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


class BackOff:
    """An exponential back-off. The wait doubles with each failure. Each wait is then shortened at random, to no less
    than half, so that nodes and agents do not retry all at the same time. chance: a function that returns a random
    number from 0 to 1."""

    def __init__(
        self, *, first_s: float = 1.0, most_s: float = 300.0, chance: Callable[[], float] = random.random
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._chance = chance
        self._wait_s = first_s

    def failed(self, at_least_s: float = 0.0) -> float:
        """Return the seconds to wait after a failure. at_least_s: the seconds in the Retry-After header, or 0."""
        wait_s = self._wait_s * (1 - self._chance() / 2)
        self._wait_s = min(self._most_s, 2 * self._wait_s)
        return max(wait_s, min(at_least_s, self._most_s))

    def worked(self) -> None:
        """Reset the wait after a success."""
        self._wait_s = self._first_s
