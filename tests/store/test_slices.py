"""Long writes in short transactions."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
import trio

from sallyport.store.model import Store, Tx
from sallyport.store.slices import AT_ONCE, SLICE, delete_slice, in_batches, in_slices
from tests.slices import OneSlice, Stopped


async def test_each_entry_is_written_once_in_order(store: Store) -> None:
    """A transaction writes at most AT_ONCE entries, and each entry is in one transaction."""
    written = list[list[int]]()

    def work(_tx: Tx, entries: Iterator[int]) -> None:
        written.append(list(entries))

    await in_batches(store, range(3 * AT_ONCE), work)
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
        await in_batches(store, range(3 * AT_ONCE), work)
    assert written == list(range(AT_ONCE + 1))


async def test_other_writes_come_between(store: Store) -> None:
    """A write of another task does not wait for all entries."""
    order = list[str]()

    def work(_tx: Tx, entries: Iterator[int]) -> None:
        order.extend("long" for _ in entries)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_batches, store, range(3 * AT_ONCE), work)
        nursery.start_soon(store.write, lambda _tx: order.append("other"))
    assert order.index("other") <= AT_ONCE


async def test_a_deletion_in_slices(store: Store) -> None:
    """Each transaction finds the object and deletes a slice; the object goes in the one that finds nothing left. The
    same call completes a deletion that was stopped."""
    await store.write(_add)
    left = [await _delete(OneSlice(store), store) for _ in range(4)]
    assert left == [(SLICE + 50, 1), (50, 1), (0, 1), (0, 0)]


async def test_a_deletion_of_few_rows(store: Store) -> None:
    """Few rows are deleted in the transaction of the object, which is undone completely if it raises."""
    await store.write(_add)

    def fail(_tx: Tx, _found: int) -> None:
        raise ValueError("refused")

    def delete_some(tx: Tx, _found: int) -> int:
        assert _slice(tx) == SLICE
        return 0  # another number would begin another transaction on a slow machine

    with pytest.raises(ValueError, match="refused"):
        await in_slices(store, lambda _tx: 1, [delete_some], fail)
    assert await store.read(_count) == 2 * SLICE + 50


def _add(tx: Tx) -> None:
    tx.insert("counters", ("domain_id", "name", "value"), [(1, str(each), each) for each in range(2 * SLICE + 50)])
    tx.insert("counters", ("domain_id", "name", "value"), [(2, "object", 0)])


def _slice(tx: Tx) -> int:
    return delete_slice(tx, "counters", "domain_id, name", "domain_id = :d", d=1)


def _count(tx: Tx) -> int:
    return tx.value(int, "select count(*) from counters where domain_id = 1") or 0


async def _delete(busy: Store, store: Store) -> tuple[int, int]:
    """Delete with one transaction. Return how many dependents and objects are left."""
    end = "delete from counters where domain_id = 2"
    with suppress(Stopped):
        await in_slices(busy, lambda _tx: 2, [lambda tx, _found: _slice(tx)], lambda tx, _found: tx.execute(end))
    objects = await store.read(lambda tx: tx.value(int, "select count(*) from counters where domain_id = 2"))
    return await store.read(_count), objects or 0
