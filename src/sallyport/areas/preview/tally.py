"""Count outcomes, and keep the items with the worst outcomes."""

import time
from heapq import heappush, heappushpop
from typing import Final, Generic, TypeVar

import trio

from sallyport.areas.domains.bodies import Tally
from sallyport.areas.domains.domain import Effect

NAMED: Final = 1000
SLICE_S: Final = 0.002
SEVERITY: Final = {Effect.ACCEPT: 0, Effect.CHALLENGE: 1, Effect.UNKNOWN: 2, Effect.REJECT: 3}

ItemT = TypeVar("ItemT")


class Worst(Generic[ItemT]):
    """The number of items with each outcome, and the `limit` items with the worst outcomes."""

    def __init__(self, limit: int = NAMED) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, int, ItemT]] = []
        self._numbers = dict.fromkeys(Effect, 0)
        self._pushed = 0

    def add(self, effect: Effect, weight: int, item: ItemT) -> None:
        """Add an item. weight: among items with the same outcome, those with the greatest weight are kept."""
        self._numbers[effect] += 1
        self._pushed += 1
        entry = (SEVERITY[effect], weight, -self._pushed, item)
        if len(self._heap) < self._limit:
            heappush(self._heap, entry)
        else:
            heappushpop(self._heap, entry)

    def kept(self) -> list[ItemT]:
        """Return the kept items, worst outcomes first."""
        return [entry[3] for entry in sorted(self._heap, key=lambda entry: entry[:3], reverse=True)]

    def tally(self) -> Tally:
        """Return the number of items with each outcome."""
        return Tally(**{effect.value: number for effect, number in self._numbers.items()})


class TimeSlice:
    """A pause for long computations. Await it often. If `work_s` seconds have passed since its last pause, it lets the
    event loop run other tasks, and sleeps for `pause_s` seconds.

    A login needs several turns of the event loop, each of which has a slice of a computation that does not sleep.
    """

    def __init__(self, work_s: float = SLICE_S, pause_s: float = 0.0) -> None:
        self._work_s = work_s
        self._pause_s = pause_s
        self._until = time.perf_counter() + work_s

    async def __call__(self) -> None:
        if time.perf_counter() >= self._until:
            await trio.sleep(self._pause_s)
            self._until = time.perf_counter() + self._work_s
