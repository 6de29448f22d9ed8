"""One request and its answer for an ASGI application (ASGI 3.0, HTTP 2.3).

The application runs in the task of its connection and reads the body itself. Octets are received only when the
application asks for them, so a slow application slows its client down (back-pressure). When the whole body has been
read, the next call of `receive` waits until the client disconnects. Starlette ends a streaming answer when this call
returns.
"""

from contextlib import suppress
from typing import Protocol
from urllib.parse import unquote

import trio
from starlette.types import Message, Scope

from sallyport.web.http1 import Head, Malformed, Parser, ResponseFraming

PIPELINED = 1 << 16
"""Maximum number of octets of pipelined requests that are buffered while an answer is streamed."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_DISCONNECT: Message = {"type": "http.disconnect"}


class HttpConnection(Protocol):
    """The methods of a connection that an exchange uses."""

    async def fill(self, parser: Parser) -> bool:
        """Receive octets, and feed them to the parser. Return False if the client sends no more octets, or takes too
        long."""

    async def write(self, octets: bytes, *, last: bool) -> None:
        """Send octets to the client. If the client does not read them, the request is cancelled.

        last: whether these are the last octets of the answer.
        """

    def body_received(self) -> None:
        """Record that the whole request has been received."""


class Exchange:
    """One HTTP request and its answer. closing: whether the connection ends after this answer."""

    def __init__(self, wire: HttpConnection, parser: Parser, head: Head, *, closing: bool) -> None:
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


def scope_of(head: Head, *, scheme: str, client: tuple[str, int], server: tuple[str, int]) -> Scope:
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
