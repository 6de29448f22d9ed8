"""Two versions beside each other: a made-up next release expands the schema, and the one after it contracts it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.errors import SchemaError, StartError
from sallyport.metrics import StoreMetrics
from sallyport.nodes.node import DEAD_US
from sallyport.nodes.service import Nodes
from sallyport.store.postgres.connection import Connection, connect
from sallyport.store.postgres.engine import PostgresStore
from sallyport.store.postgres.migration import BASELINE, STEPS, MigrationStep, Steps, inspect, migrate
from tests.areas import Areas, SetClock, keep_files_in
from tests.nodes.cluster import DATABASE, MASTER_KEY, running_cluster
from tests.nodes.conftest import node
from tests.nodes.test_service import beat, silent
from tests.peers.postgres import database_in, needs_postgres
from tests.waiting import eventually

pytestmark = needs_postgres
ACCEPT = 2


def _expand(connection: Connection) -> None:
    connection.execute("alter table nodes add column colour text not null default 'green'")
    connection.execute("create table colours (name text primary key)")


def _contract(connection: Connection) -> None:
    connection.execute("alter table master_keys drop column mark")


def _fail(connection: Connection) -> None:
    connection.execute("create table halves (name text primary key)")
    connection.execute("select 1 / 0")


NEXT: Steps = (*STEPS, MigrationStep("p0003_colours", _expand, beside=STEPS[-1].name))
LATER: Steps = (*NEXT, MigrationStep("p0004_no_marks", _contract, beside="p0003_colours"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the address of a database of this release."""
    return database_in(tmp_path)


@asynccontextmanager
async def started(url: str, name: str, steps: Steps = STEPS) -> AsyncIterator[Nodes]:
    """Yield a node of a release, with its first heartbeat sent."""
    async with opened(url, name, steps) as store:
        joined = node(store, name)
        await joined.join()
        await beat(joined)
        yield joined


@asynccontextmanager
async def opened(url: str, name: str, steps: Steps) -> AsyncIterator[PostgresStore]:
    """Yield the store of a release."""
    store = PostgresStore(url, StoreMetrics(CollectorRegistry()), name=name, steps=steps)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            yield store
            nursery.cancel_scope.cancel()
    finally:
        store.close()


def migrated(url: str, steps: Steps) -> list[str]:
    """Migrate as `sallyport db migrate` of a release does."""
    with connect(url) as connection:
        return migrate(connection, steps)


async def test_the_release_before_works_beside_an_expanded_schema(url: str) -> None:
    """A node of the release before continues, starts again, and can be added; a node of the new one uses the column."""
    async with started(url, "old") as old:
        assert migrated(url, NEXT) == ["p0003_colours"]
        assert migrated(url, NEXT) == []
        await beat(old)
        async with started(url, "new", NEXT) as new, started(url, "second"):
            assert [each.name for each in await old.everyone()] == ["new", "old", "second"]
            assert await new._store.read(lambda tx: tx.value(int, "select count(*) from nodes where colour = 'green'"))
    assert inspect(url).newer == ("p0003_colours",)


async def test_a_contracting_step_waits_for_the_nodes_before(url: str) -> None:
    """It is refused while a node runs that uses what it removes. Afterwards, a program that uses it is refused."""
    migrated(url, NEXT)
    async with started(url, "old") as old, started(url, "new", NEXT):
        with pytest.raises(SchemaError, match=r"do not work with the new schema \(p0004_no_marks\): old \(1\.0\)"):
            migrated(url, LATER)
        await beat(old)
        await old._leave()
        assert migrated(url, LATER) == ["p0004_no_marks"]
    with pytest.raises(SchemaError, match=r"written by a newer version \(it has p0004_no_marks\): install"):
        migrated(url, STEPS)
    assert migrated(url, NEXT) == []


async def test_two_releases_at_once_are_refused_beside_a_node(url: str) -> None:
    """An upgrade that leaves out a release is refused while a node of the first one runs, and changes nothing."""
    async with started(url, "old") as old:
        with pytest.raises(SchemaError, match="upgrade them to the release before"):
            migrated(url, LATER)
        await beat(old)
        await old._leave()
    assert inspect(url).newer == ()
    assert migrated(url, LATER) == ["p0003_colours", "p0004_no_marks"]


async def test_a_silent_node_of_an_old_release_stops(url: str) -> None:
    """A node that was away during the migration does not continue on a schema that it does not work with."""
    async with started(url, "old") as old:
        await silent(old._store, "old", DEAD_US)  # type: ignore[arg-type]
        migrated(url, LATER)
        with pytest.raises(StartError, match="a newer version has migrated the database: this node stops"):
            await beat(old)


def test_a_database_of_the_baseline_gets_the_tables_of_the_console(tmp_path: Path) -> None:
    """The step adds the tables, and nodes of the baseline may run beside it."""
    url = database_in(tmp_path, is_empty=True)
    assert migrated(url, STEPS[:1]) == [BASELINE]
    assert migrated(url, STEPS) == [each.name for each in STEPS[1:]]
    with connect(url) as connection:
        assert connection.execute("select count(*) from console_sessions, administrators, identities").fetchone() == (
            0,
        )
    assert {each.beside for each in STEPS[1:]} == {BASELINE}


async def test_a_failed_step_changes_nothing(url: str) -> None:
    """If a step fails, the database has the schema of before, and the error names the cause."""
    broken = (*STEPS, MigrationStep("p0003_broken", _fail, beside=STEPS[-1].name))
    with pytest.raises(Exception, match="division by zero"):
        migrated(url, broken)
    with connect(url) as connection:
        assert connection.execute("select to_regclass('halves')").fetchone() == (None,)
    assert migrated(url, NEXT) == ["p0003_colours"]


async def test_the_release_before_makes_no_backup_of_rows_that_it_does_not_know(url: str, tmp_path: Path) -> None:
    """Its backup would lack the new table, and its restore would leave old rows there: both are refused."""
    async with opened(url, "old", STEPS) as store:
        migrated(url, NEXT)
        for write in (store.write_copy, store.write_dump):
            with pytest.raises(SchemaError, match="run the command on a node of that version"):
                await trio.to_thread.run_sync(write, tmp_path / "copy")
        with pytest.raises(SchemaError, match="run the command on a node of that version"):
            await store.replace(tmp_path / "copy.db")


def test_a_migration_waits_for_the_one_that_runs(url: str) -> None:
    """Two programs that migrate at the same time apply each step once."""
    done = list[list[str]]()

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(trio.to_thread.run_sync, lambda: done.append(migrated(url, NEXT)))

    trio.run(both)
    assert sorted(done) == [[], ["p0003_colours"]]


@pytest.mark.peer
def test_a_rolling_upgrade(tmp_path: Path) -> None:
    """A service answers logins before, during and after the migration of the next release. A change on a node of that
    release holds on it. When the service has stopped, the release after can remove what it used."""
    with running_cluster(("old",)) as cluster:
        old, url = cluster.nodes[0], cluster.server.url(DATABASE)
        old.add_client("vpn", "127.0.0.1", "xyzzy5461")
        old.add_user("ann", "hello")
        with old.radius("xyzzy5461") as client:
            assert client.login("ann", "hello") == ACCEPT
            assert migrated(url, NEXT) == ["p0003_colours"]
            assert client.login("ann", "hello") == ACCEPT
            trio.run(partial(_next_release, url, tmp_path))
            eventually(lambda: client.login("bob", "hello") == ACCEPT)
        with pytest.raises(SchemaError, match=r"old \("):
            migrated(url, LATER)
        assert old.stop() == 0
        cluster.nodes.clear()
        assert migrated(url, LATER) == ["p0004_no_marks"]


async def _next_release(url: str, directory: Path) -> None:
    """Run a node of the next release, which adds a user."""
    async with opened(url, "new", NEXT) as store:
        keep_files_in(store, directory)
        key = bytes.fromhex(MASTER_KEY)
        areas = Areas(store, SetClock(), key=key, cluster=node(store, "new", key=key))
        await areas.cluster.join()
        await areas.configuration.reload()
        (domain,) = areas.domains.table.by_id
        await areas.add_user(domain, "bob", b"hello")
