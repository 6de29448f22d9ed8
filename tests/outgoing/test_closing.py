"""Tests of servers that close an idle connection just as a request arrives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest
import trio
from trio.testing import MockClock

from sallyport.outgoing.pool import KEPT_S
from tests.outgoing.test_pool import OK, pooled


class Closing:
    """A server on a free port. It answers the first request on each connection, and closes the connection when a second
    one arrives, after `before` octets of an answer. requests: the number of requests."""

    def __init__(self, octets: bytes = OK, before: bytes = b"") -> None:
        self.octets = octets
        self.before = before
        self.requests = 0
        self.connections = 0
        self.port = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        self.connections += 1
        await stream.receive_some()
        self.requests += 1
        await stream.send_all(self.octets)
        if await stream.receive_some():
            self.requests += 1
            if self.before:
                await stream.send_all(self.before)
        await stream.aclose()


class Refusing(Closing):
    """A server that closes each connection when a request arrives."""

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        self.requests += bool(await stream.receive_some())
        await stream.aclose()


@asynccontextmanager
async def closing(server: Closing) -> AsyncIterator[Closing]:
    """Run a server."""
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
        server.port = listener.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


def request(server: Closing, method: str = "GET") -> httpx.Request:
    """Return a request with a timeout of half a minute."""
    url = f"http://127.0.0.1:{server.port}/"
    return httpx.Request(method, url, content=b"{}", extensions={"timeout": {"read": 30.0}})


@pytest.mark.parametrize(("method", "is_repeatable"), [("GET", None), ("PUT", None), ("DELETE", None), ("POST", True)])
async def test_a_repeatable_request_is_sent_again(method: str, is_repeatable: bool | None) -> None:
    """The request is sent once more over a new connection, and the caller sees no error."""
    async with closing(Closing()) as server, pooled() as pool:
        for _ in range(2):
            answer = await pool.fetch(request(server, method), is_repeatable=is_repeatable)
            assert answer.body == b"ok"
        assert (server.requests, server.connections) == (3, 2)


@pytest.mark.parametrize(("method", "is_repeatable"), [("POST", None), ("GET", False)])
async def test_another_request_is_sent_once(method: str, is_repeatable: bool | None) -> None:
    """A request that the server may have carried out already is not sent again."""
    async with closing(Closing()) as server, pooled() as pool:
        await pool.fetch(request(server))
        with pytest.raises(httpx.TransportError):
            await pool.fetch(request(server, method), is_repeatable=is_repeatable)
        assert (server.requests, server.connections) == (2, 1)


async def test_a_begun_answer_is_not_asked_for_again() -> None:
    """If the server has begun to answer, the request has arrived, and is not sent again."""
    async with closing(Closing(before=b"HTTP/1.1 200 OK\r\nContent-Le")) as server, pooled() as pool:
        await pool.fetch(request(server))
        with pytest.raises(httpx.RemoteProtocolError):
            await pool.fetch(request(server))
        assert server.requests == 2


async def test_a_new_connection_is_tried_once() -> None:
    """A server that closes each new connection without an answer does not get the request twice."""
    async with closing(Refusing()) as server, pooled() as pool:
        with pytest.raises(httpx.RemoteProtocolError):
            await pool.fetch(request(server))
        assert server.requests == 1


@pytest.mark.parametrize(
    ("header", "idle_s"),
    [(b"", 4.0), (b"Keep-Alive: timeout=3, max=100\r\n", 2.0), (b"keep-alive: Timeout = 120\r\n", 4.0)],
)
async def test_a_connection_is_kept_for_less_than_the_limit_of_the_server(
    mock_clock: MockClock, header: bytes, idle_s: float
) -> None:
    """An idle connection is kept for 4 seconds, or for a second less than the server announces."""
    assert KEPT_S == 4.0
    octets = b"HTTP/1.1 200 OK\r\n" + header + b"Content-Length: 2\r\n\r\nok"
    async with closing(Closing(octets)) as server, pooled() as pool:
        await pool.fetch(request(server))
        mock_clock.jump(idle_s - 0.1)
        await pool.fetch(request(server))  # closed by the server, and sent again
        assert (server.requests, server.connections) == (3, 2)
        mock_clock.jump(idle_s)
        await pool.fetch(request(server))
        assert (server.requests, server.connections) == (4, 3)
