"""What becomes of many: all are counted, those who fare worst are named."""

import time
from heapq import heappush, heappushpop
from typing import Final, Generic, TypeVar

import trio

from sallyport.domains.impact import Effect, Tally

NAMED: Final = 1000
BREATH_S: Final = 0.002
SEVERITY: Final = {Effect.ACCEPT: 0, Effect.CHALLENGE: 1, Effect.UNKNOWN: 2, Effect.REJECT: 3}

ItemT = TypeVar("ItemT")


class Worst(Generic[ItemT]):
    """Counts by effect, and keeps the `limit` worst."""

    def __init__(self, limit: int = NAMED) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, int, ItemT]] = []
        self._numbers = dict.fromkeys(Effect, 0)
        self._pushed = 0

    def add(self, effect: Effect, weight: int, item: ItemT) -> None:
        """One more. weight: among those that fare alike, the heavier ones are kept; then those that came first."""
        self._numbers[effect] += 1
        self._pushed += 1
        entry = (SEVERITY[effect], weight, -self._pushed, item)
        if len(self._heap) < self._limit:
            heappush(self._heap, entry)
        else:
            heappushpop(self._heap, entry)

    def kept(self) -> list[ItemT]:
        """The worst first."""
        return [entry[3] for entry in sorted(self._heap, key=lambda entry: entry[:3], reverse=True)]

    def tally(self) -> Tally:
        """How many there are of each."""
        return Tally(**{effect.value: number for effect, number in self._numbers.items()})


class Breath:
    """Lets the event loop go now and then in the middle of long work, so that nobody waits for it."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + BREATH_S

    async def __call__(self) -> None:
        if time.perf_counter() >= self._until:
            await trio.lowlevel.checkpoint()
            self._until = time.perf_counter() + BREATH_S
