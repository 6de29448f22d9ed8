"""Read the certificates of an authority, and refuse those that cannot be trust anchors."""

from hashlib import sha256
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import SignatureAlgorithmOID

from sallyport.areas.authorities.authority import MAX_CERTIFICATES, Anchor
from sallyport.base.clock import SECOND
from sallyport.base.errors import invalid_field
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.pem import certificates

FIELD: Final = "certificates"
MIN_RSA_BITS: Final = 2048
MIN_EC_BITS: Final = 256
MAX_SUBJECT: Final = 1024
"""Maximum number of characters of a subject."""
MAX_KEY_ID: Final = 64
"""Maximum number of octets of a SubjectKeyIdentifier."""
_WEAK: Final = frozenset(
    {
        SignatureAlgorithmOID.RSA_WITH_MD5,
        SignatureAlgorithmOID.RSA_WITH_SHA1,
        SignatureAlgorithmOID._RSA_WITH_SHA1,
        SignatureAlgorithmOID.ECDSA_WITH_SHA1,
        SignatureAlgorithmOID.DSA_WITH_SHA1,
    }
)
_UNREADABLE: Final = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)


def read_bundle(text: str) -> tuple[str, tuple[Anchor, ...]]:
    """Return the certificates of a PEM text, encoded again in PEM, and the facts of each.

    Raises Invalid about the field `certificates` if the text has no certificate or too many, or a certificate that
    cannot be a trust anchor. A certificate must be that of an authority (basic constraints), and its key must not be
    weak. A signature with SHA-1 is accepted only on a certificate that has signed itself, because the signature of a
    trust anchor proves nothing. Call this function in a worker thread: 32 certificates take 10 ms.
    """
    try:
        found = certificates(text, MAX_CERTIFICATES)
    except PemError as error:
        raise invalid_field(FIELD, str(error)) from None
    if not found:
        raise invalid_field(FIELD, "must have at least one certificate in PEM")
    anchors = tuple(_anchor(number, each) for number, each in enumerate(found, 1))
    if len({each.key for each in anchors}) < len(anchors):
        raise invalid_field(FIELD, "must have one certificate for each key: leave out the older of two")
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in found), anchors


def key_of(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of the SubjectPublicKeyInfo of a certificate, in hex."""
    return sha256(certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _anchor(number: int, certificate: x509.Certificate) -> Anchor:
    """Return the facts of a certificate. number: its place in the bundle, for the error. Raises Invalid."""
    try:
        subject, key_id, why = certificate.subject.rfc4514_string(), _key_id(certificate), _unfitness(certificate)
    except _UNREADABLE:
        subject, key_id, why = "", "", "cannot be read"
    if not why and not 0 < len(subject) <= MAX_SUBJECT:
        why = f"must have a subject of at most {MAX_SUBJECT} characters"
    if not why and len(key_id) > 2 * MAX_KEY_ID:
        why = f"must have a SubjectKeyIdentifier of at most {MAX_KEY_ID} octets"
    if why:
        raise invalid_field(FIELD, f"must be certificates of authorities: certificate {number} {why}")
    return Anchor(key_of(certificate), subject, round(certificate.not_valid_after_utc.timestamp()) * SECOND, key_id)


def _key_id(certificate: x509.Certificate) -> str:
    """Return the SubjectKeyIdentifier of a certificate in hex. Return an empty text if it has none."""
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest.hex()
    except x509.ExtensionNotFound:
        return ""


def _unfitness(certificate: x509.Certificate) -> str:
    """Return why a certificate cannot be a trust anchor. Return an empty text if it can be one."""
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return "has no basic constraints, so it is not that of an authority"
    if not constraints.ca:
        return "is not that of an authority: its basic constraints say CA:FALSE"
    try:
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        usage = None
    if usage is not None and not usage.key_cert_sign:
        return "may not sign certificates: its key usage lacks keyCertSign"
    return _weakness(certificate)


def _weakness(certificate: x509.Certificate) -> str:
    """Return why a certificate is weak: its key, or the signature of its issuer."""
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        return f"has an RSA key of {key.key_size} bits; at least {MIN_RSA_BITS} are needed"
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size < MIN_EC_BITS:
        return f"has an EC key of {key.key_size} bits; at least {MIN_EC_BITS} are needed"
    is_self_signed = certificate.subject == certificate.issuer
    if certificate.signature_algorithm_oid in _WEAK and not is_self_signed:
        return "is signed with SHA-1 or MD5"
    return ""
