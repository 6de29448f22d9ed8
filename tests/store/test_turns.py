"""The turns of the tenants' reads, searches and writes, for every kind of actor."""

import gc
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import cast

import pytest
import trio
import trio.testing

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import Invalid, StoreError, TookTooLong
from sallyport.store.connections import MAX_STRETCH, SLICE_S, Allowance, Readers
from sallyport.store.model import Store, Tx, Work
from sallyport.store.postgres.connection import Cursor
from sallyport.store.postgres.engine import WRITE_S as POSTGRES_WRITE_S
from sallyport.store.postgres.transaction import SLOW_S, Inserts, PostgresTx, WriteLimit
from sallyport.store.sqlite import WRITE_S, SqliteStore
from sallyport.store.turns import WRITES, TimeSlices, Turns
from tests.store.conftest import Database, names, put
from tests.waiting import until

REQUESTS = [
    Actor("token", "admin", 1, 1),
    Actor("agent", "key", 2, 1),
    Actor("administrator", "ann", tenant_id=1),
    Actor("administrator", "at the sign-in"),
    Actor("identity", "eve", tenant_id=1),
]
IMPORT = Actor("service", "import 1", tenant_id=1)
ROOT = Actor("administrator", "root", tenant_id=1, is_installation=True)
OWN = [Actor("service"), IMPORT, Actor("command line", "root"), ROOT]


@pytest.mark.parametrize("actor", REQUESTS, ids=lambda actor: f"{actor.kind} of {actor.tenant_id}")
async def test_a_requests_work_that_takes_too_long_is_refused_and_undone(sqlite: SqliteStore, actor: Actor) -> None:
    """Work of a request that takes too long raises Invalid at its next statement, and is undone, whatever kind of actor
    sends the request.
    """
    with acting_as(actor), pytest.raises(Invalid, match="too much at once"):
        await sqlite.write(long)
    assert await sqlite.read(names) == []


@pytest.mark.parametrize("actor", OWN, ids=lambda actor: f"{actor.kind} {actor.name}")
async def test_the_services_own_work_has_no_limit(sqlite: SqliteStore, actor: Actor) -> None:
    """Work of the service, the command line and an administrator of the installation may take long."""
    with acting_as(actor):
        await sqlite.write(long)
    assert await sqlite.read(names) == ["first", "second"]


class SlowServer:
    """A cursor whose statements take some time of a clock. So does that of a busy server."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def execute(self, sql: bytes, values: Sequence[object]) -> "SlowServer":
        """Let the time pass."""
        self.now, self.rowcount = self.now + self.seconds, 1
        return self

    def write(self, statements: int) -> None:
        """Run the statements of a request's write on PostgreSQL."""
        limit = WriteLimit(POSTGRES_WRITE_S, lambda: self.now)
        tx = PostgresTx(cast(Cursor, self), Inserts(), limit=limit)
        for number in range(statements):
            tx.execute("update counters set value = :v", v=number)


def test_a_slow_database_refuses_no_short_write() -> None:
    """A statement that the server delays counts for little, because the request is not at fault. With a limit of
    all the time that passes, a sign-in would get status 400."""
    SlowServer(0.7 * SLOW_S).write(2)
    SlowServer(0.9 * SLOW_S / 10).write(10)


def test_many_statements_are_refused() -> None:
    """Many statements of a request raise Invalid on PostgreSQL too."""
    with pytest.raises(Invalid, match="too much at once"):
        SlowServer(0.001).write(2000)


def test_a_write_ends_if_the_database_stays_slow() -> None:
    """A few statements that take long end with StoreError, which is status 503, so that other writes do not wait."""
    with pytest.raises(StoreError, match="the database needs more than 3 s"):
        SlowServer(1.1 * SLOW_S).write(2)


def test_the_oldest_garbage_is_not_collected_while_a_test_runs() -> None:
    """As in the service, no thread collects the oldest generation at any time. In a process of many tests this takes
    0.2 s, which would count for the limit of a write."""
    before = gc.get_stats()[2]["collections"]
    kept = [[number] for number in range(1_000_000)]
    assert gc.get_stats()[2]["collections"] == before, len(kept)


def long(tx: Tx) -> None:
    """Write a row, take too much time, and write another row."""
    put(tx, "first")
    end = time.thread_time() + 1.1 * WRITE_S
    while time.thread_time() < end:
        pass
    put(tx, "second")


@pytest.mark.parametrize("actor", REQUESTS, ids=lambda actor: f"{actor.kind} of {actor.tenant_id}")
async def test_requests_take_turns_in_writing(actor: Actor) -> None:
    """At most WRITES writes of requests run at the same time, whatever kind of actor sends them. The service's own
    writes do not wait."""
    turns, running, go_on = Turns(4, 2), list[str](), trio.Event()

    async def write(who: Actor) -> None:
        with acting_as(who):
            async with turns.writing():
                running.append(who.kind)
                await go_on.wait()

    async with trio.open_nursery() as nursery:
        for who in [actor] * (WRITES + 3) + OWN:
            nursery.start_soon(write, who)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(running) == sorted([actor.kind] * WRITES + [each.kind for each in OWN])
        go_on.set()


async def search_as(store: Store, actor: Actor, work: Work[None]) -> None:
    """Search as an actor."""
    with acting_as(actor):
        await store.search(work)


ONE = [Actor("token", "a", 1, 1), Actor("administrator", "ann", tenant_id=1), IMPORT]


async def test_a_tenant_has_one_search_at_a_time(database: Database) -> None:
    """While a search of one actor of a tenant runs, its other actors and its imports wait. Another tenant's search
    runs."""
    begun, may_end = list[str](), threading.Semaphore(0)

    def work(name: str, _tx: Tx) -> None:
        begun.append(name)
        may_end.acquire(timeout=10)

    async with database.opened() as store, trio.open_nursery() as nursery:
        for actor in [*ONE, *ONE, Actor("token", "b", 2, 2)]:
            nursery.start_soon(search_as, store, actor, partial(work, str(actor.tenant_id)))
            await trio.lowlevel.checkpoint()
        await until(lambda: len(begun) == 2)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(begun) == ["1", "2"]
        may_end.release(20)
    assert sorted(begun) == ["1"] * 6 + ["2"]


async def test_public_documents_have_a_connection_of_their_own(database: Database) -> None:
    """A public document is read while as many searches run as may run at the same time, and more tenants wait."""
    may_end = threading.Event()

    def wait(_tx: Tx) -> None:
        assert may_end.wait(30)

    async with database.opened() as store, trio.open_nursery() as nursery:
        for tenant_id in range(20):
            nursery.start_soon(search_as, store, Actor("token", "x", tenant_id, tenant_id), wait)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(20):
            await search_as(store, Actor("public", "192.0.2.1"), lambda _tx: None)
        may_end.set()


async def test_one_public_document_is_searched_at_a_time() -> None:
    """The addresses of the readers take turns, however many documents one of them asks for."""
    turns, order = Turns(4, 2), list[str]()

    async def search(address: str) -> None:
        with acting_as(Actor("public", address)):
            async with turns.searching():
                order.append(address)
                await trio.testing.wait_all_tasks_blocked()

    async with trio.open_nursery() as nursery:
        for address in ("many", "many", "many", "one"):
            nursery.start_soon(search, address)
            await trio.lowlevel.checkpoint()
    assert order == ["many", "many", "one", "many"]


ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"


async def test_long_searches_share_the_time(sqlite: SqliteStore) -> None:
    """A search that begins while a long one runs ends before the long one, although only one runs at the same time."""
    readers, order, began = Readers(sqlite.path, 3, running=1), list[str](), threading.Event()

    def count(tx: Tx) -> None:
        began.set()
        tx.value(int, ENDLESS)

    async def search_long() -> None:
        with pytest.raises(TookTooLong):
            await readers.run(count, timeout_s=1.5)
        order.append("long")

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(search_long)
            await trio.to_thread.run_sync(began.wait)
            await readers.run(names, timeout_s=60)
            order.append("short")
    finally:
        readers.close()
    assert order == ["short", "long"]


def test_a_pause_is_no_time_of_a_search() -> None:
    """The time of a search that pauses for another one is not reduced by the pause, but all pauses have a limit."""
    now, slices = 0.0, TimeSlices(1)

    def run_for(seconds: float) -> None:
        nonlocal now
        slices.take()
        now += seconds
        slices.give()

    def pause(allowance: Allowance, seconds: float) -> None:
        nonlocal now
        now += 2 * SLICE_S
        assert not allowance.is_spent()
        other = threading.Thread(target=run_for, args=[seconds])
        other.start()
        while not slices.others_wait:
            time.sleep(0.001)
        assert not allowance.is_spent()
        other.join()

    with Allowance(10, slices, lambda: now) as allowance:
        pause(allowance, 15)
        assert now == 15 + 2 * SLICE_S
        now += 10 - 3 * SLICE_S
        assert not allowance.is_spent()
        now += 2 * SLICE_S
        assert allowance.is_spent()
    with Allowance(10, slices, lambda: now) as allowance:
        now += 10 + SLICE_S
        assert allowance.is_spent()
    with Allowance(10, slices, lambda: now) as allowance:
        pause(allowance, MAX_STRETCH * 10)
        assert allowance.is_spent()
