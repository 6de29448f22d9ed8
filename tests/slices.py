"""A store that limits each transaction of a long deletion to one slice.

It can stop the deletion between two transactions.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from sallyport.store.model import Done, Store, Tx, Work
from sallyport.store.slices import SLICE

T = TypeVar("T")


class Stopped(Exception):
    """An error that is raised before a transaction, as if the process had ended."""


class _Busy:
    """A transaction that another task is always waiting for."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    def others_wait(self) -> bool:
        return True

    def __getattr__(self, name: str) -> object:
        return getattr(self._tx, name)


class OneSlice:
    """A store that ends each transaction after one slice, because another task always seems to wait.

    transactions: the number of transactions before Stopped is raised.
    """

    def __init__(self, store: Store, transactions: int = 1) -> None:
        self._store = store
        self.left = transactions

    @property
    def changes(self) -> int:
        return self._store.changes

    async def read(self, work: Work[T]) -> T:
        return await self._store.read(work)

    async def read_now(self, work: Work[T]) -> T:
        return await self._store.read_now(work)

    async def search(self, work: Work[T]) -> T:
        return await self._store.search(work)

    async def write(self, work: Work[T]) -> T:
        if not self.left:
            raise Stopped
        self.left -= 1
        return await self._store.write(lambda tx: work(cast(Tx, _Busy(tx))))

    def submit(self, work: Work[T], done: Done[T]) -> None:
        self._store.submit(work, done)


async def interrupted(store: Store, tables: list[str], delete: Callable[[Store], Awaitable[object]]) -> int:
    """Stop a deletion after each of its transactions and restart it, until it is complete. Return the number of
    transactions.

    tables: the tables whose rows are counted. Assert that no transaction deletes more than SLICE of these rows.
    """
    transactions = 0
    while True:
        before, transactions = await _rows(store, tables), transactions + 1
        try:
            await delete(OneSlice(store))
        except Stopped:
            assert 0 <= before - await _rows(store, tables) <= SLICE
        else:
            return transactions


async def _rows(store: Store, tables: list[str]) -> int:
    def work(tx: Tx) -> int:
        return sum(tx.value(int, f"select count(*) from {table}") or 0 for table in tables)  # noqa: S608

    return await store.read(work)
