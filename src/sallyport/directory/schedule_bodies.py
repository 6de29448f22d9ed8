"""Request and answer bodies of schedules."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Final
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, model_validator

from sallyport.base.errors import Invalid
from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit
from sallyport.directory.schedule import Timing
from sallyport.web.operation import Done
from sallyport.web.scope import Flag, Name, OfDomain, Whole

LONGEST_MINUTES: Final = 7 * 24 * 60
LEAST_MINUTES: Final = 5
MOST_TIMES: Final = 24
_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def _every(value: int) -> int:
    if value and value < LEAST_MINUTES:
        raise unfit(f"0, or a whole number from {LEAST_MINUTES} to {LONGEST_MINUTES}")
    return value


def _times(values: list[str]) -> list[str]:
    if not all(_TIME.fullmatch(value.strip()) for value in values):
        raise unfit("times such as 02:30")
    return values


@cache
def _zones() -> set[str]:
    return available_timezones()  # which looks through the files of all


def _zone(value: str) -> str:
    if value.strip() not in _zones():
        raise unfit("a time zone such as Europe/Berlin")
    return value.strip()


Every = Annotated[Whole, Between(0, LONGEST_MINUTES), AfterValidator(_every)]
"""Minutes; 0: not so."""
Times = Annotated[list[str], Field(max_length=MOST_TIMES), AfterValidator(_times)]
"""HH:MM."""
Zone = Annotated[str, Field(max_length=64), AfterValidator(_zone)]
"""Of the IANA."""
FullEvery = Annotated[Whole, Between(0, 1000)]
"""Each so-many-th reading is of everything."""


class SetSchedule(OfDomain):
    """Body of directory/setSchedule: everyMinutes or timesOfDay (HH:MM, in timeZone); 0, or no times, ends it.
    fullEvery: each so-many-th reading is of everything, the others of what has changed; 0: only the first."""

    directoryName: Name
    everyMinutes: Every = 0
    timesOfDay: Times = Field(default_factory=list)
    timeZone: Zone = "UTC"
    fullEvery: FullEvery = 24

    @model_validator(mode="after")
    def _says_when(self) -> "SetSchedule":
        if not self.model_fields_set & {"everyMinutes", "timesOfDay"}:  # a misspelt field must not end a schedule
            raise unfit("everyMinutes or timesOfDay is needed", "everyMinutes", "timesOfDay")
        return self

    def timing(self) -> Timing | None:
        """What is set; None: nothing. Invalid: both ways at once."""
        return timing(self.everyMinutes, self.timesOfDay, self.timeZone, self.fullEvery)


def timing(every: int, times: Sequence[str], zone: str, full_every: int) -> Timing | None:
    """A schedule in its parts as one; None: it says nothing. Invalid: it says minutes and times."""
    if every and times:
        raise Invalid.about("minutes between two readings, or times of the day, not both", "everyMinutes", "timesOfDay")
    if not every and not times:
        return None
    found = (_TIME.fullmatch(value.strip()) for value in times)
    minutes = sorted({int(time[1]) * 60 + int(time[2]) for time in found if time is not None})
    return Timing(every, minutes, zone, full_every)


class ScheduleSet(Done):
    """Answer of directory/setSchedule. nextRun: ISO 8601, or empty for never."""

    nextRun: str


class ListSchedules(OfDomain):
    """Body of directory/listSchedules."""


class ScheduleEntry(Model):
    """A schedule, and how the last import of its directory went; empty, or 0, where there was none."""

    directoryName: str
    everyMinutes: int
    timesOfDay: list[str]
    timeZone: str
    fullEvery: int
    nextRun: str
    lastJobId: int
    lastState: str
    lastEnd: str


class ScheduleList(Model):
    """Answer of directory/listSchedules."""

    code: int = 200
    status: str = "Success"
    message: str
    schedules: list[ScheduleEntry]


class SyncNow(OfDomain):
    """Body of directory/sync. full: everything, not only what has changed."""

    directoryName: Name
    full: Flag = False


class SyncQueued(Done):
    """Answer of directory/sync."""

    jobId: int
