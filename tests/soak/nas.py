"""What the clients of a round share, and a NAS that repeats a login with the same octets each second until it is
answered. Without an answer it goes to the next node."""

import select
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from threading import Event
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.packet import decode_reply
from tests.radius_client import RadiusClient
from tests.soak.history import Login, Packet
from tests.soak.schedule import Round
from tests.soak.site import SECRET, SOURCES, Site

AGAIN_S: Final = 1.0
TRIES: Final = 4
"""Number of requests to one node before the next node is asked."""
PATIENCE_S: Final = 40.0
LATE_S: Final = 0.3
"""The time for which a NAS reads the answers that come after the first one."""


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


class Nas:
    """A NAS that knows all nodes, behind the relay, and has two ports if there is one node. It reads the answers at all
    its ports as long as it exists."""

    def __init__(self, turn: Turn, domain: str) -> None:
        self._history = turn.site.history
        self._domain = domain
        self._held = ExitStack()
        ports = turn.site.relay.ports
        self._nodes = list(range(len(ports))) if len(ports) > 1 else [0, 0]
        self._clients = [
            self._held.enter_context(RadiusClient(ports[node].auth, SECRET, source=SOURCES[domain]))
            for node in self._nodes
        ]
        self._sent = defaultdict[tuple[int, int], list[Packet]](list)  # by port of the NAS and identifier

    def __enter__(self) -> "Nas":
        return self

    def __exit__(self, *_error: object) -> None:
        self._receive(LATE_S)
        self._held.close()

    def log_in(
        self, login: Login, password: str, *, first: int = 0, only: bool = False, tries: int = TRIES, late_s: float = 0
    ) -> Login:
        """Send a login until it is answered.

        first: the node that is asked first. only: whether no other node is asked. tries: the number of requests with
        the same octets. Then the next node gets another packet; a single node gets it from another port. late_s: the
        time for which answers to the other packets are read.
        """
        name = f"nas-{login.kind}".encode()
        login.domain, login.began = self._domain, time.monotonic()
        while time.monotonic() < login.began + PATIENCE_S and not login.code:
            if sum(each.sent for each in login.packets) % tries == 0 and not (only and login.packets):
                port = (first + len(login.packets)) % len(self._clients)
                octets = self._clients[port].packet(
                    login.user, password, NAS_IDENTIFIER=name, CALLING_STATION_ID=login.station.encode()
                )
                login.packets.append(Packet(self._nodes[port], port, octets))
                self._sent[port, octets[1]].append(login.packets[-1])
            self._send(login.packets[-1])
            self._receive(AGAIN_S, login)
        login.ended = time.monotonic()
        self._receive(late_s)
        self._history.add(login)
        return login

    def repeat(self, login: Login) -> None:
        """Send the octets of a login again to the node that has answered it, until it answers."""
        packet = next((each for each in login.packets if each.replies), None)
        if packet is None:
            return
        login.silent = time.monotonic()
        while time.monotonic() < login.silent + PATIENCE_S:
            self._send(packet)
            if self._receive(AGAIN_S, login):
                login.silent = 0.0
                break
        login.ended = time.monotonic()

    def _send(self, packet: Packet) -> None:
        packet.last, packet.sent = time.monotonic(), packet.sent + 1
        packet.first = packet.first or packet.last
        with suppress(ConnectionRefusedError):  # of an earlier datagram: the node was down
            self._clients[packet.port].send(packet.octets)

    def _receive(self, seconds: float, login: Login | None = None) -> bool:
        """Read the answers of all nodes for a time, or until one belongs to a login. Return whether one does."""
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            readable, _, _ = select.select([each.sock for each in self._clients], [], [], left)
            for port, client in enumerate(self._clients):
                with suppress(OSError):
                    if client.sock in readable and self._take(port, client.sock.recv(4096), login):
                        return True
            if left == 0:
                return False

    def _take(self, port: int, reply: bytes, login: Login | None) -> bool:
        """Record an answer at the request that it fits. Return whether this is a request of the login."""
        packet = next((each for each in self._sent[port, reply[1]] if self._fits(reply, each)), None)
        if packet is None:
            self._history.count(forged=1)
            return False
        if reply not in packet.replies:
            packet.replies.append(reply)
        if login is None or packet not in login.packets:
            return False
        if not login.code:
            login.code, login.node = reply[0], packet.node
        return True

    def _fits(self, reply: bytes, packet: Packet) -> bool:
        with suppress(PacketError):
            decode_reply(reply, packet.octets, self._clients[packet.port].secret)
            return True
        return False
