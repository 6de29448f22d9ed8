"""The embedded engine's writer: work that is submitted while no other waits is committed before `submit` returns."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import NotFound, StoreFull
from sallyport.store import connections, writer
from sallyport.store.model import Tx
from sallyport.store.sqlite import SqliteStore
from tests.areas import running_store
from tests.store.conftest import names, put
from tests.store.test_contract import Gate
from tests.waiting import until

Outcomes = list[tuple[str, BaseException | None]]


def record(outcomes: Outcomes, name: str) -> Callable[[object, BaseException | None], None]:
    """Return a callback for submit that records the name and the error."""
    return lambda _result, error: outcomes.append((name, error))


async def settled() -> None:
    """Wait until the writer's thread has allocated its reserve."""
    await trio.testing.wait_all_tasks_blocked(0.05)


async def test_work_submitted_alone_is_written_at_once(sqlite: SqliteStore) -> None:
    """Submitted work is committed and reported without a turn of the event loop."""
    await settled()
    outcomes: Outcomes = []
    sqlite.submit(partial(put, name="a"), record(outcomes, "a"))
    assert outcomes == [("a", None)]
    with closing(sqlite3.connect(sqlite.path)) as other:
        assert other.execute("select count(*) from counters where name = 'a'").fetchone() == (1,)


async def test_order_is_kept_after_a_waiting_write(sqlite: SqliteStore) -> None:
    """Work that is submitted while a write waits for the thread is committed and reported after it."""
    await settled()
    outcomes: Outcomes = []
    go_on = threading.Event()

    def late(tx: Tx) -> None:
        assert go_on.wait(5)
        put(tx, "first", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, late)
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(partial(put, name="second", value=2), record(outcomes, "second"))
        assert outcomes == []
        go_on.set()
    await sqlite.write(partial(put, name="third", value=3))
    assert [name for name, _ in outcomes] == ["second"]
    assert await sqlite.read(names) == ["first", "second", "third"]


async def test_submitted_work_goes_first(sqlite: SqliteStore) -> None:
    """Submitted work is committed before writes that waited longer, so that no answer waits for an import."""
    await settled()
    outcomes: Outcomes = []
    seen: list[int] = []
    began, go_on = threading.Event(), threading.Event()

    def wait(_tx: Tx) -> None:
        began.set()
        assert go_on.wait(30)

    def long(tx: Tx) -> None:
        with closing(sqlite3.connect(sqlite.path)) as other:
            seen.extend(other.execute("select count(*) from counters where name = 'quick'").fetchone())
        put(tx, "long")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, wait)
        await trio.to_thread.run_sync(began.wait, 30)
        nursery.start_soon(sqlite.write, long)
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(partial(put, name="quick"), record(outcomes, "quick"))
        go_on.set()
    assert (seen, outcomes) == ([1], [("quick", None)])
    assert await sqlite.read(names) == ["long", "quick"]


def until_others_wait(tx: Tx) -> None:
    """Do work in many steps, until other work waits."""
    until = time.monotonic() + 30
    while not tx.others_wait():
        assert time.monotonic() < until
        time.sleep(0.001)
    put(tx, "long")


async def test_work_submitted_meanwhile_shares_the_commit(sqlite: SqliteStore) -> None:
    """Long work that sees other work waiting shares one commit with it."""
    await settled()
    outcomes: Outcomes = []
    seen: list[tuple[list[str], int]] = []

    def quick(tx: Tx) -> None:
        with closing(sqlite3.connect(sqlite.path)) as other:
            count = other.execute("select count(*) from counters").fetchone()[0]
        seen.append((names(tx), count))
        put(tx, "quick")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, until_others_wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(quick, record(outcomes, "quick"))
    assert (seen, outcomes) == ([(["long"], 0)], [("quick", None)])
    assert await sqlite.read(names) == ["long", "quick"]


async def test_all_work_submitted_meanwhile_precedes_the_service(sqlite: SqliteStore) -> None:
    """All work that is submitted during a write joins its commit, also if a write of the service waits."""
    await settled()
    outcomes: Outcomes = []
    began, go_on = threading.Event(), threading.Event()

    def wait(_tx: Tx) -> None:
        began.set()
        assert go_on.wait(30)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, wait)
        await trio.to_thread.run_sync(began.wait, 30)
        with acting_as(Actor("service")):
            nursery.start_soon(sqlite.write, partial(put, name="service", value=3))
        await trio.testing.wait_all_tasks_blocked(0.01)
        for value, name in enumerate(("first", "second")):
            sqlite.submit(partial(put, name=name, value=value), record(outcomes, name))
        go_on.set()
    assert outcomes == [("first", None), ("second", None)]
    assert await sqlite.read(names) == ["first", "second", "service"]


async def test_an_answer_waits_for_one_work_and_not_for_those_behind_it(sqlite: SqliteStore) -> None:
    """Queued writes end their transaction when an answer waits. The other writes follow, in order."""
    await settled()
    outcomes: Outcomes = []
    seen: list[list[str]] = []
    began, go_on = threading.Event(), threading.Event()

    def wait(_tx: Tx) -> None:
        began.set()
        assert go_on.wait(30)

    def long(tx: Tx) -> None:
        until_others_wait(tx)
        time.sleep(2 * writer.BATCH_S)

    def next_one(tx: Tx, name: str) -> None:
        with closing(sqlite3.connect(sqlite.path)) as other:
            seen.append([row[0] for row in other.execute("select name from counters order by name")])
        put(tx, name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, wait)
        await trio.to_thread.run_sync(began.wait, 30)
        for work in (long, partial(next_one, name="second"), partial(next_one, name="third")):
            nursery.start_soon(sqlite.write, work)
            await trio.testing.wait_all_tasks_blocked(0.01)
        go_on.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(partial(put, name="quick"), record(outcomes, "quick"))
    assert (seen[0], outcomes) == (["long", "quick"], [("quick", None)])
    assert await sqlite.read(names) == ["long", "quick", "second", "third"]


async def test_the_service_writes_before_tokens(sqlite: SqliteStore) -> None:
    """The service's writes wait for one work of a token, and not for the rest of its queue."""
    await settled()
    order: list[str] = []
    began, go_on = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]

    def stops(_tx: Tx, number: int) -> None:
        began[number].set()
        assert go_on[number].wait(30)
        order.append(f"token {number}")

    def writes(_tx: Tx, name: str) -> None:
        order.append(name)

    async with trio.open_nursery() as nursery:

        async def ask(work: Callable[[Tx], None], actor: Actor) -> None:
            with acting_as(actor):
                nursery.start_soon(sqlite.write, work)
            await trio.testing.wait_all_tasks_blocked(0.01)

        token = Actor("token", tenant_id=1)
        await ask(partial(stops, number=0), token)
        await trio.to_thread.run_sync(began[0].wait, 30)
        await ask(partial(stops, number=1), token)
        await ask(partial(writes, name="token 2"), token)
        await ask(partial(writes, name="service before"), Actor("service"))
        go_on[0].set()
        await trio.to_thread.run_sync(began[1].wait, 30)
        await ask(partial(writes, name="service meanwhile"), Actor("service"))
        go_on[1].set()
    assert order == ["token 0", "service before", "token 1", "service meanwhile", "token 2"]


async def test_work_that_fails_meanwhile_fails_alone(sqlite: SqliteStore) -> None:
    """An item that fails in the commit of a long work is undone alone, and later items are written."""
    await settled()
    outcomes: Outcomes = []

    def fail(tx: Tx) -> None:
        put(tx, "lost")
        raise NotFound("nothing")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, until_others_wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(fail, record(outcomes, "fail"))
    sqlite.submit(partial(put, name="next"), record(outcomes, "next"))
    await sqlite.write(partial(put, name="last"))
    assert [(name, type(error)) for name, error in outcomes] == [("fail", NotFound), ("next", type(None))]
    assert await sqlite.read(names) == ["last", "long", "next"]


async def test_failing_work_is_reported_and_undone(sqlite: SqliteStore) -> None:
    """An exception of the work is reported unchanged, the work is undone, and the next one is written."""
    await settled()
    outcomes: Outcomes = []

    def fail(tx: Tx) -> None:
        put(tx, "lost")
        raise NotFound("nothing")

    sqlite.submit(fail, record(outcomes, "fail"))
    sqlite.submit(partial(put, name="kept"), record(outcomes, "kept"))
    assert [type(error) for _, error in outcomes] == [NotFound, type(None)]
    assert await sqlite.read(names) == ["kept"]
    assert sqlite.ready


async def test_another_programs_lock_does_not_stop_the_event_loop(sqlite: SqliteStore) -> None:
    """During another program's lock submit returns at once. The thread waits, then writes."""
    await settled()
    outcomes: Outcomes = []
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        started = time.monotonic()
        sqlite.submit(partial(put, name="a"), record(outcomes, "a"))
        assert time.monotonic() - started < connections.BUSY_MS / 1000 / 2
        await trio.sleep(0.05)
        assert outcomes == []
        other.execute("rollback")
    with trio.fail_after(30):
        while not outcomes:
            await trio.sleep(0.005)
    assert outcomes == [("a", None)]
    assert await sqlite.read(names) == ["a"]


async def test_a_slow_disk_is_waited_for_in_the_thread(sqlite: SqliteStore) -> None:
    """After one slow transaction later ones run in the thread."""
    await settled()
    outcomes: Outcomes = []

    def slow(tx: Tx) -> None:
        time.sleep(2 * writer.QUICK_S)
        put(tx, "slow", 1)

    sqlite.submit(slow, record(outcomes, "slow"))
    sqlite.submit(partial(put, name="next", value=2), record(outcomes, "next"))
    assert outcomes == [("slow", None)]
    await sqlite.write(partial(put, name="last", value=3))
    assert outcomes == [("slow", None), ("next", None)]


async def test_the_log_is_merged_in_the_thread(sqlite: SqliteStore) -> None:
    """The thread merges the log: however much is submitted on the event loop, the log stays near its limit."""
    await settled()
    outcomes: Outcomes = []
    size, pages = 400_000, 98
    count = 2 * connections.LONG_LOG // pages

    def write(tx: Tx) -> None:
        tx.execute("insert into answers (at, packed) values (0, :packed)", packed=bytes(size))

    for _ in range(count):
        sqlite.submit(write, record(outcomes, ""))
        while len(outcomes) < count and sqlite._writer._pending:
            await trio.lowlevel.checkpoint()
    log = Path(f"{sqlite.path}-wal").stat().st_size / 4096
    assert log < connections.LONG_LOG + 2 * writer.MERGE_EVERY * (pages + 10)
    assert {error for _, error in outcomes} == {None}


async def test_a_commit_leaves_the_log(sqlite: SqliteStore) -> None:
    """While the disk has room, a commit only makes the log longer: a merge at each commit would cost much time."""
    sizes = []
    for number in range(3):
        await sqlite.write(partial(put, name=f"n{number}"))
        sizes.append(Path(f"{sqlite.path}-wal").stat().st_size)
    assert sizes == sorted({*sizes})


async def test_requests_share_a_transaction_after_the_service(tmp_path: Path) -> None:
    """The service's own writes split the queue of requests only while they wait."""
    registry, gate = CollectorRegistry(), Gate()

    def transactions() -> float:
        return registry.get_sample_value("sallyport_store_batch_rows_count") or 0

    async with running_store(tmp_path / "s.db", registry) as store, trio.open_nursery() as nursery:
        await store.write(partial(put, name="service"))
        before = transactions()
        with acting_as(Actor("token", tenant_id=1)):
            nursery.start_soon(store.write, gate.work)
            await gate.entered.wait()
            for name in "abc":
                nursery.start_soon(store.write, partial(put, name=name))
            await trio.testing.wait_all_tasks_blocked()
        gate.open()
        await until(lambda: transactions() - before >= 2)
        assert await store.read(names) == ["a", "b", "c", "service"]
        assert transactions() - before == 2


async def test_the_reserve_is_made_and_made_again(tmp_path: Path) -> None:
    """The writer reserves space at its start, and again soon after the space was released."""
    path = tmp_path / "reserve"
    async with running_store(tmp_path / "s.db", reserve=1 << 16) as store:
        reserve = store._writer._reserve
        await until(lambda: not reserve.released)
        assert path.stat().st_size == 1 << 16
        assert reserve.release()
        await store.write(partial(put, name="a"))
        await until(lambda: not reserve.released)
        assert path.stat().st_size == 1 << 16


async def test_a_full_database_merges_its_log(tmp_path: Path) -> None:
    """If SQLite is full although the disk has room, the log is merged, the reserve stays, and the store accepts writes
    as soon as it can."""
    octets, log = bytes(1 << 20), tmp_path / "s.db-wal"

    def write(tx: Tx) -> None:
        tx.execute("insert into answers (at, packed) values (0, :packed)", packed=octets)

    async with running_store(tmp_path / "s.db", reserve=1 << 16) as store:
        reserve = store._writer._reserve
        await until(lambda: not reserve.released)
        await store.write(write)
        pages = await store.exclusive(lambda connection: connection.execute("pragma page_count").fetchone()[0])
        await store.exclusive(lambda connection: connection.execute(f"pragma max_page_count = {pages}"))
        with pytest.raises(StoreFull, match="full"):
            await store.write(write)
        assert log.stat().st_size < len(octets) // 2
        assert not reserve.released
        await store.exclusive(lambda connection: connection.execute("pragma max_page_count = 1000000"))
        await until(lambda: store.ready)
        await store.write(write)
