"""The connections of an HTTP client, as a transport for httpx that uses trio and h11.

An exchange through httpx's own transport takes 1.4 ms of CPU time. Of this time, 1.0 ms is spent in the pool, locks and
layers of that transport. In the transport of this module, a request takes the idle connection that was used last. If no
connection is idle, the request opens a new one. h11 parses the answer. The answer is read to its end before it is
returned, so a connection serves one request at a time. The pool supports HTTP/1.1 only, without proxies and redirects.

The pool resolves a name for each new connection, and connects to an address that `egress` allows. SNI and the check of
the certificate use the name. Tenants take turns in reading answers.

Failures raise httpx's exceptions with their cause. A forbidden address raises ProviderError.
"""

from __future__ import annotations

import math
import re
import ssl
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import h11
import httpx
import trio

from sallyport.base.fair import LoopTurns
from sallyport.outgoing.certificate import verification_error, why_refused
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import no_connection
from sallyport.outgoing.tls import secured

MAX_BODY: Final = 256 * 1024
KEPT_S: Final = 4.0
"""Seconds after which an idle connection is not used again, because the server may close it soon. Node.js, Apache and
uvicorn close a connection after 5 seconds by default."""
MARGIN_S: Final = 1.0
"""An idle connection is not used in the last second before the limit that the server has announced (Keep-Alive)."""
MAX_CONNECTIONS: Final = 2048
_READ: Final = 4096
"""Maximum number of octets that are parsed in one step. With chunks of a single octet, a step takes 10 ms."""
_HEADERS: Final = 65_536
_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_TIMEOUT: Final = re.compile(rb"(?i)\btimeout\s*=\s*(\d{1,6})\b")

_Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
Origin = tuple[str, str, int]


class NotConnected(httpx.ConnectError):
    """The error for a server that cannot be reached, or whose certificate is not trusted. The message is for an
    admin."""


class TooLong(httpx.ReadError):
    """The error for an answer that is longer than the limit. The message is for an admin."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete HTTP answer, unchanged from the server."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Connection:
    """One connection, which serves one request at a time. socket: the socket below TLS. has_answered: whether the
    server has sent octets after the last request."""

    def __init__(self, stream: _Stream, socket: trio.socket.SocketType, turns: LoopTurns) -> None:
        self._stream = stream
        self._socket = socket
        self._turns = turns
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADERS)
        self._left_s = 0.0
        self._kept_s = KEPT_S
        self.has_answered = False
        self.used_at = 0.0

    async def ask(self, request: h11.Request, body: bytes, most: int, limit_s: float) -> HttpAnswer:
        """Send a request and read its whole answer, with a body of at most `most` octets.

        limit_s: the longest time, in seconds, for which this service waits for the server. After octets have arrived,
        they may wait until this service reads them; this time does not count. Raises TooLong, h11.ProtocolError,
        trio.BrokenResourceError, trio.TooSlowError. After an error or a cancellation, the connection cannot be used
        again.
        """
        self._left_s, self.has_answered = limit_s, False
        octets = self._http.send(request)
        if body:
            octets += self._http.send(h11.Data(data=body))
        octets += self._http.send(h11.EndOfMessage())
        with suppress(trio.BrokenResourceError), self._limit():  # the server may answer before it has read everything
            await self._stream.send_all(octets)
        status, headers, parts, size = 0, [], [], 0
        while not isinstance(event := await self._next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status, headers = event.status_code, event.headers.raw_items()
                self._kept_s = _kept_s(event.headers)
            elif isinstance(event, h11.Data):
                parts.append(event.data)
                size += len(event.data)
                if size > most:
                    raise TooLong(f"the server answered with more than {most // 1024} KiB")
        return HttpAnswer(status, headers, b"".join(parts))

    async def _next_event(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Event):
                return event
            if event is h11.PAUSED:
                raise h11.RemoteProtocolError("the server switches to another protocol")
            with self._limit():
                octets = await self._stream.receive_some(_READ)
            self.has_answered = self.has_answered or bool(octets)
            await self._turns.take()
            self._http.receive_data(bytes(octets))

    @contextmanager
    def _limit(self) -> Iterator[None]:
        """Limit a wait for the server to the time that is left. Raises trio.TooSlowError."""
        began = trio.current_time()
        with trio.fail_after(max(self._left_s, 0.0)):
            yield
        self._left_s -= trio.current_time() - began

    def keep(self, now: float) -> bool:
        """Prepare the connection for another request. Return whether the connection can be used again. now: the current
        time of trio's clock, in seconds.

        It cannot be used if the last answer is incomplete, or if more octets follow the answer.
        """
        self.used_at = now
        http = self._http
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE or http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        return True

    def is_open(self, now: float) -> bool:
        """Return whether an idle connection can be used for a request. It can be used if it is open, is not too old,
        and has received no octets since the last answer."""
        return now < self.used_at + self._kept_s and self._socket.fileno() >= 0 and not self._socket.is_readable()

    def close(self) -> None:
        """Close the connection at once. No TLS closure alert is sent, because no server needs it."""
        self._socket.close()


class Pool(httpx.AsyncBaseTransport):
    """A pool of connections. A connection is kept for later requests to the same origin.

    most: the number of requests that may run at the same time; further requests wait. trust: the TLS context with the
    trusted authorities.
    """

    def __init__(self, egress: Egress, trust: ssl.SSLContext, *, most: int = MAX_CONNECTIONS) -> None:
        self.egress = egress
        self._trust = trust
        self._room = trio.Semaphore(most)
        self._kept: defaultdict[Origin, deque[Connection]] = defaultdict(deque)
        self._closed = False
        trust.set_alpn_protocols(["http/1.1"])

    async def fetch(
        self, request: httpx.Request, most: int = MAX_BODY, *, is_repeatable: bool | None = None
    ) -> HttpAnswer:
        """Send a request and return its answer. Raises httpx.TransportError, ProviderError.

        If the server closes an idle connection just as the request arrives, a repeatable request is sent once more over
        a new connection. is_repeatable: whether the server may get the request twice; None if the method decides (RFC
        9110 section 9.2.2).

        The read timeout of the request is used twice: it limits the time to connect, and after that the time until the
        answer. The time that the request waits for a free place in the pool is not limited.
        """
        limit = request.extensions.get("timeout", {}).get("read")
        limit_s = math.inf if limit is None else limit
        body = await request.aread()
        try:
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
            async with self._room:
                again = request.method in _IDEMPOTENT if is_repeatable is None else is_repeatable
                return await self._fetch(origin_of(request.url), head, body, most, limit_s, again=again)
        except trio.TooSlowError as error:
            raise httpx.ReadTimeout("no answer in time") from error
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except (OSError, trio.BrokenResourceError) as error:
            raise httpx.ReadError(str(error)) from error

    async def _fetch(
        self, origin: Origin, head: h11.Request, body: bytes, most: int, limit_s: float, *, again: bool
    ) -> HttpAnswer:
        began = trio.current_time()
        kept = self._take(origin)
        if kept is not None:
            try:
                return await self._ask(kept, origin, head, body, most, limit_s)
            except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError):
                if kept.has_answered or not again:
                    raise
        with trio.fail_after(max(limit_s - (trio.current_time() - began), 0.0)):
            connection = await self._connect(*origin)
        left_s = limit_s if kept is None else limit_s - (trio.current_time() - began)
        return await self._ask(connection, origin, head, body, most, left_s)

    async def _ask(
        self, connection: Connection, origin: Origin, head: h11.Request, body: bytes, most: int, limit_s: float
    ) -> HttpAnswer:
        try:
            answer = await connection.ask(head, body, most, limit_s)
        except BaseException:
            connection.close()
            raise
        if connection.keep(trio.current_time()) and not self._closed:
            self._kept[origin].append(connection)
            self.egress.sockets.idle[connection] = None
        else:
            connection.close()
        return answer

    def _take(self, origin: Origin) -> Connection | None:
        """Return the idle connection that was used last, or None. Also close connections that cannot be used again."""
        kept, now = self._kept[origin], trio.current_time()
        while kept and kept[0].used_at + KEPT_S <= now:
            self._take_out(kept.popleft()).close()
        while kept:
            connection = self._take_out(kept.pop())
            if connection.is_open(now):
                return connection
            connection.close()
        return None

    def _take_out(self, connection: Connection) -> Connection:
        self.egress.sockets.idle.pop(connection, None)
        return connection

    async def _connect(self, scheme: str, host: str, port: int) -> Connection:
        """Return a new connection to a host, with TLS for https.

        Raises NotConnected if the connection fails or the certificate is not trusted.
        """
        stream = await self._stream(host, port)
        if scheme == "http":
            return Connection(stream, stream.socket, self.egress.turns)
        try:
            secure = await secured(stream, self._trust, host, self.egress.handshakes)
        except BaseException as error:
            stream.socket.close()
            refused = verification_error(error)
            if refused is None:
                raise
            connect, threads = partial(self._stream, host, port), self.egress.handshakes
            raise NotConnected(await why_refused(refused, host, connect, threads)) from error
        return Connection(secure, stream.socket, self.egress.turns)

    async def _stream(self, host: str, port: int) -> trio.SocketStream:
        """Connect to a host. Raises NotConnected, ProviderError."""
        try:
            return await self.egress.connect(host, port)
        except OSError as error:
            raise NotConnected(no_connection(error, port)) from error

    async def aclose(self) -> None:
        """Close idle connections now, and the other connections when their answers are complete."""
        self._closed = True
        for kept in self._kept.values():
            while kept:
                self._take_out(kept.pop()).close()


def _kept_s(headers: Iterable[tuple[bytes, bytes]]) -> float:
    """Return for how many seconds a connection may be idle: KEPT_S, or less if the server announces it with the header
    `Keep-Alive: timeout=N`."""
    for name, value in headers:
        found = _TIMEOUT.search(value) if name == b"keep-alive" else None
        if found is not None:
            return min(KEPT_S, max(float(found[1]) - MARGIN_S, 0.0))
    return KEPT_S


def origin_of(url: httpx.URL) -> Origin:
    """Return the scheme, the encoded host and the port of a URL. Raises httpx.UnsupportedProtocol."""
    if url.scheme not in ("http", "https"):
        raise httpx.UnsupportedProtocol("the URL is neither http nor https")
    return url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)
