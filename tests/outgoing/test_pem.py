"""Tests of the keys and certificates that a tenant supplies."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from joserfc.jwk import ECKey, RSAKey
from pydantic import TypeAdapter, ValidationError

from sallyport.outgoing import pem
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.fields import KeyText
from tests.outgoing import costly_keys as costly

NO_KEY = "must be a private key in PEM, without a passphrase"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        pytest.param(costly.pem(costly.RSA), rsa.RSAPrivateKey, id="RSA"),
        pytest.param(costly.pem(costly.EC), ec.EllipticCurvePrivateKey, id="EC"),
        pytest.param(
            json.dumps(RSAKey.import_key(costly.RSA).as_dict(private=True)), rsa.RSAPrivateKey, id="JWK of RSA"
        ),
        pytest.param(
            json.dumps(ECKey.generate_key("P-256").as_dict(private=True)), ec.EllipticCurvePrivateKey, id="JWK of P-256"
        ),
    ],
)
def test_rsa_and_ec_keys_are_read(key: str, kind: type) -> None:
    """RSA and EC keys are read from PEM and from JWKs."""
    assert isinstance(pem.private_key(key), kind)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        *(pytest.param(text, "without a passphrase; decrypt it", id=name) for name, text in costly.ENCRYPTED.items()),
        pytest.param(costly.pem(costly.LONG_RSA), "at most 4096 bits", id="RSA of 6144 bits"),
        pytest.param(costly.pem(costly.COMPOSITE_RSA), "do not belong together", id="RSA without primes"),
        pytest.param(costly.pem(costly.DSA), "must be an RSA, EC or EdDSA private key", id="DSA"),
        pytest.param("x" * 8193, "at most 8192 characters", id="too long"),
        pytest.param("", NO_KEY, id="empty"),
        pytest.param("\ud800", NO_KEY, id="half of a surrogate pair"),
        pytest.param(costly.of_label("RSA PRIVATE KEY"), NO_KEY, id="no key inside"),
        pytest.param("{}", NO_KEY, id="empty JWK"),
        pytest.param('{"kty": "RSA", "n": 1, "e": [], "d": null}', NO_KEY, id="JWK of numbers"),
        pytest.param("{" * 8000, NO_KEY, id="deep JWK"),
        pytest.param('{"kty": "EC", "crv": "P-256", "d": ""}', NO_KEY, id="JWK without a scalar"),
    ],
)
def test_an_unsuitable_key_is_refused(key: str, message: str) -> None:
    """Encrypted, long and broken keys are refused. The message names the kinds of keys that are accepted."""
    with pytest.raises(PemError, match=message):
        pem.private_key(key)


def test_a_key_is_encoded_again() -> None:
    """Text before and after a key is not passed to OpenSSL."""
    text = f"Bag Attributes\n{costly.pem(costly.RSA)}trailing\n"
    assert pem.key_pem(text) == costly.pem(costly.RSA)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "must be certificates in PEM", id="empty"),
        pytest.param("x", "must be certificates in PEM", id="no PEM"),
        pytest.param("\ud800", "must be certificates in PEM", id="half of a surrogate pair"),
        pytest.param(costly.of_label("CERTIFICATE"), "must be certificates in PEM", id="no certificate inside"),
        pytest.param(costly.certificate(costly.EC.public_key()) * 17, "at most 16", id="17 certificates"),
        pytest.param(costly.certificate(costly.LONG_RSA.public_key()), "at most 4096 bits", id="RSA of 6144 bits"),
        pytest.param(costly.certificate(costly.LONG_EXPONENT_RSA), "at most 4096 bits", id="long exponent"),
        pytest.param(costly.certificate(costly.DSA.public_key()), "RSA, EC or EdDSA", id="DSA"),
    ],
)
def test_unsuitable_certificates_are_refused(text: str, message: str) -> None:
    """Too many certificates are refused, and so are certificates with long keys or other kinds of keys."""
    with pytest.raises(PemError, match=message):
        pem.certificates(text)


def test_certificates_are_encoded_again() -> None:
    """Text before and after certificates is not passed to OpenSSL."""
    one = costly.certificate(costly.EC.public_key())
    assert pem.certificates_pem(f"subject=x\n{one}\nissuer=y\n{one}") == one * 2


def test_a_field_refuses_an_encrypted_key() -> None:
    """The error message of a field does not contain the key."""
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(KeyText).validate_python(costly.ENCRYPTED["PKCS#8"])
    assert "without a passphrase" in refused.value.errors()[0]["msg"]
    assert "AAAA" not in refused.value.errors()[0]["msg"]


def test_ed25519_keys_are_read() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    text = key.private_bytes(costly.Encoding.PEM, costly.PrivateFormat.PKCS8, costly.NoEncryption()).decode()
    assert isinstance(pem.private_key(text), ed25519.Ed25519PrivateKey)
