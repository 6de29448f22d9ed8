"""Compute when a directory is read next. A schedule has either a number of minutes between two readings or times of the
day.

If many directories have the same schedule, they must not all be read at the same moment. So a random delay is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sallyport.base.clock import SECOND

MINUTE: Final = 60 * SECOND
MOST_JITTER: Final = 5 * MINUTE
_DAYS: Final = 3
"""Number of days in which the next time is searched. Today, the time may have passed. Tomorrow, the change to daylight
saving time may skip it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The times at which a directory is read. Either `every_minutes` or `times` is set. every_minutes: the number of
    minutes between two readings, or 0. times: minutes after midnight in `zone`.

    full_every: a number n. Every n-th reading reads all entries, and the readings in between read only the changes. If
    n is 0, only the first reading reads all entries.
    """

    every_minutes: int = 0
    times: Sequence[int] = ()
    zone: str = "UTC"
    full_every: int = 0

    def following(self, now: int, chance: float) -> int:
        """Return the next time after `now` at which the directory is read, in microseconds. chance: a random number
        from 0 to 1, from which the random delay is computed."""
        if self.every_minutes:
            wait = self.every_minutes * MINUTE
            return now + wait + int(chance * min(wait // 10, MOST_JITTER))
        return self._next_time(now) + int(chance * MOST_JITTER)

    def _next_time(self, now: int) -> int:
        zone = ZoneInfo(self.zone)
        today = datetime.fromtimestamp(now // SECOND, UTC).astimezone(zone).date()
        days = [today + timedelta(days=after) for after in range(_DAYS)]
        moments = (
            int(datetime(day.year, day.month, day.day, time // 60, time % 60, tzinfo=zone).timestamp()) * SECOND
            for day in days
            for time in self.times
        )
        return min(moment for moment in moments if moment > now)

    def is_full(self, runs: int) -> bool:
        """Return whether the next reading must read all entries of the directory instead of only the changes. runs: the
        number of readings of changes since all entries were last read."""
        return self.full_every > 0 and runs + 1 >= self.full_every


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stored schedule. times: minutes after midnight, separated by commas."""

    directory_id: int
    domain_id: int
    directory_name: str
    every_minutes: int
    times: str
    zone: str
    full_every: int
    runs: int
    next_at: int


def timing_of(schedule: Schedule) -> Timing:
    """Return the times of a stored schedule."""
    times = tuple(int(time) for time in schedule.times.split(",") if time)
    return Timing(schedule.every_minutes, times, schedule.zone, schedule.full_every)


def clock_times(times: Sequence[int]) -> list[str]:
    """Return minutes after midnight as HH:MM."""
    return [f"{time // 60:02}:{time % 60:02}" for time in times]
