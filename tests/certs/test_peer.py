"""Whose certificate a peer has shown."""

from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.certs.peer import peer
from tests.radius.eap.certificates import Authority


def test_names_that_cannot_be_read(tmp_path: Path) -> None:
    """An ediPartyName, which OpenSSL verifies: the peer is told off like any other whose certificate is no good."""
    names = bytes.fromhex("3008a506a1040c027879")
    certificate = Authority(tmp_path).certificate("proxy", names=names).certificate
    with pytest.raises(ValueError, match="not supported"):
        peer(certificate.public_bytes(Encoding.DER))


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
    """A certificate's names have the form that the TLS names of RADIUS clients have. A wildcard stays as it is."""
    certificate = Authority(tmp_path).certificate("Main Proxy", names).certificate
    assert peer(certificate.public_bytes(Encoding.DER)).names == shown
