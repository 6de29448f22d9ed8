"""The store on PostgreSQL: readers, lanes of writes, and the listener to other nodes."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import psycopg
import trio

from sallyport.base.errors import SchemaError, StoreError
from sallyport.base.limits import DEFAULTS
from sallyport.metrics import StoreMetrics
from sallyport.store.foreign import ForeignChange
from sallyport.store.model import Tx, Work
from sallyport.store.postgres.connection import Connection, Cursor, as_ours, connect
from sallyport.store.postgres.lane import Lane, Restores
from sallyport.store.postgres.listener import Listener
from sallyport.store.postgres.rows import PostgresRows
from sallyport.store.postgres.schema import has_store, migrate, set_limits
from sallyport.store.postgres.transaction import Inserts, PostgresTx
from sallyport.store.transfer import SqliteFile, transfer, write_file
from sallyport.store.turns import Turns

T = TypeVar("T")

READERS: Final = 4
SEARCHERS: Final = 2
READ_S: Final = 30.0
SEARCH_S: Final = 10.0
WRITE_S: Final = 1.0
"""Time of a token's work in a transaction: other writes wait for it."""
_CANCELLED: Final = "57014"


class PostgresStore:
    """The store in a PostgreSQL database. `run` must run while writes are submitted; call `close` when all users have
    stopped.

    StoreError: the server cannot be reached.

    url: `postgresql://...`. limits: the rows that a tenant may have (`base/limits.py`). name: the name of this process
    among those that use the database.
    """

    def __init__(
        self, url: str, metrics: StoreMetrics, limits: Mapping[str, int] = DEFAULTS, *, name: str = "node"
    ) -> None:
        with connect(url) as connection:
            migrate(connection)
            set_limits(connection, limits)
            restores = int(str(connection.execute("select number from restores").fetchall()[0][0]))
        self._inserts = Inserts()
        self._url = url
        self._restores = Restores(restores, restores)
        self._journal, self._others, self._pulse = self._lanes = tuple(
            Lane(url, f"{name}/{lane}", self._inserts, metrics, self._restores, alone=lane == "others")
            for lane in ("journal", "others", "pulse")
        )
        self._readers = _Readers(url, self._inserts, READERS, READ_S)
        self._searchers = _Readers(url, self._inserts, SEARCHERS, SEARCH_S)
        self._turns = Turns(READERS, SEARCHERS)
        self._journal.connect()
        self.submit = self._journal.submit
        self._listener = Listener(url, lambda: {each.server_process for each in self._lanes}, self._changed)
        self._on_foreign_change: list[Callable[[ForeignChange], None]] = []
        metrics.watch_queue(lambda: self._journal.queued() + self._others.queued())

    @property
    def ready(self) -> bool:
        """Return whether the last writes were kept."""
        return self._journal.ready and self._others.ready

    @property
    def is_shared(self) -> bool:
        """Return True: several nodes may use the database."""
        return True

    @property
    def is_replaced(self) -> bool:
        return self._restores.accepted != self._restores.seen

    @property
    def changes(self) -> int:
        return self._journal.changes + self._others.changes

    async def read(self, work: Work[T]) -> T:
        async with self._turns.reading():
            return await self._readers.run(work)

    async def read_now(self, work: Work[T]) -> T:
        return await self.read(work)

    async def search(self, work: Work[T]) -> T:
        async with self._turns.searching():
            return await self._searchers.run(work)

    async def write(self, work: Work[T]) -> T:
        async with self._turns.writing() as is_limited:
            return await self._others.write(_limited(work) if is_limited else work)

    async def write_aside(self, work: Work[T]) -> T:
        return await self._pulse.write(work)

    def on_foreign_change(self, changed: Callable[[ForeignChange], None]) -> None:
        self._on_foreign_change.append(changed)

    def _changed(self, change: ForeignChange) -> None:
        for changed in self._on_foreign_change:
            changed(change)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process the writes until cancelled, then the queued ones."""
        async with trio.open_nursery() as nursery:
            for lane in self._lanes:
                await nursery.start(lane.run)
            await nursery.start(self._listener.run)
            task_status.started()

    def write_copy(self, path: Path) -> None:
        try:
            with connect(self._url) as connection:
                connection.execute("begin transaction isolation level repeatable read read only")
                write_file(path, PostgresRows(connection))
        except psycopg.Error as error:
            raise as_ours(error) from error

    async def replace(self, path: Path) -> None:
        await self._others.exclusive(partial(_replace, path))

    def acknowledge(self) -> None:
        self._restores.accepted = self._restores.seen

    def close(self) -> None:
        """Close every connection."""
        for lane in self._lanes:
            lane.disconnect()
        self._readers.close()
        self._searchers.close()


def load(url: str, path: Path) -> int:
    """Fill an empty PostgreSQL database with all rows of a database of SQLite; return their number.

    It is one transaction: an interruption leaves the database as it was. SchemaError: it is not empty. Raises
    StoreError.
    """
    try:
        with connect(url) as connection, connection.transaction():
            if has_store(connection):
                raise SchemaError("the database has a store already: name an empty one")
            migrate(connection)
            return _fill(connection, path)
    except psycopg.Error as error:
        raise as_ours(error) from error


def _replace(path: Path, connection: Connection) -> None:
    """Replace all rows, in the connection's transaction."""
    connection.execute("update restores set number = number + 1")
    connection.execute("delete from prompts")  # they belong to logins before the restore
    version = connection.execute("select version from config_version").fetchone()
    _fill(connection, path)
    connection.execute("update config_version set version = greatest(version, $1) + 1", version)


def _fill(connection: Connection, path: Path) -> int:
    target = PostgresRows(connection)
    with closing(sqlite3.connect(path)) as copy:
        source = SqliteFile(copy)
        tables = source.tables()
        target.clear(tables)
        copied = transfer(source, target, tables)
        target.enable(tables)
    return copied


def _limited(work: Work[T]) -> Work[T]:
    def limited(tx: Tx) -> T:
        assert isinstance(tx, PostgresTx)  # noqa: S101  a lane made it
        return work(tx.limited(WRITE_S))

    return limited


class _Readers:
    """Connections that read, each with one borrower at a time."""

    def __init__(self, url: str, inserts: Inserts, count: int, timeout_s: float) -> None:
        self._url = url
        self._inserts = inserts
        self._timeout_s = timeout_s
        self._begin = (
            "begin transaction isolation level repeatable read read only; "
            f"set local statement_timeout = {int(timeout_s * 1000)}"
        )
        self._idle: list[Connection] = []
        self._limit = trio.CapacityLimiter(count)
        self._closed = False

    async def run(self, work: Work[T]) -> T:
        """Run `work` in a read transaction. StoreError, also when it takes longer than the time limit."""
        if self._closed:
            raise StoreError("the store is closed")
        async with self._limit:
            return await trio.to_thread.run_sync(self._read, work)

    def _read(self, work: Work[T]) -> T:
        connection, cursor = self._begun(self._idle.pop() if self._idle else None)
        try:
            result = work(PostgresTx(cursor, self._inserts))
            cursor.execute("commit")
        except psycopg.Error as error:
            connection.close()
            if error.sqlstate == _CANCELLED:
                raise StoreError(f"the search took longer than {self._timeout_s:g} s: narrow it") from error
            raise as_ours(error) from error
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return result

    def _begun(self, connection: Connection | None) -> tuple[Connection, Cursor]:
        """Begin a transaction; on a new connection if there is none, or if the server has closed it."""
        if connection is not None:
            with suppress(psycopg.Error):
                return connection, connection.execute(self._begin)
            connection.close()
        connection = connect(self._url)
        try:
            return connection, connection.execute(self._begin)
        except psycopg.Error as error:
            connection.close()
            raise as_ours(error) from error

    def close(self) -> None:
        """Close all of them."""
        self._closed = True
        for connection in self._idle:
            connection.close()
