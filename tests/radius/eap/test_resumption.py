"""Going on with a session: whose it is, for how long, and who is asked."""

import gc

import pytest
from OpenSSL import SSL

from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Certificate, Done, Failure, Resumed
from sallyport.radius.eap.resumption import Holder, Resumptions
from sallyport.radius.eap.tunnel import Tunnel
from tests.radius.eap.conftest import PASSWORD, USER, Site
from tests.radius.eap.supplicant import Inside, MsChapSide, Supplicant, TlsSide, in_peap, in_ttls_pap, log_in, silent
from tests.radius.eap.users import EVERYTHING

VERSIONS = [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION]
KINDS = [eap.TLS, eap.TTLS, eap.PEAP]


def inside(kind: int, password: bytes) -> Inside:
    """What a client says inside its method."""
    if kind == eap.TTLS:
        return in_ttls_pap(USER, password)
    return silent if kind == eap.TLS else in_peap(USER, MsChapSide(USER, password))


def tried(
    site: Site,
    kind: int,
    version: int,
    before: TlsSide | None = None,
    *,
    password: bytes = PASSWORD,
    now: float = 0,
    scope: str = "corp",
) -> tuple[Done, TlsSide]:
    """A login, and the client's side of it."""
    side = TlsSide(
        kind,
        inside(kind, password),
        begins=kind == eap.TTLS and before is None,
        shows=site.issued if kind == eap.TLS else None,
        version=version,
        before=before,
    )
    terms = Terms(site.server, EVERYTHING, scope=scope)
    return log_in(Conversation(offers(terms), now=now), site.users, Supplicant(b"anonymous", side)), side


def test_what_is_over_keeps_no_tls(site: Site) -> None:
    """A conversation that has ended, and is kept for a response that comes again, has let its connection go."""
    side = TlsSide(eap.PEAP, inside(eap.PEAP, PASSWORD))
    conversation = Conversation(offers(Terms(site.server, EVERYTHING)), now=0)
    gc.collect()
    before = tunnels()
    assert log_in(conversation, site.users, Supplicant(b"anonymous", side)).success
    gc.collect()
    assert (tunnels(), conversation.method) == (before, "peap-mschapv2")


def tunnels() -> int:
    """How many there are."""
    return sum(isinstance(each, Tunnel) for each in gc.get_objects())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_needs_no_password(site: Site, kind: int, version: int) -> None:
    """Its user goes on without one, several times, and the keys are new each time."""
    done, side = tried(site, kind, version)
    keys = {done.msk}
    for _ in range(3):
        done, side = tried(site, kind, version, side, password=b"not asked for")
        assert (done.success, done.user) == (True, USER)
        keys.add(done.msk)
    assert len(keys) == 4
    expected = Certificate(USER, "CN=ann") if kind == eap.TLS else Resumed(USER)
    assert site.users.asked[1:] == [expected] * 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_does_not_stay_young(site: Site, kind: int, version: int) -> None:
    """An hour after the password nothing is resumed, however often it was meanwhile."""
    _, side = tried(site, kind, version)
    done, side = tried(site, kind, version, side, now=3599)
    assert done.success
    done, _ = tried(site, kind, version, side, password=b"wrong", now=3601)
    assert not done.success


@pytest.mark.parametrize("version", VERSIONS)
def test_who_says_nothing_in_a_session_of_nobody(site: Site, version: int) -> None:
    """A client of TTLS that resumes takes it for granted and waits: it is refused, and begins anew."""
    _, side = tried(site, eap.TTLS, version)
    again = TlsSide(eap.TTLS, silent, version=version, before=side)
    terms = Terms(site.server, EVERYTHING, scope="corp")
    done = log_in(Conversation(offers(terms), now=3601), site.users, Supplicant(b"anonymous", again))
    assert (done.success, done.failure) == (False, Failure.STALE)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_login_is_not_resumed(site: Site, kind: int, version: int) -> None:
    """A session in which nobody logged in is nobody's."""
    site.users.disabled.add(USER)
    done, side = tried(site, kind, version)
    assert not done.success
    site.users.disabled.clear()
    done, _ = tried(site, kind, version, side, password=b"wrong")
    assert not done.success
    assert not any(isinstance(each, Resumed) for each in site.users.asked)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [eap.TTLS, eap.PEAP])
def test_a_session_of_another_method(site: Site, kind: int, version: int) -> None:
    """What PEAP began is not gone on with in EAP-TLS, where it would stand for a certificate."""
    _, side = tried(site, kind, version)
    client = TlsSide(eap.TLS, silent, before=side)
    done = log_in(
        Conversation(offers(Terms(site.server, EVERYTHING)), now=0), site.users, Supplicant(b"anonymous", client)
    )
    assert not done.success


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_of_another_scope(site: Site, kind: int, version: int) -> None:
    """Where the name would be somebody else's, the session is nobody's."""
    _, side = tried(site, kind, version)
    done, _ = tried(site, kind, version, side, password=b"wrong", scope="branch")
    assert not done.success
    assert not any(isinstance(each, Resumed) for each in site.users.asked)


def test_the_table_is_bounded() -> None:
    """The oldest sessions make room; what is too old or unknown is nobody's."""
    table = Resumptions(60, most=3)
    for number in range(5):
        table.keep([bytes((number,))], table.holder(b"%d" % number, now=0))
    assert len(table) == 3
    assert table.find([b"\x01"], now=0) is None
    assert table.find([b"?", b"\x04"], now=59) == Holder(b"4", 60)
    assert table.find([b"\x04"], now=60) is None
    table.forget([b"\x03"])
    assert table.find([b"\x03"], now=0) is None
