"""Tests of the certificates that can be trust anchors."""

from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sallyport.areas.authorities.authority import MAX_CERTIFICATES
from sallyport.areas.authorities.bundle import read_bundle
from sallyport.base.errors import Invalid
from tests.areas.authorities.made import MadeAuthority

SHORT = 1024


def refusal(pem: str) -> str:
    """Return the error about a bundle. It is about the field `certificates`."""
    with pytest.raises(Invalid) as refused:
        read_bundle(pem)
    (error,) = refused.value.fields
    assert error.field == "certificates"
    return error.message


def test_a_bundle_has_an_anchor_for_each_certificate() -> None:
    """The anchors have the SHA-256 of the public keys. What is around the certificates is left out."""
    root = MadeAuthority("Root")
    issuing = MadeAuthority("Issuing", root)
    pem, anchors = read_bundle(f"notes\r\n{root.pem}\n{issuing.pem}")
    assert pem == root.pem + issuing.pem
    assert [each.subject for each in anchors] == ["CN=Root", "CN=Issuing"]
    octets = issuing.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert anchors[1].key == sha256(octets).hexdigest()
    assert read_bundle(issuing.pem)[1] == anchors[1:]


@pytest.mark.parametrize(
    ("made", "part"),
    [
        (MadeAuthority(ca=None), "certificate 1 has no basic constraints"),
        (MadeAuthority(ca=False), "certificate 1 is not that of an authority"),
        (MadeAuthority(signs=False), "certificate 1 may not sign certificates"),
        (MadeAuthority(key=rsa.generate_private_key(65537, SHORT)), "certificate 1 has an RSA key of 1024 bits"),
        (MadeAuthority(key=ec.generate_private_key(ec.SECP224R1())), "certificate 1 has an EC key of 224 bits"),
        (MadeAuthority(""), "certificate 1 must have a subject"),
    ],
    ids=["no constraints", "no authority", "key usage", "short RSA", "short EC", "no subject"],
)
def test_a_certificate_that_cannot_be_an_anchor_is_refused(made: MadeAuthority, part: str) -> None:
    """The error names the field, the place of the certificate in the bundle, and the reason."""
    assert part in refusal(made.pem)


def test_texts_without_usable_certificates_are_refused() -> None:
    """A bundle needs a certificate, has a maximum number of them, and has each key once."""
    made = MadeAuthority()
    assert "PEM" in refusal("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert "PEM" in refusal("a certificate")
    assert f"at most {MAX_CERTIFICATES}" in refusal(made.pem * (MAX_CERTIFICATES + 1))
    renewed = MadeAuthority(key=made.key)
    assert "one certificate for each key" in refusal(made.pem + renewed.pem)
