"""The embedded engine: SQLite in WAL mode with synchronous=FULL, one writer connection, a pool of readers.

sqlite-utils brings the schema up to date; the statements are plain SQL, which is ten to fifty times as fast as a call
for each row.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar, cast

import structlog
import trio

from sallyport.base.errors import StoreError, StoreFull
from sallyport.metrics import StoreMetrics
from sallyport.store.connections import LONG_LOG, SHORT_LOG, Readers, SqliteTx, open_connection, primary_code
from sallyport.store.directory import Reserve
from sallyport.store.migrate import migrate
from sallyport.store.model import Tx, Work

T = TypeVar("T")

MAX_BATCH = 500
READERS = 4
SEARCHERS = 2  # what walks through many rows has connections of its own, so that logins never wait behind it
READ_S = 30.0
SEARCH_S = 10.0
PROBE_S = 1.0
ROOM = 1 << 20  # octets that a transaction may need; a disk with less is full
_DISK_FAILS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT}

log = structlog.get_logger()


Done = Callable[[T | None, BaseException | None], None]
"""Called on the event loop with the result, or with the error."""


@dataclass(slots=True)
class _Item:
    """One caller's work on its way through the writer: in a transaction, or `alone` on the bare connection."""

    done: Done[object]
    work: Callable[[Tx], object] | None = None
    alone: Callable[[sqlite3.Connection], object] | None = None
    replaces: bool = False
    generation: int = 0
    result: object = None
    error: BaseException | None = None


class SqliteStore:
    """The store in one file. `run` must run for writes to be done; `close` when everything has stopped.

    The writer is a thread of its own, not a task that borrows one for each transaction: handing over costs a queue's
    lock one way and a wake-up of the event loop the other way.
    """

    def __init__(self, path: Path, metrics: StoreMetrics, reserve: Reserve) -> None:
        self._path = path
        self._metrics = metrics
        self._reserve = reserve
        try:
            self._writer = open_connection(path)
        except StoreError:  # on a full disk: even an empty log and its index take space
            if not self._give_reserve():
                raise
            self._writer = open_connection(path)
        try:
            migrate(self._writer, path)
        except BaseException:
            self._writer.close()
            raise
        self._readers = Readers(path, READERS)
        self._searchers = Readers(path, SEARCHERS)
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._failing = self._full = False  # set by the writer's thread alone
        self._stopped = False
        self._refill_at = 0.0
        self._generation = self._written_generation = 0  # of the event loop, and of the writer: see `exclusive`
        self._log_pages = LONG_LOG
        metrics.watch_queue(self._queue.qsize)
        metrics.watch_files(path)

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    @property
    def ready(self) -> bool:
        """Whether the last write reached the disk."""
        return not self._failing

    async def read(self, work: Work[T]) -> T:
        return await self._readers.run(work, timeout_s=READ_S)

    async def search(self, work: Work[T]) -> T:
        return await self._searchers.run(work, timeout_s=SEARCH_S)

    async def write(self, work: Work[T]) -> T:
        return cast(T, await self._wait(_Item(_nobody, work=work)))

    async def exclusive(self, work: Callable[[sqlite3.Connection], T], *, replaces: bool = False) -> T:
        """Run `work` on the writer's connection, outside a transaction, while no write runs.

        replaces: it puts another database in the place of this one. What was asked for before, or is asked for until
        `acknowledge`, rests on rows of the old one and is refused.
        """
        return cast(T, await self._wait(_Item(_nobody, alone=work, replaces=replaces)))

    def acknowledge(self) -> None:
        """Nothing in memory is of the replaced store any more: take writes again."""
        self._generation = self._written_generation

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """`write` for who has no task to wait in: what was submitted first is written and told first."""
        self._put(_Item(cast(Done[object], done), work=work))

    def _put(self, item: _Item) -> None:
        if self._stopped:
            raise StoreError(f"{self._path} is closed")
        item.generation = self._generation
        self._queue.put(item)

    async def _wait(self, item: _Item) -> object:
        await trio.lowlevel.checkpoint_if_cancelled()  # who is cancelled already begins nothing
        finished = trio.Event()
        item.done = lambda _result, _error: finished.set()
        self._put(item)
        with trio.CancelScope(shield=True):  # the answer to 'was it kept?' is waited for
            await finished.wait()
        if item.error is not None:
            raise item.error
        return item.result

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do the writes, until cancelled; then those that are queued."""
        writer = Thread(target=self._write_all, args=(trio.lowlevel.current_trio_token(),), name="store writer")
        writer.start()
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self._stopped = True
            self._queue.put(None)
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(writer.join)

    # --- in the writer's thread -------------------------------------------------------------------------------

    def _write_all(self, token: trio.lowlevel.TrioToken) -> None:
        """Transactions for what has queued up, until the queue's end."""
        ended = False
        while not ended:
            items, ended = self._take()
            for together in _runs(items):
                started = time.perf_counter()
                error = self._alone(*together) if together[0].alone else self._transaction(together)
                token.run_sync_soon(self._finish, together, error, time.perf_counter() - started)

    def _take(self) -> tuple[list[_Item], bool]:
        """What has queued up, and whether that was the end.

        While the disk fails, a probe is due after a second without work; while the reserve is spent, it is tried once
        a second whether it can be taken again.
        """
        if self._reserve.released and time.monotonic() >= self._refill_at:
            self._refill_at = time.monotonic() + PROBE_S
            self._reserve.refill()
        self._bound_log(SHORT_LOG if self._reserve.released else LONG_LOG)
        items: list[_Item] = []
        try:
            item = self._queue.get(timeout=PROBE_S if self._failing or self._reserve.released else None)
            while item is not None:
                items.append(item)
                if len(items) == MAX_BATCH:
                    return items, False
                item = self._queue.get_nowait()
        except Empty:
            return items or ([_Item(_nobody, work=_probe)] if self._failing else []), False
        return items, True

    def _transaction(self, items: list[_Item]) -> StoreError | None:
        """All items in one transaction. An error: none of them was kept."""
        if self._full and not self._make_room():
            return StoreFull(f"{self._path}: no space left on the disk")
        connection = self._writer
        try:
            connection.execute("begin immediate")
            tx = SqliteTx(connection)
            items = self._current(items)
            if len(items) > 1:
                for item in items:
                    connection.execute("savepoint item")
                    _run(connection, tx, item, "rollback to item")
                    connection.execute("release item")
            elif items and not _run(connection, tx, items[0], "rollback"):
                return None
            connection.execute("commit")
        except Exception as error:  # whatever it was: nobody may be left waiting
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("rollback")
            return self._failed(error)
        if self._failing:
            log.info("the store takes writes again")
        self._failing = self._full = False
        return None

    def _current(self, items: list[_Item]) -> list[_Item]:
        """Those that do not rest on a store that was replaced; the others fail."""
        for item in items:
            if item.generation != self._written_generation:
                item.error = StoreError("the store was replaced meanwhile")
        return [item for item in items if item.error is None]

    def _alone(self, item: _Item) -> StoreError | None:
        assert item.alone is not None  # noqa: S101
        try:
            item.result = item.alone(self._writer)
            self._written_generation += item.replaces
        except Exception as error:
            item.error = error
        return None

    def _failed(self, error: Exception) -> StoreError:
        # A full disk is an I/O error to SQLite where it could not extend the log's index, or where a quota is spent.
        code = primary_code(error)
        self._full = code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and not self._reserve.has_room(ROOM))
        told = (StoreFull if self._full else StoreError)(f"{self._path}: {error}")
        if not self._failing:
            log.error("the store does not take writes; nobody is answered until it does", error=str(told))
        self._failing = True
        if self._full:
            self._make_room()
        return told

    def _make_room(self) -> bool:
        """On a full disk: merge the log into the database, with the space of the reserve if it takes that.

        False: there is no room for a transaction. One that is smaller than the last might find some, but then the
        service would be ready one moment and not the next.
        """
        self._merge_log()
        if not self._reserve.has_room(ROOM) and self._give_reserve():
            self._merge_log()
        return self._reserve.has_room(ROOM)

    def _give_reserve(self) -> bool:
        given = self._reserve.release()
        if given:
            log.error("the disk is full; the space kept in reserve was given to the store's log")
        return given

    def _bound_log(self, pages: int) -> None:
        if pages != self._log_pages:
            self._log_pages = pages
            with suppress(sqlite3.Error):
                self._writer.execute(f"pragma wal_autocheckpoint = {pages}")

    def _merge_log(self) -> None:
        """Move the log into the database and give its space back, if there is room for what the database grows by: a
        merge that stops half-way would take the space that the log can still use."""
        with suppress(sqlite3.Error, OSError):
            size = "select page_count * page_size from pragma_page_count, pragma_page_size"
            if self._reserve.has_room(self._writer.execute(size).fetchone()[0] - self._path.stat().st_size):
                self._writer.execute("pragma wal_checkpoint(truncate)")

    # --- back on the event loop -------------------------------------------------------------------------------

    def _finish(self, items: list[_Item], error: StoreError | None, seconds: float) -> None:
        self._observe(len(items), error, seconds)
        for item in items:
            item.error = error or item.error
            try:
                item.done(item.result, item.error)
            except Exception:
                log.exception("what was to follow a transaction failed")

    def _observe(self, items: int, error: StoreError | None, seconds: float) -> None:
        self._metrics.commits.observe(seconds, items)
        if error is not None:
            self._metrics.errors.labels("commit").inc()

    def close(self) -> None:
        """Close every connection; the log is merged into the database."""
        self._readers.close()
        self._searchers.close()
        self._writer.close()


def _nobody(_result: object, _error: BaseException | None) -> None:
    """Nobody waits for it."""


def _runs(items: list[_Item]) -> Iterator[list[_Item]]:
    """Items that may share a transaction, in order; one that works alone stands alone."""
    for alone, group in groupby(items, key=lambda item: item.alone is not None):
        if alone:
            yield from ([item] for item in group)
        else:
            yield list(group)


def _run(connection: sqlite3.Connection, tx: Tx, item: _Item, undo: str) -> bool:
    """Run one item; where it raises, undo it alone. False: `undo` was done. Raises when the disk fails."""
    assert item.work is not None  # noqa: S101
    try:
        item.result = item.work(tx)
    except Exception as error:
        if not connection.in_transaction or primary_code(error) in _DISK_FAILS:
            raise  # the engine rolled everything back, or would on the next statement
        connection.execute(undo)
        item.error = StoreError(str(error)) if isinstance(error, sqlite3.Error) else error
        return False
    return True


def _probe(tx: Tx) -> None:
    """The smallest write there is: tells whether the disk takes writes again. There and back, since an update to the
    same value writes nothing."""
    for step in (1, -1):
        tx.execute("update config_version set version = version + :step", step=step)
