"""Tests of TLS on the server side: what a peer without a credential can make the server calculate."""

import ssl
import threading
from pathlib import Path

import pytest
import trio

from sallyport.base.tls import MAX_HANDSHAKE_SIZE, TlsStream
from sallyport.web.server import tls_context
from tests.web.serving import make_certificate


async def test_a_handshake_is_done_in_a_worker_thread(tmp_path: Path) -> None:
    """The arithmetic of a handshake runs in another thread than the event loop."""
    certificate = make_certificate(tmp_path)
    context, threads = tls_context(certificate), set[int]()

    def note_thread(_connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        threads.add(threading.get_ident())

    context.sni_callback = note_thread  # type: ignore[assignment]  # typeshed knows only the kind that returns an alert
    ours, theirs = (trio.SocketStream(each) for each in trio.socket.socketpair())
    trust = ssl.create_default_context(cafile=certificate.certificate)
    trust.check_hostname = False
    client = trio.SSLStream(theirs, trust, server_hostname="radius.example.org")
    async with ours, theirs, trio.open_nursery() as nursery:
        nursery.start_soon(TlsStream(ours, context).handshake, trio.CapacityLimiter(1))
        await client.do_handshake()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_the_size_of_a_handshake_is_limited(tmp_path: Path) -> None:
    """A peer that sends a long handshake message is disconnected before the message is complete."""
    ours, theirs = (trio.SocketStream(each) for each in trio.socket.socketpair())
    record = b"\x16\x03\x01\x40\x00" + bytes(16 << 10)
    message = b"\x16\x03\x01\x40\x00\x01\x01\xff\xff" + bytes((16 << 10) - 4) + record * 2
    assert len(message) > MAX_HANDSHAKE_SIZE
    stream = TlsStream(ours, tls_context(make_certificate(tmp_path)))

    async def send() -> None:
        async with theirs:
            await theirs.send_all(message)

    async with ours, trio.open_nursery() as nursery:
        nursery.start_soon(send)
        with pytest.raises(trio.BrokenResourceError, match="exceeds"):
            await stream.handshake(trio.CapacityLimiter(1))
        nursery.cancel_scope.cancel()
