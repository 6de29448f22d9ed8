"""The contents of issued certificates."""

from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from sallyport.base.errors import Invalid
from sallyport.certs.authority import UPN, checked_name, read_peer
from sallyport.certs.folder import CertificateFolder, present, read_certificates
from tests.certs.conftest import HOST
from tests.radius.eap.certificates import Authority


def names(certificate: x509.Certificate) -> list[x509.GeneralName]:
    """Return the subject alternative names."""
    return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)


def test_a_server_certificate_meets_the_demands_of_supplicants(folder: CertificateFolder) -> None:
    """A server certificate has serverAuth, all host names, SHA-256, a key on P-256 and a lifetime of 397 days. The
    authority has signed it, and is not in the file.
    """
    (own,), (authority,) = read_certificates(folder.server), read_certificates(folder.ca)
    assert names(own) == [x509.DNSName(HOST), x509.IPAddress(ip_address("192.0.2.7")), x509.DNSName("localhost")]
    usage = own.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert own.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    key, digest = own.public_key(), own.signature_hash_algorithm
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert (key.curve.name, digest and digest.name) == ("secp256r1", "sha256")
    assert not own.extensions.get_extension_for_class(x509.KeyUsage).value.key_encipherment
    assert own.not_valid_after_utc - own.not_valid_before_utc == timedelta(days=397)
    own.verify_directly_issued_by(authority)


def test_the_authority_cannot_sign_another_authority(folder: CertificateFolder) -> None:
    """The certificate of the authority has a path length of 0 and a lifetime of ten years."""
    (authority,) = read_certificates(folder.ca)
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    assert authority.not_valid_after_utc - authority.not_valid_before_utc == timedelta(days=3650)


def test_a_user_certificate_has_the_names_of_logins(folder: CertificateFolder) -> None:
    """A user certificate has clientAuth, the mail address, and the user principal name in Microsoft's encoding."""
    ann = read_certificates(folder.client("ann@example.org"))[0]
    assert names(ann) == [x509.OtherName(UPN, b"\x0c\x0fann@example.org"), x509.RFC822Name("ann@example.org")]
    usage = ann.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize("name", ["ann@mail.example@corp", "ann smith@corp", "a.@..b", "ann+x@-y", "a@.", "a@@b"])
def test_a_user_name_need_not_be_a_mail_address(folder: CertificateFolder, name: str) -> None:
    """A name that is not a mail address is only written as the user principal name."""
    assert names(folder.issue(name, present()))[0] == x509.OtherName(UPN, bytes((0x0C, len(name))) + name.encode())


def test_a_host_certificate_has_a_dns_name(folder: CertificateFolder) -> None:
    """A host certificate identifies the peer by its DNS name and its fingerprint."""
    proxy = read_certificates(folder.client("proxy.example.org"))[0]
    assert names(proxy) == [x509.DNSName("proxy.example.org")]
    shown = read_peer(proxy.public_bytes(Encoding.DER))
    assert shown.names == ("proxy.example.org",)
    assert len(shown.fingerprint) == 64
    assert shown.expires == proxy.not_valid_after_utc


def test_a_user_certificate_is_identified_by_its_common_name(folder: CertificateFolder) -> None:
    """A certificate without host names identifies the peer by its common name."""
    ann = read_certificates(folder.client("ann@example.org"))[0]
    assert read_peer(ann.public_bytes(Encoding.DER)).names == ("ann@example.org",)


@pytest.mark.parametrize("name", ["", "../ca", ".", "a/b", "-x", "a\n", "a\0", "x" * 65, "ä", "a\\b", "ann@", "ann "])
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    """A name is used as a file name, so a name that could lead out of the directory is refused."""
    with pytest.raises(Invalid):
        checked_name(name)


def test_an_unreadable_name_raises_value_error(tmp_path: Path) -> None:
    """A certificate with an ediPartyName, which OpenSSL accepts, raises ValueError like any other unusable
    certificate.
    """
    names = bytes.fromhex("3008a506a1040c027879")
    certificate = Authority(tmp_path).certificate("proxy", names=names).certificate
    with pytest.raises(ValueError, match="not supported"):
        read_peer(certificate.public_bytes(Encoding.DER))


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([x509.DNSName("Proxy.Example.org")], ("proxy.example.org",)),
        ([x509.DNSName("proxy.example.org.")], ("proxy.example.org",)),
        ([x509.IPAddress(ip_address("2001:db8::1"))], ("2001:db8::1",)),
        ([x509.IPAddress(ip_address("::ffff:192.0.2.1"))], ("192.0.2.1",)),
        ([x509.DNSName("*.example.org"), x509.DNSName("b.example.org")], ("*.example.org", "b.example.org")),
        ([], ("main proxy",)),
    ],
    ids=["case", "final dot", "IPv6", "IPv4-mapped", "several", "common name"],
)
def test_names_are_in_canonical_form(tmp_path: Path, names: list[x509.GeneralName], shown: tuple[str, ...]) -> None:
    """The names of a certificate are normalized like the TLS names of RADIUS clients. A wildcard stays unchanged."""
    certificate = Authority(tmp_path).certificate("Main Proxy", names).certificate
    assert read_peer(certificate.public_bytes(Encoding.DER)).names == shown
