"""A connection that writes, with a thread and a queue of its own."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import uniform
from threading import Event, Thread, Timer
from typing import Final, TypeVar, cast
from zlib import crc32

import psycopg
import structlog
import trio

from sallyport.base.errors import StoreError
from sallyport.metrics import StoreMetrics
from sallyport.store.items import QueuedWrite, QueuedWriter, nobody, runs_of
from sallyport.store.model import Done, Work
from sallyport.store.postgres.connection import Connection, Cursor, as_ours
from sallyport.store.postgres.dialer import Dialer
from sallyport.store.postgres.link import Link
from sallyport.store.postgres.transaction import Inserts, PostgresTx
from sallyport.store.slices import BATCH_S

T = TypeVar("T")

MAX_ITEMS: Final = 60
"""Maximum number of items in a transaction. Each item has a savepoint, and PostgreSQL becomes slow above 64
savepoints."""
PROBE_S: Final = 0.25
"""Time in seconds without a write after which the connection is tested."""
START_S: Final = 10
"""Time limit in seconds for the first write when the service starts."""
STOP_S: Final = 3.0
"""Time limit in seconds for the last writes when the service stops."""
CONFIGURATION: Final = 0x53414C4C59
"""The advisory lock that a transaction takes if it may change the configuration."""
REPLACEMENT: Final = CONFIGURATION + 2
"""The advisory lock that a restore takes exclusively, and that every other transaction takes shared."""
ALONE_IDLE_S: Final = 60
"""Time for which a restore may send no statement, because it reads the backup. See IDLE_S for other transactions."""
SHARES: Final = 16
"""Number of rows into which a total is split if each login changes it (see `store.counters`)."""
_AGAIN: Final = {"40P01", "40001"}
"""The error codes of a deadlock with another node, and of a transaction that could not be serialized."""
_PAUSES_S: Final = (0.01, 0.03, 0.1, 0.3, 0.0)
"""Pause in seconds after each failed try of a transaction. After the last try there is no pause."""

log = structlog.get_logger()


@dataclass(slots=True)
class Restores:
    """Counters of restores. seen: the number of restores that the writer knows. accepted: the value of `seen` when the
    caches were last reloaded."""

    seen: int
    accepted: int


class WriterConnection(QueuedWriter):
    """The writes over one connection.

    name: the key of the connection's row in `lanes`. alone: whether only one node at a time may have a transaction over
    such a connection.
    """

    def __init__(
        self, dialer: Dialer, name: str, inserts: Inserts, metrics: StoreMetrics, restores: Restores, *, alone: bool
    ) -> None:
        super().__init__(f"store writer {name}", metrics)
        self._link = Link(dialer, name)
        self._share = "" if alone else f"@{crc32(name.encode()) % SHARES}"
        self._inserts = inserts
        self._restores = restores
        self._alone = alone
        self._since: float | None = None  # the start of the current transaction or probe

    @property
    def in_flight_s(self) -> float:
        """Return how long the current transaction has waited for the server, in seconds. Return 0 without a
        transaction."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def server_process(self) -> int:
        """Return the id of the server process of the connection. Return 0 if there is no connection."""
        return self._link.server_process

    def cut(self) -> None:
        """End the connection, because the server does not answer. The current transaction fails."""
        self._link.cut()

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """Run `work` without a waiting task (see `Store.submit`)."""
        self._put(QueuedWrite(cast("Done[object]", done), work=work, submitted=True, own=True))

    async def exclusive(self, work: Callable[[Connection], None]) -> None:
        """Run `work` in a transaction of its own, to replace all rows. Other writes that are queued before the caches
        have been reloaded fail, because they may depend on old rows."""
        await self._wait(QueuedWrite(nobody, alone=lambda: work(self._link.connected())))

    def _put(self, item: QueuedWrite) -> None:
        if self._stopped:
            raise StoreError("the store is closed")
        item.generation = self._restores.accepted
        if item.own:
            self._own.append(item)
        self._queue.put(item)

    async def _join(self, thread: Thread) -> None:
        await trio.to_thread.run_sync(thread.join, STOP_S)
        while thread.is_alive():
            self.cut()
            await trio.to_thread.run_sync(thread.join, STOP_S)

    # --- in the thread ----------------------------------------------------------------------------------------

    def _write_all(self, token: trio.lowlevel.TrioToken) -> None:
        ended, left = False, list[QueuedWrite]()
        while left or not ended:
            items, is_last = self._take(PROBE_S, waits=not left)
            ended |= is_last
            for item in items:
                if item.own:
                    self._own.popleft()
            left += items
            if not left:
                with self._timed():
                    self._probe()
                continue
            together = next(runs_of(left))[:MAX_ITEMS]
            started = time.perf_counter()
            with self._timed(not together[0].alone):
                error, done = self._transaction(together)
            ids = {id(item) for item in done}
            left = [item for item in left if id(item) not in ids]
            token.run_sync_soon(self._report, done, error, time.perf_counter() - started)

    @contextmanager
    def _timed(self, is_timed: bool = True) -> Iterator[None]:
        if is_timed:
            self._since = time.monotonic()
        try:
            yield
        finally:
            self._since = None

    def _transaction(self, items: list[QueuedWrite]) -> tuple[StoreError | None, list[QueuedWrite]]:
        """Process items in one transaction. After a deadlock, repeat the transaction. Return the error of the
        transaction or None, and the items that are done."""
        for pause_s in _PAUSES_S:
            for item in items:
                item.error = None
            try:
                done = self._attempt(items)
                break
            except Exception as error:
                self._link.roll_back()
                if getattr(error, "sqlstate", None) not in _AGAIN or not pause_s or any(item.alone for item in items):
                    return self._failed(error), items
                time.sleep(uniform(0.5, 1) * pause_s)  # noqa: S311  no secret
        if self._failing:
            log.info("store_writable")
        self._failing = False
        return None, done

    def _attempt(self, items: list[QueuedWrite]) -> list[QueuedWrite]:
        connection = self._link.connected()
        cursor = connection.cursor()
        tx = PostgresTx(cursor, self._inserts, self._own, share=self._share)
        number = self._begin(cursor)
        if len(items) == 1:
            done = items
            if not self._run(tx, items[0], connection):
                cursor.execute("rollback")
                return done
        else:
            done = self._each(cursor, tx, items)
        self._link.commit(cursor)
        if done and done[0].alone:
            self._restores.seen = number + 1  # another connection may already have read this number
        return done

    def _begin(self, cursor: Cursor) -> int:
        """Begin a transaction, and return the number of restores. If a restore is running, the transaction waits for
        its end. A later restore waits for the end of the transaction."""
        lock = f"select pg_advisory_xact_lock({CONFIGURATION}); " if self._alone else ""
        shared = f"select pg_advisory_xact_lock_shared({REPLACEMENT}); "
        cursor.execute(f"begin; {lock}{shared}select number from restores".encode())
        cursor.set_result(-1)
        number = self._restores.seen = int(str(cursor.fetchall()[0][0]))
        return number

    def _run(self, tx: PostgresTx, item: QueuedWrite, connection: Connection) -> bool:
        """Run one item. Return False if its changes must be undone. Raises an error if the whole transaction is
        lost."""
        if item.generation != self._restores.seen:
            item.error = StoreError("a backup has replaced the store meanwhile: try again")
            return False
        try:
            if item.alone:
                connection.execute(f"set local idle_in_transaction_session_timeout = '{ALONE_IDLE_S}s'")
                connection.execute(f"select pg_advisory_xact_lock({REPLACEMENT})")
                item.result = item.alone()
            else:
                assert item.work is not None  # noqa: S101
                item.result = item.work(tx)
        except Exception as error:
            if connection.closed or getattr(error, "sqlstate", None) in _AGAIN:
                raise
            item.error = as_ours(error) if isinstance(error, psycopg.Error) else error
            return False
        return True

    def _each(self, cursor: Cursor, tx: PostgresTx, items: list[QueuedWrite]) -> list[QueuedWrite]:
        """Run items, each in a savepoint, and return the items that were run. Stop after BATCH_S seconds if a login
        waits."""
        until = time.perf_counter() + BATCH_S
        for number, item in enumerate(items, 1):
            cursor.execute("savepoint item")
            if self._run(tx, item, cursor.connection):
                cursor.execute("release savepoint item")
            else:
                cursor.execute("rollback to savepoint item; release savepoint item")
            if tx.others_wait() and time.perf_counter() > until:
                return items[:number]
        return items

    def connect(self) -> None:
        """Open the connection. Raises StoreError if the server cannot be reached, or if it does not commit a write
        within START_S."""
        late = Event()

        def give_up() -> None:
            late.set()
            self._link.cut()

        timer = Timer(START_S, give_up)
        timer.start()
        try:
            self._link.connected()
        except psycopg.Error as error:
            if late.is_set():
                raise StoreError(
                    f"the database has not committed a write for {START_S} s: check that its synchronous standby "
                    "servers are connected (pg_stat_replication)"
                ) from error
            raise as_ours(error) from error
        finally:
            timer.cancel()

    def _failed(self, error: Exception) -> StoreError:
        ours = as_ours(error) if isinstance(error, psycopg.Error) else error
        failure = ours if isinstance(ours, StoreError) else StoreError(str(ours))
        if not self._failing:
            log.error("store_not_writable", error=str(failure))
        self._failing = True
        return failure

    def _probe(self) -> None:
        """Test the connection. After a failure, test a write."""
        try:
            if not self._failing and self._link.connected().execute("select pg_is_in_recovery()").fetchone() == (0,):
                return
        except (psycopg.Error, StoreError) as error:
            self._failed(error)
        self._transaction([])

    def disconnect(self) -> None:
        """Close the connection. Call this method after `run` has ended."""
        self._link.close()
