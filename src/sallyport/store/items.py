"""The queue of a writer: its items, their order, and how callers wait for them. An item is the work of one caller."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar, cast

import structlog
import trio

from sallyport.base.actor import acting
from sallyport.base.errors import StoreError
from sallyport.metrics import StoreMetrics
from sallyport.store.model import Done, Tx, Work

T = TypeVar("T")

MAX_BATCH = 500

log = structlog.get_logger()


@dataclass(slots=True)
class QueuedWrite:
    """An item of the writer's queue: the work of one caller.

    work: a function that runs in a transaction. alone: a function that runs outside of a transaction. An item has only
    one of these two functions. own: whether the caller is the service itself, and not a request.
    """

    done: Done[object]
    work: Callable[[Tx], object] | None = None
    submitted: bool = False
    own: bool = False
    begun: bool = False
    alone: Callable[[], object] | None = None
    replaces: bool = False
    generation: int = 0
    result: object = None
    error: BaseException | None = None


def nobody(_result: object, _error: BaseException | None) -> None:
    """Do nothing. This is the callback of an item if no caller waits for its result."""


def finish(items: list[QueuedWrite], error: StoreError | None) -> None:
    """Pass the results to the callers. This runs on the event loop. error: the error of the transaction, or None.

    The items lose their functions, because the writer's thread keeps them until its next transaction, and a function
    may contain a login with its password.
    """
    for item in items:
        item.error = error or item.error
        done, item.done, item.work, item.alone = item.done, nobody, None, None
        try:
            done(item.result, item.error)
        except Exception:
            log.exception("store_callback_failed")


def runs_of(items: list[QueuedWrite]) -> Iterator[list[QueuedWrite]]:
    """Split the queue into lists of items, in the order of their transactions.

    All items of one list may run in the same transaction. Submitted items come first, then the items of the service,
    then the items of requests. An item with `alone` gets a list of its own.
    """
    for alone, group in groupby(items, key=lambda item: item.alone is not None):
        if alone:
            yield from ([item] for item in group)
        else:
            first, own, then = list[QueuedWrite](), list[QueuedWrite](), list[QueuedWrite]()
            for item in group:
                (first if item.submitted else own if item.own else then).append(item)
            yield from filter(None, (first, own, then))


class QueuedWriter(ABC):
    """A writer with a queue and a thread of its own. Writes may be submitted only while `run` is running.

    name: the name of the thread.
    """

    def __init__(self, name: str, metrics: StoreMetrics) -> None:
        self._thread_name = name
        self._metrics = metrics
        self._failing = False
        self._queue: SimpleQueue[QueuedWrite | None] = SimpleQueue()
        self._own: deque[QueuedWrite] = deque()  # items of the service that have not started
        self._stopped = False
        self.changes = 0
        """The number of commits (see `Store.changes`)."""
        self.queued = self._queue.qsize

    @property
    def ready(self) -> bool:
        """Return whether the last write was committed."""
        return not self._failing

    async def write(self, work: Work[T]) -> T:
        """Run `work`, and return when its changes are on disk (see `Store.write`)."""
        context = copy_context()  # the caller's context variables, which the writer's thread uses
        own = acting().kind == "service"
        return cast(T, await self._wait(QueuedWrite(nobody, work=lambda tx: context.run(work, tx), own=own)))

    async def _wait(self, item: QueuedWrite) -> object:
        """Put an item into the queue, and return its result."""
        await trio.lowlevel.checkpoint_if_cancelled()  # a cancelled caller starts no write
        finished = trio.Event()
        item.done = lambda _result, _error: finished.set()
        self._put(item)
        with trio.CancelScope(shield=True):  # the caller must learn whether its write was committed
            await finished.wait()
        if item.error is not None:
            raise item.error
        return item.result

    @abstractmethod
    def _put(self, item: QueuedWrite) -> None:
        """Put an item into the queue. Raises StoreError if the writer has stopped."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process the queue of writes until cancelled. Then process the writes that are left in the queue."""
        thread = Thread(target=self._write_all, args=(trio.lowlevel.current_trio_token(),), name=self._thread_name)
        thread.start()
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self._stopped = True
            self._queue.put(None)
            with trio.CancelScope(shield=True):
                await self._join(thread)

    async def _join(self, thread: Thread) -> None:
        """Wait for the end of the thread."""
        await trio.to_thread.run_sync(thread.join)

    @abstractmethod
    def _write_all(self, token: trio.lowlevel.TrioToken) -> None:
        """Process the queue in the writer's thread until the queue is closed."""

    def _take(self, wait_s: float | None, *, waits: bool) -> tuple[list[QueuedWrite], bool]:
        """Return the next items of the queue, at most MAX_BATCH, and whether the queue is closed.

        waits: whether to wait for the first item. wait_s: the longest wait in seconds, or None for no limit.
        """
        items: list[QueuedWrite] = []
        try:
            item = self._queue.get(waits, timeout=wait_s)
            while item is not None:
                items.append(item)
                if len(items) == MAX_BATCH:
                    return items, False
                item = self._queue.get_nowait()
        except Empty:
            return items, False
        return items, True

    def _report(self, items: list[QueuedWrite], error: StoreError | None, seconds: float) -> None:
        """Count a transaction, and pass the results to the callers. This runs on the event loop."""
        self._metrics.commits.seconds.observe(seconds)
        self._metrics.commits.callers.observe(len(items))
        if error is None:
            self.changes += 1
        else:
            self._metrics.errors.labels("commit").inc()
        finish(items, error)
