"""The sockets of one tenant's connections to the servers that it names.

A tenant has up to a thousand domains, each with servers and pools of their own. Without a limit for all of them their
connections take every file descriptor of the service, which other tenants' clients need.
"""

from __future__ import annotations

import errno
import socket
from collections import OrderedDict
from typing import Final, Protocol

import trio

MOST: Final = 4096
_AT_ONCE: Final = 64
"""Idle connections that are closed together when there is no socket left."""


class Idle(Protocol):
    """A connection that is kept for the next request."""

    def close(self) -> None:
        """Close its socket."""


class Sockets:
    """At most `most` open sockets. idle: connections that may be closed if there are too many, the oldest first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._open: set[socket.socket] = set()
        self.idle: OrderedDict[Idle, None] = OrderedDict()

    def open(self, address: str, kind: socket.SocketKind) -> socket.socket:
        """Return a new socket for an IP address, which does not block. OSError: too many are open."""
        while len(self._open) >= self._most:
            self._make_room()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        opened = socket.socket(family, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._open.add(opened)
        return opened

    async def connect(self, address: str, port: int) -> trio.SocketStream:
        """Return a TCP stream to an IP address. OSError."""
        connecting = trio.socket.from_stdlib_socket(self.open(address, socket.SOCK_STREAM))
        try:
            await connecting.connect((address, port))
        except BaseException:
            connecting.close()
            raise
        return trio.SocketStream(connecting)

    def _make_room(self) -> None:
        self._open = {each for each in self._open if each.fileno() >= 0}
        if len(self._open) < self._most:
            return
        if not self.idle:
            raise OSError(errno.EMFILE, "too many connections of the tenant")
        for _ in range(min(_AT_ONCE, len(self.idle))):
            self.idle.popitem(last=False)[0].close()
