"""Long writes in short transactions, so that no login waits for them."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from sallyport.store.model import Store, Tx, Value

BATCH_S: Final = 0.005
AT_ONCE: Final = 400
"""Maximum entries of one transaction."""
SLICE: Final = 200
"""Maximum rows that one statement deletes; triggers take up to 20 µs for each row."""

T = TypeVar("T")
FoundT = TypeVar("FoundT")
Slice = Callable[[Tx, T], int]
"""A function that deletes up to SLICE dependent rows of an object and returns their number."""


def one_batch(tx: Tx, entries: Iterable[T]) -> Iterator[T]:
    """Yield the entries of one transaction. At least one entry is yielded. Further entries follow until BATCH_S has
    passed, AT_ONCE entries are written, or an answer waits for the transaction."""
    until = time.perf_counter() + BATCH_S
    for number, entry in enumerate(entries, 1):
        yield entry
        if number == AT_ONCE or tx.others_wait() or time.perf_counter() > until:
            break


async def in_batches(store: Store, entries: Iterable[T], work: Callable[[Tx, Iterator[T]], None]) -> None:
    """Write entries in as many transactions as needed. Raises StoreError.

    work: writes the entries of one transaction. If it raises, the entries of earlier transactions stay written.
    """
    left = deque(entries)

    def step(tx: Tx) -> None:
        work(tx, one_batch(tx, _taken(left)))

    while left:
        await store.write(step)


async def in_slices(
    store: Store, find: Callable[[Tx], FoundT], slices: Sequence[Slice[FoundT]], end: Callable[[Tx, FoundT], T]
) -> T:
    """Delete objects and the rows that depend on them. The dependent rows are deleted in as many transactions as
    needed, and the objects in the last transaction. Raises StoreError.

    find: returns the objects; called in each transaction; raises if an object does not exist. slices: functions that
    run in this order, each until it returns 0. end: deletes the objects; called when nothing depends on them. An
    interruption between two transactions leaves the objects with fewer dependent rows; the same call completes the
    deletion.
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
    """Delete up to SLICE rows of a table; return their number. key: the columns that identify a row. condition: SQL."""
    some = f"select {key} from {table} where {condition} limit {SLICE}"  # noqa: S608
    return tx.execute(f"delete from {table} where ({key}) in ({some})", **parameters)  # noqa: S608


def _taken(left: deque[T]) -> Iterator[T]:
    """Yield the entries of a queue one by one. Each entry is removed from the queue."""
    while left:
        yield left.popleft()
