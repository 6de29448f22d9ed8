"""Tests of the HTTP server: addresses, TLS, limits and its stop."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing
from starlette.types import Receive, Scope, Send

from sallyport.base.errors import ConfigError, StartError
from sallyport.base.tls import TlsStream
from sallyport.settings.values import Address
from sallyport.web.connection import Connection
from sallyport.web.connections import ConnectionTable, Limits
from sallyport.web.http1 import Head
from sallyport.web.server import Listener, Tls, serve_http, tls_context
from tests.client_hello import ALERT, FFDHE2048, FFDHE8192, client_hello
from tests.web.sample import LIST, SCOPE, make_sample
from tests.web.serving import GOOD, LOOPBACK, QUICK, Served, read_all, read_answer, serving


@pytest.fixture(params=["clear", "tls"])
async def served(request: pytest.FixtureRequest, certificate: Tls) -> AsyncIterator[Served]:
    """Yield the sample service, with and without TLS. Only its timeout for idle connections is short."""
    limits = replace(QUICK, handshake_s=5, head_s=5, body_s=5, unauthenticated_body_s=5, send_s=5, linger_s=5)
    async with serving(make_sample().app, certificate if request.param == "tls" else None, limits) as running:
        yield running


async def test_a_request_is_answered_without_a_banner(served: Served) -> None:
    """No header names the server."""
    async with served.client() as client:
        answer = await client.post(LIST, json={**SCOPE, "search": "x"})
    assert (answer.status_code, answer.json()["network_devices"]) == (200, ["x"])
    assert "server" not in answer.headers


async def test_a_refusal_reaches_a_client_that_is_still_sending(served: Served) -> None:
    """401 and 413 responses arrive although most of the body was not read."""
    async with served.client() as client:
        for token, status in (("sp_nobody", 401), ("sp_admin", 413)):
            headers = {"x-authorization": token, "content-type": "application/json"}
            answer = await client.post(LIST, content=b" " * 3_000_000, headers=headers)
            assert (answer.status_code, answer.headers["connection"]) == (status, "close")


async def test_a_connection_serves_several_requests(served: Served) -> None:
    """Pipelined requests are answered on one connection."""
    stream = await served.connect()
    await stream.send_all(GOOD * 20)
    octets = b""
    with trio.fail_after(5):
        while octets.count(b"alive") < 20:
            octets += await stream.receive_some(65536)
    await stream.aclose()


async def test_an_idle_connection_is_closed(served: Served) -> None:
    """A connection stays open for idle_s after an answer."""
    stream = await served.connect()
    await stream.send_all(GOOD)
    await read_answer(stream)
    assert await read_all(stream) == b""
    await stream.aclose()


async def test_a_closing_connection_is_read_for_a_moment(served: Served) -> None:
    """After its last answer the server reads on for a moment.

    Otherwise a reset could discard octets that the client has not read yet.
    """
    stream = await served.connect()
    await stream.send_all(GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert (await read_all(stream)).endswith(b"}")
    plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    for _ in range(3):  # on a closed connection the first causes a reset, and the next fails
        await plain.send_all(GOOD)
    await stream.aclose()


@pytest.mark.parametrize("served", ["tls"], indirect=True)
async def test_only_http_1_1_is_negotiated(served: Served) -> None:
    """ALPN never selects h2, and the protocol version is at least TLS 1.2."""
    stream = await served.connect(alpn="h2")
    assert isinstance(stream, trio.SSLStream)
    assert stream.selected_alpn_protocol() is None
    assert stream.version() in {"TLSv1.2", "TLSv1.3"}
    await trio.aclose_forcefully(stream)


async def test_several_addresses_stop_together() -> None:
    """Each listener has its own app. The bound addresses are listed in order, with the real ports."""
    stop, bound = trio.Event(), []
    async with trio.open_nursery() as nursery:
        apps = [make_sample().app, make_sample().app]

        async def serve(*, task_status: trio.TaskStatus[list[Address]]) -> None:
            await serve_http([Listener(app, LOOPBACK) for app in apps], stop, task_status=task_status)

        bound = await nursery.start(serve)
        assert len({address.port for address in bound}) == 2
        for address in bound:
            assert address.port
            assert await Served(address, stop, None).answers()
        stop.set()
    for address in bound:
        with pytest.raises(OSError, match="all attempts to connect"):
            await trio.open_tcp_stream(address.host, address.port)


async def test_an_address_in_use_is_reported() -> None:
    """If an address cannot be bound, StartError with the address is raised, and no socket stays open."""
    async with serving(make_sample().app) as running:
        with pytest.raises(StartError, match=f"http_bind: cannot listen on {running.address}"):
            await serve_http([Listener(make_sample().app, running.address)], trio.Event())


@pytest.mark.parametrize(
    "changes",
    [{"certificate": "none"}, {"certificate": "wrong.pem"}, {"key": "wrong.pem"}],
    ids=["no file", "no certificate", "no key"],
)
async def test_an_unusable_certificate_is_refused(tmp_path: Path, certificate: Tls, changes: dict[str, str]) -> None:
    """Missing or wrong files raise ConfigError before the server listens."""
    (tmp_path / "wrong.pem").write_text("no certificate")
    tls = replace(certificate, **{field: tmp_path / name for field, name in changes.items()})
    with pytest.raises(ConfigError, match="tls_certificate"):
        await serve_http([Listener(make_sample().app, LOOPBACK, tls)], trio.Event())


async def test_a_failed_handshake_does_not_affect_the_server(certificate: Tls) -> None:
    """If the client does not trust the certificate, it ends the handshake, and the server continues."""
    async with serving(make_sample().app, certificate) as running:
        plain = await running.connect_tcp()
        stream = trio.SSLStream(plain, ssl.create_default_context(), server_hostname="127.0.0.1")
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()
        await trio.aclose_forcefully(stream)
        assert await running.answers()


@pytest.mark.parametrize("group", [FFDHE2048, FFDHE8192], ids=["ffdhe2048", "ffdhe8192"])
async def test_an_expensive_group_is_refused(certificate: Tls, group: int) -> None:
    """A ClientHello whose only key share takes long to process gets an alert, and no ServerHello."""
    async with serving(make_sample().app, certificate) as running:
        async with await running.connect_tcp() as stream:
            await stream.send_all(client_hello(group))
            assert bytes(await stream.receive_some()).startswith(ALERT)
        assert await running.answers()


class OneConnection:
    """A listener with one connection."""

    closing = False

    def __init__(self) -> None:
        self.turn = trio.CapacityLimiter(1)
        self.table: ConnectionTable[Connection] = ConnectionTable(1)

    def park(self, connection: Connection, parks: bool) -> None:
        """Do nothing."""

    def forwarded(self, connection: Connection, head: Head) -> str:
        """Return an address, although there is no proxy."""
        return "192.0.2.1"

    def left(self, connection: Connection) -> None:
        """Do nothing."""


async def test_handshakes_take_turns(certificate: Tls) -> None:
    """A handshake waits for its turn, so that many new connections delay a login by only one handshake."""
    acceptor, client = OneConnection(), ("127.0.0.1", 1)
    listener = await trio.open_tcp_listeners(0, host="127.0.0.1")
    theirs = await trio.testing.open_stream_to_socket_listener(listener[0])
    ours = await listener[0].accept()
    connection = Connection(make_sample().app, TlsStream(ours, tls_context(certificate)), client, Limits(), acceptor)
    await theirs.send_all(b"\x16\x03\x01\x00\x05no hello")
    alerts: list[bytes] = []

    async def listen() -> None:
        alerts.append(bytes(await theirs.receive_some()))

    async with listener[0], theirs, trio.open_nursery() as nursery, acceptor.turn:
        nursery.start_soon(listen)
        nursery.start_soon(connection.run)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert alerts == []
    assert alerts[0].startswith(b"\x15")


async def test_a_tls_client_may_end_without_close_notify(certificate: Tls) -> None:
    """The server notices the end of a TLS connection, as it does without TLS."""
    ours, theirs = (trio.SocketStream(each) for each in trio.socket.socketpair())
    trust = ssl.create_default_context(cafile=certificate.certificate)
    server, client = (
        TlsStream(ours, tls_context(certificate)),
        trio.SSLStream(theirs, trust, server_hostname="127.0.0.1"),
    )
    async with ours, theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.handshake, trio.CapacityLimiter(1))
            nursery.start_soon(client.do_handshake)
        await theirs.send_eof()
        assert await server.receive_some(1) == b""


class Slow:
    """An app that sets `began` when a request arrives, and answers after `release` is set."""

    def __init__(self) -> None:
        self.began = trio.Event()
        self.release = trio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.set()
        await self.release.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": b"}"})


async def test_a_stopping_server_finishes_a_running_request() -> None:
    """A stopping server finishes the running request.

    It closes idle connections at once, and accepts no new connection.
    """
    slow = Slow()
    async with serving(slow, limits=Limits(drain_s=5)) as running:
        idle, busy = await running.connect(), await running.connect()
        await busy.send_all(GOOD)
        await slow.began.wait()
        running.stop.set()
        assert await read_all(idle, 1) == b""
        with pytest.raises(OSError, match="all attempts to connect"):
            await running.connect()
        slow.release.set()
        assert (await read_all(busy, 1)).endswith(b"}")
        await idle.aclose()
        await busy.aclose()


async def test_a_request_is_cancelled_after_drain_s() -> None:
    """A request that runs longer than drain_s is cancelled. `serving` fails if the server does not stop in time."""
    slow = Slow()
    async with serving(slow, limits=QUICK) as running:
        busy = await running.connect()
        await busy.send_all(GOOD)
        await slow.began.wait()
        running.stop.set()
        assert await read_all(busy, 3) == b""
        await busy.aclose()


async def test_at_the_limit_the_oldest_idle_connection_is_closed() -> None:
    """Silent connections do not prevent a new one. A running request is never cancelled to make room for another."""
    slow = Slow()
    async with serving(slow, limits=Limits(connections=3)) as running:
        busy = await running.connect()
        await busy.send_all(GOOD)
        await slow.began.wait()
        silent = [await running.connect() for _ in range(6)]
        with trio.fail_after(2):
            for stream in silent[:4]:
                assert await stream.receive_some(1) == b""
        slow.release.set()
        assert (await read_answer(busy)).startswith(b"HTTP/1.1 200")
        await silent[-1].send_all(GOOD)
        assert (await read_answer(silent[-1])).startswith(b"HTTP/1.1 200")
        for stream in [busy, *silent]:
            await stream.aclose()


async def test_a_flood_on_one_listener_does_not_affect_another() -> None:
    """Each listener counts its own connections."""
    stop = trio.Event()
    slow, sample = Slow(), make_sample()
    async with trio.open_nursery() as nursery:

        async def serve(*, task_status: trio.TaskStatus[list[Address]]) -> None:
            doors = [Listener(slow, LOOPBACK), Listener(sample.app, LOOPBACK)]
            await serve_http(doors, stop, limits=Limits(connections=2, drain_s=0.1), task_status=task_status)

        flooded, other = await nursery.start(serve)
        busy = [await trio.open_tcp_stream(flooded.host, flooded.port) for _ in range(4)]
        for stream in busy:
            await stream.send_all(GOOD)
        await slow.began.wait()
        assert await Served(other, stop, None).answers()
        stop.set()
        for stream in busy:
            await stream.aclose()


async def test_a_slow_upload_that_keeps_its_rate_is_read() -> None:
    """A body may take longer than body_s if it arrives at body_rate or faster."""
    async with serving(make_sample().app, limits=Limits(body_s=0.2, body_rate=1000)) as running:
        body = b'{"orgId":1,"tenantId":1,"domainId":3,"search":"' + b"x" * 1000 + b'"}'
        head = f"POST {LIST} HTTP/1.1\r\nHost: x\r\nX-Authorization: sp_admin\r\nContent-Type: application/json\r\n"
        stream = await running.connect()
        await stream.send_all(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        for at in range(0, len(body), 100):
            await stream.send_all(body[at : at + 100])
            await trio.sleep(0.05)
        assert b"totalCount" in await read_answer(stream)
        await stream.aclose()


async def test_an_answer_may_take_longer_than_a_body(mock_clock: trio.testing.MockClock) -> None:
    """The time limits apply only to the client: a request whose body is complete may run longer."""
    slow = Slow()
    async with serving(slow, limits=Limits(head_s=0.1, body_s=0.1, idle_s=0.1, drain_s=1)) as running:
        stream = await running.connect()
        await stream.send_all(GOOD)
        await slow.began.wait()
        mock_clock.jump(10)
        await trio.testing.wait_all_tasks_blocked()
        slow.release.set()
        assert (await read_answer(stream)).startswith(b"HTTP/1.1 200")
        await stream.aclose()
