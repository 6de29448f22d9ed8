"""The periodic work that one node does for the cluster: it runs on the node with the lease, and its writes check the
lease."""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from sallyport.nodes.service import Cluster
from sallyport.store.model import Done, Store, Tx, Work

T = TypeVar("T")

LOOK_S: Final = 0.25


async def while_leading(cluster: Cluster, tasks: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Run tasks whenever this node has the lease, until cancelled. The tasks are cancelled when the node loses the
    lease, and are started again when it has the lease again."""
    while True:
        while not cluster.leads:
            await trio.sleep(LOOK_S)
        async with trio.open_nursery() as nursery:
            for task in tasks:
                nursery.start_soon(task)
            while cluster.leads:
                await trio.sleep(LOOK_S if cluster.is_shared else math.inf)
            nursery.cancel_scope.cancel()


class CheckedStore:
    """A store that runs a check in the transaction of each write, before the write. If the check raises an error,
    nothing is written. Each read of `changes` returns a new number, because other nodes write too."""

    def __init__(self, store: Store, check: Callable[[Tx], None]) -> None:
        self._store = store
        self._check = check
        self._asked = 0
        self.read, self.read_now, self.search = store.read, store.read_now, store.search
        self.settled = store.settled

    @property
    def changes(self) -> int:
        """See Store.changes."""
        self._asked += 1
        return self._asked

    async def write(self, work: Work[T]) -> T:
        """See Store.write."""
        return await self._store.write(self._checked(work))

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """See Store.submit."""
        self._store.submit(self._checked(work), done)

    def _checked(self, work: Work[T]) -> Work[T]:
        def checked(tx: Tx) -> T:
            self._check(tx)
            return work(tx)

        return checked


def store_of_leader(store: Store, cluster: Cluster) -> Store:
    """Return the store for the periodic work: a write raises LeaseLost if another node holds the lease."""
    return CheckedStore(store, cluster.check) if cluster.is_shared else store
