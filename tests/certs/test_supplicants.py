"""What supplicants say about server certificates."""

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from types import FrameType

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from sallyport.certs.authority import Authority, KeyKind
from sallyport.certs.supplicants import Supplicant, Verdict, handshake_packets, remarks, warnings

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NAME = "radius.example.org"
SERVER = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
EAP_OVER_LAN = x509.ExtendedKeyUsage([x509.ObjectIdentifier("1.3.6.1.5.5.7.3.14")])
SAN = x509.SubjectAlternativeName([x509.DNSName(NAME)])
SIGNATURE = {"content_commitment": False, "data_encipherment": False, "key_agreement": False, "key_cert_sign": False}
NO_SIGNATURE = x509.KeyUsage(
    digital_signature=False,
    key_encipherment=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
    **SIGNATURE,
)
AUTHORITY = Authority.new("Corp CA", NOW)
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
POINTER = x509.AuthorityInformationAccess(
    [x509.AccessDescription(AuthorityInformationAccessOID.OCSP, x509.UniformResourceIdentifier("http://ocsp.example"))]
)
Keys = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def certificate(
    *extensions: x509.ExtensionType,
    common_name: str = NAME,
    key: Keys | None = None,
    days: int = 397,
    age: int = 1,
    signer: Keys = AUTHORITY.key,
) -> x509.Certificate:
    """Return a certificate of AUTHORITY. age: for how many days it is valid already."""
    names = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(AUTHORITY.certificate.subject)
        .public_key((key or ec.generate_private_key(ec.SECP256R1())).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=age))
        .not_valid_after(NOW - timedelta(days=age) + timedelta(days=days))
    )
    for each in extensions:
        builder = builder.add_extension(each, critical=False)
    return builder.sign(signer, None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256())


def with_sha1(own: x509.Certificate) -> x509.Certificate:
    """Return a certificate with an RSA signature that claims to be of SHA-1. This library signs nothing with SHA-1."""
    sha256, sha1 = (bytes.fromhex(f"06092a864886f70d0101{each}") for each in ("0b", "05"))
    return x509.load_der_x509_certificate(own.public_bytes(Encoding.DER).replace(sha256, sha1))


def odd(own: x509.Certificate, found: bytes, put: bytes) -> x509.Certificate:
    """Return a certificate in which some octets are replaced. Its signature is then wrong."""
    octets = own.public_bytes(Encoding.DER)
    assert found in octets
    return x509.load_der_x509_certificate(octets.replace(found, put))


def odd_certificates(key: ec.EllipticCurvePrivateKey) -> dict[str, x509.Certificate]:
    """Return certificates with a part that cannot be read, by the part. They are valid for a hundred years."""

    def made(*extensions: x509.ExtensionType, name: str = NAME) -> x509.Certificate:
        return certificate(*extensions, common_name=name, key=key, days=36_500)

    names, pointers = x509.SubjectAlternativeName.oid, x509.AuthorityInformationAccess.oid
    second = x509.IssuerAlternativeName([x509.DNSName(NAME)])
    return {
        "signature algorithm": odd(made(SAN), bytes.fromhex("2a8648ce3d040302"), bytes.fromhex("2a8648ce3d040363")),
        "two extensions of a kind": odd(made(SAN, second), b"\x55\x1d\x12", b"\x55\x1d\x11"),
        "x400Address": made(x509.UnrecognizedExtension(names, b"\x30\x02\xa3\x00")),
        "alternative names": made(x509.UnrecognizedExtension(names, b"\x05\x00")),
        "addresses": made(x509.UnrecognizedExtension(pointers, b"rubbish")),
        "common name": odd(made(SAN, name="radius.\u00e9.example"), b"\xc3\xa9", b"\xff\xff"),
    }


def verdicts(chain: Sequence[x509.Certificate], server_name: str = "") -> set[tuple[Supplicant, Verdict]]:
    """Return who refuses a chain, or may refuse it."""
    return {
        (each.supplicant, each.verdict) for each in remarks(chain, NOW, server_name) if each.verdict is not Verdict.NOTE
    }


WINDOWS, APPLE, ANDROID, LINUX = Supplicant.WINDOWS, Supplicant.APPLE, Supplicant.ANDROID, Supplicant.LINUX
NO, MAYBE = Verdict.REFUSES, Verdict.MAY_REFUSE
EVERYBODY = {(Supplicant.ALL, NO)}


def test_a_certificate_of_sallyport_is_accepted_by_all() -> None:
    """The certificate that `cert init` makes has no fault. The notes have the authority that devices need, and the
    length of the chain."""
    own = AUTHORITY.server([NAME], ec.generate_private_key(ec.SECP256R1()).public_key(), NOW)
    assert warnings([own], NOW) == []
    texts = " ".join(each.text for each in remarks([own], NOW, NAME))
    assert "devices must trust Corp CA" in texts
    assert "1 of 1,020 octets" in texts
    assert verdicts([own, AUTHORITY.certificate], NAME) == set()
    assert "contains the root" in " ".join(each.text for each in remarks([own, AUTHORITY.certificate], NOW))


CASES = {
    "no serverAuth": (certificate(SAN), {(WINDOWS, NO), (APPLE, NO)}),
    "only id-kp-eapOverLAN": (
        certificate(SAN, EAP_OVER_LAN), {(WINDOWS, NO), (APPLE, NO), (ANDROID, NO), (LINUX, NO)},
    ),
    "no alternative name": (certificate(SERVER), {(APPLE, NO), (ANDROID, MAYBE)}),
    "only an address": (
        certificate(SERVER, x509.SubjectAlternativeName([x509.IPAddress(ip_address("192.0.2.1"))])),
        {(APPLE, NO), (ANDROID, MAYBE)},
    ),
    "no subject": (certificate(SERVER, SAN, common_name=""), {(WINDOWS, NO), (WINDOWS, MAYBE)}),
    "another common name": (certificate(SERVER, SAN, common_name="NPS"), {(WINDOWS, MAYBE)}),
    "a wildcard": (
        certificate(SERVER, x509.SubjectAlternativeName([x509.DNSName("*.example.org")]), common_name="*.example.org"),
        {(WINDOWS, MAYBE)},
    ),
    "826 days": (certificate(SERVER, SAN, days=826), {(APPLE, NO)}),
    "825 days": (certificate(SERVER, SAN, days=825), set()),
    "826 days, issued before July 2019": (certificate(SERVER, SAN, days=4000, age=3000), set()),
    "expired": (certificate(SERVER, SAN, days=10, age=11), EVERYBODY),
    "not valid yet": (certificate(SERVER, SAN, age=-1), EVERYBODY),
    "expires soon": (certificate(SERVER, SAN, days=20), {(Supplicant.ALL, MAYBE)}),
    "SHA-1": (with_sha1(certificate(SERVER, SAN, signer=RSA_KEY)), EVERYBODY),
    "RSA with 1024 bits": (
        certificate(SERVER, SAN, key=rsa.generate_private_key(public_exponent=65537, key_size=1024)),  # noqa: S505
        EVERYBODY,
    ),
    "Ed25519": (certificate(SERVER, SAN, key=ed25519.Ed25519PrivateKey.generate()), EVERYBODY),
    "P-521": (certificate(SERVER, SAN, key=ec.generate_private_key(ec.SECP521R1())), {(Supplicant.ALL, MAYBE)}),
    "no digitalSignature": (certificate(SERVER, SAN, NO_SIGNATURE), EVERYBODY),
    "an address for OCSP": (certificate(SERVER, SAN, POINTER), set()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_reported_for_the_supplicants_that_refuse_it(case: str) -> None:
    """A fault is reported for the supplicants whose documents say so, and for no other."""
    own, wanted = CASES[case]
    assert verdicts([own]) == wanted


def test_the_order_of_the_chain() -> None:
    """A certificate must be followed by its signer. One that has signed itself must be installed on each device."""
    own, other = certificate(SERVER, SAN), Authority.new("Other CA", NOW).certificate
    assert (Supplicant.ALL, NO) in verdicts([own, other])
    assert "Other CA follows radius.example.org" in remarks([own, other], NOW)[0].text
    assert (Supplicant.ALL, MAYBE) in verdicts([other])


NAMES = {
    "radius.example.org": set(),
    "RADIUS.example.org.": set(),
    "example.org": {(WINDOWS, NO), (APPLE, NO)},
    "org": {(WINDOWS, NO), (APPLE, NO)},
    "dius.example.org": {(WINDOWS, NO), (APPLE, NO), (ANDROID, NO), (LINUX, NO)},
    "radius.other.example": {(WINDOWS, NO), (APPLE, NO), (ANDROID, NO), (LINUX, NO)},
}


@pytest.mark.parametrize("wanted", NAMES)
def test_the_name_in_the_profile(wanted: str) -> None:
    """Android and wpa_supplicant compare a suffix at a dot, Windows and Apple's systems the whole name."""
    assert verdicts([certificate(SERVER, SAN)], wanted) == NAMES[wanted]


def test_the_packets_of_the_chain() -> None:
    """RSA with the root takes three packets of 1,020 octets, and P-256 without it takes one."""
    root = Authority.new("Sallyport CA", NOW, KeyKind.RSA)
    long = root.server([NAME], RSA_KEY.public_key(), NOW)
    short = AUTHORITY.server([NAME], ec.generate_private_key(ec.SECP256R1()).public_key(), NOW)
    assert [handshake_packets([long, root.certificate], size) for size in (1020, 1300)] == [3, 2]
    assert [handshake_packets([long], size) for size in (1020, 1300)] == [2, 2]
    assert [handshake_packets([short], size) for size in (1020, 1300)] == [1, 1]


@pytest.mark.parametrize("part", odd_certificates(ec.generate_private_key(ec.SECP256R1())))
def test_an_unreadable_part_is_a_remark(part: str) -> None:
    """A certificate with a part that cannot be read gets a remark, and what can be read is still checked."""
    own = odd_certificates(ec.generate_private_key(ec.SECP256R1()))[part]
    assert remarks([certificate(SAN), own], NOW)
    for chain in ([own], [own, AUTHORITY.certificate]):
        told = [each.text for each in remarks(chain, NOW, NAME)]
        assert "a name, an extension or an algorithm in the chain cannot be read" in told
        assert any("the server sends" in each for each in told)


def test_the_alternative_names_are_read_once() -> None:
    """The cost grows with the number of names, not with its square. 3,000 addresses are in a certificate of 25 KB."""
    addresses = [x509.IPAddress(ip_address(0x0A000000 + number)) for number in range(3000)]
    own = certificate(x509.SubjectAlternativeName([*addresses, x509.DNSName(NAME)]), SERVER)
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _value: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        found = remarks([own], NOW)
    finally:
        sys.setprofile(None)
    assert not any(each.verdict is NO for each in found)
    assert max(calls.values()) < 20_000
