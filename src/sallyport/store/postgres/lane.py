"""A lane: one connection that writes, with its thread and its queue."""

import secrets
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, TypeVar, cast

import psycopg
import structlog
import trio

from sallyport.base.actor import acting
from sallyport.base.errors import StoreError
from sallyport.metrics import StoreMetrics
from sallyport.store.items import Item, nobody, runs_of
from sallyport.store.model import Done, Work
from sallyport.store.postgres.connection import Connection, Cursor, as_ours, connect
from sallyport.store.postgres.transaction import Inserts, PostgresTx
from sallyport.store.slices import BATCH_S

T = TypeVar("T")

MOST: Final = 60
"""Maximum items of a transaction. Each has a savepoint, and PostgreSQL becomes slow above 64 savepoints."""
PROBE_S: Final = 1.0
SETTLE_S: Final = 5.0
"""Time for which the service tries to look up a commit without an answer. After it, the callers get an error."""
CONFIGURATION: Final = 0x53414C4C59
"""The advisory lock of a transaction that may change the configuration."""

log = structlog.get_logger()


@dataclass(slots=True)
class Restores:
    """Numbers of times that all rows were replaced. seen: the number that a lane has read. accepted: the number up to
    which the callers' caches are reloaded."""

    seen: int = 0
    accepted: int = 0


class Lane:
    """Writes over one connection. name: key of the lane's row in `lanes`. alone: at most one node at a time has a
    transaction in this lane."""

    def __init__(
        self, url: str, name: str, inserts: Inserts, metrics: StoreMetrics, restores: Restores, *, alone: bool
    ) -> None:
        self._url = url
        self._name = name
        self._inserts = inserts
        self._metrics = metrics
        self._restores = restores
        self._alone = alone
        self._connection: Connection | None = None
        self._batch = secrets.randbits(62)  # differs from the numbers of an earlier process
        self._failing = False
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._own: deque[Item] = deque()  # queued items of the service that have not started
        self._stopped = False
        self.changes = 0
        """The number of commits."""
        self.queued = self._queue.qsize

    @property
    def ready(self) -> bool:
        """Return whether the last write was kept."""
        return not self._failing

    @property
    def server_process(self) -> int:
        """Return the id of the server's process for the connection; 0: there is no connection."""
        connection = self._connection
        return 0 if connection is None or connection.closed else connection.info.backend_pid

    async def write(self, work: Work[T]) -> T:
        """See Store.write."""
        context = copy_context()
        item = Item(nobody, work=lambda tx: context.run(work, tx), own=acting().kind == "service")
        return cast(T, await self._wait(item))

    async def _wait(self, item: Item) -> object:
        await trio.lowlevel.checkpoint_if_cancelled()  # if the caller is cancelled, nothing starts
        finished = trio.Event()
        item.done = lambda _result, _error: finished.set()
        self._put(item)
        with trio.CancelScope(shield=True):  # the caller must learn whether its write was kept
            await finished.wait()
        if item.error is not None:
            raise item.error
        return item.result

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """See Store.submit."""
        self._put(Item(cast("Done[object]", done), work=work, submitted=True, own=True))

    async def exclusive(self, work: Callable[[Connection], None]) -> None:
        """Replace the rows: run `work` in a transaction of its own. Items that were queued before, or until the new
        generation is accepted, depend on old rows and are refused."""
        await self._wait(Item(nobody, alone=lambda: work(self._connected())))

    def _put(self, item: Item) -> None:
        if self._stopped:
            raise StoreError("the store is closed")
        item.generation = self._restores.accepted
        if item.own:
            self._own.append(item)
        self._queue.put(item)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process the writes until cancelled, then the queued ones."""
        thread = Thread(target=self._write_all, args=(trio.lowlevel.current_trio_token(),), name=f"lane {self._name}")
        thread.start()
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self._stopped = True
            self._queue.put(None)
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(thread.join)

    def _finish(self, items: list[Item], error: StoreError | None, seconds: float) -> None:
        """Pass the results to the callers, on the event loop."""
        self._metrics.commits.seconds.observe(seconds)
        self._metrics.commits.callers.observe(len(items))
        if error is None:
            self.changes += 1
        else:
            self._metrics.errors.labels("commit").inc()
        for item in items:
            item.error = error or item.error
            try:
                item.done(item.result, item.error)
            except Exception:
                log.exception("store_callback_failed")

    # --- in the thread ----------------------------------------------------------------------------------------

    def _write_all(self, token: trio.lowlevel.TrioToken) -> None:
        """Write the items of the queue until it ends."""
        ended, left = False, list[Item]()
        while left or not ended:
            items, is_last = self._take(waits=not left)
            ended |= is_last
            for item in items:
                if item.own:
                    self._own.popleft()
            left += items
            if not left:
                self._probe()
                continue
            together = next(runs_of(left))[:MOST]
            started = time.perf_counter()
            error, done = self._transaction(together)
            ids = {id(item) for item in done}
            left = [item for item in left if id(item) not in ids]
            token.run_sync_soon(self._finish, done, error, time.perf_counter() - started)

    def _take(self, *, waits: bool) -> tuple[list[Item], bool]:
        """Return the items of the queue, and whether the queue has ended. waits: wait up to a second for the first."""
        items: list[Item] = []
        try:
            item = self._queue.get(waits, timeout=PROBE_S)
            while item is not None:
                items.append(item)
                item = self._queue.get_nowait()
        except Empty:
            return items, False
        return items, True

    def _transaction(self, items: list[Item]) -> tuple[StoreError | None, list[Item]]:
        """Write items in one transaction. Return the error of the whole transaction, and the items that are
        finished."""
        done = items
        try:
            connection = self._connected()
            cursor = connection.cursor()
            tx = PostgresTx(cursor, self._inserts, self._own)
            self._begin(cursor)
            done = self._exclusive(items[0]) if items and items[0].alone else self._each(cursor, tx, items)
            self._commit(connection, cursor)
            if done and done[0].alone and not done[0].error:
                self._restores.seen += 1
        except Exception as error:
            return self._failed(error), done
        if self._failing:
            log.info("store_writable")
        self._failing = False
        return None, done

    def _begin(self, cursor: Cursor) -> None:
        """Begin a transaction. A restore waits for the end of this transaction, and a later transaction waits for the
        end of the restore."""
        lock = f"select pg_advisory_xact_lock({CONFIGURATION}); " if self._alone else ""
        cursor.execute(f"begin; {lock}select number from restores for share".encode())
        cursor.set_result(-1)
        self._restores.seen = int(str(cursor.fetchall()[0][0]))

    def _each(self, cursor: Cursor, tx: PostgresTx, items: list[Item]) -> list[Item]:
        """Run items, each in a savepoint, until the time is over and an answer waits. Return the items that have
        run."""
        until = time.perf_counter() + BATCH_S
        for number, item in enumerate(items, 1):
            if item.generation != self._restores.seen:
                item.error = StoreError("the store was replaced meanwhile")
                continue
            cursor.execute("savepoint item")
            try:
                assert item.work is not None  # noqa: S101
                item.result = item.work(tx)
                cursor.execute("release savepoint item")
            except Exception as error:
                if cursor.connection.closed:
                    raise
                cursor.execute("rollback to savepoint item; release savepoint item")
                item.error = as_ours(error) if isinstance(error, psycopg.Error) else error
            if tx.others_wait() and time.perf_counter() > until:
                return items[:number]
        return items

    def _exclusive(self, item: Item) -> list[Item]:
        """Run work that replaces the rows. If it raises, it is undone."""
        assert item.alone is not None  # noqa: S101
        connection = self._connected()
        connection.execute("savepoint item")
        try:
            item.result = item.alone()
        except Exception as error:
            if connection.closed:
                raise
            connection.execute("rollback to savepoint item")
            item.error = as_ours(error) if isinstance(error, psycopg.Error) else error
        return [item]

    def _commit(self, connection: Connection, cursor: Cursor) -> None:
        self._batch += 1
        try:
            cursor.execute(f"update lanes set batch = {self._batch} where name = '{self._name}'; commit")
        except psycopg.OperationalError:
            if not connection.closed or not self._was_kept():
                raise

    def _was_kept(self) -> bool:
        """After the connection was lost, return whether the last transaction was committed. psycopg.Error, StoreError:
        the server does not answer."""
        until = time.monotonic() + SETTLE_S
        while True:
            try:
                # `for update` waits for the end of the lost connection's transaction.
                row = (
                    self._connected()
                    .execute(f"select batch from lanes where name = '{self._name}' for update")
                    .fetchone()
                )
                return row is not None and row[0] == self._batch
            except (psycopg.Error, StoreError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def connect(self) -> None:
        """Open the connection. Raises StoreError."""
        self._connected()

    def _connected(self) -> Connection:
        """Return the connection; open it if there is none. Raises StoreError."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url)
            self._connection.execute(
                f"insert into lanes (name, batch) values ('{self._name}', 0) on conflict (name) do nothing"
            )
        return self._connection

    def _failed(self, error: Exception) -> StoreError:
        ours = as_ours(error) if isinstance(error, psycopg.Error) else error
        failure = ours if isinstance(ours, StoreError) else StoreError(str(ours))
        if not self._failing:
            log.error("store_not_writable", error=str(failure))
        self._failing = True
        if self._connection is not None and not self._connection.closed:
            with suppress(psycopg.Error):
                self._connection.execute("rollback")
        return failure

    def _probe(self) -> None:
        """Check the connection; after a failure, try a write."""
        try:
            if not self._failing and self._connected().execute("select pg_is_in_recovery()").fetchone() == (0,):
                return
        except (psycopg.Error, StoreError) as error:
            self._failed(error)
        self._transaction([])

    def disconnect(self) -> None:
        """Close the connection. Call it after `run` has ended."""
        if self._connection is not None:
            self._connection.close()
