"""An owner with many requests delays only its own requests."""

import time
from collections import Counter

import pytest
import trio
import trio.testing

from sallyport.base.fair import LONG_S, PART_S, FairLimiter, FairQueue, FairShares, LoopTurns, in_parts
from tests.passes import PassCounter

MOST = 3
TASKS = 20

ONE, OTHER, THIRD = ("192.0.2.1", 1), ("192.0.2.1", 2), ("192.0.2.2", 1)


def queued(*items: tuple[tuple[str, int], int]) -> FairQueue[tuple[str, int], int]:
    """Return a queue that contains these (source, item) pairs."""
    queue: FairQueue[tuple[str, int], int] = FairQueue()
    for source, item in items:
        queue.put(source, item)
    return queue


def taken(queue: FairQueue[tuple[str, int], int]) -> list[int]:
    """Take all items, and return them in the order in which the queue gave them."""
    return [queue.take() for _ in range(len(queue))]


def test_sources_take_turns() -> None:
    """The items of one source keep their order."""
    queue = queued((ONE, 1), (ONE, 2), (ONE, 3), (OTHER, 4), (THIRD, 5), (OTHER, 6))
    assert taken(queue) == [1, 4, 5, 2, 6, 3]


def test_the_items_of_one_source_keep_their_order() -> None:
    assert taken(queued(*((ONE, number) for number in range(10)))) == list(range(10))


def test_a_returning_source_waits_its_turn() -> None:
    """A source whose last item was taken, and which then adds another one, waits until the other sources have had their
    turn.
    """
    queue = queued((ONE, 1), (OTHER, 2), (OTHER, 3))
    assert queue.take() == 1
    queue.put(ONE, 4)
    assert taken(queue) == [2, 4, 3]


def test_a_source_without_items_is_removed() -> None:
    queue = queued((ONE, 1), (OTHER, 2))
    assert taken(queue) == [1, 2]
    assert not queue
    with pytest.raises(KeyError):
        queue.take()


def test_a_queue_is_drained_in_turn() -> None:
    """Items that are added meanwhile are yielded too. What the caller does not ask for stays in the queue."""
    queue, found = queued((ONE, 1), (ONE, 2), (OTHER, 3), (OTHER, 4)), list[int]()
    for item in queue.drain():
        found.append(item)
        if item == 1:
            queue.put(THIRD, 5)
        if len(found) == 4:
            break
    assert (found, len(queue)) == ([1, 3, 2, 5], 1)
    assert taken(queue) == [4]


def test_owners_take_turns() -> None:
    """An owner gets one turn, however many sources it has. The sources share the turn."""
    queue: FairShares[int, int, str] = FairShares()
    for owner, source, item in ((1, 1, "a"), (1, 1, "b"), (1, 2, "c"), (2, 1, "d"), (2, 1, "e")):
        assert queue.put(owner, source, item)
    assert [queue.take() for _ in range(len(queue))] == ["a", "d", "c", "e", "b"]
    assert not queue


def test_an_owner_with_its_share_puts_nothing_into_a_full_queue() -> None:
    """If one owner has filled the queue, another owner may still add items until its share is used."""
    queue: FairShares[int, int, int] = FairShares(4)
    assert [queue.put(1, 1, number) for number in range(6)] == [True] * 4 + [False] * 2
    assert [queue.put(2, 1, number) for number in range(6)] == [True] * 2 + [False] * 4
    assert not queue.put(1, 2, 0)
    assert len(queue) == 6


async def test_waiting_owners_are_admitted_in_turn() -> None:
    """A free slot goes to the next owner, not to the task that came first. A cancelled task is skipped."""
    limiter, came = FairLimiter[str](1), list[str]()

    async def take(owner: str, number: int) -> None:
        async with limiter.slot(owner):
            came.append(f"{owner}{number}")

    async with trio.open_nursery() as nursery, limiter.slot("a"):
        for number, owner in ((1, "a"), (2, "a"), (3, "a"), (1, "b"), (2, "b")):
            nursery.start_soon(take, owner, number)
            await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.01):
            await take("c", 1)
    assert came == ["a1", "b1", "a2", "b2", "a3"]
    with trio.fail_after(30):
        await take("d", 1)


async def test_a_pass_admits_a_limited_number_of_tasks() -> None:
    """Tasks that arrive together run in several passes of the event loop."""
    turns, counter, went = LoopTurns(MOST), PassCounter(), Counter[int]()
    trio.lowlevel.add_instrument(counter)

    async def take() -> None:
        await turns.take()
        went[counter.passes] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(take)
    trio.lowlevel.remove_instrument(counter)
    assert went.total() == TASKS
    assert max(went.values()) == MOST
    assert len(went) <= TASKS // MOST + 2


async def test_a_cancelled_task_delays_no_other() -> None:
    """If a task is cancelled, its turn goes to the next task."""
    turns, went = LoopTurns(1), list[str]()

    async def take(name: str) -> None:
        await turns.take()
        went.append(name)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, "first")
            for _ in range(TASKS):
                nursery.start_soon(take, "impatient")
            while not went:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await take("patient")
    assert len(went) < TASKS
    assert went[-1] == "patient"


async def test_each_tenant_has_its_turn() -> None:
    """A tenant with many tasks delays only its own tasks."""
    many = LoopTurns(1)
    few, went = many.for_tenant(), list[str]()

    async def take(turns: LoopTurns, name: str) -> None:
        await turns.take()
        went.append(name)

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(take, many, "many")
        await trio.lowlevel.checkpoint()
        nursery.start_soon(take, few, "few")
    assert went.index("few") <= 4


async def test_a_long_pass_admits_a_single_task() -> None:
    """Each long task runs in a pass of the event loop of its own."""
    turns, counter, went = LoopTurns(MOST), PassCounter(), Counter[int]()
    trio.lowlevel.add_instrument(counter)

    async def take() -> None:
        await turns.take()
        went[counter.passes] += 1
        until = time.thread_time() + LONG_S
        while time.thread_time() < until:
            pass

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(take)
    trio.lowlevel.remove_instrument(counter)
    assert went.total() == TASKS
    assert set(went.values()) == {1}


async def test_other_tasks_run_between_the_parts_of_a_list() -> None:
    """While a long list of short work is done, the event loop makes a pass after each part of PART_S seconds."""
    now, counter = 0.0, PassCounter()

    def work(item: int) -> int:
        nonlocal now
        now += PART_S / 4
        return item * item

    trio.lowlevel.add_instrument(counter)
    found = await in_parts(work, range(40), lambda: now)
    trio.lowlevel.remove_instrument(counter)
    assert found == [number * number for number in range(40)]
    assert counter.passes == 10
