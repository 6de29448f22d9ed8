"""The limit of waiting requests of all exchanges, with a fair share for each RADIUS client and each tenant.

A request waits for I/O, the store, its second factor, or the delay of its reject. A client may hold as many slots as
are still free: the dynamic threshold by which switches share their buffers.

    one client that floods        holds a half at most, a half stays free
    k clients that flood          hold 1/(k+1) each, once their first requests have ended; as much stays free
    a client that holds nothing   is refused only if no slot is free

So no client depends on the number of others, and a single client may still use half of all slots.

A tenant has as many clients as it likes. All of them together may hold seven times the free slots: seven eighths if no
other tenant needs any, and an eighth stays free, however many of its clients flood.
"""

from typing import Final

OF_A_TENANT: Final = 7
"""Slots that a tenant may hold for each free one."""


class Room:
    """A number of slots. free: the number of free slots."""

    __slots__ = ("_held", "_held_by_tenant", "free", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.free = limit
        self._held: dict[
            int, int
        ] = {}  # only clients that hold a slot: a tenant may add and delete clients without end
        self._held_by_tenant: dict[int, int] = {}

    @property
    def clients(self) -> int:
        """Return the number of clients that hold a slot."""
        return len(self._held)

    def take(self, client_id: int, tenant_id: int) -> bool:
        """Take a slot for a request of a tenant's client, until `leave`. False: the client or its tenant has its share,
        or no slot is free."""
        free = self.free
        held, held_by_tenant = self._held.get(client_id, 0), self._held_by_tenant.get(tenant_id, 0)
        if held >= free or held_by_tenant >= OF_A_TENANT * free:
            return False
        self._held[client_id] = held + 1
        self._held_by_tenant[tenant_id] = held_by_tenant + 1
        self.free = free - 1
        return True

    def leave(self, client_id: int, tenant_id: int) -> None:
        """Free the slot of one of the client's requests."""
        self._held[client_id] -= 1
        if not self._held[client_id]:
            del self._held[client_id]
        self._held_by_tenant[tenant_id] -= 1
        self.free += 1


class Waiting:
    """The slots of all exchanges. Unsigned requests can be spoofed, so they have a quarter of the slots for themselves:
    a flood of them delays no signed request."""

    def __init__(self, limit: int) -> None:
        self.unproven = Room(max(1, limit // 4))
        self.proven = Room(max(1, limit - self.unproven.limit))

    @property
    def now(self) -> int:
        """Return the number of waiting requests."""
        return sum(room.limit - room.free for room in (self.proven, self.unproven))
