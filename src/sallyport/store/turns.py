"""A fair order of the tenants' reads and writes. A tenant with many requests delays neither the other tenants nor the
logins."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from sallyport.base.actor import Actor, acting
from sallyport.base.fair import FairLimiter

WRITES: Final = 4
"""Maximum number of concurrent writes of requests. The number is small, because a login may wait for all of them."""
_UNLIMITED: Final = {"service", "command line"}
"""The kinds of actors whose reads and writes neither wait nor have a limit: the service itself, and a user of the
service's host. All other actors send requests: tokens, agents, wallets, administrators and people."""


class Turns:
    """Limits of concurrent reads, searches and writes, with one queue for each tenant.

    readers: the number of connections for reads. searchers: the number of connections for searches.
    """

    def __init__(self, readers: int, searchers: int) -> None:
        self._reads = FairLimiter[Actor | int](readers // 2)  # logins use the other half
        self._searches = FairLimiter[Actor | int](searchers)
        self._writes = FairLimiter[Actor | int](WRITES)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait until the acting tenant may read. The service itself and the command line do not wait."""
        if acting().kind in _UNLIMITED:
            yield
        else:
            async with self._reads.slot(_party()):
                yield

    @asynccontextmanager
    async def searching(self) -> AsyncIterator[None]:
        """Wait until the acting tenant may search."""
        async with self._searches.slot(_party()):
            yield

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[bool]:
        """Wait until the acting tenant may write. The service itself and the command line do not wait. Yield True if
        the write has a limit of CPU time."""
        if acting().kind in _UNLIMITED:
            yield False
        else:
            async with self._writes.slot(_party()):
                yield True


def _party() -> Actor | int:
    actor = acting()
    return actor if actor.tenant_id is None else actor.tenant_id
