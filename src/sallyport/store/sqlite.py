"""The embedded engine: SQLite in WAL mode with synchronous=FULL, one writer connection, a pool of readers.

The connections are opened through sqlite-utils; the statements are plain SQL on them, which is ten to fifty times as
fast as a call for each row.
"""

import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar, cast

import structlog
import trio

from sallyport.base.errors import StoreError, StoreFull
from sallyport.metrics import StoreMetrics
from sallyport.store.directory import Reserve
from sallyport.store.migrate import migrate
from sallyport.store.model import Tx, V, Value, Work

T = TypeVar("T")

MAX_BATCH = 500
READERS = 4
PROBE_S = 1.0
# 20,000 pages of 4 KiB: checkpoints are rare enough to keep the p99 of a commit at 6 ms, and bound the log to 80 MB.
_PRAGMAS = """
pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = 20000;
pragma journal_size_limit = 83886080; pragma foreign_keys = on; pragma busy_timeout = 5000;
pragma temp_store = memory;
"""

log = structlog.get_logger()


class SqliteTx:
    """A transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, /, **parameters: Value) -> int:
        return self._connection.execute(sql, parameters).rowcount

    def one(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> T | None:
        for row in self._rows(sql, parameters):
            return shape(**row)
        return None

    def all(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> list[T]:
        return [shape(**row) for row in self._rows(sql, parameters)]

    def value(self, kind: type[V], sql: str, /, **parameters: Value) -> V | None:
        row = self._connection.execute(sql, parameters).fetchone()
        return None if row is None or row[0] is None else kind(row[0])

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f"insert into {table} ({', '.join(columns)}) values ({marks})", rows)  # noqa: S608

    def _rows(self, sql: str, parameters: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
        cursor = self._connection.execute(sql, parameters)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))


class _Item(Generic[T]):
    """One caller's work on its way through the writer."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Work[T]) -> None:
        self.work = work
        self.done = trio.Event()
        self.error: BaseException | None = None
        self.result: T | None = None


class SqliteStore:
    """The store in one file. `run` must run for writes to be done; `close` when everything has stopped."""

    def __init__(self, path: Path, metrics: StoreMetrics, reserve: Reserve) -> None:
        self._path = path
        self._metrics = metrics
        self._reserve = reserve
        self._writer = _open(path)
        migrate(self._writer, path)
        self._readers = [_open(path, read_only=True) for _ in range(READERS)]
        self._reader_limit = trio.CapacityLimiter(READERS)
        self._writer_limit = trio.CapacityLimiter(1)
        self._queue: list[_Item[object]] = []
        self._queued = trio.Event()
        self._failing = False

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    @property
    def ready(self) -> bool:
        """Whether the last write reached the disk."""
        return not self._failing

    async def read(self, work: Work[T]) -> T:
        async with self._reader_limit:
            connection = self._readers.pop()
            try:
                return await trio.to_thread.run_sync(_read, connection, work)
            finally:
                self._readers.append(connection)

    async def write(self, work: Work[T]) -> T:
        item = _Item(work)
        self._queue.append(cast(_Item[object], item))
        self._queued.set()
        with trio.CancelScope(shield=True):  # the answer to 'was it kept?' is waited for
            await item.done.wait()
        if item.error is not None:
            raise item.error
        return cast(T, item.result)

    async def exclusive(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the writer's connection, outside a transaction, while no write runs (backup, restore)."""
        async with self._writer_limit:
            return await trio.to_thread.run_sync(work, self._writer)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do the writes, until cancelled. While the disk fails, try once a second whether it is back."""
        task_status.started()
        while True:
            with trio.move_on_after(PROBE_S if self._failing or self._reserve.released else math.inf):
                await self._queued.wait()
            self._queued = trio.Event()
            batch, self._queue = self._queue[:MAX_BATCH], self._queue[MAX_BATCH:]
            if self._queue:
                self._queued.set()
            with trio.CancelScope(shield=True):
                await self._commit(batch or [_Item[object](_probe)])

    async def _commit(self, batch: list[_Item[object]]) -> None:
        self._metrics.queue_depth.set(len(self._queue))
        started = time.perf_counter()
        try:
            async with self._writer_limit:
                await trio.to_thread.run_sync(self._transaction, batch)
            self._observe(batch, time.perf_counter() - started)
            self._failing = False
        except StoreError as error:
            self._metrics.errors.labels("commit").inc()
            if not self._failing:
                log.error("the store does not take writes; nobody is answered until it does", error=str(error))
            self._failing = True
            for item in batch:
                item.error = error
        for item in batch:
            item.done.set()

    def _observe(self, batch: list[_Item[object]], seconds: float) -> None:
        self._metrics.commit_seconds.observe(seconds)
        self._metrics.batch_rows.observe(len(batch))
        if self._failing:
            log.info("the store takes writes again")

    def _transaction(self, batch: list[_Item[object]]) -> None:
        """In the worker thread: all items in one transaction. StoreError: none of them was kept."""
        self._reserve.refill()
        connection = self._writer
        try:
            connection.execute("begin immediate")
            tx = SqliteTx(connection)
            for item in batch:
                _in_savepoint(connection, tx, item)
            connection.execute("commit")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("rollback")
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> StoreError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_FULL:
            return StoreError(f"{self._path}: {error}")
        if self._reserve.release():
            log.error("the disk is full; the space kept in reserve was given to the store's log")
        with suppress(sqlite3.Error):  # move the log into the database and give its space back
            self._writer.execute("pragma wal_checkpoint(truncate)")
        return StoreFull(f"{self._path}: no space left on the disk")

    def close(self) -> None:
        """Close every connection; the log is merged into the database."""
        for connection in (*self._readers, self._writer):
            connection.close()


def _open(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    from sqlite_utils import Database  # 60 ms to import, and commands that ask a running service never need it

    uri = f"{path.absolute().as_uri()}{'?mode=ro' if read_only else ''}"
    try:
        connection = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        Database(connection, execute_plugins=False)
        connection.executescript("pragma query_only = on; pragma busy_timeout = 5000;" if read_only else _PRAGMAS)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
    return connection


def _read(connection: sqlite3.Connection, work: Work[T]) -> T:
    with _reading(connection) as tx:
        return work(tx)


@contextmanager
def _reading(connection: sqlite3.Connection) -> Iterator[Tx]:
    try:
        connection.execute("begin")
        yield SqliteTx(connection)
    except sqlite3.Error as error:
        raise StoreError(str(error)) from error
    finally:
        with suppress(sqlite3.Error):
            connection.execute("rollback")


def _in_savepoint(connection: sqlite3.Connection, tx: Tx, item: _Item[object]) -> None:
    """Run one item; undo it alone when it raises. Raises only when the whole transaction is gone."""
    connection.execute("savepoint item")
    item.error = None
    try:
        item.result = item.work(tx)
    except Exception as error:
        if not connection.in_transaction:
            raise  # the engine rolled everything back: disk full, I/O error, out of memory
        connection.execute("rollback to item")
        item.error = StoreError(str(error)) if isinstance(error, sqlite3.Error) else error
    connection.execute("release item")


def _probe(tx: Tx) -> None:
    """The smallest write there is: tells whether the disk takes writes again."""
    tx.execute("update config_version set version = version")
