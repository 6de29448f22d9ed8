"""Compute when a directory is read next. A schedule has either a number of minutes between two readings or times of the
day.

If many directories have the same schedule, they must not all be read at the same moment. So a random delay is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso

FULL_EVERY: Final = (
    "n: all entries are read every n-th time, and only changes in between. 0: all entries are read only the first time."
)
MINUTE: Final = 60 * SECOND
MIN_LDAP_MINUTES: Final = 5
"""Minimum number of minutes between two readings of an LDAP directory. Each reading requests the identities of all
entries, while a cloud directory returns only the changes."""
MAX_JITTER_US: Final = 5 * MINUTE
LATEST_US: Final = 2 * MAX_JITTER_US
"""The next time of a schedule is at most its minutes and this time away, by the clock of any node."""
LATEST_DAY_US: Final = 50 * 60 * MINUTE
"""The next time of a schedule with times of the day is at most this time away."""
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
            return now + wait + int(chance * min(wait // 10, MAX_JITTER_US))
        return self._next_time(now) + int(chance * MAX_JITTER_US)

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


def _minutes(times: str) -> tuple[int, ...]:
    return tuple(int(time) for time in times.split(",") if time)


def clock_times(times: str) -> list[str]:
    """Return the times of a stored schedule as HH:MM."""
    return [f"{time // 60:02}:{time % 60:02}" for time in _minutes(times)]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stored schedule. times: minutes after midnight, separated by commas."""

    directory_id: int
    domain_id: int
    directory_name: Annotated[str, Wire("Name of the directory.", "directoryName")]
    every_minutes: Annotated[
        int,
        Wire(
            "Minutes after which the directory is read again. It is 0 if the directory is read at timesOfDay.",
            "everyMinutes",
        ),
    ]
    times: Annotated[str, Wire("Times of the day (HH:MM) in timeZone.", "timesOfDay", clock_times)]
    zone: Annotated[str, Wire("IANA time zone of timesOfDay.", "timeZone")]
    full_every: Annotated[int, Wire(FULL_EVERY, "fullEvery")]
    runs: int
    next_at: Annotated[int, Wire("Time when the directory is read next, ISO 8601.", "nextRun", iso)]


def timing_of(schedule: Schedule) -> Timing:
    """Return the times of a stored schedule."""
    return Timing(schedule.every_minutes, _minutes(schedule.times), schedule.zone, schedule.full_every)
