"""Whether the imports of a directory work, from answers of the API. `sallyport doctor` and the home page of the console
use these functions."""

from collections.abc import Iterable
from typing import Final

from sallyport.base.clock import SECOND, from_iso
from sallyport.base.wire import Row

LATE_US: Final = 600 * SECOND
"""Delay after which a scheduled import counts as overdue. Normally an import starts within half a minute."""
_READINGS: Final = {"reading", "agent"}


def ended_readings(jobs: Iterable[Row]) -> list[Row]:
    """Return the jobs that have read a directory and have ended, the newest first. jobs: the entries of
    getImportStatus."""
    return [each for each in jobs if each["kind"] in _READINGS and each["endedAt"]]


def is_overdue(schedule: Row, now: int) -> bool:
    """Return whether a scheduled import has not started in time. schedule: an entry of listSchedules. now: the time in
    microseconds."""
    return from_iso(str(schedule["nextRun"])) < now - LATE_US
