"""The turns of the tenants' reads, searches and writes, for every kind of actor."""

import threading
import time
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import Invalid
from sallyport.store.model import Tx
from sallyport.store.sqlite import SEARCHERS, WRITE_S, SqliteStore
from sallyport.store.turns import WRITES, Turns
from tests.areas import running_store
from tests.store.conftest import names, put
from tests.waiting import until

REQUESTS = [
    Actor("token", "admin", 1, 1),
    Actor("agent", "key", 2, 1),
    Actor("administrator", "ann", tenant_id=1),
    Actor("administrator", "of the installation"),
    Actor("identity", "eve", tenant_id=1),
]
OWN = [Actor("service"), Actor("service", "import 1", tenant_id=1), Actor("command line", "root")]


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
    """Work of the service and of the command line may take long."""
    with acting_as(actor):
        await sqlite.write(long)
    assert await sqlite.read(names) == ["first", "second"]


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


async def test_a_token_that_searches_much_leaves_others_their_turns(tmp_path: Path) -> None:
    """However many searches of one token wait, another token's search runs after those that run now."""
    begun, may_end = list[str](), threading.Semaphore(0)

    async def search(name: str) -> None:
        def work(_: Tx) -> None:
            begun.append(name)
            may_end.acquire(timeout=10)

        with acting_as(Actor("token", name)):
            await store.search(work)

    async with running_store(tmp_path / "s.db") as store, trio.open_nursery() as nursery:
        for name in [*["greedy"] * 20, "other"]:
            nursery.start_soon(search, name)
            await trio.lowlevel.checkpoint()
        for running in range(SEARCHERS, SEARCHERS + 2):
            await until(lambda wanted=running: len(begun) == wanted)
            may_end.release()
        await until(lambda: len(begun) == SEARCHERS + 2)
        may_end.release(20)
    assert begun.index("other") <= SEARCHERS + 1
