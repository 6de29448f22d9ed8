"""The only writer of the embedded database. It commits the work of many callers in one transaction, either in a thread
of its own or on the event loop.

The thread is permanent, because a thread from a pool would cost more. For each write, the permanent thread costs only a
lock of the queue at the start, and a wake-up of the event loop at the end. Still, this is a fifth of a login's CPU
time, mostly because two threads compete for the interpreter lock. So if the queue is empty and the disk is fast, a
submitted item is written on the event loop itself. The reply of the login has to wait for the write anyway. The thread
does all slow work: it merges the log, waits for another program's lock, and retries a failing disk.

The items of the queue become up to three transactions, in this order. The first has the submitted items: they are
short, and logins wait for them. The second has the writes of the service itself, which include other writes of logins.
The third has the work of requests, where one item may take 200 ms. The third transaction ends after its
current item if the service has something to write.

While a transaction runs, more items may be submitted. `Tx.others_wait` then returns true, so that long work ends early.
The submitted items join the running transaction, so that a login waits for only one commit. After BATCH_S seconds, the
transaction ends with its current item if a login waits.
"""

import math
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar, cast

import structlog
import trio

from sallyport.base.errors import StoreError, StoreFull
from sallyport.metrics import StoreMetrics
from sallyport.store.connections import (
    BUSY_MS,
    LONG_LOG,
    QUICK_S,
    SHORT_LOG,
    SLOW_FOR_S,
    SqliteTx,
    as_ours,
    primary_code,
)
from sallyport.store.data_folder import Reserve
from sallyport.store.items import QueuedWrite, QueuedWriter, nobody, runs_of
from sallyport.store.model import Done, Tx, Work
from sallyport.store.slices import BATCH_S

T = TypeVar("T")

PROBE_S = 1.0
# After so many transactions on the event loop, one runs in the thread, so that the log is merged in time.
MERGE_EVERY = 64
ROOM = 1 << 20  # octets that a transaction may need; a disk with less free space counts as full
_DISK_FAILS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT}

log = structlog.get_logger()


class Writer(QueuedWriter):
    """The writer of the embedded database.

    path: the database file, for messages. connection: a connection that only the writer uses.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, metrics: StoreMetrics, reserve: Reserve) -> None:
        super().__init__("store writer", metrics)
        self._path = path
        self._connection = connection
        self._reserve = reserve
        self._using = Lock()  # protects the connection and the values of the next three lines
        self._full = False
        self._written_generation = 0  # number of replacements of the database (see `exclusive`)
        self._manner = (BUSY_MS, LONG_LOG)
        self._refill_at = 0.0
        self._first: deque[QueuedWrite] = deque()  # submitted items that have not started
        self._pending = 0  # items in the queue or in the thread; only the event loop uses this and the next values
        self._generation = 0
        self._until_merge = MERGE_EVERY
        self._slow_until = 0.0
        metrics.watch_queue(self.queued)

    @property
    def is_replaced(self) -> bool:
        """Return whether the database was replaced and `acknowledge` was not called yet."""
        return self._generation != self._written_generation

    async def exclusive(self, work: Callable[[sqlite3.Connection], T], *, replaces: bool = False) -> T:
        """Run `work` on the connection, outside a transaction, while no write runs.

        replaces: whether `work` replaces the database. If so, items that are queued until `acknowledge` fail, because
        they may depend on rows of the old database.
        """
        return cast(T, await self._wait(QueuedWrite(nobody, alone=lambda: work(self._connection), replaces=replaces)))

    def acknowledge(self) -> None:
        """Accept writes again after a restore. Call this method when no cache contains rows of the old database any
        more."""
        self._generation = self._written_generation

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """Run `work` without a waiting task (see `Store.submit`)."""
        item = QueuedWrite(cast("Done[object]", done), work=work, submitted=True)
        if not self._write_here(item):
            self._until_merge = MERGE_EVERY  # a commit in the thread merges a long log
            self._put(item)

    def _put(self, item: QueuedWrite) -> None:
        if self._stopped:
            raise StoreError(f"{self._path} is closed")
        item.generation = self._generation
        self._pending += 1
        if item.submitted:
            self._first.append(item)
        elif item.own:
            self._own.append(item)
        self._queue.put(item)

    # --- on the event loop ------------------------------------------------------------------------------------

    def _write_here(self, item: QueuedWrite) -> bool:
        """Write an item on the event loop. Return False if nothing was written; the thread must then write the item."""
        started = time.perf_counter()
        self._until_merge -= 1
        if self._until_merge < 0 or self._pending or started < self._slow_until or self._stopped:
            return False
        if not self._using.acquire(blocking=False):
            return False
        try:
            if self._failing or self._reserve.released or not self._begin_here():
                return False
            item.generation = self._generation
            error, _ = self._transaction([item])
        finally:
            self._using.release()
        seconds = time.perf_counter() - started
        if seconds > QUICK_S:
            self._slow_until = started + SLOW_FOR_S
        if error is not None:
            self._put(QueuedWrite(nobody, work=_probe))  # the thread will notice that the disk fails
        self._report([item], error, seconds)
        return True

    def _begin_here(self) -> bool:
        """Begin a transaction without waiting. Return False if another program has locked the database, or after an
        error."""
        try:
            self._behave(0, 0)
            self._connection.execute("begin immediate")
        except sqlite3.Error:
            return False  # the thread will retry, and report the cause
        return True

    def _finish(self, items: list[QueuedWrite], error: StoreError | None, seconds: float) -> None:
        """Tell the callers that the thread has processed their items."""
        self._pending -= len(items)
        self._report(items, error, seconds)

    # --- in the writer's thread -------------------------------------------------------------------------------

    def _write_all(self, token: trio.lowlevel.TrioToken) -> None:
        ended, left = False, list[QueuedWrite]()
        while left or not ended:
            items, is_last = self._next_items(waits=not left)
            ended |= is_last
            runs = [*runs_of([*left, *self._begin(items)])]
            for together in runs:
                left = together
                while left:
                    started, done = time.perf_counter(), left
                    error, left = self._together(done)
                    token.run_sync_soon(self._finish, done, error, time.perf_counter() - started)
                    if together is runs[-1]:
                        break  # first take the items that were added meanwhile
            if self._failing and not items:
                self._together([QueuedWrite(nobody, work=_probe)])

    def _next_items(self, *, waits: bool) -> tuple[list[QueuedWrite], bool]:
        """Return the next items of the queue, and whether the queue is closed. Once a second while the reserved disk
        space is released, try to reserve the space again.

        waits: whether to wait for the first item. The wait has no limit, with two exceptions: while the disk fails or
        the reserved space is released, it takes at most a second. Then a test write can follow.
        """
        if self._reserve.released and time.monotonic() >= self._refill_at:
            self._refill_at = time.monotonic() + PROBE_S
            self._reserve.refill()
        wait_s = PROBE_S if self._failing or self._reserve.released else None
        return self._take(wait_s, waits=waits)

    def _begin(self, items: list[QueuedWrite]) -> list[QueuedWrite]:
        """Return the items that have not joined an earlier transaction, and mark them as started."""
        items = [item for item in items if not item.begun]
        for item in items:
            item.begun = True
            if item.submitted:
                self._first.popleft()
            elif item.own:
                self._own.popleft()
        return items

    def _together(self, items: list[QueuedWrite]) -> tuple[StoreError | None, list[QueuedWrite]]:
        """Process items that may share a transaction. Return the error of the transaction, and the items that must wait
        for another transaction (see `_transaction`)."""
        with self._using:
            try:
                self._behave(BUSY_MS, SHORT_LOG if self._reserve.released else LONG_LOG)
                if items[0].alone:
                    self._alone(items[0])
                    return None, []
                if self._full and not self._make_room():
                    return StoreFull(f"{self._path}: no space left on the disk"), []
                self._connection.execute("begin immediate")
            except Exception as error:  # any exception is caught, so that every caller gets an answer
                return self._failed(error), []
            return self._transaction(items)

    def _alone(self, item: QueuedWrite) -> None:
        assert item.alone is not None  # noqa: S101
        try:
            item.result = item.alone()
            self._written_generation += item.replaces
        except Exception as error:
            item.error = error

    # --- on the event loop or in the thread -------------------------------------------------------------------

    def _behave(self, busy_ms: int, log_pages: int) -> None:
        """Set two options of the connection. busy_ms: the longest wait for another program's lock. log_pages: the
        length at which a commit merges the write-ahead log into the database, in pages; 0 for never."""
        if self._manner != (busy_ms, log_pages):
            self._connection.execute(f"pragma busy_timeout = {busy_ms}")
            self._connection.execute(f"pragma wal_autocheckpoint = {log_pages}")
            self._manner = (busy_ms, log_pages)

    def _transaction(self, items: list[QueuedWrite]) -> tuple[StoreError | None, list[QueuedWrite]]:
        """Process items and commit the open transaction. Items that are submitted meanwhile join the transaction.

        Return the error, and the items that must wait for another transaction. The waiting items are removed from
        `items`. If there is an error, no item was committed.
        """
        connection, left = self._connection, list[QueuedWrite]()
        try:
            tx = SqliteTx(connection, self._first)
            if self._failing:  # a commit that failed may be complete in the log: overwrite it, even if no item writes
                _probe(tx)
            current = self._current(items)
            if len(current) > 1:
                left = self._each(tx, current, math.inf if current[0].submitted else BATCH_S)
                items[:] = items[: len(items) - len(left)]
            elif current and not _run(connection, tx, current[0], "rollback"):
                return None, []
            late = self._begin(list(self._first))
            items += late
            self._each(tx, self._current(late), math.inf)
            connection.execute("commit")
        except Exception as error:
            items += left
            return self._failed(error), []
        if self._failing:
            log.info("store_writable")
        self._failing = self._full = False
        return None, left

    def _each(self, tx: Tx, items: list[QueuedWrite], turn_s: float) -> list[QueuedWrite]:
        """Run items. Stop early in two cases, and return the items that were not run.

        If a login waits, the method stops after `turn_s` seconds. If the service has something to write, the method
        also stops after an item of a request.
        """
        until = time.perf_counter() + turn_s
        for number, item in enumerate(items, 1):
            self._connection.execute("savepoint item")
            _run(self._connection, tx, item, "rollback to item")
            self._connection.execute("release item")
            if tx.others_wait() and time.perf_counter() > until:
                return items[number:]
            if self._own and not (item.own or item.submitted):
                return items[number:]
        return []

    def _current(self, items: list[QueuedWrite]) -> list[QueuedWrite]:
        """Return the items that were queued after the last restore. The other items fail."""
        for item in items:
            if item.generation != self._written_generation:
                item.error = StoreError("a backup has replaced the store meanwhile: try again")
        return [item for item in items if item.error is None]

    def _failed(self, error: Exception) -> StoreError:
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("rollback")
        # SQLite reports a full disk as an I/O error if it could not extend the log's index, or if a quota is spent.
        code = primary_code(error)
        self._full = code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and not self._reserve.has_room(ROOM))
        failure = (StoreFull if self._full else StoreError)(f"{self._path}: {error}")
        if not self._failing:
            log.error("store_not_writable", error=str(failure))
        self._failing = True
        if self._full:
            self._make_room()
        return failure

    def _make_room(self) -> bool:
        """Merge the log into the database after the disk was full. Use the reserved space if necessary.

        Return whether there is room for a transaction of ROOM octets. A smaller transaction might succeed, but the
        service would then switch between ready and not ready.
        """
        self._merge_log()
        if not self._reserve.has_room(ROOM) and self._reserve.release():
            log.error("disk_reserve_released")
            self._merge_log()
        return self._reserve.has_room(ROOM)

    def _merge_log(self) -> None:
        """Merge the log into the database and free the space of the log. Do this only if the disk has room for the
        larger database. Without this room, the merge would stop half-way and use up the space that the log still needs.
        """
        with suppress(sqlite3.Error, OSError):
            size = "select page_count * page_size from pragma_page_count, pragma_page_size"
            if self._reserve.has_room(self._connection.execute(size).fetchone()[0] - self._path.stat().st_size):
                self._connection.execute("pragma wal_checkpoint(truncate)")


def _run(connection: sqlite3.Connection, tx: Tx, item: QueuedWrite, undo: str) -> bool:
    """Run one item. If the item raises an error, undo only this item and return False. Errors of the disk propagate."""
    assert item.work is not None  # noqa: S101
    try:
        item.result = item.work(tx)
    except Exception as error:
        if not connection.in_transaction or primary_code(error) in _DISK_FAILS:
            raise  # the engine has rolled back the transaction, or would do so at the next statement
        connection.execute(undo)
        item.error = as_ours(error) if isinstance(error, sqlite3.Error) else error
        return False
    return True


def _probe(tx: Tx) -> None:
    """Test with a small write whether the disk accepts writes. The write changes a value and changes it back, because
    SQLite would not write an unchanged value."""
    for step in (1, -1):
        tx.execute("update config_version set version = version + :step", step=step)
