"""Schedules with a store: each due reading is queued once, and stored schedules are shown."""

import pytest
import trio

from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind
from sallyport.areas.directory.imports.job import Job, JobState
from sallyport.areas.directory.schedules.schedule import MINUTE, Timing
from sallyport.areas.directory.schedules.service import Schedules
from sallyport.base.clock import iso
from sallyport.base.errors import Invalid, NotFound
from tests.areas import Areas

HOURLY = Timing(every_minutes=60, full_every=3)


@pytest.fixture
async def schedules(areas: Areas) -> Schedules:
    """Return a scheduler without jitter and the LDAP directory `hq` of the domain."""
    wanted = DirectoryConfiguration("hq", kind=DirectoryKind.LDAP, app_url="ldap://127.0.0.1:1")
    await areas.directory.directories.save([(areas.domain, wanted)])
    return Schedules(areas.store, areas.directory.directories, areas.clock, lambda: 0.0)


async def jobs(areas: Areas) -> list[Job]:
    """Return the imports of the domain, with the oldest first."""
    return (await areas.directory.jobs.page(areas.domain, 0, 100))[::-1]


async def end(areas: Areas, job: Job) -> None:
    """Cancel the job, so that the next reading can be queued."""
    await areas.directory.jobs.cancel(job)


async def test_a_due_reading_is_queued_once(areas: Areas, schedules: Schedules) -> None:
    """A reading is not queued before it is due. Then it is queued once, however often the scheduler looks. The next one
    is due an hour later.
    """
    began = areas.clock.now
    assert await schedules.set(areas.domain, "HQ", HOURLY) == began + 60 * MINUTE
    await schedules.queue_due()
    assert await jobs(areas) == []
    areas.clock.now = began + 60 * MINUTE
    await schedules.queue_due()
    await schedules.queue_due()
    (job,) = await jobs(areas)
    assert (job.state, job.kind, job.complete, job.directory_name) == (JobState.QUEUED, "reading", 0, "hq")
    ((shown, last),) = await schedules.of_domain(areas.domain)
    assert shown.next_at == began + 120 * MINUTE
    assert last is not None and last.id == job.id


async def test_no_reading_is_queued_while_another_waits(areas: Areas, schedules: Schedules) -> None:
    """While a reading of a directory has not ended, the scheduler skips further readings that become due."""
    await schedules.set(areas.domain, "hq", HOURLY)
    for _ in range(3):
        areas.clock.now += 60 * MINUTE
        await schedules.queue_due()
    assert len(await jobs(areas)) == 1
    await end(areas, (await jobs(areas))[0])
    areas.clock.now += 60 * MINUTE
    await schedules.queue_due()
    assert len(await jobs(areas)) == 2


async def test_every_third_reading_is_full(areas: Areas, schedules: Schedules) -> None:
    """With full_every=3, every third reading is full."""
    await schedules.set(areas.domain, "hq", HOURLY)
    for _ in range(6):
        areas.clock.now += 60 * MINUTE
        await schedules.queue_due()
        await end(areas, (await jobs(areas))[-1])
    assert [job.complete for job in await jobs(areas)] == [0, 0, 1, 0, 0, 1]


async def test_missed_readings_are_queued_once(areas: Areas, schedules: Schedules) -> None:
    """If the service did not run for a week, only one reading is queued."""
    await schedules.set(areas.domain, "hq", HOURLY)
    areas.clock.now += 7 * 24 * 60 * MINUTE
    await schedules.queue_due()
    await schedules.queue_due()
    assert len(await jobs(areas)) == 1
    ((shown, _),) = await schedules.of_domain(areas.domain)
    assert shown.next_at == areas.clock.now + 60 * MINUTE


@pytest.mark.parametrize("timing", [HOURLY, Timing(times=(120,))], ids=["each hour", "each night"])
async def test_a_clock_that_is_set_back_delays_no_reading(areas: Areas, schedules: Schedules, timing: Timing) -> None:
    """If the clock was set back by a week, the directory is read once at once, and then at the times of the
    schedule."""
    await schedules.set(areas.domain, "hq", timing)
    areas.clock.now -= 7 * 24 * 60 * MINUTE
    await schedules.queue_due()
    await end(areas, (await jobs(areas))[0])
    await schedules.queue_due()
    assert len(await jobs(areas)) == 1
    areas.clock.now += 24 * 60 * MINUTE
    await schedules.queue_due()
    assert len(await jobs(areas)) == 2


async def test_two_nodes_queue_one_reading(areas: Areas, schedules: Schedules) -> None:
    """If two nodes see the same due reading, only one of them queues it."""
    other = Schedules(areas.store, areas.directory.directories, areas.clock, lambda: 0.5)
    await schedules.set(areas.domain, "hq", HOURLY)
    areas.clock.now += 60 * MINUTE
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedules.queue_due)
        nursery.start_soon(other.queue_due)
    assert len(await jobs(areas)) == 1


async def test_a_schedule_may_be_changed_and_deleted(areas: Areas, schedules: Schedules) -> None:
    """A changed schedule has another due time. A deleted schedule queues no readings."""
    await schedules.set(areas.domain, "hq", HOURLY)
    await schedules.set(areas.domain, "hq", Timing(times=(0,)))
    ((shown, _),) = await schedules.of_domain(areas.domain)
    assert iso(shown.next_at) == "2026-01-02T00:00:00.000000Z"
    assert await schedules.set(areas.domain, "hq", None) == 0
    areas.clock.now += 7 * 24 * 60 * MINUTE
    await schedules.queue_due()
    assert await jobs(areas) == [] and await schedules.of_domain(areas.domain) == []


async def test_a_due_reading_is_queued_at_the_start(areas: Areas, schedules: Schedules) -> None:
    await schedules.set(areas.domain, "hq", HOURLY)
    areas.clock.now += 60 * MINUTE
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedules.run)
        with trio.fail_after(30):
            while not await jobs(areas):
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_an_unsuitable_directory_cannot_be_scheduled(areas: Areas, schedules: Schedules) -> None:
    """A directory cannot have a schedule if it is unknown, belongs to another domain, or is filled from LDIF files."""
    other = await areas.domains.add(areas.tenant, "branch")
    for domain_id, name in ((areas.domain, "nowhere"), (other, "hq")):
        with pytest.raises(NotFound):
            await schedules.set(domain_id, name, HOURLY)
    wanted = DirectoryConfiguration("files", kind=DirectoryKind.LDIF)
    await areas.directory.directories.save([(areas.domain, wanted)])
    with pytest.raises(Invalid):
        await schedules.set(areas.domain, "files", HOURLY)
