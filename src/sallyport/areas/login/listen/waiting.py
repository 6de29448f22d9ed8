"""Limit the pending requests of all exchanges, with a fair share for each RADIUS client and each tenant.

A pending request waits for I/O, the store, its second factor, or the delay of its reject. It holds a slot. A client may
hold at most as many slots as are free (dynamic threshold, as in the shared buffers of switches).

    one client that floods        holds at most a half; a half remains free
    k clients that flood          hold 1/(k+1) each, after their first requests have ended; 1/(k+1) remains free
    a client that holds nothing   is refused only if no slot is free

So the other clients always find free slots, and yet a single client may use half of all slots.

A tenant can create any number of clients. Therefore all its clients together may hold at most seven times as many slots
as are free. So at most seven eighths of all slots go to one tenant, and one eighth remains free.
"""

from collections.abc import Hashable
from typing import Final

OF_A_TENANT: Final = 7
"""Maximum number of slots of a tenant, as a multiple of the free slots."""


class Room:
    """A limited number of slots. The more slots are free, the more slots a client or tenant can hold (dynamic
    threshold). free: the number of free slots."""

    __slots__ = ("_held", "_held_by_tenant", "free", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.free = limit
        # only clients that hold a slot are stored, because a tenant may add and delete any number of clients
        self._held: dict[Hashable, int] = {}
        self._held_by_tenant: dict[int, int] = {}

    @property
    def clients(self) -> int:
        """The number of clients that hold a slot."""
        return len(self._held)

    def take(self, client_id: Hashable, tenant_id: int) -> bool:
        """Take a slot for a request. If a slot was taken, return True. The request then holds the slot until `leave` is
        called.

        Return False if the client or its tenant has reached its share, or if no slot is free.
        """
        free = self.free
        held, held_by_tenant = self._held.get(client_id, 0), self._held_by_tenant.get(tenant_id, 0)
        if held >= free or held_by_tenant >= OF_A_TENANT * free:
            return False
        self._held[client_id] = held + 1
        self._held_by_tenant[tenant_id] = held_by_tenant + 1
        self.free = free - 1
        return True

    def leave(self, client_id: Hashable, tenant_id: int) -> None:
        """Free the slot of one of the client's requests."""
        self._held[client_id] -= 1
        if not self._held[client_id]:
            del self._held[client_id]
        self._held_by_tenant[tenant_id] -= 1
        self.free += 1


class Waiting:
    """The slots of all exchanges. A quarter of the slots is reserved for unsigned requests, and signed requests use the
    others. Unsigned requests can be forged, and a flood of them must not delay signed requests."""

    def __init__(self, limit: int) -> None:
        self.unproven = Room(max(1, limit // 4))
        self.proven = Room(max(1, limit - self.unproven.limit))

    @property
    def now(self) -> int:
        """The number of pending requests."""
        return sum(room.limit - room.free for room in (self.proven, self.unproven))
