"""The embedded engine: its file, its pragmas, the bare connection and a locked database."""

import shutil
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry
from sqlite_utils import Database

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import NotFound, SchemaError, StoreError, TookTooLong
from sallyport.metrics import StoreMetrics
from sallyport.store.connections import QUICK_S, QUICK_STEPS, SLOW_FOR_S, QuickReader, Readers, add_fold
from sallyport.store.data_folder import Reserve
from sallyport.store.migrations import ALL, migrations_of
from sallyport.store.model import Tx, Work
from sallyport.store.postgres.migration import steps_of
from sallyport.store.sqlite import READERS, SqliteStore
from sallyport.store.turns import WRITES
from tests.areas import running_store
from tests.store.baseline import schema
from tests.store.conftest import names, put

T = TypeVar("T")


def opened(path: Path) -> SqliteStore:
    """Return a store that is open and accepts no writes."""
    return SqliteStore(path, StoreMetrics(CollectorRegistry()), Reserve(path.with_name("reserve"), 0))


def applied(path: Path) -> list[str]:
    """Return the names of the applied migrations of a file."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select name from _sqlite_migrations where migration_set = 'sallyport' order by name")
        return [name for (name,) in rows]


def test_migrations_are_applied_once(tmp_path: Path) -> None:
    """A second start finds all migrations applied, and changes nothing."""
    path = tmp_path / "s.db"
    opened(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update config_version set version = 7")
        connection.commit()
        schema = connection.execute("select sql from sqlite_master order by name").fetchall()
    opened(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select version from config_version").fetchall() == [(7,)]
        assert connection.execute("select sql from sqlite_master order by name").fetchall() == schema
    assert applied(path) == sorted(each.name for each in ALL._migrations)


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    """An unknown migration raises SchemaError with its name, and the file is unchanged."""
    path = tmp_path / "s.db"
    opened(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values ('sallyport', 'm9999_later', '')"
        )
        connection.commit()
    before = applied(path)
    with pytest.raises(SchemaError, match=r"newer version.*m9999_later.*sallyport db restore FILE"):
        opened(path)
    assert applied(path) == before


def test_a_database_from_before_the_release_is_refused(tmp_path: Path) -> None:
    """A database without the baseline raises SchemaError with the next step, and the file is unchanged."""
    path = tmp_path / "s.db"
    opened(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("delete from _sqlite_migrations where name <> 'm0001_baseline'")
        connection.execute("update _sqlite_migrations set name = 'm0001_inventory'")
        connection.commit()
    with pytest.raises(SchemaError, match=r"before the first release.*another data directory"):
        opened(path)
    assert applied(path) == ["m0001_inventory"]


_SESSION = (
    "insert into sessions (domain_id, device_id, acct_session_id, newest, user_name, session_time, input_octets, "
    "output_octets, input_packets, output_packets, started, first_seen, updated, state, records, recent, follows) "
    "values (1, 1, x'61', 1, ' Zoë', 0, 0, 0, 0, 0, 1, 1, 1, 'live', 1, x'', 0)"
)
_USERS = """
insert into counters (domain_id, name, value) values (1, 'endpoint_users/user_type', 2);
insert into endpoint_users (domain_id, name, user_type, credential_type, privileged_user, source, created_at,
    updated_at, name_key) values (1, 'bob', 'Local', '', '', 'Local', 0, 0, 'bob'),
    (1, 'ann', 'Local', '', '', 'directory', 0, 0, 'ann');
"""
_CLIENT = (
    "insert into radius_clients (tenant_id, name, name_key, network, secret, all_domains, product, "
    "require_message_authenticator, limit_proxy_state, password_verified, created_at) "
    "values (1, 'vpn', 'vpn', '192.0.2.128/25', x'61', 1, '', 'auto', 'auto', 0, 1)"
)


def test_a_released_step_keeps_its_name() -> None:
    """Each database has the names of its steps. With another name, a step would be applied again."""
    assert {"m0001_baseline", "m0010_network_bits", "m0016_sign_in_attempts", "m0019_login_facts"} <= {
        each.name for each in migrations_of()._migrations
    }
    assert {"p0001_baseline", "p0005_node_senders", "p0018_sign_in_attempts", "p0019_login_facts"} <= {
        each.name for each in steps_of()
    }


def test_an_interrupted_first_start_continues(tmp_path: Path) -> None:
    """A new table has the columns of later steps. If the first start ends before these steps, the next start applies
    them, and the schema is that of an uninterrupted start.
    """
    path, new, migrations = tmp_path / "s.db", tmp_path / "new.db", migrations_of()
    names = [each.name for each in migrations._migrations]
    with closing(sqlite3.connect(path)) as connection:
        add_fold(connection)
        migrations.apply(Database(connection), stop_before=names[len(names) // 2])
        connection.commit()
    assert applied(path) != sorted(names)
    opened(path).close()
    opened(new).close()
    assert applied(path) == sorted(names)
    assert sorted(schema(path)) == sorted(schema(new))


def test_the_stored_baseline_becomes_the_schema_of_this_program(tmp_path: Path) -> None:
    """A database of the baseline keeps its rows, and has the schema of a new one after the later migrations. `python -m
    tests.store.baseline` writes baseline.sql, up to the first release and never after it.
    """
    path, new = tmp_path / "s.db", tmp_path / "new.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("baseline.sql").read_text())
        connection.execute(_SESSION)
        connection.execute(_CLIENT)
        connection.executescript(_USERS)
        connection.commit()
    opened(path).close()
    opened(new).close()
    assert sorted(schema(path)) == sorted(schema(new))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select name from domains").fetchall() == [("corp",)]
        types = [kind for (kind,) in connection.execute("select user_type from endpoint_users")]
        assert types == ["Local", "Directory User"]
        counted = connection.execute("select value from counters where name = 'endpoint_users/user_type'")
        assert counted.fetchall() == [(types.count("Local"),)]
        assert connection.execute("select user_name, user_key from sessions").fetchall() == [(" Zoë", "zoë")]
        bits = connection.execute("select network_bits from radius_clients").fetchall()
        assert bits == [("4" + "11000000" + "00000000" + "00000010" + "1",)]


@pytest.mark.parametrize("content", [b"text, not a database\n" * 100, b"SQLite format 3\0" + bytes(4080)])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    """The error names the file, which is unchanged."""
    path = tmp_path / "s.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"s\.db"):
        opened(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["folder", "missing/s.db"])
def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    """A directory, or a file in a missing directory, raises StoreError."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError):
        opened(tmp_path / name)


class RoomMaker(Reserve):
    """A reserve whose release makes it possible to open the database."""

    def release(self) -> bool:
        """Make the directory of the database."""
        self._path.parent.mkdir()
        return super().release() or True


def test_a_start_on_a_full_disk_releases_the_reserve(tmp_path: Path) -> None:
    """A database that cannot be opened is opened again after the space of the reserve was freed."""
    path = tmp_path / "full" / "s.db"
    SqliteStore(path, StoreMetrics(CollectorRegistry()), RoomMaker(path.with_name("reserve"), 0)).close()
    assert applied(path) == sorted(each.name for each in ALL._migrations)


async def test_the_writer_waits_for_the_disk(sqlite: SqliteStore) -> None:
    """The writer's connection is in WAL mode with synchronous=FULL, and checks foreign keys."""

    def pragmas(connection: sqlite3.Connection) -> list[object]:
        asked = ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "journal_size_limit")
        return [connection.execute(f"pragma {name}").fetchone()[0] for name in asked]

    assert await sqlite.exclusive(pragmas) == ["wal", 2, 1, 20_000, 80 << 20]
    assert (await sqlite.read(lambda tx: tx.value(int, "pragma query_only"))) == 1


async def test_every_reader_is_read_only(sqlite: SqliteStore) -> None:
    """No connection of the pool accepts a write, however many are in use."""
    refused = 0

    async def try_to_write() -> None:
        nonlocal refused
        with pytest.raises(StoreError):
            await sqlite.read(partial(put, name="never"))
        refused += 1

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(try_to_write)
    assert refused == 20


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    """Another program's database raises SchemaError and is unchanged."""
    path = tmp_path / "songs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table songs (title text)")
        connection.commit()
    with pytest.raises(SchemaError, match="another program"):
        opened(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("songs",)]


async def test_exclusive_work_runs_alone(sqlite: SqliteStore) -> None:
    """Exclusive work runs outside a transaction, after earlier writes and before later ones."""
    order: list[str] = []

    def write(name: str) -> None:
        sqlite.submit(partial(put, name=name), lambda result, error: order.append(name))

    def alone(connection: sqlite3.Connection) -> list[str]:
        assert not connection.in_transaction
        return [name for (name,) in connection.execute("select name from counters order by name")]

    write("a")
    async with trio.open_nursery() as nursery:
        seen: list[list[str]] = []

        async def exclusively() -> None:
            seen.append(await sqlite.exclusive(alone))
            order.append("alone")

        nursery.start_soon(exclusively)
        await trio.testing.wait_all_tasks_blocked()
        write("b")
    await sqlite.write(partial(put, name="c"))
    assert seen == [["a"]]
    assert sorted(order) == ["a", "alone", "b"] and order[0] == "a"


async def test_exclusive_work_fails_alone(sqlite: SqliteStore) -> None:
    """An exception of exclusive work reaches its caller, and the writes beside it are kept."""

    def alone(connection: sqlite3.Connection) -> None:
        raise NotFound("x")

    sqlite.submit(partial(put, name="before"), lambda result, error: None)
    with pytest.raises(NotFound):
        await sqlite.exclusive(alone)
    await sqlite.write(partial(put, name="after"))
    assert await sqlite.read(names) == ["after", "before"]


async def test_a_locked_database_is_not_ready(sqlite: SqliteStore) -> None:
    """While another program holds the lock, writes raise StoreError, reads work, and the store is not ready. It is
    ready again soon after the lock is gone.
    """
    await sqlite.exclusive(lambda connection: connection.execute("pragma busy_timeout = 20"))
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreError, match="locked"):
            await sqlite.write(partial(put, name="refused"))
        assert not sqlite.ready
        assert await sqlite.read(names) == []
        other.execute("rollback")
    with trio.fail_after(10):
        while not sqlite.ready:
            await trio.sleep(0.01)
    await sqlite.write(partial(put, name="kept"))
    assert await sqlite.read(names) == ["kept"]


async def test_a_file_of_another_disk_is_put_in_its_place(tmp_path: Path) -> None:
    """A closed store is one file, and can be copied."""
    async with running_store(tmp_path / "s.db") as store:
        await store.write(partial(put, name="kept"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["s.db"]
    (tmp_path / "there").mkdir()
    shutil.move(tmp_path / "s.db", tmp_path / "there" / "s.db")
    async with running_store(tmp_path / "there" / "s.db") as store:
        assert await store.read(names) == ["kept"]


async def test_a_search_has_its_time(sqlite: SqliteStore) -> None:
    """A search that takes too long raises StoreError, and its connection is used again."""
    readers = Readers(sqlite.path, 1)
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"
    try:
        with trio.fail_after(10), pytest.raises(TookTooLong, match=r"took longer than 0\.05 s"):
            await readers.run(lambda tx: tx.value(int, endless), timeout_s=0.05)
        assert await readers.run(names, timeout_s=0.05) == []
    finally:
        readers.close()


async def test_requests_leave_readers_and_writer_to_logins(sqlite: SqliteStore) -> None:
    """Queued reads and writes of a tenant let those of the service pass, and alternate with another tenant's."""
    order: list[str] = []
    began, go_on = threading.Semaphore(0), threading.Event()

    def slow(_tx: Tx) -> None:
        began.release()
        assert go_on.wait(30)

    async def ask(name: str, tenant_id: int, do: Callable[[Work[None]], Awaitable[None]], work: Work[None]) -> None:
        with acting_as(Actor("token", "admin", tenant_id, tenant_id)):
            await do(work)
        order.append(name)

    def nothing(_tx: Tx) -> None:
        pass

    async with trio.open_nursery() as nursery:
        for _ in range(READERS):
            nursery.start_soon(ask, "slow read", 1, sqlite.read, slow)
        for _ in range(READERS // 2):
            await trio.to_thread.run_sync(began.acquire)
        assert await sqlite.read(names) == []
        go_on.set()
    go_on.clear()
    order.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sqlite.write, slow)
        await trio.to_thread.run_sync(began.acquire)
        for _ in range(3 * WRITES):
            nursery.start_soon(ask, "many", 1, sqlite.write, nothing)
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.start_soon(ask, "one", 2, sqlite.write, nothing)
        await trio.testing.wait_all_tasks_blocked(0.01)
        go_on.set()
        await sqlite.write(nothing)
        order.append("service")
    assert order.index("service") <= WRITES
    assert order.index("one") < 3 * WRITES


def thread_of(tx: Tx) -> int:
    """Read, and return the thread that did it."""
    names(tx)
    return threading.get_ident()


async def test_a_short_read_runs_on_the_event_loop(sqlite: SqliteStore) -> None:
    """A short read runs on the event loop, however often its statement has run."""
    for _ in range(2 * QUICK_STEPS):
        assert await sqlite.read_now(thread_of) == threading.get_ident()


async def test_a_long_read_leaves_the_event_loop(sqlite: SqliteStore) -> None:
    """A read with more steps than a page needs starts again in a thread."""
    count = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select max(i) from n"
    began: list[int] = []

    def work(tx: Tx) -> int | None:
        began.append(threading.get_ident())
        return tx.value(int, count)

    assert await sqlite.read_now(work) == 100_000
    assert len(began) == 2 and began[0] == threading.get_ident() != began[1]
    assert await sqlite.read_now(thread_of) == threading.get_ident()


async def in_a_thread(work: Work[T]) -> T:
    raise AssertionError("this test reads on the event loop only")


def test_a_slow_disk_is_not_read_on_the_event_loop(tmp_path: Path) -> None:
    """After two slow short reads in a row the reader refuses for a while, so that a thread reads. One slow read
    changes nothing.
    """
    opened(tmp_path / "s.db").close()
    now = 0.0
    reader = QuickReader(tmp_path / "s.db", in_a_thread, lambda: now)

    def read(seconds: float) -> None:
        def work(_: Tx) -> None:
            nonlocal now
            now += seconds

        reader.run(work)

    for seconds in (2 * QUICK_S, 0, 2 * QUICK_S, 2 * QUICK_S):
        read(seconds)
    with pytest.raises(sqlite3.OperationalError, match="slow"):
        read(0)
    now += SLOW_FOR_S
    read(0)
    reader.close()
