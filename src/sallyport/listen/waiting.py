"""How many requests of all exchanges wait, and a fair share of the places for each RADIUS client, and each tenant.

A request waits for I/O, for the store, for its second factor, for the delay of its reject. A client may hold as many
places as are still free; that is all there is to it (the dynamic threshold by which switches share their buffers):

    one client that floods        holds a half at most, a half stays free
    k clients that flood          hold 1/(k+1) each, once what they held first has drained; as much stays free
    a client that holds nothing   is refused only where no place at all is free

So nobody else has to be counted or known, and a client that is alone may still use half of everything.

A tenant has as many clients as it likes, so all of them together may hold seven times what is still free: seven eighths
where no other tenant wants any, and an eighth stays free, however many of its clients flood.
"""

from typing import Final

OF_A_TENANT: Final = 7
"""How many times what is free a tenant may hold."""


class Room:
    """Some places. free: how many are not taken."""

    __slots__ = ("_held", "_held_by_tenant", "free", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.free = limit
        self._held: dict[int, int] = {}  # of those that hold any: a tenant adds and deletes clients without end
        self._held_by_tenant: dict[int, int] = {}

    @property
    def clients(self) -> int:
        """How many clients hold a place."""
        return len(self._held)

    def take(self, client_id: int, tenant_id: int) -> bool:
        """A place for a request of a tenant's client, until `leave`. False: the client, or its tenant, has its share,
        or no place is left."""
        free = self.free
        held, held_by_tenant = self._held.get(client_id, 0), self._held_by_tenant.get(tenant_id, 0)
        if held >= free or held_by_tenant >= OF_A_TENANT * free:
            return False
        self._held[client_id] = held + 1
        self._held_by_tenant[tenant_id] = held_by_tenant + 1
        self.free = free - 1
        return True

    def leave(self, client_id: int, tenant_id: int) -> None:
        """One of the client's requests waits no more."""
        self._held[client_id] -= 1
        if not self._held[client_id]:
            del self._held[client_id]
        self._held_by_tenant[tenant_id] -= 1
        self.free += 1


class Waiting:
    """The places of all exchanges. Unsigned requests, which anybody can send in a client's name, have a quarter of them
    for themselves: a flood of them leaves the others alone."""

    def __init__(self, limit: int) -> None:
        self.unproven = Room(max(1, limit // 4))
        self.proven = Room(max(1, limit - self.unproven.limit))

    @property
    def now(self) -> int:
        """How many requests wait."""
        return sum(room.limit - room.free for room in (self.proven, self.unproven))
