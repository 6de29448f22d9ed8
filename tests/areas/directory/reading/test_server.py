"""Connections to LDAP servers: StartTLS with servers that misbehave, and the egress rules."""

import socket
import ssl
from contextlib import suppress
from ipaddress import ip_network

import pytest
import trio
import trio.testing

from sallyport.areas.directory.reading.server import Server, Unreachable
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE

AGREED = bytes.fromhex("300c02010178070a010004000400")
REFUSED = bytes.fromhex("300c02010178070a013404000400")


async def start_tls(answer: bytes) -> tuple[str, bytes]:
    """Return the error of a connection to a server that sends this reply to StartTLS, and all octets that the server
    received.
    """
    heard = bytearray()

    async def serve(stream: trio.SocketStream) -> None:
        heard.extend(await stream.receive_some(4096))
        with suppress(trio.BrokenResourceError):
            await stream.send_all(answer)
            await stream.send_eof()
            while part := await stream.receive_some(4096):
                heard.extend(part)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        server = Server(f"ldap://127.0.0.1:{listeners[0].socket.getsockname()[1]}", start_tls=True)
        with trio.fail_after(30), pytest.raises(Unreachable) as caught:
            await server.connect(ssl.create_default_context(), Egress(ANYWHERE), lambda _step: None)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return str(caught.value).partition(": ")[2], bytes(heard)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (REFUSED, "the server refuses StartTLS"),
        (AGREED + b"\x30\x05\x02\x01\x02\x65\x00", "the server refuses StartTLS"),  # followed by injected octets
        (b"\x30\x02\x0a\x01", "the server refuses StartTLS"),
        (b"\x30\x80\x00\x00", "the server refuses StartTLS"),
        (AGREED[:-1], "the server closed the connection"),
        (b"", "the server closed the connection"),
        (b"\x30\x84\x7f\xff\xff\xff" + bytes(8192), "the server closed the connection"),
        (AGREED, "no TLS connection"),
    ],
)
async def test_start_tls_needs_a_complete_success_response(answer: bytes, why: str) -> None:
    """TLS starts only after a complete success response. Only the StartTLS request is sent in clear."""
    error, heard = await start_tls(answer)
    assert error.partition(":")[0] == why
    assert heard[:31] == b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037"
    assert heard[31:33] == (b"\x16\x03" if answer == AGREED else b"")  # a TLS handshake or nothing


async def test_only_allowed_addresses_are_connected_to() -> None:
    """If a name has several addresses, only those that the egress setting allows are used."""
    with socket.create_server(("127.0.0.1", 0)) as forbidden, socket.socket() as allowed:
        port = forbidden.getsockname()[1]
        allowed.bind(("127.0.0.2", port))
        allowed.listen(1)
        forbidden.setblocking(False)
        egress = Egress([ip_network("127.0.0.2/32")], lambda _host, _port, _kind: ["127.0.0.1", "127.0.0.2"])
        steps: list[str] = []
        server = Server(f"ldap://dc.example.com:{port}", start_tls=False)
        stream = await server.connect(ssl.create_default_context(), egress, steps.append)
        await stream.aclose()
        assert steps == [f"connected to 127.0.0.2 port {port}"]
        with pytest.raises(BlockingIOError):
            forbidden.accept()
