"""The embedded engine: SQLite in WAL mode with synchronous=FULL, one connection that writes, and a pool of connections
that read.

sqlite-utils upgrades the schema. All other statements are plain SQL, because calls of sqlite-utils for each row would
take ten to fifty times as long.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
import trio
from sqlite_utils import Migrations

from sallyport.base.errors import StoreError
from sallyport.metrics import StoreMetrics
from sallyport.settings.limits import DEFAULTS
from sallyport.store.connections import QuickReader, Readers, SqliteTx, open_connection
from sallyport.store.data_folder import Reserve
from sallyport.store.foreign import ForeignChange
from sallyport.store.migrations import ALL, migrate
from sallyport.store.model import Tx, Work
from sallyport.store.turns import Turns
from sallyport.store.writer import Writer

T = TypeVar("T")

READERS = 4
SEARCHERS = 8  # separate connections for long reads, so that logins never wait for long reads
SEARCHING = 2  # searches that run at the same time; the others pause
READ_S = 30.0
SEARCH_S = 10.0
PUBLIC_S = 2.0  # time of a search for a public document
WRITE_S = 0.2  # limit of CPU time, in seconds, of the write of a request, because logins wait for such a write

NO_DUMP = "pg_dump and pg_restore cannot read a SQLite database: use a backup whose name ends in .db"

log = structlog.get_logger()


class SqliteStore:
    """The store in one SQLite file. Writes may be submitted only while `run` is running. Call `close` when nothing uses
    the store any more.

    reserve: the reserved disk space. limits: the numbers of rows that each tenant may have (`settings/limits.py`).
    migrations: the history of the schema.
    """

    def __init__(
        self,
        path: Path,
        metrics: StoreMetrics,
        reserve: Reserve,
        limits: Mapping[str, int] = DEFAULTS,
        *,
        migrations: Migrations = ALL,
    ) -> None:
        self._path = path
        self._migrations = migrations
        self._connection = _open_writable(path, reserve)
        try:
            migrate(self._connection, path, migrations)
            _set_limits(self._connection, limits)
        except BaseException:
            self._connection.close()
            raise
        self._writer = Writer(path, self._connection, metrics, reserve)
        self.submit = self._writer.submit  # without a wrapper method, because every login calls it
        self._quick = QuickReader(path, self.read)
        self.read_now = self._quick.read
        self._readers = Readers(path, READERS)
        self._searchers = Readers(path, SEARCHERS, SEARCHING)
        self._public = Readers(path, 1)
        self._turns = Turns(READERS, SEARCHERS)
        metrics.watch_files(path)

    @property
    def path(self) -> Path:
        """Return the path of the database file."""
        return self._path

    @property
    def schema(self) -> str:
        return self._migrations._migrations[-1].name

    @property
    def is_shared(self) -> bool:
        """Return False, because only one process can use the file."""
        return False

    @property
    def is_replaced(self) -> bool:
        return self._writer.is_replaced

    @property
    def ready(self) -> bool:
        """Return whether the last write was committed."""
        return self._writer.ready

    @property
    def changes(self) -> int:
        return self._writer.changes

    async def read(self, work: Work[T]) -> T:
        async with self._turns.reading():
            return await self._readers.run(work, timeout_s=READ_S)

    async def search(self, work: Work[T]) -> T:
        async with self._turns.searching() as is_public:
            if is_public:
                return await self._public.run(work, timeout_s=PUBLIC_S)
            return await self._searchers.run(work, timeout_s=SEARCH_S)

    async def settled(self, table: str) -> int:
        return await self.read(lambda tx: tx.value(int, f"select max(id) from {table}") or 0)  # noqa: S608

    async def write(self, work: Work[T]) -> T:
        async with self._turns.writing() as is_limited:
            return await self._writer.write(partial(_limited, work) if is_limited else work)

    async def write_aside(self, work: Work[T]) -> T:
        return await self._writer.write(work)

    def on_foreign_change(self, changed: Callable[[ForeignChange], None]) -> None:
        """Do nothing, because no other process changes the file."""

    async def exclusive(self, work: Callable[[sqlite3.Connection], T], *, replaces: bool = False) -> T:
        """Run `work` on the connection for writes, while no other write runs (see `Writer.exclusive`)."""
        return await self._writer.exclusive(work, replaces=replaces)

    def write_copy(self, path: Path) -> None:
        with (
            closing(open_connection(self._path, read_only=True)) as original,
            closing(sqlite3.connect(path)) as copy,
        ):
            original.backup(copy)
            # SQLite cannot open a database in WAL mode in a read-only directory.
            copy.execute("pragma journal_mode = delete")

    async def replace(self, path: Path) -> None:
        def replace(connection: sqlite3.Connection) -> None:
            with closing(sqlite3.connect(path)) as copy:
                copy.backup(connection)
            connection.execute("update config_version set version = version + 1")

        await self.exclusive(replace, replaces=True)

    def write_dump(self, path: Path) -> None:
        raise StoreError(f"{path}: {NO_DUMP}")

    async def replace_by_dump(self, path: Path, then: Work[None]) -> None:
        raise StoreError(f"{path}: {NO_DUMP}")

    def acknowledge(self) -> None:
        """Accept writes again after a restore."""
        self._writer.acknowledge()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process the queue of writes until cancelled. Then process the writes that are left in the queue."""
        await self._writer.run(task_status=task_status)

    def close(self) -> None:
        """Close every connection, and merge the write-ahead log into the database."""
        self._quick.close()
        self._readers.close()
        self._searchers.close()
        self._public.close()
        self._connection.close()


def _limited(work: Work[T], tx: Tx) -> T:
    assert isinstance(tx, SqliteTx)  # noqa: S101  the writer creates only `SqliteTx`
    return work(tx.limited(WRITE_S))


def _set_limits(connection: sqlite3.Connection, limits: Mapping[str, int]) -> None:
    """Write the limits to the table that the triggers read, if the limits have changed."""
    if dict(connection.execute("select name, most from limits")) != limits:
        with connection:
            connection.execute("begin immediate")
            connection.execute("delete from limits")
            connection.executemany("insert into limits (name, most) values (?, ?)", limits.items())


def _open_writable(path: Path, reserve: Reserve) -> sqlite3.Connection:
    try:
        return open_connection(path)
    except StoreError:
        if not reserve.release():
            raise
    # On a full disk the database cannot be opened: even an empty write-ahead log takes space.
    log.error("disk_reserve_released")
    return open_connection(path)
