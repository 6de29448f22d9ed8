"""Tests of the resumption of TLS sessions: their user, their age and their checks."""

import gc
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL

from sallyport.certs.authority import fingerprint
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Certificate, Done, Failure, Offer, Offers, Resumed
from sallyport.radius.eap.resumption import Resumptions, SessionUser
from sallyport.radius.eap.ttls import TtlsPhase
from sallyport.radius.eap.tunnel import Contexts, Tunnel, watch_state
from sallyport.radius.eap.tunnelled import Tunnelled
from tests.radius.eap.conftest import PASSWORD, USER, Site
from tests.radius.eap.supplicant import Inside, MsChapSide, Supplicant, TlsSide, in_peap, in_ttls_pap, log_in, silent
from tests.radius.eap.users import EVERYTHING

VERSIONS = [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION]
KINDS = [eap.TLS, eap.TTLS, eap.PEAP]


def inside(kind: int, password: bytes) -> Inside:
    """Return the inner data of a client's method."""
    if kind == eap.TTLS:
        return in_ttls_pap(USER, password)
    return silent if kind == eap.TLS else in_peap(USER, MsChapSide(USER, password))


def log_in_by(
    site: Site,
    kind: int,
    version: int,
    before: TlsSide | None = None,
    *,
    password: bytes = PASSWORD,
    now: float = 0,
    scope: str = "corp",
) -> tuple[Done, TlsSide]:
    """Return the result of a login, and the client's side of it."""
    side = TlsSide(
        kind,
        inside(kind, password),
        begins=kind == eap.TTLS,
        shows=site.issued if kind == eap.TLS else None,
        version=version,
        before=before,
    )
    terms = Terms(site.server, EVERYTHING, scope=scope)
    return log_in(Conversation(offers(terms), now=now), site.users, Supplicant(b"anonymous", side)), side


def test_what_is_over_keeps_no_tls(site: Site) -> None:
    """A conversation that has ended is kept for repeated responses, but has released its TLS connection."""
    side = TlsSide(eap.PEAP, inside(eap.PEAP, PASSWORD))
    conversation = Conversation(offers(Terms(site.server, EVERYTHING)), now=0)
    gc.collect()
    before = tunnels()
    assert log_in(conversation, site.users, Supplicant(b"anonymous", side)).success
    gc.collect()
    assert (tunnels(), conversation.method) == (before, "peap-mschapv2")


def tunnels() -> int:
    """Return the number of tunnels that are in memory."""
    return sum(isinstance(each, Tunnel) for each in gc.get_objects())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_needs_no_password(site: Site, kind: int, version: int) -> None:
    """A session can be resumed several times without a password. Each time there are new keys."""
    done, side = log_in_by(site, kind, version)
    keys = {done.msk}
    for _ in range(3):
        done, side = log_in_by(site, kind, version, side, password=b"not asked for")
        assert (done.success, done.user) == (True, USER)
        keys.add(done.msk)
    assert len(keys) == 4
    shown = Certificate(USER, fingerprint(site.issued.certificate))
    expected = shown if kind == eap.TLS else Resumed(USER)
    assert site.users.asked[1:] == [expected] * 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_session_keeps_its_age(site: Site, kind: int, version: int) -> None:
    """An hour after the password was checked the session cannot be resumed, however often it was resumed before."""
    _, side = log_in_by(site, kind, version)
    done, side = log_in_by(site, kind, version, side, now=3599)
    assert (done.success, side.is_new) == (True, False)
    done, side = log_in_by(site, kind, version, side, password=b"wrong", now=3601)
    assert (done.success, side.is_new) == (kind == eap.TLS, True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_does_not_outlive_its_certificate(site: Site, version: int) -> None:
    """A session ends when its certificate expires, because a resumed handshake verifies no certificate."""
    site.issued = site.authority.certificate("ann", until=datetime.now(UTC) + timedelta(seconds=600))
    _, side = log_in_by(site, eap.TLS, version)
    for now, is_new in ((590, False), (601, True)):
        _, side = log_in_by(site, eap.TLS, version, side, now=now)
        assert side.is_new == is_new


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_expired_session(site: Site, kind: int, version: int) -> None:
    """A client with an expired session logs in with its password in the same conversation.

    The expired session cannot be resumed, but the session of the next login can.
    """
    _, side = log_in_by(site, kind, version)
    for now, is_new in ((3601, True), (3602, True), (3603, False)):
        done, side = log_in_by(site, kind, version, side, now=now)
        assert (done.success, side.is_new) == (True, is_new)


def server_contexts(site: Site) -> Contexts:
    """Return the contexts of a server with one group that a client does not guess first."""

    def context() -> SSL.Context:
        made = SSL.Context(SSL.TLS_SERVER_METHOD)
        made.use_certificate(site.configuration.certificate.chain[0])
        made.use_privatekey(site.configuration.certificate.key)
        made.set_session_id(b"test")
        made.set_session_cache_mode(SSL.SESS_CACHE_SERVER)
        made.set_tmp_ecdh(ec.SECP521R1())
        made.set_info_callback(watch_state)
        return made

    watched = context()
    return Contexts(watched, watched, context())


def test_a_hello_that_is_asked_for_again(site: Site) -> None:
    """A TLS 1.3 client that guessed the wrong group sends two hellos.

    The session in the first hello identifies the session, so that it can be refused early.
    """

    contexts = server_contexts(site)
    before: TlsSide | None = None
    for is_new, declined in ((True, False), (False, False), (True, True)):
        server, client = Tunnel(contexts, "corp"), TlsSide(eap.TLS, silent, before=before)
        server.receive(client.turn(b""))
        assert (server.resumed is None) is (before is None)
        if declined:
            server.begin_anew()
            assert server.resumed is None
        flights = 0
        while flight := server.take():
            flights += 1
            server.receive(client.turn(flight))
        assert (server.established, client.is_new, flights) == (True, is_new, 3)
        server.keep()
        before = client


class Fickle(Tunnel):
    """A tunnel whose client offers a session in its first hello, but not in its second one."""

    @property
    def resumed(self) -> bytes | None:
        """Return True until the handshake has ended."""
        return None if self.established else super().resumed


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_that_the_client_drops(site: Site, version: int) -> None:
    """A client that repeats the hello of another client and completes the handshake without the session is refused."""
    contexts = server_contexts(site)
    table = Resumptions(3600)

    def tried_with(tunnel: Tunnel, before: TlsSide | None = None) -> tuple[Done, TlsSide]:
        inside = in_ttls_pap(USER, PASSWORD)
        side = TlsSide(eap.TTLS, inside, begins=True, version=version, before=before)
        phase = TtlsPhase(tunnel, Offers([]), EVERYTHING, now=0)
        offer = Offer(eap.TTLS, lambda _user, _now: Tunnelled(eap.TTLS, tunnel, phase, table, 1000, now=0))
        return log_in(Conversation(Offers([offer]), now=0), site.users, Supplicant(b"anonymous", side)), side

    _, side = tried_with(Tunnel(contexts, "corp"))
    done, side = tried_with(Tunnel(contexts, "corp"), side)
    assert (done.success, done.method) == (True, "eap-ttls-resumed")
    done, side = tried_with(Fickle(contexts, "corp"), side)
    assert (done.success, done.failure) == (False, Failure.TLS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [eap.TTLS, eap.PEAP])
def test_a_disabled_user_is_not_resumed(site: Site, kind: int, version: int) -> None:
    """A disabled user is asked for the password and refused.

    The session stays unusable after the user is enabled again.
    """
    _, side = log_in_by(site, kind, version)
    site.users.disabled.add(USER)
    done, _ = log_in_by(site, kind, version, side)
    assert (done.success, done.failure, done.user) == (False, Failure.REFUSED, USER)
    site.users.disabled.clear()
    assert site.users.asked.count(Resumed(USER)) == 1
    done, _ = log_in_by(site, kind, version, side, password=b"wrong")
    assert not done.success
    assert site.users.asked.count(Resumed(USER)) == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_login_is_not_resumed(site: Site, kind: int, version: int) -> None:
    """The session of a failed login cannot be resumed."""
    site.users.disabled.add(USER)
    done, side = log_in_by(site, kind, version)
    assert not done.success
    site.users.disabled.clear()
    done, side = log_in_by(site, kind, version, side, password=b"wrong")
    assert (done.success, side.is_new) == (kind == eap.TLS, True)
    assert not any(isinstance(each, Resumed) for each in site.users.asked)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [eap.TTLS, eap.PEAP])
def test_a_session_of_another_method(site: Site, kind: int, version: int) -> None:
    """A session of PEAP cannot be resumed in EAP-TLS, because it would replace a certificate."""
    _, side = log_in_by(site, kind, version)
    client = TlsSide(eap.TLS, silent, before=side)
    done = log_in(
        Conversation(offers(Terms(site.server, EVERYTHING)), now=0), site.users, Supplicant(b"anonymous", client)
    )
    assert not done.success


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_of_another_scope(site: Site, kind: int, version: int) -> None:
    """A session cannot be resumed in another scope, because the name may belong to another user there."""
    _, side = log_in_by(site, kind, version)
    done, side = log_in_by(site, kind, version, side, password=b"wrong", scope="branch")
    assert (done.success, side.is_new) == (kind == eap.TLS, True)
    assert not any(isinstance(each, Resumed) for each in site.users.asked)


def test_the_table_is_bounded() -> None:
    """At the limit the oldest sessions are removed. An expired or unknown session is not found."""
    table = Resumptions(60, most=3)
    for number in range(5):
        table.keep([bytes((number,))], table.holder(b"%d" % number, now=0), 1)
    assert len(table) == 3
    assert table.find(b"\x01", now=0) is None
    assert table.find(b"\x04", now=59) == SessionUser(b"4", 60)
    assert table.find(b"\x04", now=60) is None
    table.forget([b"\x03"])
    assert table.find(b"\x03", now=0) is None


def test_each_owner_has_a_share_of_the_table() -> None:
    """The sessions of a tenant stay, however many logins another tenant has."""
    table = Resumptions(60, most=10)
    table.keep([b"ours"], table.holder(b"ann", now=0), 1)
    for number in range(100):
        table.keep([b"%d" % number], table.holder(b"mallory", now=0), 2)
    assert table.find(b"ours", now=0) == SessionUser(b"ann", 60)
    assert len(table) == 10
