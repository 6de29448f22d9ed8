"""An installation that moves between the engines: `sallyport db copy`, and backups of PostgreSQL."""

from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.errors import SchemaError, StoreError
from sallyport.metrics import StoreMetrics
from sallyport.store.connections import open_connection
from sallyport.store.model import Engine
from sallyport.store.postgres.connection import connect
from sallyport.store.postgres.engine import PostgresStore, load
from sallyport.store.schema import SEARCHED
from sallyport.store.search import SearchIndex
from sallyport.store.transfer import SqliteFile, Sum
from tests.areas import Areas, SetClock, running_postgres, running_store
from tests.peers.postgres import database_in, needs_postgres, server
from tests.store.conftest import put

pytestmark = needs_postgres
ODD = ("Zürich 上海 🚪 '\"\\ %_\t\n", "", "NULL", "\\N")


def sums(path: Path) -> dict[str, Sum]:
    """Return count and checksum of each table of a database of SQLite."""
    found = {}
    with closing(open_connection(path, read_only=True)) as connection:
        file = SqliteFile(connection)
        for table in file.tables():
            found[table.name] = Sum()
            for row in file.read(table):
                found[table.name].add(row)
    return found


async def filled(store: Engine) -> None:
    """Store rows of many tables: keys that are not used again, octets, odd texts, and entries of a search."""
    areas = Areas(store, SetClock())
    await areas.prepare()
    for number, name in enumerate(ODD):
        await store.write(partial(put, name=name, value=number))
    for number in range(5):
        await areas.add_user(areas.domain, f"user {number} ä", b"hello\0\xff")
    await areas.remove_user(areas.domain, "user 4 ä")
    await areas.client("192.0.2.0/24")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the address of an empty database."""
    return database_in(tmp_path, is_empty=True)


async def test_an_installation_comes_back_as_it_was(tmp_path: Path, url: str) -> None:
    """Every row of every table is the same after the way to PostgreSQL and back."""
    async with running_store(tmp_path / "s.db") as store:
        await filled(store)
        store.write_copy(tmp_path / "before.db")
    copied = await trio.to_thread.run_sync(load, url, tmp_path / "before.db")
    async with running_postgres(tmp_path) as store:
        await trio.to_thread.run_sync(store.write_copy, tmp_path / "after.db")
    before, after = sums(tmp_path / "before.db"), sums(tmp_path / "after.db")
    assert before == after
    assert sum(each.rows for each in before.values()) == copied > 50


async def test_a_key_is_not_used_again_after_a_move(tmp_path: Path, url: str) -> None:
    """The key of a deleted row stays used, in either direction."""
    async with running_store(tmp_path / "s.db") as store:
        await filled(store)
        store.write_copy(tmp_path / "before.db")
    load(url, tmp_path / "before.db")
    async with running_postgres(tmp_path) as moved:
        areas = Areas(moved, SetClock())
        await areas.configuration.reload()
        (domain,) = areas.domains.table.by_id
        assert await areas.add_user(domain, "next", b"x") == 6
        await areas.remove_user(domain, "next")
        await trio.to_thread.run_sync(moved.write_copy, tmp_path / "back.db")
    async with running_store(tmp_path / "back.db") as back:
        areas = Areas(back, SetClock())
        await areas.configuration.reload()
        assert await areas.add_user(domain, "later", b"x") == 7


async def test_triggers_and_the_search_work_after_a_move(tmp_path: Path, url: str) -> None:
    """Rows are counted, append-only tables refuse changes, and a text is found."""
    async with running_store(tmp_path / "s.db") as store:
        await filled(store)
        store.write_copy(tmp_path / "before.db")
    load(url, tmp_path / "before.db")
    async with running_postgres(tmp_path) as moved:
        rows = "select value from tenant_rows where name = 'endpoint_users'"
        assert await moved.read(lambda tx: tx.rows(rows)) == [(4,)]
        with pytest.raises(StoreError, match="append-only"):
            await moved.write(lambda tx: tx.execute("update audit_trail set at = 0"))
        sql, given = await moved.read(lambda tx: SearchIndex("endpoint_users_search").find(tx, 1, "USER 3 Ä"))
        assert await moved.read(lambda tx: tx.rows(sql, **given)) == [(4,)]


def tables(url: str) -> int:
    """Return the number of tables of a database."""
    with connect(url) as connection:
        return len(connection.execute("select 1 from pg_tables where schemaname = 'public'").fetchall())


async def test_a_target_with_a_store_is_refused(tmp_path: Path, url: str) -> None:
    """A database that is not empty is unchanged: one with a store, and one of another program."""
    async with running_store(tmp_path / "s.db") as store:
        store.write_copy(tmp_path / "before.db")
    async with running_postgres(tmp_path) as there:
        await there.write(partial(put, name="mine"))
        with pytest.raises(SchemaError, match="already"):
            load(url, tmp_path / "before.db")
        assert await there.read(lambda tx: tx.rows("select name from counters")) == [("mine",)]
    (tmp_path / "other").mkdir()
    other = database_in(tmp_path / "other", is_empty=True)
    with psycopg.connect(other, autocommit=True) as connection:
        connection.execute("create table songs (title text)")
    with pytest.raises(SchemaError, match="another program"):
        load(other, tmp_path / "before.db")
    assert tables(other) == 1


async def test_an_interrupted_copy_leaves_the_target_empty(tmp_path: Path, url: str) -> None:
    """A copy that ends in the middle leaves no table."""
    async with running_store(tmp_path / "s.db") as store:
        await filled(store)
        store.write_copy(tmp_path / "before.db")
    with closing(open_connection(tmp_path / "before.db")) as connection:
        connection.execute(f"drop table {SEARCHED[-1]}_search")  # read last
    with pytest.raises(Exception, match="no such table"):
        load(url, tmp_path / "before.db")
    assert tables(url) == 0


async def test_a_changed_row_is_noticed(tmp_path: Path, url: str) -> None:
    """The checksum differs if one value of one row does."""
    one, other = Sum(), Sum()
    one.add((1, "a", b"\0", None))
    other.add((1, "a", b"\1", None))
    assert one != other
    assert one.rows == other.rows


def test_a_database_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """The message says how the database must be created."""
    server().execute("create database latin encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0")
    with pytest.raises(SchemaError, match="UTF8"):
        PostgresStore(server().url("latin"), StoreMetrics(CollectorRegistry()))
