"""Tests of each method with a client that uses the same primitives: right credentials, wrong credentials and
attacks."""

from collections.abc import Callable

import pytest
from OpenSSL import SSL

from sallyport.certs.authority import fingerprint
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import ORDER, Terms, offers
from sallyport.radius.eap.model import Certificate, Done, Offer, Offers, Password, Question
from sallyport.radius.eap.password_methods import MsChapV2
from tests.client_hello import ALERT, FFDHE6144, FFDHE8192, client_hello
from tests.radius.eap.conftest import PASSWORD, USER, Site
from tests.radius.eap.supplicant import (
    GtcSide,
    Inside,
    Md5Side,
    MsChapSide,
    Side,
    Supplicant,
    TlsSide,
    in_peap,
    in_ttls_chap,
    in_ttls_eap,
    in_ttls_mschap,
    in_ttls_pap,
    log_in,
    silent,
)
from tests.radius.eap.users import EVERYTHING, Users

OUTER = b"anonymous"
VERSIONS = [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION]
TUNNELLED: dict[str, Callable[[bytes], Inside]] = {
    "peap-mschapv2": lambda password: in_peap(USER, MsChapSide(USER, password)),
    "peap-gtc": lambda password: in_peap(USER, GtcSide(password)),
    "ttls-pap": lambda password: in_ttls_pap(USER, password),
    "ttls-chap": lambda password: in_ttls_chap(USER, password),
    "ttls-mschapv2": lambda password: in_ttls_mschap(USER, password),
    "ttls-eap-md5": lambda password: in_ttls_eap(USER, Md5Side(password)),
    "ttls-eap-gtc": lambda password: in_ttls_eap(USER, GtcSide(password)),
    "ttls-eap-mschapv2": lambda password: in_ttls_eap(USER, MsChapSide(USER, password)),
}


def log_in_by(
    site: Site, side: Side, checkable: frozenset[type[Question]] = EVERYTHING, *, fragment_size: int = 0
) -> Done:
    """Return the result of a login with a client's method."""
    terms = Terms(site.server, checkable, ORDER, fragment_size)
    return log_in(Conversation(offers(terms), now=0), site.users, Supplicant(OUTER, side))


def tunnelled(name: str, inside: Inside, version: int = SSL.TLS1_3_VERSION) -> TlsSide:
    """Return a client of PEAP or TTLS."""
    is_ttls = name.startswith("ttls")
    return TlsSide(eap.TTLS if is_ttls else eap.PEAP, inside, begins=is_ttls, version=version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TUNNELLED)
def test_a_right_password_in_a_tunnel(site: Site, name: str, version: int) -> None:
    """A right password is accepted for the inner name, and both sides have the same keys."""
    side = tunnelled(name, TUNNELLED[name](PASSWORD), version)
    done = log_in_by(site, side)
    assert (done.success, done.method, done.user) == (True, f"eap-{name}", USER)
    assert done.msk == msk(side)


def msk(side: TlsSide) -> bytes:
    """Return the MSK of the client (RFC 5216 section 2.3, RFC 5281 section 8, RFC 9427 section 2.1)."""
    connection = side.connection
    if connection.get_protocol_version() == SSL.TLS1_3_VERSION:
        return connection.export_keying_material(b"EXPORTER_EAP_TLS_Key_Material", 128, bytes((side.kind,)))[:64]
    label = b"ttls keying material" if side.kind == eap.TTLS else b"client EAP encryption"
    return connection.export_keying_material(label, 64)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TUNNELLED)
def test_a_wrong_password_in_a_tunnel(site: Site, name: str, version: int) -> None:
    """A wrong password is rejected without keys. The reason is that of the verdict."""
    done = log_in_by(site, tunnelled(name, TUNNELLED[name](b"wrong"), version))
    assert (done.success, done.method, done.user) == (False, f"eap-{name}", USER)
    assert (done.msk, done.reason) == (b"", "wrong password")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_certificate(site: Site, version: int) -> None:
    """The user in a certificate is accepted, and both sides have the same keys."""
    side = TlsSide(eap.TLS, silent, shows=site.issued, version=version)
    done = log_in_by(site, side)
    assert (done.success, done.method, done.user, done.msk) == (True, "eap-tls", USER, msk(side))
    assert site.users.asked == [Certificate(USER, fingerprint(site.issued.certificate))]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_certificate(site: Site, version: int) -> None:
    """A client without a certificate is rejected, and no user is checked."""
    done = log_in_by(site, TlsSide(eap.TLS, silent, version=version))
    assert not done.success
    assert site.users.asked == []


def test_a_certificate_without_a_name(site: Site) -> None:
    """A valid certificate without a name is refused."""
    site.issued = site.authority.certificate("")
    done = log_in_by(site, TlsSide(eap.TLS, silent, shows=site.issued))
    assert (done.success, done.reason) == (False, "the client's certificate names no user")


@pytest.mark.parametrize("size", [64, 100, 4000])
def test_fragments(site: Site, size: int) -> None:
    """Messages are sent in small and in large fragments, in both directions."""
    side = TlsSide(eap.PEAP, TUNNELLED["peap-mschapv2"](PASSWORD), fragment_size=size)
    assert log_in_by(site, side, fragment_size=size).success


def test_headers_inside_peap(site: Site) -> None:
    """A client may send complete EAP packets inside PEAP."""
    inside = in_peap(USER, MsChapSide(USER, PASSWORD), header=True)
    assert log_in_by(site, tunnelled("peap", inside)).success


@pytest.mark.parametrize(
    "result", [b"", b"\x80\x03\x00\x02\x00\x02", b"\x80\x03\x00\x09\x00\x01", b"\x80\x0c\x00\x02\x00\x01"]
)
def test_a_client_that_does_not_agree(site: Site, result: bytes) -> None:
    """PEAP succeeds only if the client confirms the success inside the tunnel."""
    inside = in_peap(USER, MsChapSide(USER, PASSWORD), result=result)
    assert not log_in_by(site, tunnelled("peap", inside)).success


@pytest.mark.parametrize("inside", [in_ttls_chap, in_ttls_mschap])
def test_a_challenge_of_the_clients_own_making(site: Site, inside: Callable[..., Inside]) -> None:
    """A response to another challenge than that of the tunnel is refused, so that a captured response cannot
    be used."""
    done = log_in_by(site, tunnelled("ttls", inside(USER, PASSWORD, challenge=bytes(17))))
    assert (done.success, "other than the implicit one" in done.reason) == (False, True)
    assert site.users.asked == []


def test_a_first_factor_that_only_binds(site: Site) -> None:
    """If only passwords can be checked, GTC inside PEAP and PAP inside TTLS work.

    Other methods are refused with a reason.
    """
    only = frozenset({Password})
    terms = Terms(site.server, only)
    assert [offer.kind for offer in offers(terms).methods] == [eap.PEAP, eap.TTLS, eap.TLS]
    assert set(offers(terms).left_out) == {eap.MSCHAPV2, eap.MD5}
    assert log_in_by(site, tunnelled("peap", TUNNELLED["peap-gtc"](PASSWORD)), only).success
    assert log_in_by(site, tunnelled("ttls", TUNNELLED["ttls-pap"](PASSWORD)), only).success
    for name in ("peap-mschapv2", "ttls-mschapv2", "ttls-chap"):
        done = log_in_by(site, tunnelled(name, TUNNELLED[name](PASSWORD)), only)
        assert (done.success, "first factor cannot check" in done.reason) == (False, True)


def test_gtc_is_for_tunnels_alone(site: Site) -> None:
    """GTC is not offered without a tunnel, because it would show the password."""
    done = log_in_by(site, GtcSide(PASSWORD))
    assert (done.success, done.reason) == (
        False,
        "the client wants a method that is not offered: gtc (not supported here)",
    )


def test_a_code_is_asked_for(site: Site) -> None:
    """After the password GTC shows the prompt of the verdict, and the code decides the login."""
    site.users = Users({USER: PASSWORD}, codes={USER: b"123456"})
    side = GtcSide(PASSWORD, b"123456")
    assert log_in_by(site, tunnelled("peap", in_peap(USER, side))).success
    assert side.prompts == [b"Password: ", b"Enter your code"]
    assert not log_in_by(site, tunnelled("peap", in_peap(USER, GtcSide(PASSWORD, b"000000")))).success


def test_a_wrong_password_may_be_tried_again() -> None:
    """After a wrong password MS-CHAPv2 sends a new challenge while attempts remain, and accepts the right password."""
    retrying = Offers([Offer(eap.MSCHAPV2, lambda user, _now: MsChapV2(user, retries=1))])
    side = MsChapSide(USER, b"wrong", PASSWORD)
    done = log_in(Conversation(retrying, now=0), Users({USER: PASSWORD}), Supplicant(USER, side))
    assert done.success
    assert len(done.msk) == 32
    assert [" R=1 " in each for each in side.errors] == [True]
    side = MsChapSide(USER, b"wrong", b"wrong")
    assert not log_in(Conversation(retrying, now=0), Users({USER: PASSWORD}), Supplicant(USER, side)).success
    assert [" R=1 " in each for each in side.errors] == [True, False]


def test_an_old_version_of_tls(site: Site) -> None:
    """TLS 1.1 is refused."""
    done = log_in_by(site, TlsSide(eap.PEAP, silent, version=SSL.TLS1_1_VERSION))
    assert not done.success


@pytest.mark.parametrize("kind", [eap.TLS, eap.TTLS, eap.PEAP], ids=["TLS", "TTLS", "PEAP"])
@pytest.mark.parametrize("group", [FFDHE6144, FFDHE8192], ids=["ffdhe6144", "ffdhe8192"])
def test_an_expensive_group_is_refused(site: Site, kind: int, group: int) -> None:
    """A ClientHello whose only key share takes long to process gets an alert, and no ServerHello."""
    tunnel = site.server.tunnel(kind, "corp")
    tunnel.receive(client_hello(group))
    assert tunnel.trouble == "TLS: no suitable key share"
    assert tunnel.take().startswith(ALERT)
