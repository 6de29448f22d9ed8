"""Schedules over a store: due readings are queued once, and stored schedules are shown."""

import pytest
import trio

from sallyport.base.clock import iso
from sallyport.base.errors import Invalid, NotFound
from sallyport.directory.directory import Configuration, DirectoryKind
from sallyport.directory.imports.job import Job, State
from sallyport.directory.schedule import MINUTE, Timing
from sallyport.directory.schedules import Schedules
from tests.areas import Areas

HOURLY = Timing(every_minutes=60, full_every=3)


@pytest.fixture
async def schedules(areas: Areas) -> Schedules:
    """The domain's directory `hq`, which LDAP reads, and a scheduler that is never late by chance."""
    wanted = Configuration("hq", kind=DirectoryKind.LDAP, app_url="ldap://127.0.0.1:1")
    await areas.directory.directories.save([(areas.domain, wanted)])
    return Schedules(areas.store, areas.directory.directories, areas.clock, lambda: 0.0)


async def jobs(areas: Areas) -> list[Job]:
    """The imports of the domain, the oldest first."""
    return (await areas.directory.jobs.page(areas.domain, 0, 100))[::-1]


async def end(areas: Areas, job: Job) -> None:
    """Cancel it, so that the next may come."""
    await areas.directory.jobs.cancel(job)


async def test_what_is_due_is_asked_for_once(areas: Areas, schedules: Schedules) -> None:
    """Nothing before its time; then one reading, and the next an hour later, however often it is looked."""
    began = areas.clock.now
    assert await schedules.set(areas.domain, "HQ", HOURLY) == began + 60 * MINUTE
    await schedules.look()
    assert await jobs(areas) == []
    areas.clock.now = began + 60 * MINUTE
    await schedules.look()
    await schedules.look()
    (job,) = await jobs(areas)
    assert (job.state, job.kind, job.complete, job.directory_name) == (State.QUEUED, "reading", 0, "hq")
    (shown,) = await schedules.of_domain(areas.domain)
    assert shown.schedule.next_at == began + 120 * MINUTE
    assert shown.last is not None and shown.last.id == job.id


async def test_a_reading_that_is_not_over_is_not_asked_for_again(areas: Areas, schedules: Schedules) -> None:
    """The next time is soon enough."""
    await schedules.set(areas.domain, "hq", HOURLY)
    for _ in range(3):
        areas.clock.now += 60 * MINUTE
        await schedules.look()
    assert len(await jobs(areas)) == 1
    await end(areas, (await jobs(areas))[0])
    areas.clock.now += 60 * MINUTE
    await schedules.look()
    assert len(await jobs(areas)) == 2


async def test_each_third_is_full(areas: Areas, schedules: Schedules) -> None:
    """As it is set."""
    await schedules.set(areas.domain, "hq", HOURLY)
    for _ in range(6):
        areas.clock.now += 60 * MINUTE
        await schedules.look()
        await end(areas, (await jobs(areas))[-1])
    assert [job.complete for job in await jobs(areas)] == [0, 0, 1, 0, 0, 1]


async def test_what_was_missed_is_made_up_for_once(areas: Areas, schedules: Schedules) -> None:
    """After a week without the service there is one reading."""
    await schedules.set(areas.domain, "hq", HOURLY)
    areas.clock.now += 7 * 24 * 60 * MINUTE
    await schedules.look()
    await schedules.look()
    assert len(await jobs(areas)) == 1
    (shown,) = await schedules.of_domain(areas.domain)
    assert shown.schedule.next_at == areas.clock.now + 60 * MINUTE


async def test_of_two_nodes_one_asks(areas: Areas, schedules: Schedules) -> None:
    """Both see that it is due; there is one reading."""
    other = Schedules(areas.store, areas.directory.directories, areas.clock, lambda: 0.5)
    await schedules.set(areas.domain, "hq", HOURLY)
    areas.clock.now += 60 * MINUTE
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedules.look)
        nursery.start_soon(other.look)
    assert len(await jobs(areas)) == 1


async def test_a_schedule_may_be_changed_and_deleted(areas: Areas, schedules: Schedules) -> None:
    """Then it is due at another time, or never."""
    await schedules.set(areas.domain, "hq", HOURLY)
    await schedules.set(areas.domain, "hq", Timing(times=(0,)))
    (shown,) = await schedules.of_domain(areas.domain)
    assert iso(shown.schedule.next_at) == "2026-01-02T00:00:00.000000Z"
    assert await schedules.set(areas.domain, "hq", None) == 0
    areas.clock.now += 7 * 24 * 60 * MINUTE
    await schedules.look()
    assert await jobs(areas) == [] and await schedules.of_domain(areas.domain) == []


async def test_it_looks_by_itself(areas: Areas, schedules: Schedules) -> None:
    """A reading that is due at the start is queued."""
    await schedules.set(areas.domain, "hq", HOURLY)
    areas.clock.now += 60 * MINUTE
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedules.run)
        with trio.fail_after(30):
            while not await jobs(areas):
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_what_cannot_be_scheduled(areas: Areas, schedules: Schedules) -> None:
    """A directory that is not there, one of another domain, one that the service does not read."""
    other = await areas.domains.add(areas.tenant, "branch")
    for domain_id, name in ((areas.domain, "nowhere"), (other, "hq")):
        with pytest.raises(NotFound):
            await schedules.set(domain_id, name, HOURLY)
    wanted = Configuration("files", kind=DirectoryKind.LDIF)
    await areas.directory.directories.save([(areas.domain, wanted)])
    with pytest.raises(Invalid):
        await schedules.set(areas.domain, "files", HOURLY)
