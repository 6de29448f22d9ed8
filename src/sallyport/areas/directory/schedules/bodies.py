"""Request and answer bodies of schedules."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Final
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, model_validator

from sallyport.areas.directory.bodies import DirectoryName
from sallyport.areas.directory.directory import CLOUD
from sallyport.areas.directory.schedules.schedule import FULL_EVERY, MIN_LDAP_MINUTES, Schedule, Timing
from sallyport.base.clock import SECOND, from_iso
from sallyport.base.errors import Invalid
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Between, unfit
from sallyport.base.wire import JSON, Row
from sallyport.web.bodies import Flag, OfDomain, Whole

MAX_MINUTES: Final = 7 * 24 * 60
MIN_MINUTES: Final = 2
MAX_TIMES: Final = 24
LATE_US: Final = 600 * SECOND
"""Delay after which a scheduled import counts as overdue. Normally an import starts within half a minute."""
_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


def _every(value: int) -> int:
    if value and value < MIN_MINUTES:
        raise unfit(f"must be 0, or a whole number from {MIN_MINUTES} to {MAX_MINUTES}")
    return value


def _times(values: list[str]) -> list[str]:
    if not all(_TIME.fullmatch(value.strip()) for value in values):
        raise unfit("must be times of day such as 02:30")
    return values


@cache
def _zones() -> set[str]:
    return available_timezones()  # cached, because it reads the files of all zones


def _zone(value: str) -> str:
    if value.strip() not in _zones():
        raise unfit("must be a time zone such as Europe/Berlin")
    return value.strip()


Every = Annotated[
    Whole,
    Between(0, MAX_MINUTES),
    AfterValidator(_every),
    Field(
        description=(
            f"Minutes after which the directory is read again, at least {MIN_MINUTES}, or {MIN_LDAP_MINUTES} for "
            "the kind ldap. Leave it 0 to use timesOfDay."
        )
    ),
]
Times = Annotated[
    list[str],
    Field(
        max_length=MAX_TIMES,
        description="Times of the day (HH:MM) in timeZone. Leave it empty to use everyMinutes.",
    ),
    AfterValidator(_times),
]
Zone = Annotated[
    str, Field(max_length=64, description="IANA time zone of timesOfDay, such as Europe/Berlin."), AfterValidator(_zone)
]
FullEvery = Annotated[
    Whole,
    Between(0, 1000),
    Field(description=FULL_EVERY),
]


class SetSchedule(OfDomain):
    """Request body of the operation `directory/setSchedule`. everyMinutes counts as not given if it is 0, and
    timesOfDay if it is empty. If neither is given, the schedule is deleted."""

    directoryName: DirectoryName
    everyMinutes: Every = 0
    timesOfDay: Times = Field(default_factory=list)
    timeZone: Zone = "UTC"
    fullEvery: FullEvery = 24

    @model_validator(mode="after")
    def _says_when(self) -> "SetSchedule":
        if not self.model_fields_set & {"everyMinutes", "timesOfDay"}:  # a misspelt field must not delete a schedule
            raise unfit("give everyMinutes or timesOfDay", "everyMinutes", "timesOfDay")
        return self

    def timing(self) -> Timing | None:
        """Return the schedule. If neither everyMinutes nor timesOfDay is given, return None: the schedule must then be
        deleted. Raises Invalid if both are given."""
        return timing(self.everyMinutes, self.timesOfDay, self.timeZone, self.fullEvery)


def timing(every: int, times: Sequence[str], zone: str, full_every: int) -> Timing | None:
    """Return a schedule. If neither minutes nor times are given, return None. Raises Invalid if both are given."""
    if every and times:
        raise Invalid.about("give everyMinutes or timesOfDay, not both", "everyMinutes", "timesOfDay")
    if not every and not times:
        return None
    found = (_TIME.fullmatch(value.strip()) for value in times)
    minutes = sorted({int(time[1]) * 60 + int(time[2]) for time in found if time is not None})
    return Timing(every, minutes, zone, full_every)


class ScheduleSet(Done):
    """Response body of the operation `directory/setSchedule`."""

    nextRun: str = Field(
        description="Time when the directory is read next, ISO 8601. It is empty if no time is scheduled."
    )


class ListSchedules(OfDomain):
    """Request body of the operation `directory/listSchedules`."""


@answer_of(Schedule)
class ScheduleFields(Model):
    """The fields of a schedule."""


class ScheduleEntry(ScheduleFields):
    """A schedule, and the last import of its directory."""

    lastJobId: int = Field(description="Id of the last import. It is 0 if there was no import.")
    lastState: str = Field(
        description="State of the last import, as in getImportStatus. It is empty if there was no import."
    )
    lastEnd: str = Field(description="End of the last import, ISO 8601. It is empty if no import has ended.")


def is_overdue(schedule: Row, now: int) -> bool:
    """Return whether a scheduled import has not started in time. schedule: an entry of listSchedules. now: the time in
    microseconds."""
    return from_iso(str(schedule["nextRun"])) < now - LATE_US


def is_too_old(directory: Row, most_hours: JSON, now: int) -> bool:
    """Return whether the data of a cloud directory are too old for logins by certificate, or the directory was never
    read. directory: an entry of directory/list. most_hours: directoryMaxAgeHours of its domain. now: the
    time in microseconds."""
    if directory["kind"] not in CLOUD:
        return False
    if not directory["readAt"]:
        return True
    return from_iso(str(directory["readAt"])) < now - int(str(most_hours)) * 3600 * SECOND


class ScheduleList(Done):
    """Response body of the operation `directory/listSchedules`."""

    schedules: list[ScheduleEntry] = Field(description="Schedules of the domain, ordered by directory.")


class SyncNow(OfDomain):
    """Request body of the operation `directory/sync`."""

    directoryName: DirectoryName
    full: Flag = Field(default=False, description="Read all entries, not only changes.")


class SyncQueued(Done):
    """Response body of the operation `directory/sync`."""

    jobId: int = Field(description="Id of the import, for getImportStatus.")
