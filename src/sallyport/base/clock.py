"""Time: UTC integer microseconds everywhere inside, text at the edges."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

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
    return from_us(at).isoformat(timespec="microseconds").replace("+00:00", "Z")


def iso_seconds(at: int) -> str:
    """Microseconds as ISO 8601 UTC without their fraction, such as 2026-01-31T08:00:00Z."""
    return iso(at - at % SECOND).replace(".000000", "")


def from_iso(text: str) -> int:
    """ISO 8601 text (no zone means UTC) as microseconds. ValueError when it is none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
