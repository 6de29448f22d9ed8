"""Tests of a home server over TLS (RFC 6614)."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.first.fields import TlsFields
from sallyport.areas.login.first.upstream.home import Channel, HomeServer
from sallyport.areas.login.first.upstream.link import Link
from sallyport.areas.login.login import Reason
from sallyport.base.errors import Invalid
from sallyport.certs.folder import CertificateFolder, present
from sallyport.outgoing.egress import Egress
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    STATUS_SERVER,
    Request,
    SharedSecret,
    decode,
    decode_reply,
    encode_reply,
)
from sallyport.settings.values import ANYWHERE
from tests.areas import SECRET, areas, clock
from tests.areas.login.first.upstream.conftest import Upstream, upstream
from tests.areas.login.first.upstream.home_server import STAFF
from tests.areas.login.listen.conftest import wire
from tests.certs.conftest import HOST, data_dir, folder, made
from tests.outgoing import costly_keys
from tests.outgoing.counted import CountedTurns
from tests.packets import pap

__all__ = ["areas", "clock", "data_dir", "folder", "made", "upstream", "wire"]

RADSEC = SharedSecret(b"radsec")
PROXY = "proxy.example.org"


class SecureHome:
    """A RadSec server that accepts every login.

    answers: whether it answers. connections: the number of connections that were made. shown: the names in the client
    certificates. received: the requests so far.
    """

    def __init__(self, folder: CertificateFolder) -> None:
        self._folder = folder
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder.ca))
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_cert_chain(folder.server, folder.server.with_suffix(".key"))
        self.answers = True
        self.connections = 0
        self.shown: list[str] = []
        self.received: list[Request] = []
        self.port = 0
        self.arrived = trio.Event()
        self._streams: list[trio.SSLStream[trio.SocketStream]] = []

    def fields(self, client: str = PROXY, **more: object) -> dict[str, object]:
        """Return the fields of this server, as SetFirstFactor accepts them."""
        certificate = self._folder.client(client)
        tls = {
            "clientCertificate": certificate.read_text(),
            "clientKey": certificate.with_suffix(".key").read_text(),
            "caCertificate": self._folder.ca_pem(),
            "serverName": HOST,
        }
        return {"host": "127.0.0.1", "port": self.port, "tls": {**tls, **more}}

    async def drop(self) -> None:
        """Close all connections."""
        for stream in self._streams:
            await trio.aclose_forcefully(stream)
        self._streams.clear()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        tls = trio.SSLStream(stream, self.context, server_side=True, https_compatible=True)
        try:
            await tls.do_handshake()
            self.connections += 1
            self._streams.append(tls)
            certificate = tls.getpeercert()
            self.shown += [name for _, name in certificate.get("subjectAltName", ())]
            pending = b""
            while received := await tls.receive_some():
                pending += received
                while len(pending) >= 4 and len(pending) >= (length := int.from_bytes(pending[2:4])):
                    packet, pending = pending[:length], pending[length:]
                    await self._answer(tls, decode(packet, RADSEC))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def _answer(self, tls: "trio.SSLStream[trio.SocketStream]", request: Request) -> None:
        if request.code != STATUS_SERVER:
            self.received.append(request)
            self.arrived.set()
        if self.answers:
            reply = encode_reply(ACCESS_ACCEPT, request, RADSEC, STAFF)
            for part in (reply[:7], reply[7:]):  # TCP does not keep the packets apart
                await tls.send_all(part)

    async def has_received(self, count: int) -> None:
        """Wait until this number of requests have arrived."""
        with trio.fail_after(30):
            while len(self.received) < count:
                self.arrived = trio.Event()
                await self.arrived.wait()

    async def answer_all(self) -> None:
        """Answer all requests at once, in reverse order."""
        replies = (encode_reply(ACCESS_ACCEPT, request, RADSEC, STAFF) for request in reversed(self.received))
        await self._streams[0].send_all(b"".join(replies))


@asynccontextmanager
async def secure_home(folder: CertificateFolder) -> AsyncIterator[SecureHome]:
    """Yield a server on a free port of 127.0.0.1."""
    home = SecureHome(folder)
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, home.serve, 0, host="127.0.0.1"))
        home.port = listener.socket.getsockname()[1]
        yield home
        nursery.cancel_scope.cancel()


@pytest.fixture
async def home(folder: CertificateFolder) -> AsyncIterator[SecureHome]:
    """Yield a server with a certificate of the tests' authority."""
    async with secure_home(folder) as home:
        yield home


async def configure(upstream: Upstream, *servers: dict[str, object], **fields: object) -> None:
    """Pass the domain's logins on to these servers."""
    domain = upstream.areas.domains.table.by_id[upstream.areas.domain]
    await upstream.areas.first_settings.set(
        domain, FirstFactor.RADIUS, {"radius": {"servers": list(servers), **fields}}
    )


async def test_logins_over_one_connection(upstream: Upstream, home: SecureHome) -> None:
    """Twenty logins use one connection, with the secret `radsec` and the client certificate.

    The server receives the password and the attributes.
    """
    await configure(upstream, home.fields())
    for number in range(20):
        assert await upstream.ask(pap(f"user{number}", "hello", identifier=number)) == (ACCESS_ACCEPT, STAFF)
    assert [request.first[1] for request in home.received] == [b"user%d" % number for number in range(20)]
    assert (home.connections, home.shown) == (1, [PROXY])


async def test_answers_of_a_connection_yield_to_other_tasks(upstream: Upstream, home: SecureHome) -> None:
    """When answers arrive one by one, the reader yields to other tasks twice for each answer: once for the connection
    and once for the channel."""
    upstream.areas.http.of(1).egress.turns = turns = CountedTurns(1)
    await configure(upstream, home.fields(), statusCheck=False)
    for number in range(5):
        await upstream.ask(pap(f"user{number}", "hello", identifier=number))
    assert turns.taken >= 10


async def test_many_at_once(upstream: Upstream, home: SecureHome) -> None:
    """Fifty logins wait on one connection. Each gets its own answer, in whatever order the answers arrive."""
    await configure(upstream, home.fields())
    home.answers = False
    datagrams = {number: pap(f"user{number}", "hello", identifier=number) for number in range(50)}
    for datagram in datagrams.values():
        upstream.wire.put(datagram)
    await home.has_received(50)
    await home.answer_all()
    for _ in datagrams:
        reply, _ = await upstream.wire.take()
        assert decode_reply(reply, datagrams[reply[1]], SharedSecret(SECRET))[0] == ACCESS_ACCEPT
    assert home.connections == 1


async def test_a_connection_that_ends(upstream: Upstream, home: SecureHome) -> None:
    """If the connection ends, the next retransmission sends a pending login over a new connection."""
    await configure(upstream, home.fields(), statusCheck=False)
    home.answers = False
    datagram = pap("ann", "hello")
    upstream.wire.put(datagram)
    await home.has_received(1)
    await home.drop()
    home.answers = True
    with trio.fail_after(30):
        while len(home.received) < 2:  # the next connection is made after a second
            await trio.sleep(0.2)
            upstream.wire.put(datagram)
    assert await upstream.answer(datagram) == (ACCESS_ACCEPT, STAFF)
    assert home.connections == 2


async def test_a_peer_that_reads_nothing(folder: CertificateFolder) -> None:
    """If the peer reads nothing, the connection is closed, so that a new one can be made."""
    home = SecureHome(folder)

    async def shake_hands_only(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, home.context, server_side=True)
        await tls.do_handshake()
        await trio.sleep_forever()

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    home.port = listener.socket.getsockname()[1]
    link = Link("127.0.0.1", TlsFields.model_validate(home.fields()["tls"]).settings, Egress(ANYWHERE), taken_s=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, shake_hands_only, [listener])
        near, far = link.pair()

        async def ask_without_end() -> None:
            while True:
                await trio.lowlevel.wait_writable(near)
                with suppress(BlockingIOError, BrokenPipeError):
                    near.send(bytes(4096))

        nursery.start_soon(ask_without_end)
        with trio.fail_after(30):
            assert "timed out" in await link.carry(far, "127.0.0.1", home.port)
        nursery.cancel_scope.cancel()
    near.close()


async def test_a_connection_that_has_ended_keeps_its_reason(folder: CertificateFolder) -> None:
    """A request that is sent on it before the channel has noticed the end does not hide why it ended."""
    egress = Egress(ANYWHERE)
    settings = TlsFields.model_validate(SecureHome(folder).fields()["tls"]).settings
    link = Link("127.0.0.1", settings, egress)
    server = HomeServer(
        "127.0.0.1", 2083, SharedSecret(SECRET), egress.sockets, 0.0, link, checks=False, on_change=lambda *_: None
    )
    near, far = link.pair()
    server.trouble = "TLS: the reason"
    far.close()
    server.send(Channel(near, 0.0, far), b"x", 1.0)
    near.close()
    assert (server.trouble, server.refused_at) == ("TLS: the reason", 1.0)


@pytest.mark.parametrize("wrong", ["name", "authority", "ours"])
async def test_an_untrusted_server_gets_no_login(
    upstream: Upstream, home: SecureHome, folder: CertificateFolder, tmp_path: Path, wrong: str
) -> None:
    """A server gets no login if its name or its authority is wrong, or if it refuses the client certificate.

    The other server is asked, and the steps contain the cause.
    """
    other = CertificateFolder(tmp_path / "other")
    fields = home.fields()
    if wrong == "name":
        fields = home.fields(serverName="elsewhere.example.org")
    else:
        (tmp_path / "other").mkdir()
        other.make("Another CA", ["other.example.org"], present())
        other.issue(PROXY, present())
        if wrong == "authority":
            fields = home.fields(caCertificate=other.ca_pem())
        else:
            certificate = other.client(PROXY)
            fields = home.fields(
                clientCertificate=certificate.read_text(), clientKey=certificate.with_suffix(".key").read_text()
            )
    await configure(upstream, fields, responseWindowSeconds=1)
    steps: list[str] = []
    areas = upstream.areas
    domain = areas.domains.table.by_id[areas.domain]
    with trio.fail_after(60):
        result = await areas.first.check(upstream.login(pap("ann", "hello")), domain, lambda: False, steps.append)
    assert result.reason is Reason.FIRST_FACTOR_UNREACHABLE
    assert home.received == []
    assert any(word in " ".join(steps) for word in ("TLS", "connection")), steps


async def test_the_configuration_has_defaults_and_hides_the_key(upstream: Upstream, home: SecureHome) -> None:
    """Port and secret have defaults, and the key is never shown.

    A key that does not belong to its certificate is refused.
    """
    fields = home.fields()
    del fields["port"]
    await configure(upstream, fields)
    (server,) = upstream.areas.first_settings.shown(upstream.areas.domain)["radius"]["servers"]  # type: ignore[misc]
    assert server["port"] == 2083
    assert "secret" not in server
    assert "clientKey" not in server["tls"]
    other = home.fields("ann@example.org")["tls"]
    both = f"{other['clientCertificate']}{other['clientKey']}"  # type: ignore[index]
    for tls in (
        {"clientKey": other["clientKey"]},
        {"clientKey": "x"},
        {"clientCertificate": "x"},
        {"clientCertificate": both},
    ):  # type: ignore[index]
        with pytest.raises(Invalid) as refused:
            await configure(upstream, home.fields(**tls))
        assert all(each.field.startswith("radius.servers.0.tls") for each in refused.value.fields)


@pytest.mark.parametrize(
    ("tls", "field"),
    [
        *(
            pytest.param({"clientKey": key}, "clientKey", id=f"encrypted {name}")
            for name, key in costly_keys.ENCRYPTED.items()
        ),
        pytest.param({"clientKey": costly_keys.pem(costly_keys.LONG_RSA)}, "clientKey", id="RSA of 6144 bits"),
        pytest.param({"clientKey": costly_keys.pem(costly_keys.COMPOSITE_RSA)}, "clientKey", id="RSA without primes"),
        pytest.param(
            {"caCertificate": costly_keys.certificate(costly_keys.LONG_RSA.public_key())},
            "caCertificate",
            id="authority of 6144 bits",
        ),
    ],
)
async def test_costly_keys_are_refused(
    upstream: Upstream, home: SecureHome, tls: dict[str, object], field: str
) -> None:
    """Encrypted keys and slow keys are refused when the first factor is set. The error names the field."""
    with pytest.raises(Invalid) as refused:
        await configure(upstream, home.fields(**tls))
    assert [each.field for each in refused.value.fields] == [f"radius.servers.0.tls.{field}"]


async def test_a_costly_key_of_before(home: SecureHome) -> None:
    """A long key may have been stored before such keys were refused. It ends each connection with that reason."""
    fields = {**home.fields()["tls"], "clientKey": costly_keys.pem(costly_keys.LONG_RSA)}  # type: ignore[dict-item]
    link = Link("127.0.0.1", TlsFields.model_validate(fields).settings, Egress(ANYWHERE))
    near, far = link.pair()
    with near, trio.fail_after(60):
        assert await link.carry(far, "127.0.0.1", home.port) == (
            "TLS: the certificate or key must be an RSA private key of at most 4096 bits"
        )
