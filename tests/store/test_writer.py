"""The embedded engine's writer: what is submitted while nothing else waits is on disk before `submit` returns."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import trio
import trio.testing

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import NotFound
from sallyport.store import connections, writer
from sallyport.store.model import Tx
from sallyport.store.sqlite import SqliteStore
from tests.store.conftest import names, put

Told = list[tuple[str, BaseException | None]]


def tell(told: Told, name: str) -> Callable[[object, BaseException | None], None]:
    """What to hand to submit: notes the name and the error."""
    return lambda _result, error: told.append((name, error))


async def settled() -> None:
    """Let the writer's thread take the reserve that it begins with."""
    await trio.testing.wait_all_tasks_blocked(0.05)


async def test_what_is_submitted_alone_is_written_at_once(sqlite: SqliteStore) -> None:
    """Without a turn of the event loop it is on disk, and told."""
    await settled()
    told: Told = []
    sqlite.submit(partial(put, name="a"), tell(told, "a"))
    assert told == [("a", None)]
    with closing(sqlite3.connect(sqlite.path)) as other:
        assert other.execute("select count(*) from counters where name = 'a'").fetchone() == (1,)


async def test_order_holds_behind_a_waiting_write(sqlite: SqliteStore) -> None:
    """While a write waits for the thread, what is submitted goes behind it, and is told behind it."""
    await settled()
    told: Told = []
    go_on = threading.Event()

    def late(tx: Tx) -> None:
        assert go_on.wait(5)
        put(tx, "first", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, late)
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(partial(put, name="second", value=2), tell(told, "second"))
        assert told == []
        go_on.set()
    await sqlite.write(partial(put, name="third", value=3))
    assert [name for name, _ in told] == ["second"]
    assert await sqlite.read(names) == ["first", "second", "third"]


async def test_what_is_submitted_goes_first(sqlite: SqliteStore) -> None:
    """Before writes that waited already, and on disk before they begin: nobody's answer waits for an import."""
    await settled()
    told: Told = []
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
        sqlite.submit(partial(put, name="quick"), tell(told, "quick"))
        go_on.set()
    assert (seen, told) == ([1], [("quick", None)])
    assert await sqlite.read(names) == ["long", "quick"]


def until_others_wait(tx: Tx) -> None:
    """Work in many steps."""
    until = time.monotonic() + 30
    while not tx.others_wait():
        assert time.monotonic() < until
        time.sleep(0.001)
    put(tx, "long")


async def test_what_is_submitted_meanwhile_shares_the_commit(sqlite: SqliteStore) -> None:
    """Work in many steps sees that somebody waits, and both are on disk with one commit."""
    await settled()
    told: Told = []
    seen: list[tuple[list[str], int]] = []

    def quick(tx: Tx) -> None:
        with closing(sqlite3.connect(sqlite.path)) as other:
            count = other.execute("select count(*) from counters").fetchone()[0]
        seen.append((names(tx), count))
        put(tx, "quick")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, until_others_wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(quick, tell(told, "quick"))
    assert (seen, told) == ([(["long"], 0)], [("quick", None)])
    assert await sqlite.read(names) == ["long", "quick"]


async def test_an_answer_waits_for_one_work_and_not_for_those_behind_it(sqlite: SqliteStore) -> None:
    """Writes that queued up together end their transaction where an answer waits; the others follow, in order."""
    await settled()
    told: Told = []
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
        sqlite.submit(partial(put, name="quick"), tell(told, "quick"))
    assert (seen[0], told) == (["long", "quick"], [("quick", None)])
    assert await sqlite.read(names) == ["long", "quick", "second", "third"]


async def test_the_service_writes_before_tokens(sqlite: SqliteStore) -> None:
    """What the service has to write waits for one work of a token, and not for those behind it."""
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


async def test_what_fails_meanwhile_fails_alone(sqlite: SqliteStore) -> None:
    """What shares the commit of a long work takes nothing of it along, and what follows is written."""
    await settled()
    told: Told = []

    def fail(tx: Tx) -> None:
        put(tx, "lost")
        raise NotFound("nothing")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, until_others_wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        sqlite.submit(fail, tell(told, "fail"))
    sqlite.submit(partial(put, name="next"), tell(told, "next"))
    await sqlite.write(partial(put, name="last"))
    assert [(name, type(error)) for name, error in told] == [("fail", NotFound), ("next", type(None))]
    assert await sqlite.read(names) == ["last", "long", "next"]


async def test_a_failing_work_is_told_and_undone(sqlite: SqliteStore) -> None:
    """Its error comes back as it is, nothing of it is kept, and the next one is written."""
    await settled()
    told: Told = []

    def fail(tx: Tx) -> None:
        put(tx, "lost")
        raise NotFound("nothing")

    sqlite.submit(fail, tell(told, "fail"))
    sqlite.submit(partial(put, name="kept"), tell(told, "kept"))
    assert [type(error) for _, error in told] == [NotFound, type(None)]
    assert await sqlite.read(names) == ["kept"]
    assert sqlite.ready


async def test_another_programs_lock_does_not_stop_the_event_loop(sqlite: SqliteStore) -> None:
    """While an admin's own program writes to the file, submit returns at once; the thread waits and then writes."""
    await settled()
    told: Told = []
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        started = time.monotonic()
        sqlite.submit(partial(put, name="a"), tell(told, "a"))
        assert time.monotonic() - started < connections.BUSY_MS / 1000 / 2
        await trio.sleep(0.05)
        assert told == []
        other.execute("rollback")
    with trio.fail_after(5):
        while not told:
            await trio.sleep(0.005)
    assert told == [("a", None)]
    assert await sqlite.read(names) == ["a"]


async def test_a_slow_disk_is_waited_for_in_the_thread(sqlite: SqliteStore) -> None:
    """After one slow transaction the event loop leaves the next ones to the thread."""
    await settled()
    told: Told = []

    def slow(tx: Tx) -> None:
        time.sleep(2 * writer.QUICK_S)
        put(tx, "slow", 1)

    sqlite.submit(slow, tell(told, "slow"))
    sqlite.submit(partial(put, name="next", value=2), tell(told, "next"))
    assert told == [("slow", None)]
    await sqlite.write(partial(put, name="last", value=3))
    assert told == [("slow", None), ("next", None)]


async def test_the_log_is_merged_in_the_thread(sqlite: SqliteStore) -> None:
    """However much is submitted on the event loop, the log stays near its bound."""
    await settled()
    told: Told = []
    size, pages = 400_000, 98
    count = 2 * connections.LONG_LOG // pages

    def write(tx: Tx) -> None:
        tx.execute("insert into answers (at, packed) values (0, :packed)", packed=bytes(size))

    for _ in range(count):
        sqlite.submit(write, tell(told, ""))
        while len(told) < count and sqlite._writer._pending:
            await trio.lowlevel.checkpoint()
    log = Path(f"{sqlite.path}-wal").stat().st_size / 4096
    assert log < connections.LONG_LOG + 2 * writer.MERGE_EVERY * (pages + 10)
    assert {error for _, error in told} == {None}
