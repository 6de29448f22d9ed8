"""A small HTTP/1.1 server on loopback that simulates servers of providers: real sockets, h11, one handler.

async with serving(handler) as server:
    server.behave(Behaviour.SILENT)
    httpx.get(f"http://127.0.0.1:{server.port}/")
"""

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import parse_qsl

import h11
import trio

from sallyport.areas.mfa.contract import Behaviour


@dataclass(frozen=True)
class Call:
    """A request.

    Its path has no query, its parameters are those of the query or the form, and its header names are in lower case.
    """

    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        """Return the body as a JSON object."""
        document = json.loads(self.body)
        assert isinstance(document, dict)
        return document


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int = 200
    document: object = None
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Awaitable[Reply]]


class WebServer:
    """A server that counts requests and connections, and applies its behaviour before its handler."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.port = 0
        self.behaviour = Behaviour.APPROVE
        self.requests = 0
        self.connections = 0
        self.changed = trio.Event()

    def behave(self, behaviour: Behaviour) -> None:
        """Behave this way from the next request on. Requests that are waiting continue with the new behaviour."""
        self.behaviour = behaviour
        self.changed.set()
        self.changed = trio.Event()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            await self._converse(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass  # the client closed the connection
        finally:
            await trio.aclose_forcefully(stream)

    async def _converse(self, stream: trio.abc.Stream) -> None:
        connection = h11.Connection(h11.SERVER)
        while (call := await _read(connection, stream)) is not None:
            self.requests += 1
            if await self._misbehave(stream):
                return
            await _send(connection, stream, _bad_reply(self.behaviour) or await self.handler(call))
            if connection.our_state is h11.MUST_CLOSE:
                return
            connection.start_next_cycle()

    async def _misbehave(self, stream: trio.abc.Stream) -> bool:
        """Misbehave on the level below HTTP. Return whether the connection is finished."""
        if self.behaviour is Behaviour.SILENT:
            await trio.sleep_forever()
        if self.behaviour is Behaviour.BROKEN_OFF:
            await stream.send_all(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"status":')
        elif self.behaviour is Behaviour.NO_PROTOCOL:
            await stream.send_all(b"\x16\x03\x01 SSH-2.0-dropbear\r\n\r\n")
        elif self.behaviour is Behaviour.HUGE:
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while True:
                await stream.send_all(b'{"status": "approved"}' * 4096)
        else:
            return False
        return True


def _bad_reply(behaviour: Behaviour) -> Reply | None:
    if behaviour is Behaviour.RUBBISH:
        return Reply(200, "<html>Welcome to the router</html>")
    if behaviour is Behaviour.EMPTY:
        return Reply(200, {})
    if behaviour is Behaviour.REDIRECT:
        return Reply(302, {"status": "approved"}, {"Location": "/approve-everything"})
    if behaviour is Behaviour.FAIL:
        return Reply(500, {"status": "approved", "stat": "OK", "response": {"result": "allow"}})
    if behaviour is Behaviour.BUSY:
        return Reply(429, {}, {"Retry-After": "7"})
    return None


async def _read(connection: h11.Connection, stream: trio.abc.Stream) -> Call | None:
    request: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some(65536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return _call(request, body)
        else:
            return None


def _call(request: h11.Request, body: bytes) -> Call:
    headers = {name.decode(): value.decode() for name, value in request.headers}
    path, _, query = request.target.decode().partition("?")
    is_form = headers.get("content-type") == "application/x-www-form-urlencoded"
    parameters = dict(parse_qsl(body.decode() if is_form else query, keep_blank_values=True))
    return Call(request.method.decode(), path, parameters, headers, body)


async def _send(connection: h11.Connection, stream: trio.abc.Stream, reply: Reply) -> None:
    if isinstance(reply.document, bytes):
        body = reply.document
    else:
        body = reply.document.encode() if isinstance(reply.document, str) else json.dumps(reply.document).encode()
    headers = [("Content-Length", str(len(body))), ("Content-Type", "application/json"), *reply.headers.items()]
    octets = connection.send(h11.Response(status_code=reply.status, headers=headers, reason=b"x"))
    octets += connection.send(h11.Data(data=body)) + connection.send(h11.EndOfMessage())
    await stream.send_all(octets)


@asynccontextmanager
async def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    """Run a server on a free port of 127.0.0.1 until the block ends."""
    server = WebServer(handler)
    async with trio.open_nursery() as nursery:
        if tls is None:
            listen = partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1")
        else:
            listen = partial(trio.serve_ssl_over_tcp, server.serve, 0, tls, host="127.0.0.1")
        listeners = await nursery.start(listen)
        inner = listeners[0]
        socket_listener = inner.transport_listener if isinstance(inner, trio.SSLListener) else inner
        server.port = socket_listener.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()
