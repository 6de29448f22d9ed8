"""Long writes in short transactions, so that no login waits for them."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from sallyport.store.model import Store, Tx

TURN_S: Final = 0.005
AT_ONCE: Final = 400
"""Entries of one transaction."""

T = TypeVar("T")


def one_turn(tx: Tx, entries: Iterable[T]) -> Iterator[T]:
    """Yield the entries of one transaction: the first, and more until TURN_S has passed, AT_ONCE are written or an
    answer waits for the transaction."""
    until = time.perf_counter() + TURN_S
    for number, entry in enumerate(entries, 1):
        yield entry
        if number == AT_ONCE or tx.others_wait() or time.perf_counter() > until:
            break


async def in_turns(store: Store, entries: Iterable[T], work: Callable[[Tx, Iterator[T]], None]) -> None:
    """Write entries in as many transactions as it takes. StoreError.

    work: writes those of one transaction. What earlier transactions have written stays when it raises.
    """
    left = deque(entries)

    def step(tx: Tx) -> None:
        work(tx, one_turn(tx, _taken(left)))

    while left:
        await store.write(step)


def _taken(left: deque[T]) -> Iterator[T]:
    """Yield the entries, each of which is taken from the queue."""
    while left:
        yield left.popleft()
