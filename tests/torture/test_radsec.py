"""Tests of RadSec with hostile peers: whatever they send, the proxy is still answered."""

import random
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import trio

from sallyport.certs.folder import CertificateFolder
from sallyport.radius.packet import ACCESS_ACCEPT
from tests.certs.conftest import made
from tests.packets import pap, status_server
from tests.radsec_client import RadSecClient, client_context, connected
from tests.radsec_service import PROXY, SecureService, running_secure_service

__all__ = ["made"]

pytestmark = pytest.mark.torture

OVER_TLS = b"radsec"
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def service(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureService]:
    """A service with RadSec. Its only RADIUS client is identified by a certificate."""
    with running_secure_service(tmp_path_factory.mktemp("service"), made) as service:
        yield service


def context(service: SecureService) -> ssl.SSLContext:
    """Return the proxy's TLS context."""
    certificates = CertificateFolder(service.data_dir)
    return client_context(certificates.ca, certificates.client(PROXY))


async def answers(service: SecureService, source: str = "127.0.0.9") -> None:
    """Check that the service answers the proxy."""
    port = service.radsec_port
    with trio.fail_after(60):
        async with connected(port, context(service), source=source) as client:
            assert await client.ask(pap("ann", "hello", secret=OVER_TLS)) == ACCESS_ACCEPT


async def test_two_hundred_connections_at_once(service: SecureService) -> None:
    """Each of two hundred connections gets an answer to every request."""
    answered = []

    async def work(number: int) -> None:
        async with connected(service.radsec_port, context(service), source=f"127.0.1.{number % 10 + 1}") as client:
            for identifier in range(10):
                code = await client.ask(pap("ann", "hello", identifier=identifier, secret=OVER_TLS))
                answered.append(code)

    with trio.fail_after(240):
        async with trio.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(work, number)
    assert answered == [ACCESS_ACCEPT] * 2000


async def test_garbage_instead_of_a_handshake(service: SecureService) -> None:
    """If a peer sends random octets, or complete or cut ClientHello messages, instead of a handshake, only its own
    connection is closed."""
    chance = random.Random(7)
    hello = _hello(context(service))
    for number in range(100):
        octets = chance.randbytes(chance.randrange(1, 2000))
        if number % 2:
            at = chance.randrange(len(hello))
            octets = hello[:at] + bytes((hello[at] ^ chance.randrange(1, 256),)) + hello[at + 1 :]
        stream = await trio.open_tcp_stream(HOST, service.radsec_port)
        with suppress(trio.BrokenResourceError):
            await stream.send_all(octets)
        await trio.aclose_forcefully(stream)
    await answers(service)


async def test_garbage_behind_a_handshake(service: SecureService) -> None:
    """If a known peer sends invalid packets, at most its own connection is closed."""
    chance = random.Random(8)
    for number in range(60):
        request = bytearray(pap("ann", "hello", identifier=number, secret=OVER_TLS))
        for _ in range(chance.randrange(1, 5)):
            request[chance.randrange(len(request))] = chance.randrange(256)
        async with connected(service.radsec_port, context(service)) as client:
            with suppress(trio.BrokenResourceError):
                await client.send(bytes(request) if number % 3 else chance.randbytes(5000))
    await answers(service)


async def test_a_packet_an_octet_at_a_time(service: SecureService) -> None:
    """A packet that arrives one octet at a time is answered."""
    request = pap("ann", "hello", secret=OVER_TLS)
    with trio.fail_after(60):
        async with connected(service.radsec_port, context(service)) as client:
            for octet in request[:-1]:
                await client.send(bytes((octet,)))
            await client.send(request[-1:])
            assert (await client.reply())[0] == ACCESS_ACCEPT


async def test_half_open_and_silent_peers(service: SecureService) -> None:
    """Two hundred half-open connections and two hundred silent ones do not prevent a client from connecting."""
    with ExitStack() as held:
        for number in range(400):
            sock = held.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # send a reset when it is closed
            sock.bind((f"127.0.2.{number % 8 + 1}", 0))
            sock.connect((HOST, service.radsec_port))
            if number % 2:
                sock.close()
        await answers(service)


async def test_a_flood_that_is_not_read(service: SecureService) -> None:
    """If a peer sends without reading, its connection is closed. Another peer is answered in the meantime."""
    async with connected(service.radsec_port, context(service)) as client, trio.open_nursery() as nursery:
        nursery.start_soon(_flood, client)
        await answers(service)
        with trio.fail_after(120):
            while "slow_reader" not in service.request("GET", "/metrics").text:
                await trio.sleep(0.2)
        nursery.cancel_scope.cancel()
    await answers(service)


async def _flood(client: RadSecClient) -> None:
    request = status_server(secret=OVER_TLS)
    with suppress(trio.BrokenResourceError):
        while True:
            await client.send(*[request] * 500)


def _hello(context: ssl.SSLContext) -> bytes:
    """Return the first TLS octets of a client."""
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(inward, outward, server_hostname="radius.example.org").do_handshake()
    return outward.read()
