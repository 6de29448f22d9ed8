"""Tests of the user that a certificate names, and of the verification of certificates."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sallyport.base.errors import ConfigError
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.certificate import MAX_NAME, UPN, UserNames, check_serial, check_size
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Certificate, Check, Done, Failed, Failure
from sallyport.radius.eap.server import TlsServer
from sallyport.radius.eap.tls import TlsPhase
from sallyport.radius.eap.trust import Trust
from sallyport.radius.eap.tunnel import Tunnel
from tests.areas.authorities.revocation.issuer import Issuer, with_serial
from tests.radius.eap.certificates import NOW, Authority, Issued, upn
from tests.radius.eap.conftest import Site
from tests.radius.eap.supplicant import Supplicant, TlsSide, log_in, silent
from tests.radius.eap.users import EVERYTHING

ALL = [x509.DNSName("pc.example.com"), x509.RFC822Name("ann@mail.example.com"), upn("ann@example.com")]


def test_the_order_of_names(site: Site) -> None:
    """The principal name is used first, then the mail address, the host name and the common name.

    Any other order can be configured.
    """
    certificate = site.authority.certificate("Ann", ALL).certificate
    assert UserNames().of(certificate).name == "ann@example.com"
    assert [UserNames((each,)).of(certificate).name for each in NamedBy] == [
        "", "", "ann@example.com", "ann@mail.example.com", "pc.example.com", "Ann", "",
    ]  # fmt: skip
    assert UserNames((NamedBy.UPN, NamedBy.DNS)).of(site.authority.certificate("Ann").certificate).name == ""
    assert UserNames().of(site.authority.certificate("Ann", ALL[:1]).certificate).name == "pc.example.com"


def test_an_object_id(site: Site) -> None:
    """The object id is a URI or the common name, in lower case. Another common name is none."""
    number = "8A7B0000-1111-2222-3333-44445555666F"
    by_id = UserNames((NamedBy.OBJECT_ID,))
    uri = x509.UniformResourceIdentifier(f"URN:UUID:{number}")
    names = [by_id.of(site.authority.certificate(*each).certificate).name for each in (("x", [uri]), (number,), ("x",))]
    assert names == [number.lower(), number.lower(), ""]


@pytest.mark.parametrize("size", [1, 126, 127, 128, 129, 250])
def test_principal_names_of_any_length(site: Site, size: int) -> None:
    """A principal name can be so long that its length is encoded in two octets."""
    assert UserNames().of(site.authority.certificate("Ann", [upn("a" * size)]).certificate).name == "a" * size


@pytest.mark.parametrize("octets", ["0c00", "130161", "0500"])
def test_principal_names_that_are_none(site: Site, octets: str) -> None:
    """A principal name is skipped if it is not a UTF8String with the encoded length."""
    broken = x509.OtherName(UPN, bytes.fromhex(octets))
    assert UserNames().of(site.authority.certificate("Ann", [broken]).certificate).name == "Ann"


def log_in_with(site: Site, issued: Issued) -> Done:
    """Return the result of a login with a certificate."""
    server = TlsServer(site.configuration)
    side = TlsSide(eap.TLS, silent, shows=issued)
    conversation = Conversation(offers(Terms(server, EVERYTHING)), now=0)
    return log_in(conversation, site.users, Supplicant(b"anonymous", side))


def refused(reason: str) -> tuple[bool, str]:
    """Return the result that a login with a refused certificate should have."""
    return False, f"the client's certificate is refused: {reason}"


def test_a_revoked_certificate(site: Site) -> None:
    """A revoked certificate is refused, and other certificates are accepted."""
    site.configuration = replace(site.configuration, crl_file=site.authority.revocations(site.issued.certificate))
    done = log_in_with(site, site.issued)
    assert (done.success, done.reason) == refused("it is revoked")
    assert log_in_with(site, site.authority.certificate("ann")).success


def test_a_revocation_list_that_is_too_old(site: Site) -> None:
    """If the revocation list has expired, no certificate is accepted, because a revocation may be missing from the
    list."""
    file = site.authority.revocations(until=NOW - timedelta(hours=1))
    site.configuration = replace(site.configuration, crl_file=file)
    done = log_in_with(site, site.issued)
    assert (done.success, done.reason) == refused("the revocation list has expired")


def test_a_revocation_list_of_tomorrow(site: Site) -> None:
    """If a revocation list is not valid yet, the reason is a text."""
    site.configuration = replace(
        site.configuration, crl_file=site.authority.revocations(since=NOW + timedelta(hours=1))
    )
    done = log_in_with(site, site.issued)
    assert (done.success, done.reason) == refused("the revocation list is not valid yet: is the clock right?")


def test_an_expired_certificate(site: Site) -> None:
    """An expired certificate is refused."""
    done = log_in_with(site, site.authority.certificate("ann", until=NOW - timedelta(minutes=1)))
    assert (done.success, done.reason) == refused("it has expired")


def test_a_certificate_that_cannot_be_read(site: Site) -> None:
    """A certificate that OpenSSL verifies but the parser cannot read is refused.

    An example is a certificate with an ediPartyName.
    """
    names = bytes.fromhex("3008a506a1040c027879")
    done = log_in_with(site, site.authority.certificate("ann", names=names))
    assert (done.success, done.failure) == (False, Failure.CERTIFICATE)
    assert "cannot be read" in done.reason


def test_a_certificate_of_another_authority(site: Site, tmp_path: Path) -> None:
    """A certificate of another authority is refused, whatever its names are."""
    (tmp_path / "other").mkdir()
    done = log_in_with(site, Authority(tmp_path / "other", "another").certificate("ann"))
    assert (done.success, done.reason) == refused("its issuer is unknown")


@pytest.mark.parametrize("field", ["ca_file", "crl_file"])
def test_files_that_cannot_be_used(site: Site, tmp_path: Path, field: str) -> None:
    """The error names the file, whether the file is missing or has the wrong content."""
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for file in (empty, tmp_path / "nowhere.pem"):
        with pytest.raises(ConfigError, match=file.name):
            TlsServer(replace(site.configuration, **{field: file}))


def test_a_name_that_is_too_long_is_an_error(site: Site) -> None:
    """The octets count, because a user name in RADIUS has at most 253 octets."""
    name = "a" * (MAX_NAME - len("@example.com")) + "@example.com"
    assert UserNames().of(site.authority.certificate("", [x509.RFC822Name(name)]).certificate).name == name
    for long in (x509.RFC822Name(f"a{name}"), upn("ä" * 127)):
        with pytest.raises(ValueError, match="longer than 253 octets"):
            UserNames().of(site.authority.certificate("", [long]).certificate)


@pytest.mark.parametrize(
    ("count", "padding", "message"),
    [(101, 0, "more than 100 alternative names"), (1, 16_384, "larger than 16,384 octets"), (100, 8_000, "")],
    ids=["names", "octets", "within the limits"],
)
def test_a_certificate_that_is_too_large_is_refused(site: Site, count: int, padding: int, message: str) -> None:
    names = [x509.DNSName(f"n{number}.example.com") for number in range(count)]
    certificate = site.authority.certificate("ann", names, padding=padding).certificate
    if not message:
        check_size(certificate)
        return
    with pytest.raises(ValueError, match=message):
        check_size(certificate)


def _built(subject: str, *extensions: x509.ExtensionType) -> x509.Certificate:
    """Return a certificate that has signed itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)] * 64)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    for each in extensions:
        made = made.add_extension(each, critical=False)
    return made.sign(key, hashes.SHA256())


def _points(count: int) -> list[x509.DistributionPoint]:
    names = [x509.UniformResourceIdentifier("http://pki.example/a.crl")]
    return [x509.DistributionPoint(names, None, None, None)] * count


def _tree(count: int) -> list[x509.GeneralName]:
    return [x509.DNSName("example.com")] * count


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (partial(_built, "a" * 64), "subject is longer than 2,048 octets"),
        (partial(_built, "a", x509.CRLDistributionPoints(_points(101))), "more than 100 addresses"),
        (partial(_built, "a", x509.FreshestCRL(_points(101))), "more than 100 addresses"),
        (partial(_built, "a", x509.NameConstraints(_tree(60), _tree(60))), "more than 100 name constraints"),
    ],
    ids=["subject", "lists", "deltas", "constraints"],
)
def test_a_certificate_with_too_many_parts_is_refused(made: Callable[[], x509.Certificate], message: str) -> None:
    """An intermediate certificate of a client costs the event loop time for each of its parts."""
    with pytest.raises(ValueError, match=message):
        check_size(made())
    allowed = _built("a", x509.CRLDistributionPoints(_points(100)), x509.NameConstraints(_tree(50), _tree(50)))
    check_size(allowed)


SERIALS = {"zero": b"\0", "negative": b"\xfb", "21 octets": b"\x11" * 21, "4000 octets": b"\x11" * 4000}


@pytest.mark.parametrize("serial", SERIALS.values(), ids=SERIALS)
@pytest.mark.filterwarnings("ignore")  # `cryptography` warns of numbers that are not positive
def test_a_bad_serial_number_is_refused(serial: bytes) -> None:
    """OpenSSL accepts such a certificate, but no revocation list and no responder can be asked about it."""
    root = Issuer.new()
    bad, good = with_serial(root, serial), root.issue()
    check_serial(good)
    for chain in ([bad, root.certificate], [good, bad, root.certificate]):
        tunnel = SimpleNamespace(certificate=chain[0], verified_chain=chain, has_verified=True)
        step = TlsPhase(cast(Tunnel, tunnel), UserNames(), Trust([root.certificate])).established(None)
        assert isinstance(step, Failed) and step.failure is Failure.CERTIFICATE and "serial number" in step.reason


def test_the_question_about_a_chain_names_the_certificate() -> None:
    """The caller learns which certificate it is, by its fingerprint, and what the trust anchor is."""
    root = Issuer.new()
    shown = root.issue()
    tunnel = SimpleNamespace(certificate=shown, verified_chain=[shown, root.certificate], has_verified=True)
    trust = Trust([root.certificate])
    step = TlsPhase(cast(Tunnel, tunnel), UserNames(), trust).established(None)
    assert isinstance(step, Check) and isinstance(step.question, Certificate)
    question = step.question
    assert question.user == b""
    assert question.fingerprint == shown.fingerprint(hashes.SHA256()).hex()
    assert (question.certificate, question.chain) == (shown, (shown, root.certificate))
    assert (question.anchor, question.is_revoked) == (trust.anchor_of([shown, root.certificate]), False)
