"""Read private keys and certificates that a tenant supplies, at a bounded cost.

A key derivation, a check of an RSA key's primes and the arithmetic of a long key can each take seconds. Therefore:

- An encrypted key is rejected by its label, before anything is parsed.
- RSA keys, including those in certificates, have at most 4096 bits, and EC keys are on named curves.
- `cryptography` holds the interpreter lock while it checks an RSA key: 35 ms for 2048 bits, 260 ms for 4096, 3.7 s for
  8192. This module skips the check. A trial signature, which does not hold the lock, shows that the key works.

OpenSSL also reads other formats (engines' labels, passwords from the terminal). Therefore OpenSSL never gets a
submitted text: `certificates_pem` and `key_pem` encode the parsed values again.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Final

from sallyport.outgoing.errors import PemError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey | Ed448PrivateKey

MAX_BITS: Final = 4096
MAX_CERTIFICATES: Final = 16
"""Maximum number of certificates. OpenSSL takes 0.3 ms for each certificate, and holds the interpreter lock during this
time."""
MAX_CERTIFICATES_LENGTH: Final = 65_536
MAX_KEY_LENGTH: Final = 8192
"""Maximum length of a key in characters. An RSA key of 4096 bits has 3,300 characters."""
_ENCRYPTED: Final = ("ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED", "DEK-Info:")
_EXPONENT: Final = 1 << 32
"""Limit of the public exponent, because verification takes longer with a longer exponent. In practice it is 65537."""


def is_encrypted(text: str) -> bool:
    """Return whether a PEM text has the label of an encrypted key (PKCS#8, or RFC 1421 section 4.6)."""
    return any(label in text for label in _ENCRYPTED)


def private_key(text: str) -> PrivateKey:
    """Return the private key in a PEM text or a JWK (RFC 7518 section 6). An RSA key must pass a trial signature.

    Raises PemError if the key is encrypted, too long or of another kind, or if an RSA key cannot sign. Call the
    function in a worker thread. It takes up to 70 ms. Most of this time, it does not hold the interpreter lock.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if len(text) > MAX_KEY_LENGTH:
        raise PemError(f"must be a private key of at most {MAX_KEY_LENGTH} characters")
    if is_encrypted(text):
        raise PemError("must be a private key without a passphrase; decrypt it with: openssl pkey -in FILE")
    try:
        if text.lstrip().startswith("{"):
            key = _of_jwk(json.loads(text))
        else:
            key = load_pem_private_key(text.encode(), None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, UnsupportedAlgorithm):
        raise PemError("must be a private key in PEM, without a passphrase") from None
    if isinstance(key, rsa.RSAPrivateKey):
        _check_rsa(key)
    elif not isinstance(key, ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey):
        raise PemError("must be an RSA, EC or EdDSA private key")
    return key


def certificates(text: str, most: int = MAX_CERTIFICATES) -> list[x509.Certificate]:
    """Return the certificates in a PEM text. most: the maximum number of certificates.

    Raises PemError if the text has no certificate or too many, or if a certificate has an unsupported key.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

    if text.count("-----BEGIN") > most:
        raise PemError(f"must have at most {most} certificates in PEM")
    try:
        found = x509.load_pem_x509_certificates(text.encode())
        keys = [each.public_key() for each in found]
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise PemError("must be certificates in PEM") from None
    for key in keys:
        if isinstance(key, rsa.RSAPublicKey):
            if key.key_size > MAX_BITS or key.public_numbers().e >= _EXPONENT:
                raise PemError(f"must be certificates with RSA keys of at most {MAX_BITS} bits")
        elif not isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
            raise PemError("must be certificates with RSA, EC or EdDSA keys")
    return found


def certificates_pem(text: str) -> str:
    """Return the certificates of a PEM text, encoded again in PEM. Raises PemError as `certificates` does."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates(text))


def key_pem(text: str) -> str:
    """Return the private key of a PEM text, encoded again as PKCS#8. Raises PemError as `private_key` does."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = private_key(text)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _of_jwk(jwk: dict[str, str]) -> object:
    """Return the private key of a JWK: an RSA key with its primes, or a P-256 key."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    def number(name: str) -> int:
        return int.from_bytes(urlsafe_b64decode(jwk[name] + "=" * (-len(jwk[name]) % 4)))

    if jwk["kty"] == "EC" and jwk["crv"] == "P-256":
        return ec.derive_private_key(number("d"), ec.SECP256R1())
    if jwk["kty"] != "RSA":
        raise ValueError("the key is neither RSA nor P-256")
    numbers = rsa.RSAPrivateNumbers(
        p=number("p"),
        q=number("q"),
        d=number("d"),
        dmp1=number("dp"),
        dmq1=number("dq"),
        iqmp=number("qi"),
        public_numbers=rsa.RSAPublicNumbers(number("e"), number("n")),
    )
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def _check_rsa(key: RSAPrivateKey) -> None:
    """Raise PemError if an RSA key is too long, has a large public exponent, or does not work.

    A key does not work if one of its numbers exceeds its modulus, or if its trial signature does not verify.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    numbers = key.private_numbers()
    parts = (numbers.d, numbers.p, numbers.q, numbers.dmp1, numbers.dmq1, numbers.iqmp)
    if key.key_size > MAX_BITS or numbers.public_numbers.e >= _EXPONENT:
        raise PemError(f"must be an RSA private key of at most {MAX_BITS} bits")
    try:
        if max(parts) >= numbers.public_numbers.n:
            raise ValueError("a part of the key exceeds its modulus")
        signature = key.sign(b"trial", PKCS1v15(), SHA256())
        key.public_key().verify(signature, b"trial", PKCS1v15(), SHA256())
    except (ValueError, InvalidSignature):
        raise PemError("must be a working RSA key; the numbers of this key do not belong together") from None
