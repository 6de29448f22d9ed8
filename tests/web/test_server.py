"""The real server: addresses, TLS, limits, and how it stops."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing
from starlette.types import Receive, Scope, Send

from sallyport.base.errors import ConfigError, StartError
from sallyport.base.setting_values import Address
from sallyport.base.tls import TlsStream
from sallyport.web.connection import Connection, Limits
from sallyport.web.connections import ConnectionTable
from sallyport.web.http1 import Head
from sallyport.web.server import Listener, Tls, serve_http, tls_context
from tests.web.sample import LIST, SCOPE, make_sample
from tests.web.serving import GOOD, LOOPBACK, QUICK, Served, read_all, read_answer, serving


@pytest.fixture(params=["clear", "tls"])
async def served(request: pytest.FixtureRequest, certificate: Tls) -> AsyncIterator[Served]:
    """The sample service, in clear and in TLS. It is patient with clients of a busy machine, but for idle ones."""
    limits = replace(QUICK, handshake_s=5, head_s=5, body_s=5, stranger_body_s=5, send_s=5, linger_s=5)
    async with serving(make_sample().app, certificate if request.param == "tls" else None, limits) as running:
        yield running


async def test_a_request_is_answered_without_a_banner(served: Served) -> None:
    """An operation over a real socket; no header says what serves it."""
    async with served.client() as client:
        answer = await client.post(LIST, json={**SCOPE, "search": "x"})
    assert (answer.status_code, answer.json()["network_devices"]) == (200, ["x"])
    assert "server" not in answer.headers


async def test_a_refusal_reaches_a_client_that_is_still_sending(served: Served) -> None:
    """401 and 413 arrive although most of the body was never read."""
    async with served.client() as client:
        for token, status in (("sp_nobody", 401), ("sp_admin", 413)):
            headers = {"x-authorization": token, "content-type": "application/json"}
            answer = await client.post(LIST, content=b" " * 3_000_000, headers=headers)
            assert (answer.status_code, answer.headers["connection"]) == (status, "close")


async def test_a_connection_is_used_again(served: Served) -> None:
    """Requests follow each other on one connection, also when they were all sent at once."""
    stream = await served.connect()
    await stream.send_all(GOOD * 20)
    octets = b""
    with trio.fail_after(5):
        while octets.count(b"alive") < 20:
            octets += await stream.receive_some(65536)
    await stream.aclose()


async def test_an_idle_connection_is_closed(served: Served) -> None:
    """After an answer the connection is kept for idle_s and no longer."""
    stream = await served.connect()
    await stream.send_all(GOOD)
    await read_answer(stream)
    assert await read_all(stream) == b""
    await stream.aclose()


async def test_a_connection_ends_in_stages(served: Served) -> None:
    """After the end of the last answer the peer is still heard for a moment: no reset takes from it what it has not
    read."""
    stream = await served.connect()
    await stream.send_all(GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert (await read_all(stream)).endswith(b"}")
    plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    for _ in range(3):  # where it is closed, the first is answered by a reset, and the next fails
        await plain.send_all(GOOD)
    await stream.aclose()


@pytest.mark.parametrize("served", ["tls"], indirect=True)
async def test_only_http_1_1_is_negotiated(served: Served) -> None:
    """ALPN never chooses h2, and the protocol is at least TLS 1.2."""
    stream = await served.connect(alpn="h2")
    assert isinstance(stream, trio.SSLStream)
    assert stream.selected_alpn_protocol() is None
    assert stream.version() in {"TLSv1.2", "TLSv1.3"}
    await trio.aclose_forcefully(stream)


async def test_several_addresses_stop_together() -> None:
    """Each listener has its own app; the bound addresses come in their order, port 0 made real."""
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


async def test_an_address_in_use_is_told() -> None:
    """A bind that fails is a StartError that names the address, and leaves nothing open."""
    async with serving(make_sample().app) as running:
        with pytest.raises(StartError, match=f"http_bind: cannot listen on {running.address}"):
            await serve_http([Listener(make_sample().app, running.address)], trio.Event())


@pytest.mark.parametrize(
    "changes",
    [{"certificate": "none"}, {"certificate": "wrong.pem"}, {"key": "wrong.pem"}],
    ids=["no file", "no certificate", "no key"],
)
async def test_a_certificate_that_cannot_be_used_is_refused(
    tmp_path: Path, certificate: Tls, changes: dict[str, str]
) -> None:
    """Missing or wrong files are a ConfigError before anything listens."""
    (tmp_path / "wrong.pem").write_text("no certificate")
    tls = replace(certificate, **{field: tmp_path / name for field, name in changes.items()})
    with pytest.raises(ConfigError, match="tls_certificate"):
        await serve_http([Listener(make_sample().app, LOOPBACK, tls)], trio.Event())


async def test_a_client_that_trusts_nobody_is_no_harm(certificate: Tls) -> None:
    """A handshake that the client breaks off leaves the server as it was."""
    async with serving(make_sample().app, certificate) as running:
        plain = await running.connect_tcp()
        stream = trio.SSLStream(plain, ssl.create_default_context(), server_hostname="127.0.0.1")
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()
        await trio.aclose_forcefully(stream)
        assert await running.answers()


class OneConnection:
    """The listener of one connection."""

    closing = False

    def __init__(self) -> None:
        self.turn = trio.Lock()
        self.table: ConnectionTable[Connection] = ConnectionTable(1)

    def park(self, connection: Connection, parks: bool) -> None:
        """Nothing."""

    def forwarded(self, connection: Connection, head: Head) -> str | None:
        """No proxy."""

    def left(self, connection: Connection) -> None:
        """Nothing."""


async def test_handshakes_take_turns(certificate: Tls) -> None:
    """A handshake continues only when its turn has come: a burst of new connections delays logins by one handshake."""
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


async def test_a_client_that_leaves_without_ending_tls(certificate: Tls) -> None:
    """It has ended its requests, as a client in clear has that sends no more."""
    ours, theirs = (trio.SocketStream(each) for each in trio.socket.socketpair())
    trust = ssl.create_default_context(cafile=certificate.certificate)
    server, client = (
        TlsStream(ours, tls_context(certificate)),
        trio.SSLStream(theirs, trust, server_hostname="127.0.0.1"),
    )
    async with ours, theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.handshake, trio.Lock())
            nursery.start_soon(client.do_handshake)
        await theirs.send_eof()
        assert await server.receive_some(1) == b""


class Slow:
    """An app that answers when it is let, and tells when it began."""

    def __init__(self) -> None:
        self.began = trio.Event()
        self.let = trio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.set()
        await self.let.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": b"}"})


async def test_a_running_request_ends_before_the_server_does() -> None:
    """Stopping closes what is idle at once, takes nothing new, and waits for the answer that is being made."""
    slow = Slow()
    async with serving(slow, limits=Limits(drain_s=5)) as running:
        idle, busy = await running.connect(), await running.connect()
        await busy.send_all(GOOD)
        await slow.began.wait()
        running.stop.set()
        assert await read_all(idle, 1) == b""
        with pytest.raises(OSError, match="all attempts to connect"):
            await running.connect()
        slow.let.set()
        assert (await read_all(busy, 1)).endswith(b"}")
        await idle.aclose()
        await busy.aclose()


async def test_a_request_that_never_ends_does_not_keep_the_server() -> None:
    """What still runs after drain_s is cancelled; `serving` fails when the server needs longer."""
    slow = Slow()
    async with serving(slow, limits=QUICK) as running:
        busy = await running.connect()
        await busy.send_all(GOOD)
        await slow.began.wait()
        running.stop.set()
        assert await read_all(busy, 3) == b""
        await busy.aclose()


async def test_at_the_limit_the_one_that_waited_longest_gives_way() -> None:
    """Connections that say nothing do not keep out one that asks; a running request is never cut for another."""
    slow = Slow()
    async with serving(slow, limits=Limits(connections=3)) as running:
        busy = await running.connect()
        await busy.send_all(GOOD)
        await slow.began.wait()
        silent = [await running.connect() for _ in range(6)]
        with trio.fail_after(2):
            for stream in silent[:4]:
                assert await stream.receive_some(1) == b""
        slow.let.set()
        assert (await read_answer(busy)).startswith(b"HTTP/1.1 200")
        await silent[-1].send_all(GOOD)
        assert (await read_answer(silent[-1])).startswith(b"HTTP/1.1 200")
        for stream in [busy, *silent]:
            await stream.aclose()


async def test_a_flood_on_one_address_leaves_the_other_alone() -> None:
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
    """A body longer than body_s allows is read to its end as long as it comes at body_rate."""
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
    """The limits are the peer's: a request whose body has come runs as long as it needs."""
    slow = Slow()
    async with serving(slow, limits=Limits(head_s=0.1, body_s=0.1, idle_s=0.1, drain_s=1)) as running:
        stream = await running.connect()
        await stream.send_all(GOOD)
        await slow.began.wait()
        mock_clock.jump(10)
        await trio.testing.wait_all_tasks_blocked()
        slow.let.set()
        assert (await read_answer(stream)).startswith(b"HTTP/1.1 200")
        await stream.aclose()
