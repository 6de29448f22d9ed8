"""A TCP proxy between a node and PostgreSQL, which a test lets pass, holds or cuts.

with Proxy(server.port) as proxy:
    url = proxy.url(database)
    proxy.hold()          # a partition: no octet passes, and no connection ends
    proxy.release()
    proxy.cut()           # ends the connections, and refuses new ones
    proxy.cut_at(b"commit")  # passes the next octets with this text to the server, and loses the answer
"""

import selectors
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Final
from urllib.parse import urlsplit, urlunsplit

CHUNK: Final = 1 << 16
LOOK_S: Final = 0.02


@dataclass(eq=False)
class _Pair:
    """A connection and its other half. lost: whether the server's answers are dropped."""

    client: socket.socket
    server: socket.socket
    lost: bool = False

    def close(self) -> None:
        """End both halves."""
        for each in (self.client, self.server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@dataclass(eq=False)
class Proxy:
    """Passes connections on to a port of this machine. lost: set when `cut_at` has lost an answer. refused: the number
    of refused connections."""

    target: int
    refused: int = 0
    lost: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[_Pair] = []
        self._has_changed = True  # whether `_pairs` has changed since the thread last registered them
        self._changing = Lock()
        self._is_held = self._is_refusing = self._is_ended = False
        self._text = b""
        self._thread = Thread(target=self._run)

    @property
    def port(self) -> int:
        """Return the port for clients."""
        return int(self._listener.getsockname()[1])

    def url(self, database: str) -> str:
        """Return the address of a database through the proxy."""
        parts = urlsplit(database)
        return urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{self.port}"))

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_ended = True
        self._thread.join()
        for pair in self._pairs:
            pair.close()
        self._listener.close()

    def hold(self) -> None:
        """Pass nothing until `release`."""
        self._is_held = True

    def release(self) -> None:
        """Pass octets and accept connections again."""
        self._is_held = self._is_refusing = False

    def cut(self) -> None:
        """End all connections, and new ones at once, until `release`."""
        self._is_refusing = True
        with self._changing:
            pairs, self._pairs, self._has_changed = self._pairs, [], True
        for pair in pairs:
            pair.close()

    def cut_at(self, text: bytes) -> None:
        """Pass the next octets with this text to the server, and end their connection without the answer."""
        self.lost.clear()
        self._text = text

    def _run(self) -> None:
        ready = selectors.DefaultSelector()
        while not self._is_ended:
            if self._is_held:
                time.sleep(LOOK_S)
                continue
            if self._has_changed:
                ready.close()
                ready = self._registered()
            for key, _ in ready.select(LOOK_S):
                if key.data is None:
                    self._accept()
                else:
                    self._pass(*key.data)
        ready.close()

    def _registered(self) -> selectors.DefaultSelector:
        """Return a selector of all sockets."""
        ready = selectors.DefaultSelector()
        ready.register(self._listener, selectors.EVENT_READ)
        with self._changing:
            pairs, self._has_changed = list(self._pairs), False
        for pair in pairs:
            with suppress(ValueError, KeyError):  # another thread has just closed it
                ready.register(pair.client, selectors.EVENT_READ, (pair, True))
                ready.register(pair.server, selectors.EVENT_READ, (pair, False))
        return ready

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._is_refusing:
            self.refused += 1
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:  # the server is down
            client.close()
            return
        # Otherwise the second part of a message would wait for a late acknowledgement (RFC 9293 section 3.7.4).
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = _Pair(client, server)
        with self._changing:
            self._pairs.append(pair)
            self._has_changed = True

    def _pass(self, pair: _Pair, is_request: bool) -> None:
        source, sink = (pair.client, pair.server) if is_request else (pair.server, pair.client)
        try:
            octets = source.recv(CHUNK)
            if is_request and self._text and self._text in octets:
                self._text, pair.lost = b"", True
            if pair.lost and not is_request:
                octets = b""  # the answer is lost with its connection
            if octets:
                sink.sendall(octets)
                return
        except OSError:
            pass
        pair.close()
        with self._changing:
            if pair in self._pairs:
                self._pairs.remove(pair)
                self._has_changed = True
        if pair.lost:
            self.lost.set()
