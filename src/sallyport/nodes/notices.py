"""Notices between nodes, for example about failures. Each node counts such events in memory, but they must be counted
over all nodes.

A node writes its notices in batches, a few times a second. The other nodes read the notices when PostgreSQL announces
them. So a count is exact after about a third of a second, and no login waits for another node. When a node starts, it
reads the notices of the last minutes, including its own. So its counts survive a restart.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog
import trio

from sallyport.base.errors import StoreError
from sallyport.base.wire import JSON
from sallyport.nodes import repo
from sallyport.store.foreign import NOTICES, ForeignChange
from sallyport.store.model import Engine

SEND_S: Final = 0.1
READ_S: Final = 1.0
AT_ONCE: Final = 2000
MAX_WAITING: Final = 100_000
"""Maximum number of notices that wait for the database. If there are more, the oldest notices are dropped."""

Values = Sequence[JSON]
Apply = Callable[[Values, int], None]
"""A function that counts a notice of another node. It gets the values and the age of the notice in microseconds."""

log = structlog.get_logger()


class Notices(Protocol):
    """The interface for sending notices to other nodes, and for receiving their notices.

    is_shared: whether there may be other nodes.
    """

    is_shared: bool

    def send(self, kind: str, *values: JSON) -> None:
        """Queue a notice for the other nodes. This method may be called in any thread."""

    def receive(self, kind: str, apply: Apply) -> None:
        """Register the function that is called for each notice of a kind from other nodes."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send and receive notices until cancelled. `task_status.started` is called after the first read of notices."""


class NoNotices:
    """The implementation for a single node. Notices are dropped."""

    is_shared = False

    def send(self, kind: str, *values: JSON) -> None:
        """Do nothing."""

    def receive(self, kind: str, apply: Apply) -> None:
        """Do nothing."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do nothing."""
        task_status.started()


class SharedNotices:
    """The implementation for several nodes, with the table `notices` of PostgreSQL. node_id: a function that returns
    the id of this node. It is called after the node has joined."""

    is_shared = True

    def __init__(self, store: Engine, node_id: Callable[[], int]) -> None:
        self._store = store
        self._node_id = node_id
        self._waiting = deque[tuple[str, str]](maxlen=MAX_WAITING)
        self._apply: dict[str, list[Apply]] = {}
        self._read: dict[int, int] = {}  # id of the last notice that was read from each node
        self._announced = trio.Event()
        store.on_foreign_change(self._changed)

    def send(self, kind: str, *values: JSON) -> None:
        self._waiting.append((kind, json.dumps(values)))

    def receive(self, kind: str, apply: Apply) -> None:
        self._apply.setdefault(kind, []).append(apply)

    def _changed(self, change: ForeignChange) -> None:
        if change.kind in ("", NOTICES):
            self._announced.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send and receive notices until cancelled. Raises StoreError if the first read fails."""
        await self._receive(own=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_all)
            nursery.start_soon(self._receive_all)
            task_status.started()

    async def _send_all(self) -> None:
        while True:
            await trio.sleep(SEND_S)
            if self._waiting:
                taken = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
                try:
                    await self._store.write_aside(lambda tx: repo.send(tx, self._node_id(), taken))  # noqa: B023
                except StoreError as error:
                    self._waiting.extendleft(reversed(taken))
                    log.debug("notices_not_sent", count=len(self._waiting), error=str(error))
                    await trio.sleep(READ_S)

    async def _receive_all(self) -> None:
        while True:
            with trio.move_on_after(READ_S):
                await self._announced.wait()
            self._announced = trio.Event()
            try:
                await self._receive(own=False)
            except StoreError as error:
                log.debug("notices_not_read", error=str(error))

    async def _receive(self, *, own: bool) -> None:
        """Read and count new notices. own: whether the notices of this node are counted too, which an earlier process
        of this node has written."""
        but = 0 if own else self._node_id()
        while True:
            rows = await self._store.read(lambda tx: repo.notices(tx, self._read, but, AT_ONCE))
            for notice in rows:
                self._read[notice.node_id] = notice.id
                for apply in self._apply.get(notice.kind, ()):
                    apply(json.loads(notice.content), notice.age_us)
            if len(rows) < AT_ONCE:
                return
