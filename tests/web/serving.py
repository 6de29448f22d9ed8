"""A real server on a free port, with or without TLS, and clients that send octets."""

import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.types import ASGIApp

from sallyport.settings.values import Address, Network
from sallyport.web.connections import Limits
from sallyport.web.server import Listener, Tls, serve_http

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
LOOPBACK = Address("127.0.0.1", 0)
QUICK = Limits(
    handshake_s=0.3,
    head_s=0.2,
    idle_s=0.2,
    body_s=0.2,
    unauthenticated_body_s=0.2,
    send_s=0.2,
    linger_s=0.1,
    drain_s=0.5,
)
GOOD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def make_certificate(folder: Path) -> Tls:
    """Write a self-signed certificate for 127.0.0.1 that is valid for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sallyport test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    tls = Tls(folder / "certificate.pem", folder / "key.pem")
    tls.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    tls.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return tls


@dataclass
class Served:
    """A running server."""

    address: Address
    stop: trio.Event
    trust: ssl.SSLContext | None

    async def connect_tcp(self) -> trio.SocketStream:
        """Open a connection without TLS."""
        return await trio.open_tcp_stream(self.address.host, self.address.port)

    async def connect(self, alpn: str = "http/1.1") -> Stream:
        """Open a connection. If the server has TLS, make the handshake."""
        plain = await self.connect_tcp()
        if self.trust is None:
            return plain
        self.trust.set_alpn_protocols([alpn])
        stream = trio.SSLStream(plain, self.trust, server_hostname=self.address.host, https_compatible=True)
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError:
            await trio.aclose_forcefully(plain)
            raise
        return stream

    def client(self) -> httpx.AsyncClient:
        """Return an HTTP client with the admin's token."""
        scheme = "http" if self.trust is None else "https"
        return httpx.AsyncClient(
            base_url=f"{scheme}://{self.address}",
            headers={"x-authorization": "sp_admin"},
            verify=self.trust or False,
            trust_env=False,
        )

    async def answers(self) -> bool:
        """Return whether a valid request on a new connection is answered."""
        stream = await self.connect()
        try:
            await stream.send_all(GOOD)
            return (await read_answer(stream)).startswith(b"HTTP/1.1 200 ")
        finally:
            await trio.aclose_forcefully(stream)


@asynccontextmanager
async def serving(
    app: ASGIApp, tls: Tls | None = None, limits: Limits = QUICK, trusted_proxies: Sequence[Network] = ()
) -> AsyncIterator[Served]:
    """Serve an app until the block ends. The server must then stop within drain_s and one second more."""
    stop = trio.Event()
    trust = ssl.create_default_context(cafile=tls.certificate) if tls else None
    async with trio.open_nursery() as nursery:
        listeners = [Listener(app, LOOPBACK, tls, trusted_proxies)]

        async def serve(*, task_status: trio.TaskStatus[list[Address]]) -> None:
            await serve_http(listeners, stop, limits=limits, task_status=task_status)

        (address,) = await nursery.start(serve)
        yield Served(address, stop, trust)
        stop.set()
        nursery.cancel_scope.deadline = trio.current_time() + limits.drain_s + 1
    assert not nursery.cancel_scope.cancelled_caught, "the server did not stop within its limit"


async def read_all(stream: Stream, limit_s: float = 30) -> bytes:
    """Return the octets that the server sends until it closes or resets the connection."""
    octets = b""
    with trio.fail_after(limit_s):
        try:
            while piece := await stream.receive_some(65536):
                octets += piece
        except trio.BrokenResourceError:
            pass
    return octets


async def read_answer(stream: Stream) -> bytes:
    """Return one answer to a request for /healthz."""
    octets = b""
    with trio.fail_after(30):
        while b"}" not in octets:
            octets += await stream.receive_some(65536)
    return octets
