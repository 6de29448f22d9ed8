"""Tests of RadSec: certificates and their RADIUS clients, many requests on a connection, and how connections end."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.areas.login.listen.radsec import WATCH_S, Limits
from sallyport.areas.login.listen.senders import cause
from sallyport.areas.login.listen.tls import radsec_context
from sallyport.base.errors import ConfigError, StartError
from sallyport.base.tls import TlsStream
from sallyport.certs.authority import fingerprint
from sallyport.certs.credentials import Certificates
from sallyport.certs.folder import CertificateFolder, present, read_certificates
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, ACCOUNTING_RESPONSE, decode_reply
from tests.areas import SECRET
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.radsec import PROXY, Secure, running
from tests.certs.conftest import data_dir, made
from tests.client_hello import ALERT, FFDHE2048, FFDHE8192, client_hello
from tests.packets import accounting, attributes, pap, status_server
from tests.radsec_client import RADSEC, client_context, connected

__all__ = ["data_dir", "made"]

OVER_TLS = b"radsec"
STARTED = attributes(ACCT_STATUS_TYPE=(1).to_bytes(4), ACCT_SESSION_ID=b"s1", NAS_IDENTIFIER=b"switch-1")


@pytest.fixture
async def secure(wire: Wire, data_dir: Path) -> AsyncIterator[Secure]:
    """Yield a listener whose limits are too high to be reached by a test."""
    async with running(wire, data_dir) as secure:
        yield secure


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newest", [True, False], ids=["TLS 1.3", "TLS 1.2"])
async def test_all_kinds_on_one_connection(secure: Secure, newest: bool) -> None:
    """Authentication, accounting and Status-Server work on one connection, with the secret `radsec` (RFC 6614 section
    2.3).
    """
    async with secure.connected(newest=newest) as client:
        assert await client.ask(pap("ann", "hello", secret=OVER_TLS)) == ACCESS_ACCEPT
        assert await client.ask(pap("ann", "wrong", identifier=1, secret=OVER_TLS)) == ACCESS_REJECT
        assert await client.ask(accounting(STARTED, secret=OVER_TLS)) == ACCOUNTING_RESPONSE
        assert await client.ask(status_server(identifier=2, secret=OVER_TLS)) == ACCESS_ACCEPT


async def test_many_requests_at_once(secure: Secure) -> None:
    """Seventy logins in sequence get seventy answers, however the octets are split."""
    requests = {number: pap("ann", "hello", identifier=number, secret=OVER_TLS) for number in range(70)}
    octets = b"".join(requests.values())
    async with secure.connected() as client:
        for at in range(0, len(octets), 1000):
            await client.send(octets[at : at + 1000])
        while requests:
            with trio.fail_after(20):
                reply = await client.reply()
            assert decode_reply(reply, requests.pop(reply[1]), RADSEC)[0] == ACCESS_ACCEPT


async def test_an_unsigned_request_is_proven_by_its_connection(secure: Secure) -> None:
    """Over TLS an unsigned request counts as proven: it registers its device, and a wrong password counts against the
    user."""
    async with secure.connected() as client:
        request = pap("ann", "wrong", attributes(NAS_IDENTIFIER=b"switch-2"), signed=False, secret=OVER_TLS)
        assert await client.ask(request) == ACCESS_REJECT
    assert secure.wire.areas.sample("sallyport_devices_registered_total", domain=str(secure.wire.areas.domain)) == 1


async def test_identifiers_are_counted_by_connection(secure: Secure) -> None:
    """The same packet gets the same octets again on its connection. On another connection it is a new request."""
    request = pap("ann", "hello", secret=OVER_TLS)
    async with secure.connected() as one, secure.connected() as other:
        await one.send(request)
        first = await one.reply()
        await one.send(request)
        assert await one.reply() == first
        assert secure.dropped("duplicate") == 1
        assert await other.ask(request) == ACCESS_ACCEPT
        assert secure.dropped("duplicate") == 1


async def test_another_secret_is_not_answered(secure: Secure) -> None:
    """The client's secret for UDP is not accepted."""
    async with secure.connected() as client:
        await client.send(pap("ann", "hello", secret=SECRET))
        assert await client.ask(pap("ann", "hello", identifier=1, secret=OVER_TLS)) == ACCESS_ACCEPT
    assert secure.dropped("bad_message_authenticator") == 1


# --- clients and certificates -------------------------------------------------------------------------------------


async def test_a_client_is_known_by_its_fingerprint(secure: Secure) -> None:
    """A client is searched for by its fingerprint first, then by its names."""
    certificate = read_certificates(secure.directory.client("ann@example.org"))[0]
    await secure.wire.areas.client("198.51.100.2/32", name="by print", tls_fingerprint=fingerprint(certificate))
    async with secure.connected("ann@example.org") as client:
        assert await client.ask(pap("ann", "hello", secret=OVER_TLS)) == ACCESS_ACCEPT
    assert secure.wire.areas.sample("sallyport_client_requests_total", client="by print", outcome="Access-Accept") == 1


async def test_a_certificate_of_another_tenant_is_no_client(secure: Secure) -> None:
    """If another tenant has registered the name in a tenant's certificate, the peer with that certificate is refused.

    Therefore the other tenant receives no logins.
    """
    areas = secure.wire.areas
    owner = await areas.tenancy.ensure_tenant(2, 1)
    async with secure.connected() as client:
        assert await client.ask(pap("ann", "hello", secret=OVER_TLS)) == ACCESS_ACCEPT
        certificate = read_certificates(secure.directory.client(PROXY))[0]
        await areas.configuration.change(
            lambda tx: tx.execute(
                "insert into issued_certificates (fingerprint, name, tenant_id) values (:print, :name, :tenant)",
                print=fingerprint(certificate),
                name=PROXY,
                tenant=owner,
            )
        )
        await client.send(pap("ann", "hello", identifier=1, secret=OVER_TLS))
        assert await client.ended()
    assert await secure.refused(PROXY)
    assert secure.dropped("unknown_client") == 3  # for the packet, its connection and the second connection


async def test_a_certificate_without_a_client(secure: Secure) -> None:
    """If a certificate of the authority belongs to no RADIUS client, the connection is closed and the sender
    is listed."""
    assert await secure.refused("ann@example.org")
    assert secure.dropped("unknown_client") == 1
    (sender,) = secure.wire.senders.all()
    assert (sender.host, sender.reason) == ("127.0.0.1", "unknown_certificate")
    why = cause(sender, None)
    assert why.verdict == "no RADIUS client of its tenant has the name in the certificate"
    assert "sallyport client add NAME --tls-name ann@example.org --address 127.0.0.1" in why.remedy
    async with secure.connected() as client:
        assert await client.ask(pap("ann", "hello", secret=OVER_TLS)) == ACCESS_ACCEPT
    assert secure.wire.senders.all() == []


async def test_a_client_without_a_certificate(secure: Secure) -> None:
    """A client without a certificate is refused."""
    assert await secure.refused(None)
    assert (secure.dropped("handshake"), secure.connections) == (1, 0)


async def test_a_certificate_of_another_authority(secure: Secure, tmp_path: Path) -> None:
    """A certificate of another authority is refused, even if its name is registered. An authority of the client's
    domain is no exception: domains trust it for EAP-TLS alone."""
    other = CertificateFolder(tmp_path / "other")
    other.make("Tests CA", ["localhost"], present())
    other.issue(PROXY, present())
    areas = secure.wire.areas
    await areas.authorities.add(areas.tenant, "other", other.ca_pem(), {"domain_ids": (areas.domain,)})
    context = client_context(secure.directory.ca)
    context.load_cert_chain(other.client(PROXY), other.client(PROXY).with_suffix(".key"))
    with pytest.raises((trio.BrokenResourceError, EOFError)):
        async with connected(secure.port, context) as client:
            await client.reply()
    assert secure.dropped("handshake") == 1


async def test_an_expired_certificate(secure: Secure) -> None:
    """An expired certificate is refused."""
    secure.directory.issue("old.example.org", present() - timedelta(days=400))
    await secure.wire.areas.client("198.51.100.3/32", name="old", tls_name="old.example.org")
    assert await secure.refused("old.example.org")
    assert secure.dropped("handshake") == 1


@pytest.mark.parametrize("newest", [True, False], ids=["TLS 1.3", "TLS 1.2"])
async def test_an_alert_has_the_cause(secure: Secure, newest: bool) -> None:
    """The TLS alert tells the peer why it was refused (RFC 8446 section 6.2)."""
    secure.directory.issue("old.example.org", present() - timedelta(days=400))
    with pytest.raises(trio.BrokenResourceError) as raised:
        async with secure.connected("old.example.org", newest=newest) as client:
            await client.stream.receive_some()
    assert "CERTIFICATE_EXPIRED" in str(raised.value.__cause__)


async def test_the_servers_certificate_is_refused(secure: Secure) -> None:
    """The server's certificate is refused as a client certificate, because its key usage differs."""
    await secure.wire.areas.client("198.51.100.4/32", name="self", tls_name="radius.example.org")
    context = client_context(secure.directory.ca)
    context.load_cert_chain(secure.directory.server, secure.directory.server_key)
    with pytest.raises((trio.BrokenResourceError, EOFError)):
        async with connected(secure.port, context) as client:
            await client.reply()
    assert secure.dropped("handshake") == 1


# --- what changes while connections are open ----------------------------------------------------------------------


async def test_a_revoked_certificate(secure: Secure, mock_clock: trio.testing.MockClock) -> None:
    """If a certificate is revoked, its connection is closed and its next handshake fails.

    The other clients can connect again.
    """
    mock_clock.rate = 1
    secure.directory.issue("other.example.org", present())
    await secure.wire.areas.client("198.51.100.5/32", name="other", tls_name="other.example.org")
    async with secure.connected() as proxy, secure.connected("other.example.org") as other:
        assert await proxy.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT
        secure.directory.revoke(PROXY, present())
        mock_clock.jump(WATCH_S)
        with trio.fail_after(20):
            assert await proxy.ended()
            assert await other.ended()
    assert await secure.refused(PROXY)
    async with secure.connected("other.example.org") as other:
        assert await other.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT


async def test_a_renewal_holds_without_a_restart(secure: Secure, mock_clock: trio.testing.MockClock) -> None:
    """After the server certificate was renewed, the next handshake uses the new one.

    An unusable certificate changes nothing.
    """
    mock_clock.rate = 1
    used = secure.directory.server.read_bytes()
    secure.directory.server.write_text("nothing")
    mock_clock.jump(WATCH_S)
    await trio.testing.wait_all_tasks_blocked()
    async with secure.connected() as client:
        assert await client.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT
        secure.directory.server.write_bytes(used)
        new = secure.directory.renew(None, (), present())
        mock_clock.jump(WATCH_S)
        with trio.fail_after(20):
            assert await client.ended()
    async with secure.connected() as client:
        shown = client.stream.getpeercert()
        assert int(shown["serialNumber"], 16) == new.serial_number


async def test_a_deleted_client(secure: Secure) -> None:
    """After a client is removed, its next packet is not answered and the connection is closed.

    If a new client has that certificate, it is accepted.
    """
    areas = secure.wire.areas
    client = areas.client_named("proxy")
    async with secure.connected() as connection:
        assert await connection.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT
        await areas.clients.delete(areas.tenant, client.id)
        await connection.send(pap("ann", "hello", secret=OVER_TLS))
        with trio.fail_after(20):
            assert await connection.ended()


# --- bounds and the end -------------------------------------------------------------------------------------------


async def test_an_idle_connection_is_closed(wire: Wire, data_dir: Path) -> None:
    """An idle connection is closed, whether it is idle before the handshake, before the first packet, within a packet
    or after a packet."""
    limits = Limits(handshake_s=0.3, first_packet_s=0.3, packet_s=0.3, idle_s=0.3)
    async with running(wire, data_dir, limits=limits) as secure:
        async with await trio.open_tcp_stream("127.0.0.1", secure.port) as stream:
            with trio.fail_after(20):
                assert await stream.receive_some() == b""
        assert secure.dropped("handshake") == 1
        for octets in (b"", b"\x01", status_server(secret=OVER_TLS) + b"\x01\x02\x00"):
            async with secure.connected() as client:
                await client.send(octets)
                with trio.fail_after(20):
                    if len(octets) > 20:
                        await client.reply()
                    assert await client.ended()
        await secure.has(0)


@pytest.mark.parametrize("length", [0, 19, 4097, 65535])
async def test_a_wrong_length_ends_a_connection(secure: Secure, length: int) -> None:
    """Packets before one with a wrong length are answered. Then the connection is closed (RFC 6613 section 2.6.4)."""
    request = pap("ann", "hello", secret=OVER_TLS)
    async with secure.connected() as client:
        assert await client.ask(request) == ACCESS_ACCEPT
        await client.send(b"\x01\x02" + length.to_bytes(2) + bytes(16), status_server(identifier=3, secret=OVER_TLS))
        with trio.fail_after(20):
            assert await client.ended()
    assert secure.dropped("malformed") == 1


async def test_too_many_of_an_address(wire: Wire, data_dir: Path) -> None:
    """Connections beyond the limit of an address are closed.

    Another address is not affected, and a new connection is accepted when an old one has ended.
    """
    async with running(wire, data_dir, limits=Limits(per_address=2)) as secure, secure.connected() as client:
        async with secure.connected():
            await secure.has(2)
            assert await secure.refused(PROXY)
            async with secure.connected(source="127.0.0.2") as other:
                assert await other.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT
        await secure.has(1)
        async with secure.connected():
            await secure.has(2)
        assert await client.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT
    assert secure.dropped("overload") == 1


async def test_connections_without_a_handshake_make_room(wire: Wire, data_dir: Path) -> None:
    """Connections without a handshake do not prevent clients from connecting: the oldest of them is closed."""
    async with running(wire, data_dir, limits=Limits(unverified=3)) as secure:
        silent = [await trio.open_tcp_stream("127.0.0.1", secure.port) for _ in range(5)]
        async with secure.connected() as client:
            assert await client.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT
        with trio.fail_after(20):
            assert await silent[0].receive_some() == b""
        for stream in silent:
            await trio.aclose_forcefully(stream)


async def test_the_busiest_network_makes_room_first(wire: Wire, data_dir: Path) -> None:
    """If there are too many connections without a handshake, the oldest connection of the busiest network is closed.

    The connections of other networks stay open.
    """
    async with running(wire, data_dir, limits=Limits(unverified=3)) as secure:
        single = await trio.open_tcp_stream("127.0.0.1", secure.port, local_address="127.0.0.2")
        silent = [await trio.open_tcp_stream("127.0.0.1", secure.port) for _ in range(4)]
        with trio.fail_after(20):
            for closed in silent[:2]:
                assert await closed.receive_some() == b""
        assert secure.dropped("overload") == 2
        for stream in (single, *silent):
            await trio.aclose_forcefully(stream)


async def test_a_tenant_leaves_connections_to_others(wire: Wire, data_dir: Path) -> None:
    """A client that has half of the connections gets no more. A client of another tenant still gets one."""
    other = await wire.areas.tenancy.ensure_tenant(2, 1)
    async with running(wire, data_dir, limits=Limits(connections=4)) as secure:
        print_of = fingerprint(read_certificates(secure.directory.client("ann@example.org"))[0])
        await wire.areas.client("198.51.100.2/32", name="other", tls_fingerprint=print_of, tenant=other)
        async with secure.connected(), secure.connected():
            await secure.has(2)
            assert await secure.refused(PROXY)
            async with secure.connected("ann@example.org") as client:
                assert await client.ask(status_server(secret=OVER_TLS)) == ACCESS_ACCEPT
    assert secure.dropped("overload") == 1


@pytest.mark.parametrize("group", [FFDHE2048, FFDHE8192], ids=["ffdhe2048", "ffdhe8192"])
async def test_an_expensive_group_is_refused(secure: Secure, group: int) -> None:
    """A ClientHello whose only key share takes long to process gets an alert, and no ServerHello."""
    async with await trio.open_tcp_stream("127.0.0.1", secure.port) as stream:
        await stream.send_all(client_hello(group))
        assert bytes(await stream.receive_some()).startswith(ALERT)


async def test_handshakes_take_turns(secure: Secure) -> None:
    """A handshake continues only when it is its turn."""
    files = Certificates(secure.directory.path.parent).server()
    assert files is not None
    ours, theirs = trio.socket.socketpair()
    tls, turn, refused = (
        TlsStream(trio.SocketStream(ours), radsec_context(files)),
        trio.CapacityLimiter(1),
        trio.Event(),
    )

    async def shake() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await tls.handshake(turn)
        refused.set()

    with ours, theirs:
        await theirs.send(b"\x16\x03\x01\x00\x05no hello")
        async with trio.open_nursery() as nursery, turn:
            nursery.start_soon(shake)
            await trio.testing.wait_all_tasks_blocked()
            assert not refused.is_set()
    assert refused.is_set()


async def test_a_peer_that_does_not_read_is_closed(wire: Wire, data_dir: Path) -> None:
    """If a peer does not read, its connection is closed at a limit. Other clients are still answered."""
    async with running(wire, data_dir, limits=Limits(unread=4096)) as secure, secure.connected() as client:
        request = status_server(secret=OVER_TLS)
        with trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
            while True:
                await client.send(*[request] * 1000)
        assert secure.dropped("slow_reader") == 1
        async with secure.connected() as other:
            assert await other.ask(request) == ACCESS_ACCEPT


async def test_pending_requests_are_answered_at_the_end(secure: Secure) -> None:
    """After `stop` no connection is accepted and nothing is read. Pending answers are still sent."""
    request = pap("ann", "hello", secret=OVER_TLS)
    async with secure.connected() as client:
        assert await client.ask(status_server(identifier=9, secret=OVER_TLS)) == ACCESS_ACCEPT
        await client.send(request)
        with trio.fail_after(20):
            while not secure.auth.in_flight:
                await trio.lowlevel.checkpoint()
        secure.radsec.stop()
        with trio.fail_after(20):
            assert decode_reply(await client.reply(), request, RADSEC)[0] == ACCESS_ACCEPT
            await secure.radsec.sent()
        with pytest.raises(OSError, match="all attempts"):
            await trio.open_tcp_stream("127.0.0.1", secure.port)


def test_without_certificates_it_does_not_start(tmp_path: Path) -> None:
    """Without usable certificates the listener does not start.

    The error names the file, or the command that creates the certificates.
    """
    assert Certificates(tmp_path).server() is None
    directory = CertificateFolder(tmp_path)
    directory.make("CA", ["localhost"], present())
    directory.server.write_text("nothing")
    files = Certificates(tmp_path).server()
    assert files is not None
    with pytest.raises(ConfigError, match=r"server\.pem"):
        radsec_context(files)


async def test_the_error_names_the_command_for_certificates(wire: Wire, tmp_path: Path) -> None:
    """Without an authority the service does not start with RadSec. The error names the command that creates one."""
    with pytest.RaisesGroup(StartError, flatten_subgroups=True):
        async with running(wire, tmp_path):
            pass
