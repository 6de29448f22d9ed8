"""What the clients of a round share, and a NAS that repeats a login with the same octets each second until it is
answered. Without an answer it goes to the next node."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from threading import Event
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.packet import ACCESS_ACCEPT, decode_reply
from tests.radius_client import RadiusClient
from tests.soak.history import Login
from tests.soak.schedule import Round
from tests.soak.site import SECRET, SOURCES, Site

AGAIN_S: Final = 1.0
TRIES: Final = 4
"""Number of requests to one node before the next node is asked."""
PATIENCE_S: Final = 40.0


@dataclass
class Turn:
    """What the clients of a round share. over: set at the end of the round. directory: for files of the round."""

    site: Site
    round: Round
    directory: Path
    over: Event = field(default_factory=Event)
    _stations: Iterator[int] = field(default_factory=count)

    def station(self) -> str:
        """Return the address of a new station."""
        number = next(self._stations)
        return f"{station_prefix(self.round.number)}{number >> 16:02X}-{number >> 8 & 255:02X}-{number & 255:02X}"

    def random(self, name: str) -> Random:
        """Return the random numbers of a client."""
        return Random(f"{self.round.seed}/{name}")

    def rest(self, seconds: float) -> None:
        """Wait, but not beyond the end of the round."""
        self.over.wait(seconds)


def station_prefix(number: int) -> str:
    """Return the beginning of the addresses of a round's stations."""
    return f"02-50-{number:02X}-"


@dataclass
class Asked:
    """A login at one node. replies: the different answers to its octets."""

    server: RadiusClient
    packet: bytes
    replies: list[bytes] = field(default_factory=list)

    def send(self) -> None:
        """Send the request, again with the same octets."""
        with suppress(ConnectionRefusedError):  # of an earlier datagram: the node was down
            self.server.send(self.packet)

    def receive(self, seconds: float) -> bool:
        """Wait for an authentic reply. Return whether one came."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.server.sock.settimeout(left)
            with suppress(OSError, PacketError):  # also a late answer to a former request
                reply = self.server.sock.recv(4096)
                decode_reply(reply, self.packet, self.server.secret)
                if reply not in self.replies:
                    self.replies.append(reply)
                return True
        return False

    @property
    def is_accepted(self) -> bool:
        """Whether an answer is an Accept."""
        return any(reply[0] == ACCESS_ACCEPT for reply in self.replies)


class Nas:
    """A NAS that knows all nodes, behind the relay."""

    def __init__(self, turn: Turn, domain: str) -> None:
        self._history = turn.site.history
        self._held = ExitStack()
        self._servers = [
            self._held.enter_context(RadiusClient(ports.auth, SECRET, source=SOURCES[domain]))
            for ports in turn.site.relay.ports
        ]
        self._asked: list[Asked] = []

    def __enter__(self) -> "Nas":
        return self

    def __exit__(self, *_error: object) -> None:
        self._held.close()

    def log_in(self, login: Login, password: str, *, first: int = 0, only: bool = False) -> Login:
        """Send a login until it is answered. first: the node that is asked first. only: whether no other is asked."""
        name, station = f"nas-{login.kind}".encode(), login.station.encode()
        first %= len(self._servers)
        servers = self._servers[first : first + 1] if only else self._servers[first:] + self._servers[:first]
        self._asked = [
            Asked(server, server.packet(login.user, password, NAS_IDENTIFIER=name, CALLING_STATION_ID=station))
            for server in servers
        ]
        login.began, login.sent = time.monotonic(), 0
        while time.monotonic() < login.began + PATIENCE_S:
            asked = self._asked[login.sent // TRIES % len(self._asked)]
            login.sent += 1
            asked.send()
            if asked.receive(AGAIN_S):
                login.code = asked.replies[0][0]
                break
        self._end(login)
        self._history.add(login)
        return login

    def repeat(self, login: Login) -> None:
        """Send the octets of the last login again, to the node that has answered it."""
        for asked in self._asked:
            if asked.replies:
                asked.send()
                asked.receive(AGAIN_S)
        self._end(login)

    def _end(self, login: Login) -> None:
        login.ended = time.monotonic()
        login.answers = max(len(asked.replies) for asked in self._asked)
        login.accepts = sum(asked.is_accepted for asked in self._asked)
