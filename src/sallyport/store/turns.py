"""A fair order of the tenants' reads and writes. A tenant with many requests delays neither the other tenants nor the
logins."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event, Lock
from typing import Final

import trio

from sallyport.base.actor import Actor, acting
from sallyport.base.fair import FairLimiter

WRITES: Final = 4
"""Maximum number of concurrent writes of requests. The number is small, because a login may wait for all of them."""
PUBLIC: Final = "public"
"""The kind of the actors whose searches have a connection of their own."""
_UNLIMITED: Final = {"service", "command line"}
"""The kinds of actors whose reads and writes neither wait nor have a limit: the service itself, and a user of the
service's host. The same holds for administrators of the installation, because break-glass must always work. All other
actors send requests: tokens, agents, wallets, administrators and people of a tenant, and readers of public
documents."""


class Turns:
    """Limits of concurrent reads, searches and writes, with one queue for each tenant.

    readers: the number of connections for reads. searchers: the number of connections for searches.
    """

    def __init__(self, readers: int, searchers: int) -> None:
        self._reads = FairLimiter[Actor | int](readers // 2)  # logins use the other half
        self._searches = FairLimiter[Actor | int](searchers)
        self._public_searches = FairLimiter[Actor | int](1)
        self._searching: dict[Actor | int, trio.Lock] = {}
        self._writes = FairLimiter[Actor | int](WRITES)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait until the acting tenant may read. Actors of the installation do not wait."""
        if _is_unlimited():
            yield
        else:
            async with self._reads.slot(_party()):
                yield

    @asynccontextmanager
    async def searching(self) -> AsyncIterator[bool]:
        """Wait until the acting tenant may search. A tenant has one search at a time, its imports included. Yield True
        if the search uses the connection for public documents."""
        party = _party()
        if acting().kind == PUBLIC:
            async with self._public_searches.slot(party):
                yield True
        elif isinstance(party, Actor) and _is_unlimited():
            async with self._searches.slot(party):
                yield False
        else:
            alone = self._searching.setdefault(party, trio.Lock())
            try:
                async with alone, self._searches.slot(party):
                    yield False
            finally:
                if not alone.locked():
                    self._searching.pop(party, None)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[bool]:
        """Wait until the acting tenant may write. Actors of the installation do not wait. Yield True if the write has a
        limit of CPU time."""
        if _is_unlimited():
            yield False
        else:
            async with self._writes.slot(_party()):
                yield True


class TimeSlices:
    """Slices of time for threads that work long. At most `most` threads run at the same time. A thread that has used up
    its slice lets the next waiting thread run, and then waits for its own next turn."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[Event] = deque()
        self._lock = Lock()

    @property
    def others_wait(self) -> bool:
        """Return whether a thread waits for its turn."""
        return bool(self._waiting)

    def take(self) -> None:
        """Wait for the turn of the calling thread."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = Event()
            self._waiting.append(turn)
        turn.wait()

    def give(self) -> None:
        """End the turn of the calling thread."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1


def _party() -> Actor | int:
    actor = acting()
    return actor if actor.tenant_id is None or actor.is_installation else actor.tenant_id


def _is_unlimited() -> bool:
    return acting().kind in _UNLIMITED or acting().is_installation
