"""One HTTP connection, and its requests for an ASGI application (ASGI 3.0, HTTP 2.3). Each wait has a time limit.

- Versions are HTTP/1.1 and 1.0. A request to upgrade the protocol is served without the upgrade. Prior-knowledge HTTP/2
  is answered by 505.
- An error ends only its own connection: `run` raises nothing but cancellation.
- A peer has limited time for the handshake, for a head, between requests, for a body (with a minimum rate) and for each
  part of an answer. A peer that has sent no valid credentials has less time for a body.
- A connection ends in stages (RFC 9112 section 9.6), with and without TLS. The service shuts its sending side, and
  reads for a moment. If it closed at once, a reset could lose the last part of the answer.

The application runs in the task of its connection and reads the body itself. Octets are received only when the
application asks for them, so a slow application slows its client down (back-pressure). When the whole body has been
read, the next call of `receive` waits until the client disconnects. Starlette ends a streaming answer when this call
returns.
"""

import enum
import math
import os
from contextlib import suppress
from typing import Protocol, TypeAlias
from urllib.parse import unquote

import structlog
import trio
from starlette.types import ASGIApp, Message, Scope

from sallyport.base.tls import TlsStream
from sallyport.web import problem
from sallyport.web.connections import PEER, ConnectionTable, Limits
from sallyport.web.http1 import BrokenAnswer, Head, Malformed, Parser, ResponseFraming

RECEIVE = 1 << 14
PIECE = 1 << 16
PIPELINED = 1 << 16
"""Maximum number of octets of pipelined requests that are buffered while an answer is streamed."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_DISCONNECT: Message = {"type": "http.disconnect"}
_GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)
_ANY = Head("GET", b"/", b"1.1", [], keeps_alive=False)
"""A placeholder for the request in answers to octets that are not an HTTP request."""

Stream: TypeAlias = trio.SocketStream | TlsStream

log = structlog.get_logger()


class Phase(enum.Enum):
    """The state of a connection. In all states except WORKING, the connection waits for its peer.

    In SENDING, the connection waits until the peer has read the answer.
    """

    HANDSHAKE = enum.auto()
    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    WORKING = enum.auto()
    SENDING = enum.auto()
    CLOSING = enum.auto()


class Acceptor(Protocol):
    """The methods of a listener that a connection uses.

    closing: whether the listener serves no more requests. turn: the limit of threads for TLS handshakes.
    """

    closing: bool
    turn: trio.CapacityLimiter
    table: ConnectionTable["Connection"]

    def park(self, connection: "Connection", parks: bool) -> None:
        """Record whether the request of a connection waits for its result. parks: True when the request starts to wait,
        False when it has stopped waiting."""

    def forwarded(self, connection: "Connection", head: Head) -> str:
        """Return the client's address from the X-Forwarded-For header of a trusted proxy. Return `unknown` if there is
        no such address.

        If there is an address, the limits of this address apply to the connection from then on.
        """

    def left(self, connection: "Connection") -> None:
        """Remove a connection that has ended."""


class Connection:
    """One accepted connection.

    client: the peer's address and port. proxied: whether the peer is a trusted proxy. known: whether the peer has sent
    an authenticated request.
    """

    def __init__(
        self,
        app: ASGIApp,
        stream: Stream,
        client: tuple[str, int],
        limits: Limits,
        acceptor: Acceptor,
        *,
        proxied: bool = False,
    ) -> None:
        self._app = app
        self._stream = stream
        self._transport = stream.transport if isinstance(stream, TlsStream) else stream
        self._limits = limits
        self._acceptor = acceptor
        self._proxied = proxied
        self._parser = Parser(limits.head_octets)
        self._scope = trio.CancelScope()
        # One scope for all waits for a head and for the peer to read an answer, because a new scope takes 10 us.
        self._patience = trio.CancelScope()
        self._left_s = math.inf  # the time that the peer still has in this phase
        self._descriptor = self._transport.socket.fileno() if stream is self._transport else None
        self._client = client
        self._server: tuple[str, int] = self._transport.socket.getsockname()[:2]
        self.phase = Phase.HANDSHAKE
        self.known = False

    async def run(self) -> None:
        """Serve requests until either side ends the connection, then close the stream. Raises only cancellation."""
        PEER.set(self)
        try:
            with self._scope:
                with self._patience:
                    await self._serve()
                if self.phase is not Phase.SENDING:
                    await self._close()
        except _GONE:
            pass
        except Exception as error:
            log.warning("http_connection_failed", error=repr(error))
        finally:
            self._acceptor.left(self)
            await trio.aclose_forcefully(self._transport)

    def hang_up(self) -> None:
        """End the connection at once, in any state."""
        self._scope.cancel()

    def park(self, parks: bool) -> None:
        self._acceptor.park(self, parks)

    def authenticate(self) -> None:
        if not self.known:
            self.known = True
            if self.phase is Phase.BODY:
                self._left_s += self._limits.body_s - self._limits.unauthenticated_body_s
            self._note()

    async def _serve(self) -> None:
        self._note()
        if isinstance(self._stream, TlsStream):
            with trio.fail_after(self._limits.handshake_s):
                await self._stream.handshake(self._acceptor.turn, self._note_wait)
        self._enter(Phase.HEAD, self._limits.head_s)
        for number in range(1, self._limits.requests + 1):
            if not await self._serve_request(last=number == self._limits.requests):
                break
            if self._parser.held:
                self._enter(Phase.HEAD, self._limits.head_s)
            else:
                self._enter(Phase.IDLE, self._limits.idle_s)

    async def _serve_request(self, *, last: bool) -> bool:
        """Serve one request. Return False if the connection must not serve another request."""
        try:
            head = await self._head()
        except Malformed as error:
            await self._refuse(error.status, "malformed request")
            return False
        if head is None:
            return False
        forwarded = self._acceptor.forwarded(self, head) if self._proxied else None
        if forwarded is not None and self.known:
            self.known = False
            self._note()
        self._enter(Phase.BODY, self._limits.body_s if self.known else self._limits.unauthenticated_body_s)
        exchange = Exchange(self, self._parser, head, closing=last or self._acceptor.closing)
        scheme = "https" if isinstance(self._stream, TlsStream) else "http"
        client = self._client if forwarded is None else (forwarded, 0)
        try:
            await self._app(
                _scope_of(head, scheme=scheme, client=client, server=self._server), exchange.receive, exchange.send
            )
        except BrokenAnswer as error:
            log.warning("http_answer_broken", method=head.method, error=str(error))
        if not exchange.answer.begun:
            await self._refuse(500, "no answer")
        return exchange.answer.complete and not exchange.answer.closes and not self._acceptor.closing

    async def _head(self) -> Head | None:
        """Return the next head, or None if the peer closes the connection.

        If the peer takes too long, the scope `_patience` is cancelled.
        """
        if self._parser.held:
            await trio.lowlevel.checkpoint()  # a checkpoint, because pipelined requests must not block the event loop
        while (head := self._parser.head()) is None:
            self._patience.deadline = trio.current_time() + self._left_s
            octets = await self._receive()
            if not octets:
                return None
            self._parser.feed(octets)
            if self.phase is Phase.IDLE:
                self._enter(Phase.HEAD, self._limits.head_s)
            else:
                self._left_s = self._patience.deadline - trio.current_time()
        self._patience.deadline = math.inf
        await trio.lowlevel.checkpoint_if_cancelled()  # if the time has just run out, the request must not start
        return head

    async def _receive(self) -> bytes:
        """Return received octets, or an empty value if the peer sends no more octets."""
        if self._descriptor is None:
            return bytes(await self._stream.receive_some(RECEIVE))
        while True:  # equivalent to `receive_some`, at half its cost
            await trio.lowlevel.wait_readable(self._descriptor)
            with suppress(BlockingIOError):
                return os.read(self._descriptor, RECEIVE)

    async def _refuse(self, status: int, message: str) -> None:
        """Send an error answer if the application has not sent an answer, for example to malformed octets."""
        response = problem.body("", status, message)
        answer = ResponseFraming(_ANY)
        octets = answer.begin(status, response.raw_headers) + answer.piece(bytes(response.body), more=False)
        await self.write(octets, last=True)

    async def fill(self, parser: Parser) -> bool:
        """Receive octets, and feed them to the parser. Return False if the client sends no more octets, or takes too
        long."""
        began = trio.current_time()
        with trio.move_on_after(self._left_s):
            octets = bytes(await self._stream.receive_some(RECEIVE))
            self._left_s -= trio.current_time() - began
            if self.phase is Phase.BODY:
                self._left_s += len(octets) / self._limits.body_rate
            parser.feed(octets)
            return bool(octets)
        return False

    async def write(self, octets: bytes, *, last: bool) -> None:
        """Send octets to the client. If the client does not read them, the request is cancelled.

        last: whether these are the last octets of the answer.
        """
        try:
            sent = self._send_now(octets) if last else 0
            if sent < len(octets):
                await self._send(octets[sent:])
        except _GONE:
            self._scope.cancel()
            await trio.lowlevel.checkpoint()

    def _send_now(self, octets: bytes) -> int:
        """Send as many octets as the system accepts without blocking, and return their number. Raises OSError."""
        if self._descriptor is None or len(octets) > PIECE:
            return 0
        try:
            return os.write(self._descriptor, octets)
        except BlockingIOError:
            return 0

    async def _send(self, octets: bytes) -> None:
        """Send octets in parts.

        If the peer takes too long to read a part, the scope `_patience` is cancelled. If the connection is broken, an
        error in `_GONE` is raised.
        """
        former, self.phase = self.phase, Phase.SENDING
        self._note()
        for at in range(0, len(octets), PIECE):
            self._patience.deadline = trio.current_time() + self._limits.send_s
            await self._stream.send_all(octets[at : at + PIECE])
        self._patience.deadline = math.inf
        self.phase = former
        self._note()

    def body_received(self) -> None:
        """Record that the whole request has been received."""
        self._enter(Phase.WORKING, math.inf)

    async def _close(self) -> None:
        """Shut the sending side of the connection. Then read for at most `linger_s` seconds, until the peer closes its
        side."""
        self._enter(Phase.CLOSING, math.inf)
        with trio.move_on_after(self._limits.linger_s):
            await self._transport.send_eof()
            while await self._transport.receive_some(RECEIVE):
                pass

    def _note_wait(self, waits: bool) -> None:
        """Record whether the handshake waits for the peer. While it waits for the server's thread, the connection must
        not give way to another one."""
        self._acceptor.table.note(self, waits=waits, known=False)

    def _note(self) -> None:
        self._acceptor.table.note(self, waits=self.phase is not Phase.WORKING, known=self.known)

    def _enter(self, phase: Phase, seconds: float) -> None:
        waited = self.phase is not Phase.WORKING
        self.phase, self._left_s = phase, seconds
        if waited != (phase is not Phase.WORKING):
            self._note()


class Exchange:
    """One HTTP request and its answer. closing: whether the connection ends after this answer."""

    def __init__(self, wire: "Connection", parser: Parser, head: Head, *, closing: bool) -> None:
        self._wire = wire
        self._parser = parser
        self._expects_continue = head.expects_continue
        self._received = False
        self._disconnected = False
        self._unsent = b""  # the head of the answer, which is kept until the first part of its body
        self.answer = ResponseFraming(head, closes=closing)
        if not parser.body_due:
            wire.body_received()

    async def receive(self) -> Message:
        """Return the next part of the body, or a message that the client has disconnected (the ASGI `receive`)."""
        if self._parser.in_chunks:
            # a checkpoint, because many chunks of one octet must not block the event loop
            await trio.lowlevel.checkpoint()
        if not self._disconnected:
            try:
                if not self._received:
                    return await self._body()
                await self._disconnection()
            except Malformed:
                pass
            self._disconnected = True
        return _DISCONNECT

    async def _body(self) -> Message:
        if self._expects_continue:
            self._expects_continue = False
            await self._wire.write(_CONTINUE, last=False)
        piece = self._parser.take_body()
        while self._parser.body_due and not piece:
            if not await self._wire.fill(self._parser):
                self._disconnected = True
                return _DISCONNECT
            piece = self._parser.take_body()
        if not self._parser.body_due:
            self._received = True
            self._wire.body_received()
        return {"type": "http.request", "body": piece, "more_body": self._parser.body_due}

    async def _disconnection(self) -> None:
        """Wait until the client closes or resets the connection."""
        with suppress(trio.BrokenResourceError):
            while await self._wire.fill(self._parser):
                if self._parser.held > PIPELINED:
                    await trio.sleep_forever()

    async def send(self, message: Message) -> None:
        """Send the head or a part of the answer (the ASGI `send`). Raises BrokenAnswer."""
        if message["type"] == "http.response.start":
            self.answer.closes |= self._parser.body_due  # the rest of the body will not be read
            self._unsent = self.answer.begin(message["status"], message.get("headers", ()))
        else:
            more = message.get("more_body", False)
            octets, self._unsent = self._unsent + self.answer.piece(message.get("body", b""), more=more), b""
            await self._wire.write(octets, last=not more)


def _scope_of(head: Head, *, scheme: str, client: tuple[str, int], server: tuple[str, int]) -> Scope:
    """Return the ASGI scope of a request."""
    raw_path, _, query = head.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": head.version.decode("ascii"),
        "method": head.method,
        "scheme": scheme,
        "path": unquote(raw_path.decode("ascii")) if b"%" in raw_path else raw_path.decode("ascii"),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": head.headers,
        "client": client,
        "server": server,
        "state": {},
    }
