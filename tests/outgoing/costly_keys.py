"""Keys and certificates that are costly to parse or to use, in PEM."""

from base64 import b64encode
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

_SIGNER = ec.generate_private_key(ec.SECP256R1())
_BROKEN = 3 << 2046 | 0xBAD01  # replaces a prime of 2048 bits
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | dsa.DSAPrivateKey


def pem(key: PrivateKey) -> str:
    """Return a private key as PKCS#8."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def numbers_of(p: int, q: int, *, e: int = 65537) -> rsa.RSAPrivateKey:
    """Return an RSA key with these factors. The key does not work, because its primes are not checked."""
    numbers = rsa.RSAPrivateNumbers(p, q, p | 1, 3, 3, 3, rsa.RSAPublicNumbers(e, p * q))
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def certificate(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey | dsa.DSAPublicKey) -> str:
    """Return a certificate of a public key, signed by another key."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "costly")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key).serial_number(1)
    made = made.not_valid_before(datetime(2026, 1, 1, tzinfo=UTC)).not_valid_after(datetime(2036, 1, 1, tzinfo=UTC))
    return made.sign(_SIGNER, SHA256()).public_bytes(Encoding.PEM).decode()


def of_label(label: str, *headers: str) -> str:
    """Return a PEM block with this label, headers and octets, which are not a key."""
    lines = [*headers, "", b64encode(bytes(48)).decode()] if headers else [b64encode(bytes(48)).decode()]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = _SIGNER
ENCRYPTED = {
    "PKCS#8": of_label("ENCRYPTED PRIVATE KEY"),
    "RFC 1421": of_label("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,00112233445566778899AABB"),
}
LONG_RSA = numbers_of(_BROKEN, _BROKEN << 4096 | 1)
"""6144 bits."""
COMPOSITE_RSA = numbers_of(_BROKEN, _BROKEN | 2)
"""An RSA key of 4096 bits whose factors are not prime. It signs, but the signature cannot be verified."""
LONG_EXPONENT_RSA = rsa.RSAPublicNumbers((1 << 4000) + 1, _BROKEN * (_BROKEN | 2)).public_key()
DSA = dsa.generate_private_key(2048)
