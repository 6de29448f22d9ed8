"""Tenants take turns at the store, so that a tenant with many requests delays neither the other tenants nor the
logins."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from sallyport.base.actor import Actor, acting
from sallyport.base.fair import FairLimiter

WRITES: Final = 4
"""Maximum concurrent writes of tokens, because a login may wait for all of them."""


class Turns:
    """Limits of the requests that run at the same time. readers, searchers: the numbers of connections for reads and
    for searches."""

    def __init__(self, readers: int, searchers: int) -> None:
        self._reads = FairLimiter[Actor | int](readers // 2)  # logins use the other half
        self._searches = FairLimiter[Actor | int](searchers)
        self._writes = FairLimiter[Actor | int](WRITES)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait for the turn of a tenant's read. A read by the service itself begins at once."""
        if acting().tenant_id is None:
            yield
        else:
            async with self._reads.slot(_party()):
                yield

    @asynccontextmanager
    async def searching(self) -> AsyncIterator[None]:
        """Wait for the turn of a search."""
        async with self._searches.slot(_party()):
            yield

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[bool]:
        """Wait for the turn of a token's write. Yield whether the time of the work is limited. It is limited for
        tokens."""
        if acting().kind != "token":
            yield False
        else:
            async with self._writes.slot(_party()):
                yield True


def _party() -> Actor | int:
    """Return the acting tenant. If the actor has no tenant, return the actor."""
    actor = acting()
    return actor if actor.tenant_id is None else actor.tenant_id
