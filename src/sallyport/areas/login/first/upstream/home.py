"""A home server: its address, its health and its sockets."""

from __future__ import annotations

import math
import socket
from collections import deque
from collections.abc import Callable
from random import SystemRandom
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from sallyport.areas.login.first.upstream.health import Health, State
from sallyport.areas.login.first.upstream.link import Link
from sallyport.outgoing.egress import Sockets
from sallyport.radius.packet import SharedSecret

if TYPE_CHECKING:
    from sallyport.areas.login.first.upstream.rewrite import Forward
    from sallyport.radius.packet import Reply

IDENTIFIERS: Final = range(256)
RECEIVE_BUFFER: Final = 1 << 20
IDLE_S: Final = 60.0
MAX_CHANNELS: Final = 64

Waits = TypeVar("Waits")

_random: Final = SystemRandom()


def udp(sockets: Sockets, address: str, port: int) -> socket.socket:
    """Return a connected UDP socket. Raises OSError if there is no route to the address, or if no socket can be
    opened."""
    sock = sockets.open(address, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.connect((address, port))
    except OSError:
        sock.close()
        raise
    return sock


class Channel(Generic[Waits]):
    """A connected socket with its 256 identifiers.

    waiting: the pending requests by identifier. far: for RADIUS over TLS, the end of the socket pair that the channel
    does not use; None for UDP. retired: true if no further request may be sent on the channel.

    The identifier of an answered request goes to the end of the queue of free identifiers. The identifier of an
    unanswered request stays blocked as long as an answer may still arrive. Otherwise a late answer could be taken for
    the answer to another request.
    """

    __slots__ = ("_free", "_resting", "_used_at", "far", "retired", "sock", "waiting")

    def __init__(self, sock: socket.socket, now: float, far: socket.socket | None = None) -> None:
        self.sock = sock
        self.far = far
        self._free = deque(_random.sample(IDENTIFIERS, len(IDENTIFIERS)))
        self._resting: deque[tuple[float, int]] = deque()
        self._used_at = now
        self.waiting: dict[int, Waits] = {}
        self.retired = False

    @property
    def has_room(self) -> bool:
        """Return whether the channel has a free identifier."""
        return bool(self._free) and not self.retired

    def take(self, waits: Waits, now: float) -> int:
        """Assign a free identifier to a request, and return the identifier."""
        identifier = self._free.popleft()
        self.waiting[identifier] = waits
        self._used_at = now
        return identifier

    def give(self, identifier: int) -> None:
        """Free the identifier of an answered request."""
        del self.waiting[identifier]
        self._free.append(identifier)

    def rest(self, identifier: int, until: float) -> None:
        """Block the identifier of an unanswered request until the given time. In a channel that is not retired, `until`
        must not be earlier than in the previous call."""
        del self.waiting[identifier]
        self._resting.append((until, identifier))

    def pass_by(self, now: float) -> None:
        """Free the identifiers whose blocking time has ended."""
        while self._resting and self._resting[0][0] <= now:
            self._free.append(self._resting.popleft()[1])

    def is_idle(self, now: float) -> bool:
        """Return whether the channel can be closed. A retired channel can be closed when it has no pending requests.
        Any other channel can be closed after IDLE_S without use, when it has neither pending requests nor blocked
        identifiers."""
        if self.retired:
            return not self.waiting
        return not self.waiting and not self._resting and now - self._used_at >= IDLE_S


class Pending:
    """A request that waits for its answer, and the identifier that it occupies in a channel. packet: the sent octets.
    ends_at: the end of its response window."""

    __slots__ = ("channel", "ends_at", "identifier", "packet", "sent_at")

    def __init__(self) -> None:
        self.channel: Channel[Pending]
        self.identifier = 0
        self.packet = b""
        self.sent_at = self.ends_at = 0.0


class Check(Pending):
    """A pending Status-Server (RFC 5997)."""

    __slots__ = ()


class Question(Pending):
    """A login that is forwarded to home servers, one after the other if they do not answer.

    server: the home server that is asked now or has answered. tried: all servers that were asked. over: whether an
    answer has arrived or no server is left to ask. done: a function that is called once, when `over` becomes true.
    limit_at: the time after which no other server is asked. stays: true if only `server` can continue the login,
    because the request contains a State from this server.
    """

    __slots__ = ("answer", "done", "forward", "limit_at", "over", "server", "stays", "tried")

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.forward = forward
        self.over = False
        self.done: Callable[[], None]
        self.server: HomeServer | None = None
        self.tried: list[HomeServer] = []
        self.limit_at = 0.0
        self.stays = False
        self.answer: Reply | None = None

    def end(self) -> None:
        """End the login's forwarding, and call `done`."""
        self.over = True
        done = self.done
        del self.done  # `done` usually refers to the question; this avoids a reference cycle
        done()


class HomeServer:
    """A home server.

    address: the IP address, or empty until the name is resolved. trouble: the last error, for an admin. waiting: the
    number of pending logins. refused_at: the last time when the network reported the server unreachable. link: the
    connection for RADIUS over TLS, or None for UDP.
    """

    def __init__(
        self,
        host: str,
        port: int,
        secret: SharedSecret,
        sockets: Sockets,
        now: float,
        link: Link | None = None,
        *,
        checks: bool,
        on_change: Callable[[HomeServer, State, State], None],
    ) -> None:
        self.host = host
        self.port = port
        self.secret = secret
        self.link = link
        self._sockets = sockets
        self.health = Health(now, checks=checks, changed=lambda before, after: on_change(self, before, after))
        self.address = ""
        self.trouble = ""
        self.waiting = 0
        self.refused_at = self.warned_at = -math.inf
        self.channels: list[Channel[Pending]] = []

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_alive(self) -> bool:
        """Whether the server is in the state alive and its address is known."""
        return self.health.state is State.ALIVE and bool(self.address)

    def locate(self, addresses: list[str]) -> None:
        """Choose the server's address from the addresses of its name. The current address is kept if it is among
        them."""
        if self.address not in addresses:
            self.address = addresses[0]
            for channel in self.channels:
                channel.retired = True

    def refused(self, now: float) -> None:
        """Record that the network has reported the server unreachable."""
        self.refused_at = now
        self.health.refused(now)

    def free_channel(self, now: float) -> tuple[Channel[Pending], bool] | None:
        """Return a channel with a free identifier, and whether the channel is new. Return None if no channel has a free
        identifier and no further channel can be opened."""
        for channel in self.channels:
            if channel.has_room:
                return channel, False
        if not self.address or len(self.channels) >= MAX_CHANNELS:
            return None
        try:
            channel = self._new_channel(now)
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
            self.refused(now)
            return None
        self.channels.append(channel)
        return channel, True

    def _new_channel(self, now: float) -> Channel[Pending]:
        """Open a channel. Raises OSError."""
        if self.link is None:
            return Channel(udp(self._sockets, self.address, self.port), now)
        near, far = self.link.pair()
        return Channel(near, now, far)

    def lost(self, channel: Channel[Pending], now: float) -> None:
        """Retire a channel whose TLS connection has ended. When the NAS retransmits a request of this channel, the
        request is sent on a new connection."""
        channel.retired = True
        self.refused(now)

    def send(self, channel: Channel[Pending], packet: bytes, now: float) -> None:
        """Send a packet without waiting. If the kernel's buffer is full, the packet is lost, as it could be on the
        network."""
        for _ in range(2):  # the error may belong to an earlier packet, but this packet was not sent either
            try:
                channel.sock.send(packet)
            except BlockingIOError:
                return
            except OSError as error:
                if channel.far is None:  # otherwise the end of the TLS connection has a better reason
                    self.trouble = error.strerror or type(error).__name__
                self.refused(now)
            else:
                return

    def close_idle(self, now: float = math.inf) -> None:
        """Close the channels that are idle at the time `now`. Without an argument, close all channels."""
        idle = [channel for channel in self.channels if now == math.inf or channel.is_idle(now)]
        for channel in idle:
            self.channels.remove(channel)
            trio.lowlevel.notify_closing(channel.sock)
            channel.sock.close()
