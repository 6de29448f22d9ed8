"""The limits for peers, and the connections of a listener that wait for their peers. If a listener is full, the table
closes one of these connections, so that the listener can accept a new connection.

Therefore clients that open connections and leave them idle cannot block the service. Connections without an
authenticated request are closed first, and one address may have only a few of them. IPv6 addresses count by their /64
network, because one host can own a /64. After `Peer.authenticate` a connection counts as authenticated.

    with parked():
        await changed.wait()

While a request is parked, its connection does not count. Otherwise a thousand waiting agents could keep other clients
out. The caller of `parked` must limit the number of parked requests.
"""

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Protocol, TypeVar

from sallyport.base.addresses import parse_address


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for a peer, in seconds and octets."""

    connections: int = 512
    """Maximum number of connections of a listener. If it is reached, the connection that has waited longest for its
    peer is closed."""
    unauthenticated: int = 64
    """Maximum number of connections from one address that have sent no authenticated request."""
    handshake_s: float = 10.0
    head_s: float = 10.0
    idle_s: float = 60.0
    body_s: float = 30.0
    unauthenticated_body_s: float = 5.0
    """Seconds in which a peer without valid credentials must send the body of its request."""
    body_rate: int = 16_384
    """Minimum rate of a body in octets per second. When octets arrive, the time for the body is extended
    accordingly."""
    send_s: float = 5.0
    """Seconds in which the client must read each 64 KiB of an answer."""
    linger_s: float = 1.0
    drain_s: float = 5.0
    """Seconds in which running requests must end after the service has begun to stop."""
    head_octets: int = 16_384
    requests: int = 1000
    """Maximum number of requests on one connection."""


class Closable(Protocol):
    """A connection that can be closed."""

    def hang_up(self) -> None:
        """End the connection at once."""


ConnectionT = TypeVar("ConnectionT", bound=Closable)


class ConnectionTable(Generic[ConnectionT]):
    """The connections of one listener.

    unauthenticated: the maximum number of connections from one address that have sent no authenticated request.
    """

    def __init__(self, unauthenticated: int) -> None:
        self._limit = unauthenticated
        self._waiting_unauthenticated: dict[
            ConnectionT, None
        ] = {}  # the first connection is the one that has waited longest
        self._waiting_authenticated: dict[ConnectionT, None] = {}
        self._unauthenticated: dict[str, dict[ConnectionT, None]] = {}  # by address; the oldest connection is the first
        self._address: dict[ConnectionT, str] = {}

    def enter(self, connection: ConnectionT, host: str) -> None:
        """Count an unauthenticated connection for its address. If the address then has too many of them, close the
        oldest one that waits for its peer. If none of them waits, close this connection."""
        self.forget_address(connection)
        address = counted_address(host)
        own = self._unauthenticated.setdefault(address, {})
        own[connection] = None
        self._address[connection] = address
        if len(own) > self._limit:
            self._close(next((each for each in own if each in self._waiting_unauthenticated), connection))

    def forget_address(self, connection: ConnectionT) -> None:
        """Stop counting a connection for its address. Call this when the connection is authenticated, or when the
        address of its client changes."""
        address = self._address.pop(connection, None)
        if address is not None:
            own = self._unauthenticated[address]
            del own[connection]
            if not own:
                del self._unauthenticated[address]

    def note(self, connection: ConnectionT, *, waits: bool, known: bool) -> None:
        """Record whether a connection waits for its peer, and whether it has sent an authenticated request."""
        mine, other = self._waiting_unauthenticated, self._waiting_authenticated
        if known:
            mine, other = other, mine
            self.forget_address(connection)
        other.pop(connection, None)
        if waits:
            mine.setdefault(connection)
        else:
            mine.pop(connection, None)

    def leave(self, connection: ConnectionT) -> None:
        """Remove a connection that has ended."""
        self.forget_address(connection)
        self._waiting_unauthenticated.pop(connection, None)
        self._waiting_authenticated.pop(connection, None)

    def waiting(self) -> list[ConnectionT]:
        """Return the connections that wait for their peers."""
        return [*self._waiting_unauthenticated, *self._waiting_authenticated]

    def make_room(self) -> None:
        """Close the unauthenticated connection that has waited longest for its peer. If there is none, close the
        authenticated connection that has waited longest."""
        longest = next(chain(self._waiting_unauthenticated, self._waiting_authenticated), None)
        if longest is not None:
            self._close(longest)

    def _close(self, connection: ConnectionT) -> None:
        self.leave(connection)
        connection.hang_up()


def counted_address(host: str) -> str:
    """Return the key under which an address is counted: an IPv4 address, or the /64 network of an IPv6 address. A text
    that is no address is returned unchanged."""
    try:
        address = parse_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address) if address.version == 4 else str(ipaddress.ip_network((int(address), 64), strict=False))


class Peer(Protocol):
    """The connection of the current request."""

    def park(self, parks: bool) -> None:
        """Record that the request starts to wait, or has stopped waiting. parks: whether the request waits."""

    def authenticate(self) -> None:
        """Record that the request has valid credentials."""


PEER: ContextVar[Peer | None] = ContextVar("peer", default=None)
"""The connection of the current request; None for work that is not an HTTP request."""


@contextmanager
def parked() -> Iterator[None]:
    """Exclude the current connection from the limit of connections during the block. Use this while the request
    waits."""
    peer = PEER.get()
    if peer is None:
        yield
        return
    peer.park(True)
    try:
        yield
    finally:
        peer.park(False)
