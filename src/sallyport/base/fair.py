"""Fair queues and limits: an owner (such as a tenant) with many requests delays only its own requests.

FairQueue    a queue that serves its owners in turn
FairShares   a queue with two levels (owners, and the sources of each owner) and a limit
FairLimiter  a limit of concurrent calls; waiting owners are admitted in turn
LoopTurns    a limit of work in one pass of the event loop; waiting tenants continue in turn
in_parts     a long list of short work, during which other tasks run
PerMinute    a limit of calls per minute for each owner
Room         a limit of pending requests, with a share for each client and each tenant
"""

import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import TooMany

LONG_S: Final = 0.005
"""Maximum CPU time, in seconds, after which no more tasks may continue in a pass of the event loop."""

PART_S: Final = 0.002
"""CPU time, in seconds, after which `in_parts` lets other tasks run."""

OF_A_TENANT: Final = 7
"""Maximum number of slots of a tenant in a `Room`, as a multiple of the free slots."""

OwnerT = TypeVar("OwnerT", bound=Hashable)
SourceT = TypeVar("SourceT", bound=Hashable)
T = TypeVar("T")
ResultT = TypeVar("ResultT")


async def in_parts(
    work: Callable[[T], ResultT], items: Iterable[T], clock: Callable[[], float] = time.thread_time
) -> list[ResultT]:
    """Return work(item) for each item. After PART_S seconds of CPU time, other tasks run, so that a login does not wait
    for the whole list. clock: returns the CPU time in seconds."""
    found, until = list[ResultT](), clock() + PART_S
    for item in items:
        found.append(work(item))
        if clock() >= until:
            await trio.lowlevel.checkpoint()
            until = clock() + PART_S
    return found


class PerMinute(Generic[OwnerT]):
    """A limit of calls per minute for each owner.

    most: the maximum number of calls. what: a plural noun for the calls, for the error message. tell: a function that
    reports each admitted call to the other nodes; the other nodes then call `count`.
    """

    def __init__(
        self, most: int, what: str, clock: Clock, *, tell: Callable[[OwnerT], None] = lambda _owner: None
    ) -> None:
        self._most = most
        self._tell = tell
        self._what = what
        self._clock = clock
        self._lately: dict[OwnerT, deque[int]] = {}

    def admit(self, owner: OwnerT) -> None:
        """Count a call of an owner. Raises TooMany if the owner has reached the limit."""
        now = self._clock()
        lately = self._lately.setdefault(owner, deque())
        while lately and lately[0] <= now - 60 * SECOND:
            lately.popleft()
        if len(lately) >= self._most:
            raise TooMany(f"the limit of {self._most} {self._what} in a minute is reached: try again later")
        lately.append(now)
        self._tell(owner)

    def count(self, owner: OwnerT, at: int) -> None:
        """Count a call that another node has admitted. at: the time of the call, in microseconds."""
        self._lately.setdefault(owner, deque()).append(at)


class FairQueue(Generic[OwnerT, T]):
    """A queue that serves its owners in turn. The items of one owner keep their order."""

    __slots__ = ("_by_owner", "_size")

    def __init__(self) -> None:
        self._by_owner: OrderedDict[OwnerT, deque[T]] = OrderedDict()  # in the order of their turns
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, owner: OwnerT, item: T) -> None:
        """Add an item behind the owner's other items. If the owner has no items in the queue, the owner's turn comes
        after the turns of all other owners."""
        own = self._by_owner.get(owner)
        if own is None:
            self._by_owner[owner] = own = deque()
        own.append(item)
        self._size += 1

    def take(self) -> T:
        """Remove and return the first item of the owner whose turn it is. Raises KeyError if the queue is empty."""
        owner, own = self._by_owner.popitem(last=False)
        if len(own) > 1:
            self._by_owner[owner] = own
        self._size -= 1
        return own.popleft()

    def drain(self) -> Iterator[T]:
        """Remove and yield the items in turn, also those that are added meanwhile. An item that was not yielded stays
        in the queue."""
        by_owner = self._by_owner
        while by_owner:
            owner, own = by_owner.popitem(last=False)
            if len(own) > 1:
                by_owner[owner] = own
            self._size -= 1
            yield own.popleft()


class FairShares(Generic[OwnerT, SourceT, T]):
    """A queue that serves its owners in turn, and the sources of each owner in turn.

    limit: the number of items at which the queue is full. An owner's equal share is the limit, divided by the number of
    owners in the queue. If the queue is full, an owner can still add items until it has used its equal share. So the
    queue can hold more items than the limit.
    """

    __slots__ = ("_by_owner", "_limit", "_size")

    def __init__(self, limit: float = math.inf) -> None:
        self._by_owner: OrderedDict[OwnerT, FairQueue[SourceT, T]] = OrderedDict()  # in the order of their turns
        self._limit = limit
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, owner: OwnerT, source: SourceT, item: T) -> bool:
        """Add an item behind the other items of the same source. Return False if the item was not added, because the
        queue is full and the owner has used its equal share."""
        own = self._by_owner.get(owner)
        if own is None:
            self._by_owner[owner] = own = FairQueue()
        elif self._size >= self._limit and len(own) * len(self._by_owner) >= self._limit:
            return False
        own.put(source, item)
        self._size += 1
        return True

    def take(self) -> T:
        """Remove and return the item whose turn it is. Raises KeyError if the queue is empty."""
        owner, own = self._by_owner.popitem(last=False)
        item = own.take()
        if own:
            self._by_owner[owner] = own
        self._size -= 1
        return item


@dataclass(slots=True)
class _Waiter:
    admitted: trio.Event = field(default_factory=trio.Event)
    gone: bool = False


class FairLimiter(Generic[OwnerT]):
    """A limit of concurrent calls. Waiting owners are admitted in turn. The calls of one owner are admitted in order of
    arrival."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: FairQueue[OwnerT, _Waiter] = FairQueue()

    @asynccontextmanager
    async def slot(self, owner: OwnerT) -> AsyncIterator[None]:
        """Wait until the owner is admitted, and occupy one slot of the limit during the block."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(owner)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, owner: OwnerT) -> None:
        waiter = _Waiter()
        self._waiting.put(owner, waiter)
        try:
            await waiter.admitted.wait()
        except trio.Cancelled:
            waiter.gone = True
            raise

    def _release(self) -> None:
        while self._waiting:
            waiter = self._waiting.take()
            if not waiter.gone:
                return waiter.admitted.set()
        self._free += 1
        return None


@dataclass(slots=True, eq=False)
class _Parked:
    task: trio.lowlevel.Task | None


class LoopTurns:
    """A limit of the tasks that may continue in one pass of the event loop. Waiting tenants take turns.

    Without this limit, a thousand answers that arrive at once would be handled in one pass, and a login would wait for
    all of them. A pass admits at most `most` tasks, and admits no more tasks after LONG_S seconds of CPU time. One
    answer of a hostile server can take 20 ms. So after a pass that took longer than LONG_S, only one task is admitted
    in each of the next two passes.
    """

    def __init__(self, most: int) -> None:
        self._loop = _Pass(most)

    def for_tenant(self) -> "LoopTurns":
        """Return an object for another tenant. All tenants share the limit."""
        other = LoopTurns.__new__(LoopTurns)
        other._loop = self._loop
        return other

    async def take(self) -> None:
        """Wait until the calling task may continue, in this pass of the event loop or a later one."""
        loop = self._loop
        if loop.admits():
            loop.left -= 1
            return
        parked = _Parked(trio.lowlevel.current_task())
        loop.waiting.put(self, parked)

        def give_up(_: object) -> trio.lowlevel.Abort:
            parked.task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(give_up)


class _Pass:
    """The current pass of the event loop, which all tenants share. left: the number of tasks that may still
    continue."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.left = most
        self.waiting: FairQueue[LoopTurns, _Parked] = FairQueue()
        self._ends = False
        self._ending: trio.lowlevel.Task | None = None
        self._began = 0.0
        self._was_long = False

    def admits(self) -> bool:
        """Return whether another task may continue in this pass."""
        now = time.thread_time()
        if not self._ends:
            self._began = now
            self._ends = True
            if self._ending is None:
                trio.lowlevel.spawn_system_task(self._end_passes)
            else:
                trio.lowlevel.reschedule(self._ending)
        return self.left > 0 and not self.waiting and now < self._began + LONG_S

    async def _end_passes(self) -> None:
        """End this pass and each later one in which a task continues. A task that is rescheduled runs in the next pass.
        `run_sync_soon` would do the same, but with five system calls."""
        try:
            while True:
                self._end()
                if self._ends:
                    await trio.lowlevel.checkpoint()
                else:
                    self._ending = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)
        finally:
            self._ending, self._ends = None, False

    def _end(self) -> None:
        now = time.thread_time()
        was_long, self._was_long = self._was_long, now >= self._began + LONG_S
        # A long pass limits the next two passes, because trio may run this before or after the tasks of a pass.
        self.left = 1 if self._was_long or was_long else self._most
        self._began, self._ends = now, False
        while self.left and self.waiting:
            task = self.waiting.take().task
            if task is not None:
                trio.lowlevel.reschedule(task)
                self.left -= 1
                self._ends = True


class Room:
    """A limited number of slots for requests, with a fair share for each client and each tenant. free: the number of
    free slots.

    A client may hold at most as many slots as are free (dynamic threshold, as in the shared buffers of switches).

        one client that floods        holds at most a half; a half remains free
        k clients that flood          hold 1/(k+1) each, after their first requests have ended; 1/(k+1) remains free
        a client that holds nothing   is refused only if no slot is free

    So the other clients always find free slots, and yet a single client may use half of all slots.

    A tenant can create any number of clients. Therefore all its clients together may hold at most seven times as many
    slots as are free. So at most seven eighths of all slots go to one tenant, and one eighth remains free.
    """

    __slots__ = ("_held", "_held_by_tenant", "free", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.free = limit
        # only clients that hold a slot are stored, because a tenant may add and delete any number of clients
        self._held: dict[Hashable, int] = {}
        self._held_by_tenant: dict[int, int] = {}

    def resize(self, limit: int) -> None:
        """Change the number of slots. If more are held than that, a slot is free only after enough have ended."""
        self.free += limit - self.limit
        self.limit = limit

    @property
    def clients(self) -> int:
        """The number of clients that hold a slot."""
        return len(self._held)

    def take(self, client_id: Hashable, tenant_id: int) -> bool:
        """Take a slot for a request. If a slot was taken, return True. The request then holds the slot until `leave` is
        called.

        Return False if the client or its tenant has reached its share, or if no slot is free.
        """
        free = self.free
        held, held_by_tenant = self._held.get(client_id, 0), self._held_by_tenant.get(tenant_id, 0)
        if held >= free or held_by_tenant >= OF_A_TENANT * free:
            return False
        self._held[client_id] = held + 1
        self._held_by_tenant[tenant_id] = held_by_tenant + 1
        self.free = free - 1
        return True

    def leave(self, client_id: Hashable, tenant_id: int) -> None:
        """Free the slot of one of the client's requests."""
        held = self._held[client_id] - 1
        if held:
            self._held[client_id] = held
        else:
            del self._held[client_id]
        self._held_by_tenant[tenant_id] -= 1
        self.free += 1
