"""Periodic work: of each node (`every`), and the work that one node does for the cluster.

The latter runs on the node that holds the lease, until the node loses the lease. The writes of some tasks also check
the lease (`store_of_leader`).
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NoReturn, TypeVar

import structlog
import trio

from sallyport.base.errors import SallyportError
from sallyport.nodes.service import Cluster
from sallyport.store.model import Done, Store, Tx, Work

T = TypeVar("T")

LOOK_S: Final = 0.25

log = structlog.get_logger()


async def every(seconds: float, work: Callable[[], Awaitable[object]], *, failure: str) -> NoReturn:
    """Run `work` at once, and then again and again, until cancelled. The pause between two runs is `seconds`.

    failure: the name of the log event. A SallyportError, such as a StoreError, is logged under this name, and `work`
    runs again after the pause. Any other exception propagates.
    """
    while True:
        try:
            await work()
        except SallyportError as error:
            log.warning(failure, error=str(error))
        await trio.sleep(seconds)


async def while_leading(
    cluster: Cluster, tasks: Sequence[Callable[[], Awaitable[object]]], *, begin: Callable[[], Awaitable[object]]
) -> None:
    """Run tasks whenever this node holds the lease. The tasks are cancelled when the node loses the lease, and start
    again when the node holds the lease again. Continue until cancelled.

    begin: work that ends before the tasks start, each time.
    """
    while True:
        while not cluster.leads:
            await trio.sleep(LOOK_S)
        await begin()
        async with trio.open_nursery() as nursery:
            for task in tasks:
                nursery.start_soon(task)
            while cluster.leads:
                await trio.sleep(LOOK_S if cluster.is_shared else math.inf)
            nursery.cancel_scope.cancel()


class CheckedStore:
    """A store that runs a check before each write, in the same transaction. If the check raises an error, nothing is
    written.

    Other nodes write too, and this store does not count their writes. So `changes` returns a new number each time.
    """

    def __init__(self, store: Store, check: Callable[[Tx], None]) -> None:
        self._store = store
        self._check = check
        self._asked = 0
        self.read, self.read_now, self.search = store.read, store.read_now, store.search
        self.settled = store.settled

    @property
    def changes(self) -> int:
        """Return a new number at each call. Callers thus assume that rows have changed, because other nodes may have
        changed them."""
        self._asked += 1
        return self._asked

    async def write(self, work: Work[T]) -> T:
        return await self._store.write(self._checked(work))

    def submit(self, work: Work[T], done: Done[T]) -> None:
        self._store.submit(self._checked(work), done)

    def _checked(self, work: Work[T]) -> Work[T]:
        def checked(tx: Tx) -> T:
            self._check(tx)
            return work(tx)

        return checked


def store_of_leader(store: Store, cluster: Cluster) -> Store:
    """Return the store for the periodic work. Its writes raise LeaseLost if another node holds the lease."""
    return CheckedStore(store, cluster.check) if cluster.is_shared else store
