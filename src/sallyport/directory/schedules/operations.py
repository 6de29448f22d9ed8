"""The HTTP operations of schedules, and of a reading without one."""

from sallyport.base.clock import iso
from sallyport.directory.schedules.model import (
    ListSchedules,
    ScheduleEntry,
    ScheduleList,
    ScheduleSet,
    SetSchedule,
    SyncNow,
    SyncQueued,
)
from sallyport.directory.schedules.service import Schedules, Shown, clock_times, timing_of
from sallyport.directory.service import Directories
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(schedules: Schedules, service: Directories, gate: Gate) -> Operations:
    """The operations of this slice."""
    declared = Operations("Directories", gate)

    @declared.post("/api/v1/directory/setSchedule", roles=OPERATORS)
    async def set_schedule(body: SetSchedule, caller: Caller) -> ScheduleSet:
        """Set when a directory is read; without minutes and times, it is read on request alone."""
        next_at = await schedules.set(body.domainId, body.directoryName, body.timing())
        message = "schedule set" if next_at else "schedule deleted"
        return ScheduleSet(message=message, nextRun=iso(next_at) if next_at else "")

    @declared.post("/api/v1/directory/listSchedules", roles=READERS)
    async def list_schedules(body: ListSchedules, caller: Caller) -> ScheduleList:
        """When the directories of a domain are read, and how the last import of each went."""
        found = [_entry(each) for each in await schedules.of_domain(body.domainId)]
        return ScheduleList(message=f"{len(found)} schedule(s)", schedules=found)

    @declared.post("/api/v1/directory/sync", roles=OPERATORS)
    async def sync(body: SyncNow, caller: Caller) -> SyncQueued:
        """Read a directory now, in the background; one that waits already is the one. Its end is in getImportStatus."""
        job_id = await service.sync(body.domainId, body.directoryName, full=body.full)
        return SyncQueued(message="import queued", jobId=job_id)

    return declared


def _entry(shown: Shown) -> ScheduleEntry:
    timing, last = timing_of(shown.schedule), shown.last
    return ScheduleEntry(
        directoryName=shown.schedule.directory_name,
        everyMinutes=timing.every_minutes,
        timesOfDay=clock_times(timing.times),
        timeZone=timing.zone,
        fullEvery=timing.full_every,
        nextRun=iso(shown.schedule.next_at),
        lastJobId=last.id if last is not None else 0,
        lastState=last.state if last is not None else "",
        lastEnd=iso(last.ended_at) if last is not None and last.ended_at is not None else "",
    )
