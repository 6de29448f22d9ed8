"""Turns of tenants at the store: a tenant with many requests does not delay the other tenants, or the logins."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from sallyport.base.actor import Actor, acting
from sallyport.base.fair import FairLimiter

WRITES: Final = 4
"""Maximum concurrent writes of tokens, since a login may wait for all of them."""


class Turns:
    """Limits of the requests that run at the same time. readers, searchers: number of connections of each kind."""

    def __init__(self, readers: int, searchers: int) -> None:
        self._reads = FairLimiter[Actor | int](readers // 2)  # the other half is for logins
        self._searches = FairLimiter[Actor | int](searchers)
        self._writes = FairLimiter[Actor | int](WRITES)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Wait for the turn of a tenant's read. A read of the service begins at once."""
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
        """Wait for the turn of a token's write. Yield whether the time of the work is limited, as it is for a token."""
        if acting().kind != "token":
            yield False
        else:
            async with self._writes.slot(_party()):
                yield True


def _party() -> Actor | int:
    """Return the acting tenant, or the actor if it has none."""
    actor = acting()
    return actor if actor.tenant_id is None else actor.tenant_id
