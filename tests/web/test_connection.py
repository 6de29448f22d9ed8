"""Tests of one connection over a real socket: clients without a token, streaming answers and proxies."""

import ipaddress
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import trio
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sallyport.web.connections import Limits
from tests.passes import PassCounter
from tests.web.sample import BIG, KEYED, LIST, SCOPE, make_sample
from tests.web.serving import GOOD, read_all, serving

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
JSON = b"Host: x\r\nContent-Type: application/json\r\n"
KEYED_HEAD = b"POST " + KEYED.encode() + b" HTTP/1.1\r\n" + JSON + b"Content-Length: 16000\r\n\r\n{"
BIG_REQUEST = (
    b"POST " + BIG.encode() + b" HTTP/1.1\r\nX-Authorization: sp_admin\r\n" + JSON + b"Content-Length: 2\r\n\r\n{}"
)
LIST_HEAD = b"POST " + LIST.encode() + b" HTTP/1.1\r\n" + JSON


async def test_unfinished_bodies_without_a_token_do_not_block_others() -> None:
    """A client with a token is answered at once, even if more unauthenticated connections than the limit wait for their
    bodies."""
    limits = Limits(connections=8, unauthenticated=100)
    async with serving(make_sample().app, limits=limits) as running:
        strangers = [await running.connect() for _ in range(30)]
        for stream in strangers:
            await stream.send_all(KEYED_HEAD)
        with trio.fail_after(3):
            assert await running.answers()
        for stream in strangers:
            await trio.aclose_forcefully(stream)


async def test_an_address_has_few_unauthenticated_connections() -> None:
    """A connection beyond the limit closes the oldest idle connection of its address.

    Connections with a token do not count.
    """
    async with serving(make_sample().app, limits=Limits(unauthenticated=3)) as running, running.client() as client:
        assert (await client.post(LIST, json=SCOPE)).status_code == 200
        strangers = [await running.connect() for _ in range(4)]
        with trio.fail_after(3):
            assert await strangers[0].receive_some(1) == b""
        assert (await client.post(LIST, json=SCOPE)).status_code == 200
        assert len(client._transport._pool.connections) == 1  # type: ignore[attr-defined]
        for stream in strangers:
            await stream.aclose()


async def test_unread_answers_do_not_block_others() -> None:
    """Another client is answered, even if more connections than the limit do not read their large answers."""
    limits = Limits(connections=4, unauthenticated=100, send_s=30)
    async with serving(make_sample().app, limits=limits) as running:
        idle = [await running.connect() for _ in range(8)]
        for stream in idle:
            await stream.send_all(BIG_REQUEST)
            await stream.receive_some(1)
        with trio.fail_after(3):
            assert await running.answers()
        for stream in idle:
            await trio.aclose_forcefully(stream)


async def test_a_body_without_a_token_has_less_time() -> None:
    """A body without a token must arrive within unauthenticated_body_s. A body with a token may take longer."""
    limits = Limits(body_s=30, unauthenticated_body_s=0.2)
    async with serving(make_sample().app, limits=limits) as running:
        stranger, known = await running.connect(), await running.connect()
        await stranger.send_all(KEYED_HEAD)
        body = b'{"orgId":1,"tenantId":1,"domainId":3}'
        head = LIST_HEAD + b"X-Authorization: sp_admin\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        await known.send_all(head + body[:1])
        assert (await read_all(stranger, 5)).startswith(b"HTTP/1.1 400 ")
        await known.send_all(body[1:])
        assert (await read_all(known, 5)).startswith(b"HTTP/1.1 200 ")
        await stranger.aclose()
        await known.aclose()


class Streams:
    """An app that sends an endless stream of events.

    `ended`: the event that is set when its generator is closed.
    """

    def __init__(self) -> None:
        self.ended = trio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        await StreamingResponse(self._events(), media_type="text/event-stream")(scope, receive, send)

    async def _events(self) -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await trio.sleep_forever()
        finally:
            self.ended.set()


async def test_a_streaming_answer_ends_when_its_client_disconnects() -> None:
    """The client receives the first event at once. When the client disconnects, the generator is closed."""
    app = Streams()
    async with serving(app) as running:
        stream = await running.connect()
        await stream.send_all(GOOD)
        octets = b""
        with trio.fail_after(5):
            while b"data: 1" not in octets:
                octets += await stream.receive_some(4096)
            await stream.aclose()
            await app.ended.wait()


async def test_requests_behind_a_streaming_answer_are_bounded() -> None:
    """If a client sends endless requests during a stream, the service stops reading from it."""
    app = Streams()
    async with serving(app) as running:
        stream = await running.connect()
        await stream.send_all(GOOD)
        sent = 0
        with trio.move_on_after(1):
            while True:
                await stream.send_all(bytes(1 << 16))
                sent += 1 << 16
        assert sent < 64 << 20
        await trio.aclose_forcefully(stream)


class Addresses:
    """An app that records the address of each client."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope["client"][0])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": b"}"})


@pytest.mark.parametrize(
    ("trusted", "header", "seen"),
    [
        pytest.param((LOOPBACK,), b"203.0.113.9", "203.0.113.9", id="trusted proxy"),
        pytest.param((LOOPBACK,), b"198.51.100.1, 203.0.113.9, 127.0.0.5", "203.0.113.9", id="last untrusted hop"),
        pytest.param((LOOPBACK,), b"198.51.100.7:4711", "198.51.100.7", id="IPv4 with port"),
        pytest.param((LOOPBACK,), b"[2001:db8::1]:4711", "2001:db8::1", id="IPv6 with port"),
        pytest.param((LOOPBACK,), b"[2001:db8::1]", "2001:db8::1", id="IPv6 in brackets"),
        pytest.param((LOOPBACK,), b"203.0.113.9, 127.0.0.5:4711", "203.0.113.9", id="proxy with port"),
        pytest.param((LOOPBACK,), b"unknown", "unknown", id="no address"),
        pytest.param((LOOPBACK,), b"203.0.113.9, unknown", "unknown", id="last hop without address"),
        pytest.param((LOOPBACK,), b"198.51.100.7:port", "unknown", id="no port"),
        pytest.param((LOOPBACK,), b"", "unknown", id="empty"),
        pytest.param((LOOPBACK,), b"127.0.0.1", "unknown", id="only proxies"),
        pytest.param((LOOPBACK,), b"::1", "unknown", id="loopback"),
        pytest.param((), b"203.0.113.9", "127.0.0.1", id="no trusted proxy"),
    ],
)
async def test_the_client_address_is_taken_from_a_trusted_proxy(
    trusted: tuple[ipaddress.IPv4Network, ...], header: bytes, seen: str
) -> None:
    """X-Forwarded-For is used only if a trusted proxy sent it.

    The client is the last address in it that is not a trusted proxy. If the proxy names no such address, the client is
    unknown, and not the machine of the proxy.
    """
    app = Addresses()
    async with serving(app, trusted_proxies=trusted) as running:
        stream = await running.connect()
        await stream.send_all(GOOD.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: " + header + b"\r\n\r\n"))
        await stream.receive_some(1)
        await stream.aclose()
    assert app.seen == [seen]


async def test_without_the_header_a_client_of_a_proxy_is_unknown() -> None:
    """A proxy that sends no X-Forwarded-For does not make its clients local."""
    app = Addresses()
    async with serving(app, trusted_proxies=(LOOPBACK,)) as running:
        stream = await running.connect()
        await stream.send_all(GOOD)
        await stream.receive_some(1)
        await stream.aclose()
    assert app.seen == ["unknown"]


async def test_unauthenticated_clients_of_a_proxy_count_separately() -> None:
    """The limit of an address applies to the forwarded address, and not to the address of the proxy."""
    limits = replace(Limits(unauthenticated=2), idle_s=30)
    async with serving(Addresses(), limits=limits, trusted_proxies=(LOOPBACK,)) as running:
        streams = [await running.connect() for _ in range(5)]
        for number, stream in enumerate(streams):
            forwarded = b"\r\nX-Forwarded-For: 203.0.113.%d\r\n\r\n" % number
            await stream.send_all(GOOD.replace(b"\r\n\r\n", forwarded))
            assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 200")
        for stream in streams:
            await stream.send_all(GOOD)
            assert await stream.receive_some(1)
            await stream.aclose()


class Passes:
    """An app that answers at once. It records in which pass of the event loop each request was served."""

    def __init__(self) -> None:
        self.counter, self.began = PassCounter(), list[int]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.append(self.counter.passes)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": b"}"})


async def test_pipelined_requests_do_not_block_the_event_loop() -> None:
    """Each pipelined request is served in its own pass of the event loop."""
    app = Passes()
    trio.lowlevel.add_instrument(app.counter)
    async with serving(app) as running:
        stream = await running.connect()
        await stream.send_all(GOOD * 20)
        with trio.fail_after(5):
            while len(app.began) < 20:
                await stream.receive_some(4096)
        await stream.aclose()
    trio.lowlevel.remove_instrument(app.counter)
    assert len(set(app.began)) == 20
