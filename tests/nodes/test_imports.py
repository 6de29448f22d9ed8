"""Imports on several nodes: each runs where its file is, and once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio

from sallyport.areas.directory.directory import DirectoryConfiguration
from sallyport.areas.directory.entry.entry import Batch
from sallyport.areas.directory.imports.handover import RESTART_US
from sallyport.areas.directory.imports.job import DirectorySource, Job
from sallyport.base.errors import NotFound
from sallyport.nodes.node import DEAD_US
from tests.areas import Areas
from tests.areas.directory.test_collecting import _person
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres
from tests.waiting import until

pytestmark = needs_postgres
LDIF = b"dn: uid=ann,dc=x\nobjectClass: inetOrgPerson\nuid: ann\nsn: A\ncn: Ann\n\n"


@dataclass
class Reader:
    """A directory with one person, whose readings wait while `goes_on` is not set."""

    goes_on: trio.Event = field(default_factory=trio.Event)
    readings: int = 0

    @asynccontextmanager
    async def read(self, _source: DirectorySource, _cursor: str, _full: bool) -> AsyncIterator[AsyncIterator[Batch]]:
        """Yield the person."""
        self.readings += 1
        await self.goes_on.wait()

        async def batches() -> AsyncIterator[Batch]:
            yield Batch((_person("ann"),), complete=True, cursor="")

        yield batches()


@pytest.fixture
async def readers(pair: Pair) -> tuple[Reader, Reader]:
    """Return the readers of both nodes for a directory `hq`."""
    found = Reader(), Reader()
    for areas, reader in zip((pair.one, pair.two), found, strict=True):
        areas.directory.jobs.collector._readers = {"ldap": reader.read}
    await pair.one.directory.directories.save([(pair.one.domain, DirectoryConfiguration("hq", app_url="ldap://dc1"))])
    return found


@asynccontextmanager
async def at_work(areas: Areas) -> AsyncIterator[None]:
    """Run the imports of a node until the block ends."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.directory.jobs.run)
        yield
        nursery.cancel_scope.cancel()


async def job(areas: Areas, job_id: int) -> Job:
    """Return a job."""
    return await areas.directory.jobs.get(job_id)


async def ended(areas: Areas, job_id: int) -> Job:
    """Return a job when it has ended."""

    async def is_over() -> bool:
        return (await job(areas, job_id)).ended_at is not None

    await until(is_over)
    return await job(areas, job_id)


async def silent(pair: Pair, number: int, for_us: int) -> None:
    """Move the last heartbeat of a node into the past."""
    sql = "update nodes set seen_at = seen_at - :us where id = :id"
    await pair.one.store.write(lambda tx: tx.execute(sql, us=for_us, id=pair.nodes[number].id))


async def test_a_job_runs_once(pair: Pair, readers: tuple[Reader, Reader]) -> None:
    """A reading that one node runs is left alone by another node."""
    async with at_work(pair.one), at_work(pair.two):
        job_id = await pair.one.directory.directories.sync(pair.one.domain, "hq")
        pair.two.directory.jobs.wake()
        await until(lambda: sum(each.readings for each in readers) == 1)
        for areas in (pair.one, pair.two):
            areas.directory.jobs.wake()
        await trio.sleep(0.3)
        for reader in readers:
            reader.goes_on.set()
        done = await ended(pair.one, job_id)
    assert (done.state, done.added, sum(each.readings for each in readers)) == ("DONE", 1, 1)


async def test_a_reading_of_a_dead_node_is_taken_over(pair: Pair, readers: tuple[Reader, Reader]) -> None:
    """Another node runs the reading of a dead node again. If that node was only paused, it changes nothing."""
    paused, fresh = readers[1], readers[0]
    async with at_work(pair.two):
        job_id = await pair.two.directory.directories.sync(pair.two.domain, "hq")
        await until(lambda: paused.readings == 1)
        await pair.one.directory.handover.hand_over()
        assert (await job(pair.one, job_id)).node_id == pair.nodes[1].id
        await silent(pair, 1, DEAD_US)
        await pair.one.directory.handover.hand_over()
        async with at_work(pair.one):
            await until(lambda: fresh.readings == 1)
            paused.goes_on.set()
            await trio.sleep(0.3)
            assert (await job(pair.one, job_id)).file == ""
            fresh.goes_on.set()
            done = await ended(pair.one, job_id)
    assert (done.state, done.added, done.node_id) == ("DONE", 1, pair.nodes[0].id)


async def test_an_uploaded_file_is_lost_with_its_node(pair: Pair) -> None:
    """A file is imported by its node. If that node is gone for long, the import fails with a text that says what to
    do."""
    two = pair.two.directory
    name = await trio.to_thread.run_sync(two.directories.files.new, "ldif", len(LDIF))
    await trio.to_thread.run_sync(two.directories.files.append, name, LDIF, 0)
    job_id = await two.directories.import_ldif(pair.two.domain, name, "people.ldif", "", complete=False)
    async with at_work(pair.one):
        pair.one.directory.jobs.wake()
        await silent(pair, 1, DEAD_US)
        await pair.one.directory.handover.hand_over()
        await trio.sleep(0.2)
        assert (await job(pair.one, job_id)).state == "QUEUED"
        await silent(pair, 1, RESTART_US)
        await pair.one.directory.handover.hand_over()
        assert (await job(pair.one, job_id)).message == "the file was lost with the node two: send it again"


async def test_a_job_is_cancelled_at_any_node(pair: Pair, readers: tuple[Reader, Reader]) -> None:
    """A job that runs on one node and is cancelled at another writes nothing more."""
    async with at_work(pair.one):
        job_id = await pair.one.directory.directories.sync(pair.one.domain, "hq")
        await until(lambda: readers[0].readings == 1)
        await pair.two.directory.jobs.cancel(await job(pair.two, job_id))
        readers[0].goes_on.set()
        await trio.sleep(0.3)
    assert ((await job(pair.one, job_id)).state, (await job(pair.one, job_id)).file) == ("CANCELLED", "")


async def test_a_run_of_an_agent_stays_with_its_node(pair: Pair) -> None:
    """At another node a run is not found, and the agent begins a new one there."""
    begun = await pair.one.directory.runs.begin(pair.one.domain, "branch", None)
    with pytest.raises(NotFound, match="start a new run"):
        await pair.two.directory.runs.take(pair.two.domain, begun.run_id, 1, [])
    assert (await pair.two.directory.runs.begin(pair.two.domain, "branch", begun.run_id)).run_id != begun.run_id
