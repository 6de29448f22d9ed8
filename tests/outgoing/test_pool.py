"""Tests of the connections of HTTP clients: a connection is reused if that is safe, and otherwise closed."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sallyport.areas.mfa.contract import Behaviour
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.outgoing.pool import KEPT_S, MAX_BODY, Pool
from sallyport.settings.values import ANYWHERE
from tests.areas.mfa.certificates import self_signed
from tests.areas.mfa.web import Call, Reply, serving

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Peer:
    """A server that answers each request with the same octets.

    ended: an event for each connection, which is set when the connection ends.
    """

    octets: bytes
    port: int = 0
    ended: list[trio.Event] = field(default_factory=list)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        self.ended.append(ended := trio.Event())
        try:
            while await stream.receive_some():
                await stream.send_all(self.octets)
        except trio.BrokenResourceError:
            pass
        ended.set()

    @property
    def connections(self) -> int:
        """Return the number of connections."""
        return len(self.ended)


@asynccontextmanager
async def answering(octets: bytes) -> AsyncIterator[Peer]:
    """Run a server on a free port of 127.0.0.1."""
    peer = Peer(octets)
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, peer.serve, 0, host="127.0.0.1"))
        peer.port = listener.socket.getsockname()[1]
        yield peer
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def pooled(trust: ssl.SSLContext | None = None, *, most: int = 100) -> AsyncIterator[Pool]:
    """Yield a pool that is closed at the end of the block."""
    async with Pool(Egress(ANYWHERE), trust or ssl.create_default_context(), most=most) as pool:
        yield pool


def request(port: int, scheme: str = "http", host: str = "127.0.0.1") -> httpx.Request:
    """Return a GET with a timeout of half a minute."""
    return httpx.Request("GET", f"{scheme}://{host}:{port}/", extensions={"timeout": {"read": 30.0}})


async def ok(call: Call) -> Reply:
    """Answer with 200."""
    return Reply(200, {})


async def test_tls_connections_are_reused(tmp_path: Path) -> None:
    """Later requests use the same connection and need no handshake."""
    context, chain = self_signed(tmp_path, "localhost")
    trust = ssl.create_default_context(cafile=str(chain))
    async with serving(ok, tls=context) as server, pooled(trust) as pool:
        for _ in range(3):
            assert (await pool.fetch(request(server.port, "https", "localhost"))).body == b"{}"
        assert server.connections == 1


async def test_a_connection_is_used_for_one_origin() -> None:
    async with answering(OK) as one, answering(OK) as other, pooled() as pool:
        for peer in (one, other, one, other):
            await pool.fetch(request(peer.port))
        assert one.connections == other.connections == 1


async def test_old_connections_are_closed(mock_clock: MockClock) -> None:
    """If a connection was idle for too long, the next request closes it and opens a new one."""
    async with answering(OK) as peer, pooled() as pool:
        await pool.fetch(request(peer.port))
        mock_clock.jump(KEPT_S)
        await pool.fetch(request(peer.port))
        assert peer.connections == 2
        await peer.ended[0].wait()
        assert not peer.ended[1].is_set()


async def test_closed_connections_are_not_reused() -> None:
    """A connection that the server has closed is replaced by a new one without an error."""
    async with pooled() as pool:
        async with answering(OK) as peer:
            await pool.fetch(request(peer.port))
        async with trio.open_nursery() as nursery:
            again = Peer(OK)
            await nursery.start(partial(trio.serve_tcp, again.serve, peer.port, host="127.0.0.1"))
            assert (await pool.fetch(request(peer.port))).body == b"ok"
            assert again.connections == 1
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "octets",
    [
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_unexpected_octets_end_a_connection(octets: bytes) -> None:
    """Octets after a response are not read as the next response. `Connection: close` is obeyed."""
    async with answering(octets) as peer, pooled() as pool:
        for _ in range(2):
            assert (await pool.fetch(request(peer.port))).body == b"ok"
        assert peer.connections == 2
        for ended in peer.ended:
            await ended.wait()


async def test_interim_responses() -> None:
    """Early hints (RFC 8297) are skipped. Switching Protocols is an error, because it was not requested."""
    async with answering(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK) as peer, pooled() as pool:
        assert (await pool.fetch(request(peer.port))).body == b"ok"
    switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    async with answering(switching) as peer, pooled() as pool:
        with pytest.raises(httpx.RemoteProtocolError):
            await pool.fetch(request(peer.port))


async def test_the_number_of_connections_is_limited() -> None:
    """Requests above the limit of connections wait, and all of them are answered."""
    async with serving(ok) as server, pooled(most=2) as pool, trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(pool.fetch, request(server.port))
    assert server.requests == 10
    assert server.connections <= 2


async def test_waiting_for_a_connection_does_not_count(mock_clock: MockClock) -> None:
    """A request may wait for a free connection longer than the time limit of the server."""
    mock_clock.rate = 1
    asked, go_on = trio.Event(), trio.Event()

    async def first_later(call: Call) -> Reply:
        asked.set()
        await go_on.wait()
        return Reply(200, {})

    async with serving(first_later) as server, pooled(most=1) as pool, trio.open_nursery() as nursery:
        nursery.start_soon(pool.fetch, httpx.Request("GET", f"http://127.0.0.1:{server.port}/"))
        await asked.wait()
        nursery.start_soon(pool.fetch, request(server.port))
        await wait_all_tasks_blocked(0.01)
        mock_clock.jump(100)
        await wait_all_tasks_blocked(0.01)
        go_on.set()
    assert server.requests == 2


async def test_closing_the_pool() -> None:
    """Closing the pool closes idle connections at once.

    A connection in use still receives its response and is then closed.
    """
    asked, go_on = trio.Event(), trio.Event()

    async def later(call: Call) -> Reply:
        asked.set()
        await go_on.wait()
        return Reply(200, {})

    async with answering(OK) as peer, serving(later) as server, pooled() as pool:
        await pool.fetch(request(peer.port))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.fetch, request(server.port))
            await asked.wait()
            await pool.aclose()
            await peer.ended[0].wait()
            go_on.set()
        await pool.fetch(request(server.port))
        assert server.connections == 2


async def test_a_cancelled_request_closes_its_connection() -> None:
    """A cancelled request closes its connection, because a response may still arrive on it."""
    async with serving(ok) as server, pooled() as pool:
        server.behave(Behaviour.SILENT)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pool.fetch, request(server.port))
                while not server.requests:
                    await trio.sleep(0.01)
                scope.cancel()
        server.behave(Behaviour.APPROVE)
        await pool.fetch(request(server.port))
        assert server.connections == 2


async def test_a_client_of_httpx() -> None:
    """The client is a plain httpx client, so that providers from other projects can use it. Its limits raise a
    ProviderError."""
    async with serving(ok) as server, HttpFactory(egress=ANYWHERE)(f"http://127.0.0.1:{server.port}") as client:
        assert (await client.get("/")).json() == {}
        server.behave(Behaviour.HUGE)
        with pytest.raises(ProviderError, match=f"more than {MAX_BODY // 1024} KiB"):
            await client.get("/")
        server.behave(Behaviour.SILENT)
        with pytest.raises(ProviderError, match="no answer in time"):
            await client.get("/", timeout=0.1)
        with pytest.raises(ProviderError, match="the request failed"):
            await client.get("ftp://127.0.0.1/")
