"""Readers by id, and transactions that commit later than ones with larger ids."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from sallyport.areas.events.outlets.log import LoginLog
from sallyport.areas.events.outlets.service import Outlets
from sallyport.areas.events.outlets.transport import parse_target
from sallyport.base.log import set_level
from sallyport.metrics import OutletMetrics
from sallyport.nodes.periodic import store_of_leader
from sallyport.nodes.service import Nodes
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE
from sallyport.store.postgres.connection import Connection, connect
from sallyport.store.postgres.engine import PostgresStore
from sallyport.store.postgres.transaction import Inserts, PostgresTx
from tests.nodes.conftest import insert_events, move_lease, node
from tests.peers.postgres import database_in, needs_postgres
from tests.waiting import until

pytestmark = needs_postgres


@pytest.fixture
def late(tmp_path: Path, store: PostgresStore) -> Iterator[Connection]:
    """Yield a connection with an open transaction."""
    with closing(connect(database_in(tmp_path))) as connection:
        connection.execute("begin")
        yield connection


def insert(connection: Connection, user: str, node_id: int = 0) -> None:
    """Write an event in a transaction of a connection."""
    insert_events(PostgresTx(connection.cursor(), Inserts()), user, node_id=node_id)


async def test_an_id_is_settled_once_no_smaller_one_can_appear(
    store: PostgresStore, late: Connection, tmp_path: Path
) -> None:
    """The newest id is returned when the transaction with the smaller one has ended; it had begun later."""
    assert await store.settled("events") == 0
    found: list[int] = []
    with closing(connect(database_in(tmp_path))) as first:
        first.execute("begin; select number from restores for share")  # it begins first, as a writer of a node does
        late.execute("select number from restores for share")
        insert(late, "late")
        insert(first, "early")
        first.execute("commit")

    async def look() -> None:
        found.append(await store.settled("events"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        await trio.sleep(0.2)
        assert found == []
        late.execute("commit")
        with trio.fail_after(30):
            await until(lambda: bool(found))
    assert found == [2]


async def test_a_failed_transaction_delays_no_reader(store: PostgresStore, late: Connection) -> None:
    """The ids of a transaction that was rolled back are not waited for, nor is one that writes elsewhere."""
    insert(late, "lost")
    late.execute("rollback; begin; update counters set value = 1")
    await store.write(lambda tx: insert_events(tx, "kept"))
    with trio.fail_after(30):
        assert await store.settled("events") == 2
    late.execute("rollback")


@asynccontextmanager
async def delivered(store: PostgresStore, cluster: Nodes, path: Path) -> AsyncIterator[Outlets]:
    """Run an outlet to a file until the block ends."""
    metrics = OutletMetrics(CollectorRegistry())
    outlets = Outlets(
        store_of_leader(store, cluster),
        [parse_target(f"file://{path}")],
        Egress(ANYWHERE),
        metrics,
        changes=False,
        has_gaps=True,
        domain=lambda _id: "corp",
        pseudonyms=lambda: None,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outlets.run)
        await until(lambda: bool(metrics.waiting))
        yield outlets
        nursery.cancel_scope.cancel()


def users(path: Path) -> list[str]:
    """Return the users in the lines of a file."""
    return [json.loads(line)["user"] for line in path.read_text().splitlines()] if path.exists() else []


async def position(store: PostgresStore) -> int:
    """Return the position of the outlet."""
    return await store.read(lambda tx: tx.value(int, "select last_id from outlet_places") or 0)


async def test_an_outlet_misses_no_late_commit(
    store: PostgresStore, other: PostgresStore, late: Connection, tmp_path: Path
) -> None:
    """An event whose transaction commits after one with a larger id is delivered, and each event once. The position
    does not pass it."""
    one, path = node(store, "one"), tmp_path / "siem.jsonl"
    await one.join()
    await one._beat()
    async with delivered(store, one, path):
        insert(late, "late")
        await other.write(lambda tx: insert_events(tx, "early"))
        await trio.sleep(1.2)
        assert (users(path), await position(store)) == ([], 0)
        late.execute("commit")
        await until(lambda: len(users(path)) == 2)
        await other.write(lambda tx: insert_events(tx, "next"))
        await until(lambda: len(users(path)) == 3)
    assert users(path) == ["late", "early", "next"]


async def test_a_gap_of_ids_is_no_loss(store: PostgresStore, late: Connection, tmp_path: Path) -> None:
    """The ids of a failed transaction are not reported as lost events; events that retention has deleted are."""
    one, path = node(store, "one"), tmp_path / "siem.jsonl"
    await one.join()
    await one._beat()
    set_level("info")
    await store.write(lambda tx: insert_events(tx, "first"))
    with capture_logs() as logged:
        async with delivered(store, one, path):
            insert(late, "failed")
            late.execute("rollback")
            await store.write(lambda tx: insert_events(tx, "second"))
            await until_position(store, 3)
            assert users(path) == ["second"]
            assert logged == []
        await store.write(lambda tx: insert_events(tx, "third"))
        await store.write(lambda tx: tx.execute("delete from events"))
        await store.write(lambda tx: insert_events(tx, "fourth"))
        async with delivered(store, one, path):
            await until_position(store, 5)
    assert users(path) == ["second", "fourth"]
    assert [(each["event"], each["count"]) for each in logged] == [("outlet_events_lost", 1)]


async def test_the_position_never_goes_back(store: PostgresStore, other: PostgresStore, tmp_path: Path) -> None:
    """A paused former leader may send an event again, but cannot store its position; the new leader continues at the
    stored one."""
    one, two, path = node(store, "one"), node(other, "two"), tmp_path / "siem.jsonl"
    for each in (one, two):
        await each.join()
    await one._beat()
    async with delivered(store, one, path):
        await store.write(lambda tx: insert_events(tx, "ann"))
        await until_position(store, 1)
        await move_lease(other, two)
        await store.write(lambda tx: insert_events(tx, "bob"))
        await until(lambda: users(path) == ["ann", "bob"])
        await trio.sleep(0.2)
        assert await position(store) == 1
    async with delivered(other, two, path):
        await until_position(store, 2)
    assert sorted(set(users(path))) == ["ann", "bob"]


async def until_position(store: PostgresStore, place: int) -> None:
    """Wait until the outlet has a position."""

    async def is_there() -> bool:
        return await position(store) == place

    await until(is_there)


async def test_a_node_logs_its_own_decisions(store: PostgresStore, late: Connection) -> None:
    """The log has each decision of its node once, also one that commits late, and none of another node."""
    set_level("info")
    with capture_logs() as logged:
        async with trio.open_nursery() as nursery:
            await nursery.start(LoginLog(store, lambda _id: "corp", lambda: 7).run)
            insert(late, "late", node_id=7)
            await store.write(lambda tx: insert_events(tx, "elsewhere", node_id=8))
            await store.write(lambda tx: insert_events(tx, "here", node_id=7))
            await trio.sleep(0.7)
            late.execute("commit")
            await until(lambda: len(logged) == 2)
            await store.write(lambda tx: insert_events(tx, "next", node_id=7))
            await until(lambda: len(logged) == 3)
            nursery.cancel_scope.cancel()
    assert [line["user"] for line in logged] == ["late", "here", "next"]
