"""Long writes, split into short transactions, so that no login waits long for a commit."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from sallyport.store.model import Store, Tx, Value

BATCH_S: Final = 0.005
AT_ONCE: Final = 400
"""Maximum number of entries that one transaction writes."""
SLICE: Final = 200
"""Maximum number of rows that one statement deletes. Triggers take up to 20 µs for each row."""

T = TypeVar("T")
FoundT = TypeVar("FoundT")
Slice = Callable[[Tx, T], int]
"""A function that deletes up to SLICE dependent rows of an object and returns their number."""


def one_batch(tx: Tx, entries: Iterable[T]) -> Iterator[T]:
    """Yield the entries for one transaction: at least one entry, and at most AT_ONCE.

    The iterator also ends after BATCH_S seconds, or when a login waits for the transaction.
    """
    until = time.perf_counter() + BATCH_S
    for number, entry in enumerate(entries, 1):
        yield entry
        if number == AT_ONCE or tx.others_wait() or time.perf_counter() > until:
            break


async def in_batches(store: Store, entries: Iterable[T], work: Callable[[Tx, Iterator[T]], None]) -> None:
    """Write many entries in several short transactions. Raises StoreError.

    work: writes the entries of one transaction. If `work` raises an error, the entries of earlier transactions stay
    written.
    """
    left = deque(entries)

    def step(tx: Tx) -> None:
        work(tx, one_batch(tx, _taken(left)))

    while left:
        await store.write(step)


async def in_slices(
    store: Store, find: Callable[[Tx], FoundT], slices: Sequence[Slice[FoundT]], end: Callable[[Tx, FoundT], T]
) -> T:
    """Delete objects in several short transactions, together with the rows that depend on the objects.

    Return the result of `end`. Raises StoreError. If the deletion is interrupted, call the function again to complete
    it.

    find: returns the objects; it is called in each transaction, and raises an error if an object does not exist.
    slices: functions that delete the dependent rows; each is called until it returns 0. end: deletes the objects
    themselves in the last transaction.
    """

    def step(tx: Tx) -> list[T]:
        found, until = find(tx), time.perf_counter() + BATCH_S
        for delete in slices:
            while delete(tx, found):
                if tx.others_wait() or time.perf_counter() > until:
                    return []
        return [end(tx, found)]

    while not (result := await store.write(step)):
        pass
    return result[0]


def delete_slice(tx: Tx, table: str, key: str, condition: str, **parameters: Value) -> int:
    """Delete up to SLICE rows of a table. Return their number.

    key: the columns of the primary key. condition: an SQL condition for the rows.
    """
    some = f"select {key} from {table} where {condition} limit {SLICE}"  # noqa: S608
    return tx.execute(f"delete from {table} where ({key}) in ({some})", **parameters)  # noqa: S608


def _taken(left: deque[T]) -> Iterator[T]:
    """Remove the entries of a queue one by one, and yield each entry when it is removed. If the caller stops early, the
    other entries stay in the queue."""
    while left:
        yield left.popleft()
