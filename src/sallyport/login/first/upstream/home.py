"""One home server: where it is, how it does, and its sockets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio

from sallyport.login.first.upstream.channels import Channel, udp
from sallyport.login.first.upstream.health import Health, State
from sallyport.login.first.upstream.link import Link
from sallyport.outgoing.egress import Sockets
from sallyport.radius.authenticator import SharedSecret

MAX_CHANNELS: Final = 64


class Ask:
    """Somebody who waits for an answer under an identifier of a channel.

    packet: what was sent. ends_at: when its window is over.
    """

    __slots__ = ("channel", "ends_at", "identifier", "packet", "sent_at")

    def __init__(self) -> None:
        self.channel: Channel[Ask]
        self.identifier = 0
        self.packet = b""
        self.sent_at = self.ends_at = 0.0


class HomeServer:
    """address: empty until the name was looked up. trouble: why there is none, or why an answer did not hold; for an
    admin. waiting: how many wait for its answer. refused_at: when the network last said that nobody is there. link: how
    it is reached over TLS; None: over UDP."""

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
        self.channels: list[Channel[Ask]] = []

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_alive(self) -> bool:
        """Whether it is where it can be asked, and answers."""
        return self.health.state is State.ALIVE and bool(self.address)

    def locate(self, addresses: list[str]) -> None:
        """It is at one of these addresses; where it was before, if that is one of them."""
        if self.address not in addresses:
            self.address = addresses[0]
            for channel in self.channels:
                channel.retired = True

    def refused(self, now: float) -> None:
        """The network says that nobody is there."""
        self.refused_at = now
        self.health.refused(now)

    def free_lane(self, now: float) -> tuple[Channel[Ask], bool] | None:
        """A channel with a free identifier, and whether it is a new one. None: there is none, and may be no more, or no
        way to the server."""
        for channel in self.channels:
            if channel.has_room:
                return channel, False
        if not self.address or len(self.channels) >= MAX_CHANNELS:
            return None
        try:
            channel = self._lane(now)
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
            self.refused(now)
            return None
        self.channels.append(channel)
        return channel, True

    def _lane(self, now: float) -> Channel[Ask]:
        """OSError."""
        if self.link is None:
            return Channel(udp(self._sockets, self.address, self.port), now)
        near, far = self.link.pair()
        return Channel(near, now, far)

    def lost(self, channel: Channel[Ask], now: float) -> None:
        """A connection has ended: whoever waits there is asked for anew when the NAS repeats itself."""
        channel.retired = True
        self.refused(now)

    def send(self, channel: Channel[Ask], packet: bytes, now: float) -> None:
        """Send without waiting. What the kernel does not take is lost, as on any way."""
        for _ in range(2):  # an error may be about what was sent before; then nothing was sent now
            try:
                channel.sock.send(packet)
            except BlockingIOError:
                return
            except OSError as error:
                self.trouble = error.strerror or type(error).__name__
                self.refused(now)
            else:
                return

    def close_lanes(self, now: float = math.inf) -> None:
        """Close those that are of no use any more; at no time given, all."""
        idle = [channel for channel in self.channels if now == math.inf or channel.is_idle(now)]
        for channel in idle:
            self.channels.remove(channel)
            trio.lowlevel.notify_closing(channel.sock)
            channel.sock.close()
