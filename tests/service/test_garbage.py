"""Tests of garbage collection: short collections run at intervals, and long ones run when no request waits."""

import gc
import weakref
from collections.abc import Iterator
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from sallyport.service.garbage import LOOK_S, MANY, MAX_PAUSE_S, MIN_PAUSE_S, collect_garbage, next_pause

GROWN_S, OLD_S = 5.0, 10.0


class Cycle:
    """An object that only the garbage collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def dropped() -> weakref.ref[Cycle]:
    """Return a weak reference to an unreachable cycle."""
    return weakref.ref(Cycle())


def grown_old() -> weakref.ref[Cycle]:
    """Return a weak reference to an unreachable cycle that has survived a young collection."""
    held = Cycle()
    gc.collect(0)
    return weakref.ref(held)


async def test_a_young_cycle_is_freed_by_the_next_collection(autojump_clock: MockClock) -> None:
    """A young cycle is freed although requests wait."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect_garbage, lambda: 1000)
        await trio.sleep(MAX_PAUSE_S / 2)
        cycle = dropped()
        await trio.sleep(MAX_PAUSE_S)
        assert cycle() is None
        nursery.cancel_scope.cancel()


async def test_a_cycle_in_the_second_generation_is_freed_by_its_collection(autojump_clock: MockClock) -> None:
    """A cycle in the second generation is freed although requests wait."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(collect_garbage, lambda: MANY, grown_s=GROWN_S))
        await trio.sleep(MAX_PAUSE_S / 2)
        cycle = grown_old()
        await trio.sleep(GROWN_S / 2)
        assert cycle() is not None
        await trio.sleep(GROWN_S)
        assert cycle() is None
        nursery.cancel_scope.cancel()


async def test_a_collection_of_the_second_generation_waits_while_very_many_requests_wait(
    autojump_clock: MockClock,
) -> None:
    """It is delayed until fewer requests wait, and by `old_s` at most."""
    waiting = MANY + 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(collect_garbage, lambda: waiting, grown_s=GROWN_S, old_s=4 * GROWN_S))
        await trio.sleep(MAX_PAUSE_S / 2)
        cycle = grown_old()
        await trio.sleep(GROWN_S * 2)
        assert cycle() is not None
        waiting = MANY
        await trio.sleep(MAX_PAUSE_S)
        assert cycle() is None
        waiting, cycle = MANY + 1, grown_old()
        await trio.sleep(GROWN_S * 4)
        assert cycle() is not None
        await trio.sleep(GROWN_S + MAX_PAUSE_S)
        assert cycle() is None
        nursery.cancel_scope.cancel()


async def test_an_old_cycle_is_freed_while_no_request_waits(autojump_clock: MockClock) -> None:
    """While requests wait, an old cycle is freed after 2 * old_s at the latest."""
    waiting = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(collect_garbage, lambda: waiting, grown_s=10 * OLD_S, old_s=OLD_S))
        await trio.sleep(MAX_PAUSE_S / 2)
        cycle = grown_old()
        await trio.sleep(OLD_S * 1.5)
        assert cycle() is not None
        waiting = 0
        await trio.sleep(MAX_PAUSE_S)
        assert cycle() is None
        waiting, cycle = 1, grown_old()
        await trio.sleep(OLD_S * 2)
        assert cycle() is None
        nursery.cancel_scope.cancel()


def test_the_interval_adapts_to_the_duration_of_a_collection() -> None:
    """A long collection shortens the interval, and a short collection lengthens it, within limits."""
    assert next_pause(0.1, LOOK_S * 2) == 0.05
    assert next_pause(0.1, LOOK_S * 0.7) == 0.1
    assert next_pause(0.1, LOOK_S * 0.1) == 0.2
    assert next_pause(MIN_PAUSE_S, 1.0) == MIN_PAUSE_S
    assert next_pause(MAX_PAUSE_S, 0.0) == MAX_PAUSE_S
