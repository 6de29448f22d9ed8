"""Hostile HTTP requests in octets, and peers that behave badly.

Each case is sent over a connection in plain text and over TLS. If HTTP defines the status of the first answer, the case
has that status. After every case the server must still answer requests.
"""

import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.web.sample import BIG, LIST, RENAME
from tests.web.serving import GOOD, Served, Stream, read_all

HOST = b"Host: x\r\n"
TOKEN = b"X-Authorization: sp_admin\r\n"
JSON = b"Content-Type: application/json\r\n"
POST = b"POST " + RENAME.encode() + b" HTTP/1.1\r\n" + HOST + TOKEN + JSON
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
ESTABLISHED = "01"  # in /proc/net/tcp
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\n"
WEBSOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Version: 13\r\n\r\n"
)
H2C = UPGRADE + b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"


def post(body: bytes, extra: bytes = b"") -> bytes:
    """Return a POST request with a body and its Content-Length."""
    return POST + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


@dataclass(frozen=True)
class Octets:
    """The octets to send, and the expected status of the first answer; None accepts any status.

    unfinished: whether the server waits for more octets, so that the client closes its side.
    """

    sent: bytes
    status: int | None
    unfinished: bool = False


OCTETS = {
    "websocket upgrade and one more octet": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + WEBSOCKET + b"x", 200, True),
    "websocket upgrade on no such route": Octets(
        b"GET /nowhere HTTP/1.1\r\n" + HOST + WEBSOCKET + b"\x81\x80\0", 404, True
    ),
    "h2c upgrade": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + H2C + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 200),
    "h2c upgrade of a CONNECT without path": Octets(b"CONNECT x:443 HTTP/1.1\r\n" + HOST + H2C + bytes(64), 404, True),
    "CONNECT": Octets(b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "prior-knowledge HTTP/2": Octets(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 505),
    "HTTP/3.0": Octets(b"GET / HTTP/3.0\r\n" + HOST + b"\r\n", 505),
    "HTTP/0.9": Octets(b"GET /\r\n\r\n", 400),
    "no HTTP at all": Octets(b"\x16\x03\x01 SSH-2.0 \xff\xfe\r\n\r\n", 400),
    "NUL octets": Octets(bytes(20_000), None),
    "NUL in a header": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\0c\r\n\r\n", 400),
    "line feeds without end": Octets(b"\n" * 20_000, None),
    "one huge header": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: " + b"a" * 100_000 + b"\r\n\r\n", 431),
    "ten thousand headers": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 10_000 + b"\r\n", 431),
    "a huge target": Octets(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 431),
    "folded headers": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n", 400),
    "bare line feeds": Octets(b"GET /healthz HTTP/1.1\nHost: x\n\n", 400),
    "head of 20 kB at once": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: " + b"a" * 20_000 + b"\r\n\r\n", 431),
    "two hosts": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
    "no host": Octets(b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "space before the colon": Octets(POST + b"Content-Length : 2\r\n\r\n{}", 400),
    "negative length": Octets(POST + b"Content-Length: -1\r\n\r\n", 400),
    "length in hexadecimal": Octets(POST + b"Content-Length: 0x10\r\n\r\n", 400),
    "two lengths": Octets(POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "length of twenty digits": Octets(POST + b"Content-Length: " + b"9" * 20 + b"\r\n\r\n{}", 413),
    "length of five thousand digits": Octets(POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}", 400),
    "length and chunks": Octets(POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunked twice": Octets(POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501),
    "unknown transfer encoding": Octets(POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    "chunk garbage": Octets(CHUNKED + b"zz\r\n{}\r\n", 400),
    "chunk of 2**80": Octets(CHUNKED + b"f" * 20 + b"\r\n" + b"x" * 1000, None, True),
    "chunk size without end": Octets(CHUNKED + b"0" * 50_000, None),
    "chunk extensions without end": Octets(CHUNKED + b"1;" + b"a" * 100_000, None),
    "chunks of one octet": Octets(CHUNKED + b"1\r\n \r\n" * 4000 + b"0\r\n\r\n", 400),
    "trailers without end": Octets(CHUNKED + b"0\r\n" + b"A: b\r\n" * 20_000, None),
    "absolute-form target": Octets(b"GET http://elsewhere/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 200),
    "asterisk target": Octets(b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "target that is no UTF-8": Octets(b"GET /%ff%fe%00/../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    "octets above 127 in the target": Octets(b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "method of a kilobyte": Octets(b"X" * 1000 + b" /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "deep nesting": Octets(post(b"[" * 500_000), 413),
    "deep objects": Octets(post(b'{"a":' * 100_000), 413),
    "huge integer": Octets(post(b'{"domainId":' + b"9" * 100_000 + b"}"), 400),
    "huge exponent": Octets(post(b'{"domainId":1e999999,"name":"n"}'), 400),
    "NaN": Octets(post(b'{"domainId":NaN,"name":"n"}'), 400),
    "duplicate keys": Octets(post(b'{"domainId":4,"domainId":3,"name":"n"}'), 200),
    "twenty thousand keys": Octets(post(b"{" + b",".join(b'"%d":0' % n for n in range(20_000)) + b"}"), 400),
    "no UTF-8 in the body": Octets(post(b'{"name":"\xff"}'), 400),
    "gzip": Octets(post(b"\x1f\x8b" + bytes(1000), b"Content-Encoding: gzip\r\n"), 415),
    "1 MiB and one octet": Octets(post(b" " * (1 << 20) + b"{"), 413),
    "length over 1 MiB, body never sent": Octets(POST + b"Content-Length: 1048577\r\n\r\n", 413),
    "length that is too short": Octets(POST + b"Content-Length: 2\r\n\r\n{}GARBAGE GARBAGE\r\n\r\n", 400),
    "refused before a body of megabytes": Octets(
        b"POST "
        + LIST.encode()
        + b" HTTP/1.1\r\n"
        + HOST
        + JSON
        + b"Content-Length: 4000000\r\n\r\n"
        + bytes(4_000_000),
        401,
    ),
    "expectation that is not kept": Octets(POST + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n", None, True),
    "unknown expectation": Octets(b"GET /healthz HTTP/1.1\r\n" + HOST + b"Expect: miracles\r\n\r\n", None),
    "two thousand requests at once": Octets(GOOD * 2000, 200),
    "token of 15 kB": Octets(
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Authorization: " + b"a" * 15_000 + b"\r\n\r\n", 200
    ),
}


async def send_and_read(stream: Stream, case: Octets) -> bytes:
    """Send the octets, and read at the same time until the server closes the connection.

    The server may reset it while octets are sent.
    """
    answer = b""

    async def send() -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.send_all(case.sent)
            if case.unfinished:
                await _plain(stream).send_eof()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        answer = await read_all(stream)
        nursery.cancel_scope.cancel()
    await trio.aclose_forcefully(stream)
    return answer


async def drip(stream: Stream, first: bytes, piece: bytes) -> None:
    """Send `first`. Then send `piece` slowly again and again, until the server closes the connection."""
    with trio.fail_after(30), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(first)
        while True:
            await stream.send_all(piece)
            await trio.sleep(0.05)
    await trio.aclose_forcefully(stream)


async def slow_head(served: Served) -> None:
    await drip(await served.connect(), b"GET /healthz HTTP/1.1\r\n", b"A: b\r\n")


async def slow_request_line(served: Served) -> None:
    await drip(await served.connect(), b"G", b"E")


async def slow_body(served: Served) -> None:
    await drip(await served.connect(), POST + b"Content-Length: 1000000\r\n\r\n", b"x")


async def slow_chunks(served: Served) -> None:
    await drip(await served.connect(), CHUNKED, b"1\r\nx\r\n")


async def slow_after_an_answer(served: Served) -> None:
    await drip(await served.connect(), GOOD, b"G")


async def endless_head(served: Served) -> None:
    """Send headers as fast as the server reads them."""
    stream = await served.connect()
    with trio.fail_after(30), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(b"GET /healthz HTTP/1.1\r\n")
        while True:
            await stream.send_all(b"A: b\r\n" * 1000)
    await trio.aclose_forcefully(stream)


async def endless_body(served: Served) -> None:
    """Send a chunked body as fast as the server reads it."""
    stream = await served.connect()
    with trio.fail_after(30), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(CHUNKED)
        while True:
            await stream.send_all(b"10000\r\n" + bytes(65536) + b"\r\n")
    await trio.aclose_forcefully(stream)


async def never_reads(served: Served) -> None:
    """Request 16 MiB and read nothing, until the server closes the connection."""
    stream = await served.connect()
    body = b"{}"
    head = b"POST " + BIG.encode() + b" HTTP/1.1\r\n" + HOST + TOKEN + JSON
    await stream.send_all(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    closed = 0
    with trio.fail_after(30):
        while closed < 3:  # while other connections come and go, the kernel's list may miss a row
            closed = 0 if _is_held(stream) else closed + 1
            await trio.sleep(0.05)
    received = len(await read_all(stream))
    await trio.aclose_forcefully(stream)
    assert received < 1 << 24


def _is_held(stream: Stream) -> bool:
    """Return whether the kernel shows the server's end as open. A client that does not read cannot notice the end."""
    (_, server), (_, client) = _plain(stream).socket.getpeername(), _plain(stream).socket.getsockname()
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
    states = [state for _, near, far, state, *_ in rows if near[-4:] + far[-4:] == f"{server:04X}{client:04X}"]
    return states == [ESTABLISHED]


def _plain(stream: Stream) -> trio.SocketStream:
    return stream.transport_stream if isinstance(stream, trio.SSLStream) else stream


async def pipelines_and_never_reads(served: Served) -> None:
    """Send requests without end, and read no answer."""
    stream = await served.connect()
    with trio.move_on_after(1), suppress(trio.BrokenResourceError):
        while True:
            await stream.send_all(GOOD * 1000)
    await trio.aclose_forcefully(stream)


async def half_close(served: Served) -> None:
    """Send a request and close the sending side. The answer must still arrive. Over TLS close the whole connection."""
    stream = await served.connect()
    await stream.send_all(GOOD)
    if isinstance(stream, trio.SocketStream):
        await stream.send_eof()
        assert (await read_all(stream)).startswith(b"HTTP/1.1 200")
    await stream.aclose()


async def half_close_in_a_body(served: Served) -> None:
    stream = await served.connect()
    await stream.send_all(POST + b"Content-Length: 10\r\n\r\n{")
    await _plain(stream).send_eof()
    await read_all(stream)
    await trio.aclose_forcefully(stream)


async def reset(served: Served) -> None:
    """Reset the connection in a head, in a body, and right after a request."""
    for octets in (b"GET /heal", POST + b"Content-Length: 10\r\n\r\n{", GOOD, GOOD * 100):
        stream = await served.connect()
        await stream.send_all(octets)
        _plain(stream).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await trio.aclose_forcefully(_plain(stream))


async def opened_and_left(served: Served) -> None:
    """Open more connections than the server accepts, and send nothing."""
    streams = [await served.connect_tcp() for _ in range(60)]
    assert await served.answers()
    for stream in streams:
        await stream.aclose()


async def handshake_garbage(served: Served) -> None:
    """Send octets that are not TLS to a TLS port, or to a port without TLS."""
    for octets in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(1000), bytes(5000)):
        stream = await served.connect_tcp()
        with suppress(trio.BrokenResourceError):
            await stream.send_all(octets)
        await read_all(stream)
        await stream.aclose()


async def handshake_never_finished(served: Served) -> None:
    """Send the beginning of a ClientHello, and nothing more."""
    stream = await served.connect_tcp()
    await stream.send_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32))
    await read_all(stream)
    await stream.aclose()


async def handshake_as_drips(served: Served) -> None:
    await drip(await served.connect_tcp(), b"\x16\x03\x01\x02\x00", b"\x01")


PEERS: dict[str, Callable[[Served], Awaitable[None]]] = {
    peer.__name__.replace("_", " "): peer
    for peer in (
        slow_head, slow_request_line, slow_body, slow_chunks, slow_after_an_answer, endless_head, endless_body,
        never_reads, pipelines_and_never_reads, half_close, half_close_in_a_body, reset, opened_and_left,
        handshake_garbage, handshake_never_finished, handshake_as_drips,
    )
}  # fmt: skip
