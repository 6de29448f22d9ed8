"""A small RadSec client for tests (RFC 6614), on trio.

async with connected(port, ca, proxy) as client:
    assert await client.ask(packet) == ACCESS_ACCEPT
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio

from sallyport.radius.packet import SharedSecret, decode_reply

RADSEC = SharedSecret(b"radsec")


class RadSecClient:
    """A RadSec connection.

    stream: the TLS stream, which can send raw octets.
    """

    def __init__(self, stream: "trio.SSLStream[trio.SocketStream]") -> None:
        self.stream = stream
        self._pending = bytearray()

    async def send(self, *packets: bytes) -> None:
        """Send packets one after the other."""
        await self.stream.send_all(b"".join(packets))

    async def reply(self) -> bytes:
        """Return the next packet. Raise EOFError if the server has ended the connection."""
        while len(self._pending) < 4 or len(self._pending) < int.from_bytes(self._pending[2:4]):
            received = b""
            with suppress(trio.BrokenResourceError):
                received = await self.stream.receive_some()
            if not received:
                raise EOFError
            self._pending += received
        length = int.from_bytes(self._pending[2:4])
        packet = bytes(self._pending[:length])
        del self._pending[:length]
        return packet

    async def ask(self, request: bytes) -> int:
        """Send a request, and return the code of its verified reply."""
        await self.send(request)
        return decode_reply(await self.reply(), request, RADSEC)[0]

    async def ended(self) -> bool:
        """Wait until the server ends the connection. Return False if it sends a packet instead."""
        try:
            await self.reply()
        except EOFError:
            return True
        return False


def client_context(ca: Path, certificate: Path | None = None, *, newest: bool = True) -> ssl.SSLContext:
    """Return the TLS context of a client with or without a certificate. The key is in a file beside the certificate.

    newest: whether to use TLS 1.3; otherwise TLS 1.2 is used.
    """
    context = ssl.create_default_context(cafile=str(ca))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_3 if newest else ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


@asynccontextmanager
async def connected(
    port: int, context: ssl.SSLContext, *, host: str = "radius.example.org", source: str = "127.0.0.1"
) -> AsyncIterator[RadSecClient]:
    """Yield a connection to 127.0.0.1. The server's certificate must be valid for `host`.

    Raise BrokenResourceError if the handshake fails.
    """
    with trio.socket.socket() as sock:
        await sock.bind((source, 0))
        await sock.connect(("127.0.0.1", port))
        stream = trio.SSLStream(trio.SocketStream(sock), context, server_hostname=host, https_compatible=True)
        try:
            await stream.do_handshake()
            yield RadSecClient(stream)
        finally:
            await trio.aclose_forcefully(stream)
