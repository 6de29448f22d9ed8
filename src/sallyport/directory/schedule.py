"""When the next reading of a directory is due: after so many minutes, or at the next of some times of the day.

Not at that very moment, but a little later, by chance: many directories with the same schedule, or many services with
the same directory, do not all begin at once.
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
"""In which there is a next time, whatever daylight saving does to one of them."""


@dataclass(frozen=True, slots=True)
class Timing:
    """every_minutes: 0 where it is by times. times: minutes after midnight in a zone. full_every: each so-many-th
    reading is of everything; 0: none but the first."""

    every_minutes: int = 0
    times: Sequence[int] = ()
    zone: str = "UTC"
    full_every: int = 0

    def following(self, now: int, chance: float) -> int:
        """When the next reading is due after `now`, in microseconds. chance: in 0..1, how much later than it could."""
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
        """Whether the reading after so many of changes alone is of everything."""
        return self.full_every > 0 and runs + 1 >= self.full_every


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it is stored. times: minutes after midnight, with commas between them."""

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
    """What a stored schedule says."""
    times = tuple(int(time) for time in schedule.times.split(",") if time)
    return Timing(schedule.every_minutes, times, schedule.zone, schedule.full_every)


def clock_times(times: Sequence[int]) -> list[str]:
    """Minutes after midnight as people write them: 08:30."""
    return [f"{time // 60:02}:{time % 60:02}" for time in times]
