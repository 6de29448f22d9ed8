"""Time: UTC integer microseconds everywhere inside, text at the edges."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

SECOND = 1_000_000

Clock = Callable[[], int]
"""Gives the present as microseconds since 1970-01-01 UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_us() -> int:
    """The wall clock."""
    return time.time_ns() // 1000


def from_us(at: int) -> datetime:
    """Microseconds as a time in UTC."""
    return _EPOCH + timedelta(microseconds=at)


def iso(at: int) -> str:
    """Microseconds as ISO 8601 UTC with microseconds, such as 2026-01-31T08:00:00.000000Z."""
    seconds, fraction = divmod(at, SECOND)
    return f"{_to_the_second(seconds)}.{fraction:06}Z"


def iso_seconds(at: int) -> str:
    """Microseconds as ISO 8601 UTC without their fraction, such as 2026-01-31T08:00:00Z."""
    return f"{_to_the_second(at // SECOND)}Z"


@lru_cache(1024)  # of a busy second there are thousands of events
def _to_the_second(seconds: int) -> str:
    return from_us(seconds * SECOND).replace(tzinfo=None).isoformat()


def from_iso(text: str) -> int:
    """ISO 8601 text (no zone means UTC) as microseconds. ValueError when it is none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
