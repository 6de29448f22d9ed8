"""Places that are handed on in turns: who asks for much waits for itself, and not before others."""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import trio

from sallyport.base.fair import FairQueue

WhoT = TypeVar("WhoT", bound=Hashable)


@dataclass(slots=True)
class _Waiter:
    has_place: trio.Event = field(default_factory=trio.Event)
    gone: bool = False


class FairPlaces(Generic[WhoT]):
    """So many places. Each who waits gets one in turn, of several who wait for the same the first of each."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: FairQueue[WhoT, _Waiter] = FairQueue()

    @asynccontextmanager
    async def place(self, who: WhoT) -> AsyncIterator[None]:
        """Wait for a place, and keep it for the time of the block."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(who)
        try:
            yield
        finally:
            self._hand_on()

    async def _wait(self, who: WhoT) -> None:
        waiter = _Waiter()
        self._waiting.put(who, waiter)
        try:
            await waiter.has_place.wait()
        except trio.Cancelled:
            waiter.gone = True
            raise

    def _hand_on(self) -> None:
        while self._waiting:
            waiter = self._waiting.take()
            if not waiter.gone:
                return waiter.has_place.set()
        self._free += 1
        return None
