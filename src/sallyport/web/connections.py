"""Which connections of a listener wait for their peers, and which of them is closed to make room.

A connection whose peer owes it a handshake, a head or the rest of a body can be closed for another: opening connections
and leaving them costs the service nothing. Strangers, which have sent no authenticated request, give way first, and one
address holds only a few of them. IPv6 addresses count by their /64, which one host can have as a whole.
"""

import ipaddress
from itertools import chain
from typing import Generic, Protocol, TypeVar

from sallyport.base.addresses import parse_address


class Closable(Protocol):
    """A connection as far as it is chosen here."""

    def hang_up(self) -> None:
        """End it now."""


ConnectionT = TypeVar("ConnectionT", bound=Closable)


class ConnectionTable(Generic[ConnectionT]):
    """The connections of one listener. strangers: how many of one address are held."""

    def __init__(self, strangers: int) -> None:
        self._limit = strangers
        self._waiting_strangers: dict[ConnectionT, None] = {}  # the longest waiting first
        self._waiting_known: dict[ConnectionT, None] = {}
        self._strangers: dict[str, dict[ConnectionT, None]] = {}  # by address, the oldest first
        self._address: dict[ConnectionT, str] = {}

    def enter(self, connection: ConnectionT, host: str) -> None:
        """Count a stranger for its address. At the limit the one that waits longest is closed, or else this one."""
        self.forget_address(connection)
        address = _counted(host)
        own = self._strangers.setdefault(address, {})
        own[connection] = None
        self._address[connection] = address
        if len(own) > self._limit:
            self._close(next((each for each in own if each in self._waiting_strangers), connection))

    def forget_address(self, connection: ConnectionT) -> None:
        """Count the connection for no address: it is no stranger's any more, or another client's."""
        address = self._address.pop(connection, None)
        if address is not None:
            own = self._strangers[address]
            del own[connection]
            if not own:
                del self._strangers[address]

    def note(self, connection: ConnectionT, *, waits: bool, known: bool) -> None:
        """Note whether a connection waits for its peer, and whether it has sent an authenticated request."""
        mine, other = self._waiting_strangers, self._waiting_known
        if known:
            mine, other = other, mine
            self.forget_address(connection)
        other.pop(connection, None)
        if waits:
            mine.setdefault(connection)
        else:
            mine.pop(connection, None)

    def leave(self, connection: ConnectionT) -> None:
        """Forget a connection that has ended."""
        self.forget_address(connection)
        self._waiting_strangers.pop(connection, None)
        self._waiting_known.pop(connection, None)

    def waiting(self) -> list[ConnectionT]:
        """Return the connections that wait for their peers."""
        return [*self._waiting_strangers, *self._waiting_known]

    def make_room(self) -> None:
        """Close the stranger that has waited longest for its peer, else the known connection that has."""
        longest = next(chain(self._waiting_strangers, self._waiting_known), None)
        if longest is not None:
            self._close(longest)

    def _close(self, connection: ConnectionT) -> None:
        self.leave(connection)
        connection.hang_up()


def _counted(host: str) -> str:
    """Return what an address counts as: an IPv6 address as its /64."""
    address = parse_address(host.partition("%")[0])
    return str(address) if address.version == 4 else str(ipaddress.ip_network((int(address), 64), strict=False))
