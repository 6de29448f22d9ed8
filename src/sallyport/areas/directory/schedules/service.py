"""Set schedules, and queue the jobs that read directories when their time has come.

If a job that reads the directory has not ended by this time, no further job is queued. If the service was not running
at this time, one job is queued soon after the next start.
"""

from collections.abc import Callable, Mapping
from random import random
from typing import Final

import structlog
import trio

from sallyport.areas.directory import repo
from sallyport.areas.directory.directory import CLOUD, READ_BY_SERVICE, Directory
from sallyport.areas.directory.imports import repo as jobs_repo
from sallyport.areas.directory.imports.job import Job, JobKind, NewJob
from sallyport.areas.directory.schedules.schedule import MIN_LDAP_MINUTES, Schedule, Timing, clock_times, timing_of
from sallyport.areas.directory.service import NO_DIRECTORY, Directories
from sallyport.base.actor import Actor, acting_as
from sallyport.base.answer import answer
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import Conflict, Invalid, NotFound, StoreError, invalid_field
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Store, Tx

LOOK_S: Final = 30.0
"""Maximum time between two checks, in seconds. Checks are needed because another node may set a schedule."""
AT_ONCE: Final = 20

log = structlog.get_logger()


class Schedules:
    """The schedules of all directories. Call `run` to queue the jobs that read the directories. chance: a function that
    returns a random number from 0 to 1."""

    def __init__(self, store: Store, service: Directories, clock: Clock, chance: Callable[[], float] = random) -> None:
        self._store = store
        self._service = service
        self._clock = clock
        self._chance = chance
        self._set = trio.Event()

    async def set(self, domain_id: int, name: str, timing: Timing | None) -> int:
        """Set the schedule of a directory. If `timing` is None, delete the schedule. Return when the directory is read
        next, as a time in microseconds, or 0 without a schedule. Raises Invalid if the service cannot read the
        directory. Raises NotFound."""

        next_at = await self._store.write(lambda tx: self.set_in(tx, domain_id, name, timing))
        self.wake()
        return next_at

    def wake(self) -> None:
        """Look for due schedules now."""
        self._set.set()

    def set_in(self, tx: Tx, domain_id: int, name: str, timing: Timing | None) -> int:
        """Set the schedule of a directory in a transaction; see `set`. After it, the caller must call `wake`."""
        directory = repo.named(tx, domain_id, name)
        if directory is None:
            raise NotFound(NO_DIRECTORY)
        check_timing(directory.kind, timing)
        before, now = repo.schedule_of(tx, directory.id), self._clock()
        if timing is None:
            repo.delete_schedule(tx, directory.id)
            self._note(tx, directory, before, None)
            return 0
        after = _stored(directory, timing, timing.following(now, self._chance()))
        repo.put_schedule(tx, after, now)
        self._note(tx, directory, before, after)
        return after.next_at

    async def of_domain(self, domain_id: int) -> list[tuple[Schedule, Job | None]]:
        """Return the schedules of a domain, each with the last import of its directory."""

        def query(tx: Tx) -> list[tuple[Schedule, Job | None]]:
            return [
                (each, next(iter(jobs_repo.of_directory(tx, each.directory_id, 1)), None))
                for each in repo.schedules_of_domain(tx, domain_id)
            ]

        return await self._store.read(query)

    async def run(self) -> None:
        """Queue jobs that read directories, at the times of the schedules, until cancelled."""
        while True:
            self._set = trio.Event()
            wait_s = LOOK_S
            try:
                wait_s = await self.queue_due()
            except StoreError as error:
                log.warning("directory_schedules_not_checked", error=str(error))
            with trio.move_on_after(wait_s):
                await self._set.wait()

    async def queue_due(self) -> float:
        """Queue a job for each directory that must be read now. Return the seconds until the next check."""
        if await self._store.read(lambda tx: repo.due_schedules(tx, self._clock(), 1)):
            with acting_as(Actor("service", "directory schedule")):
                await self._store.write(self._queue_due)
            self._service.jobs.wake()
        first = await self._store.read(repo.next_due)
        return LOOK_S if first is None else min(max((first - self._clock()) / SECOND, 0.1), LOOK_S)

    def _queue_due(self, tx: Tx) -> None:
        for schedule in repo.due_schedules(tx, self._clock(), AT_ONCE):
            timing = timing_of(schedule)
            directory = repo.get(tx, schedule.directory_id)
            full = timing.is_full(schedule.runs)
            busy = directory is None or jobs_repo.is_read(tx, directory.id)
            runs = schedule.runs if busy else 0 if full else schedule.runs + 1
            if not repo.advance_schedule(tx, schedule, timing.following(self._clock(), self._chance()), runs):
                continue
            if directory is None or busy:
                log.info("directory_reading_skipped", directory=schedule.directory_name, reason="still running")
                continue
            try:
                self._service.queue(tx, directory, NewJob(directory.id, JobKind.READING, complete=full))
            except Conflict as error:
                log.warning("directory_reading_skipped", directory=directory.name, reason=str(error))

    def _note(self, tx: Tx, directory: Directory, before: Schedule | None, after: Schedule | None) -> None:
        differences = audit.changed(_audited(before), _audited(after))
        if differences:
            repo.note(tx, "directory.schedule", directory, self._clock(), differences)


def check_timing(kind: str, timing: Timing | None) -> None:
    """Raise Invalid if the service does not read a directory of this kind, or not that often."""
    if kind not in READ_BY_SERVICE:
        raise Invalid.about("the service reads only directories of the kinds ldap, graph and okta", "directoryName")
    if timing is not None and 0 < timing.every_minutes < MIN_LDAP_MINUTES and kind not in CLOUD:
        raise invalid_field("everyMinutes", f"must be at least {MIN_LDAP_MINUTES} for the kind ldap")


def _stored(directory: Directory, timing: Timing, next_at: int) -> Schedule:
    return Schedule(
        directory.id,
        directory.domain_id,
        directory.name,
        timing.every_minutes,
        ",".join(map(str, timing.times)),
        timing.zone,
        timing.full_every,
        0,
        next_at,
    )


def _audited(schedule: Schedule | None) -> Mapping[str, JSON]:
    """Return the values of a schedule for the audit trail."""
    if schedule is None:
        return {}
    shown = {**answer(schedule), "timesOfDay": ", ".join(clock_times(schedule.times))}
    return {name: value for name, value in shown.items() if name != "directoryName"}
