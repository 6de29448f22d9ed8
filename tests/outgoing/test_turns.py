"""Tasks that go on a few in each turn of the event loop."""

import time
from collections import Counter

import trio

from sallyport.outgoing.turns import LONG_S, Turns

MOST = 3
TASKS = 20


class TurnCounter(trio.abc.Instrument):
    """Knows which turn of the event loop it is."""

    turn = 0

    def after_io_wait(self, timeout: float) -> None:
        """A turn begins."""
        self.turn += 1


async def test_no_more_than_so_many_in_a_turn() -> None:
    """They come all at once, and go on as quickly as they may."""
    turns, counter, went = Turns(MOST), TurnCounter(), Counter[int]()
    trio.lowlevel.add_instrument(counter)

    async def take() -> None:
        await turns.take()
        went[counter.turn] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(take)
    trio.lowlevel.remove_instrument(counter)
    assert went.total() == TASKS
    assert max(went.values()) == MOST
    assert len(went) <= TASKS // MOST + 2


async def test_who_gives_up_keeps_nobody_waiting() -> None:
    """Tasks that are cancelled while they wait leave their turns to the next."""
    turns, went = Turns(1), list[str]()

    async def take(name: str) -> None:
        await turns.take()
        went.append(name)

    with trio.fail_after(10):
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
    """A tenant whose tasks are many waits for itself."""
    many = Turns(1)
    few, went = many.apart(), list[str]()

    async def take(turns: Turns, name: str) -> None:
        await turns.take()
        went.append(name)

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(take, many, "many")
        await trio.lowlevel.checkpoint()
        nursery.start_soon(take, few, "few")
    assert went.index("few") <= 4


async def test_after_a_long_turn_a_single_task_goes_on() -> None:
    """Tasks that take long hold up one turn each."""
    turns, counter, went = Turns(MOST), TurnCounter(), Counter[int]()
    trio.lowlevel.add_instrument(counter)

    async def take() -> None:
        await turns.take()
        went[counter.turn] += 1
        until = time.thread_time() + LONG_S
        while time.thread_time() < until:
            pass

    async with trio.open_nursery() as nursery:
        for _ in range(TASKS):
            nursery.start_soon(take)
    trio.lowlevel.remove_instrument(counter)
    assert went.total() == TASKS
    assert sorted(went.values())[: TASKS - 2 * MOST] == [1] * (TASKS - 2 * MOST)
