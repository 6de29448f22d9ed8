"""Long writes in short transactions."""

from collections.abc import Iterator

import pytest
import trio

from sallyport.store.model import Store, Tx
from sallyport.store.turns import AT_ONCE, in_turns


async def test_each_entry_is_written_once_in_order(store: Store) -> None:
    """A transaction writes at most AT_ONCE entries, and each entry is in one transaction."""
    written = list[list[int]]()

    def work(_tx: Tx, entries: Iterator[int]) -> None:
        written.append(list(entries))

    await in_turns(store, range(3 * AT_ONCE), work)
    assert [each for part in written for each in part] == list(range(3 * AT_ONCE))
    assert max(map(len, written)) <= AT_ONCE


async def test_an_entry_that_fails(store: Store) -> None:
    """The error goes to the caller, and no later transaction begins."""
    written = list[int]()

    def work(_tx: Tx, entries: Iterator[int]) -> None:
        for each in entries:
            if each == AT_ONCE + 1:
                raise ValueError(each)
            written.append(each)

    with pytest.raises(ValueError, match=str(AT_ONCE + 1)):
        await in_turns(store, range(3 * AT_ONCE), work)
    assert written == list(range(AT_ONCE + 1))


async def test_other_writes_come_between(store: Store) -> None:
    """A write of another task does not wait for all entries."""
    order = list[str]()

    def work(_tx: Tx, entries: Iterator[int]) -> None:
        order.extend("long" for _ in entries)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_turns, store, range(3 * AT_ONCE), work)
        nursery.start_soon(store.write, lambda _tx: order.append("other"))
    assert order.index("other") <= AT_ONCE
