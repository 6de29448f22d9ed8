"""The sockets of a home server, of UDP or of a link over TLS. A RADIUS packet has one octet for its identifier, so that
256 can wait at a socket (RFC 2865 section 3); for more there are more sockets."""

import socket
from collections import deque
from random import SystemRandom
from typing import Final, Generic, TypeVar

from sallyport.outgoing.egress import Sockets

IDENTIFIERS: Final = range(256)
RECEIVE_BUFFER: Final = 1 << 20
IDLE_S: Final = 60.0

Waits = TypeVar("Waits")

_random: Final = SystemRandom()


def udp(sockets: Sockets, address: str, port: int) -> socket.socket:
    """A connected socket. OSError: there is no way to the address, or no socket."""
    sock = sockets.open(address, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.connect((address, port))
    except OSError:
        sock.close()
        raise
    return sock


class Channel(Generic[Waits]):
    """One connected socket. waiting: who waits for the answer under each identifier. far: the other end of a link's,
    which ends with its connection; None for UDP. retired: nobody is asked by it any more.

    An identifier that was answered is the last to be used again. One that was not, rests until its answer would come
    too late: it would be held against the next one's request.
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
        """Whether an identifier is free."""
        return bool(self._free) and not self.retired

    def take(self, waits: Waits, now: float) -> int:
        """A free identifier, under which somebody waits from now on."""
        identifier = self._free.popleft()
        self.waiting[identifier] = waits
        self._used_at = now
        return identifier

    def give(self, identifier: int) -> None:
        """It was answered."""
        del self.waiting[identifier]
        self._free.append(identifier)

    def rest(self, identifier: int, until: float) -> None:
        """Nobody waits any more, and an answer may still come. until: never before that of an earlier call."""
        del self.waiting[identifier]
        self._resting.append((until, identifier))

    def pass_by(self, now: float) -> None:
        """Free what has rested."""
        while self._resting and self._resting[0][0] <= now:
            self._free.append(self._resting.popleft()[1])

    def is_idle(self, now: float) -> bool:
        """Whether it is of no use any more."""
        if self.retired:
            return not self.waiting
        return not self.waiting and not self._resting and now - self._used_at >= IDLE_S
