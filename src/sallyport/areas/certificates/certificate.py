"""The server certificate of a domain: its row, and what answers show of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso_seconds
from sallyport.base.errors import invalid_field
from sallyport.certs.authority import UNREADABLE, fingerprint, host_names
from sallyport.certs.supplicants import key_name, name_of
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.pem import certificates
from sallyport.radius.eap.server_certificate import ServerCertificate

MAX_CERTIFICATES: Final = 200
"""Maximum number of server certificates of a tenant. The limit exists because all of them are in memory."""
MAX_CHAIN: Final = 8
"""Maximum number of certificates that the server sends. Each takes half a round of EAP or more."""
MAX_CHARACTERS: Final = 16_384
"""Maximum length of a chain in PEM."""
MAX_NAMES: Final = 100
"""Maximum number of subject alternative names of a certificate."""
MAX_BITS: Final = 3072
"""Maximum length of the server's RSA key. A handshake signs on the event loop: 0.5 ms with 2048 bits, 1.6 ms with 4096
bits, and up to 0.3 ms on a NIST curve."""
DAY_S: Final = 86_400
CURVES: Final = frozenset({"secp256r1", "secp384r1", "secp521r1"})
WARN_DAYS: Final = (0, 1, 7, 30)
"""The days before the expiry of a server certificate at which it is told, in ascending order."""
T = TypeVar("T")
REALM: Final = (
    "Realm of the outer identities that get the certificate: the name or a realm of the domain. Empty: all realms of "
    "the domain that have no certificate of their own."
)


@dataclass(frozen=True, slots=True)
class CertificateRow:
    """A row of the table. private_key: sealed."""

    domain_id: int
    realm_key: str
    realm: str
    chain: str
    private_key: bytes
    changed_at: int

    @property
    def identity(self) -> str:
        """The associated data with which the key is sealed."""
        return identity(self.domain_id, self.realm_key)


def identity(domain_id: int, realm_key: str) -> str:
    """Return the associated data with which a private key is sealed."""
    return f"server_certificates/{domain_id}/{realm_key}"


@dataclass(frozen=True, slots=True)
class DomainCertificate:
    """A server certificate of a domain in memory.

    chain: the certificates that the server sends, its own first. certificate: None if the key cannot be read; then the
    domain uses the certificate of the installation.
    """

    row: CertificateRow
    chain: tuple[x509.Certificate, ...]
    certificate: ServerCertificate | None


@dataclass(frozen=True, slots=True)
class CertificateEntry:
    """What answers show of a server certificate."""

    domain_id: Annotated[int, Wire("Id of the domain.", "domainId", look="none")]
    realm: Annotated[str, Wire(REALM, title="Realm")]
    names: Annotated[
        tuple[str, ...],
        Wire(
            "Host names in the certificate, which supplicants compare with the server name in their profile.",
            "hostNames",
            list,
            list[str],
            title="Server names",
        ),
    ]
    issuer: Annotated[str, Wire("Name of the authority that has signed the certificate.", title="Issuer")]
    key_type: Annotated[str, Wire("Kind and size of the key, such as `EC secp256r1`.", "keyType", title="Key")]
    octets: Annotated[int, Wire("Length of the chain that the server sends, in octets.", "chainOctets")]
    sha256: Annotated[str, Wire("SHA-256 of the server's certificate in hex.", "sha256", look="none")]
    begins_at: Annotated[
        int, Wire("Time from which the certificate is valid, ISO 8601 UTC.", "validFrom", iso_seconds, look="none")
    ]
    ends_at: Annotated[
        int, Wire("Time when the certificate expires, ISO 8601 UTC.", "expires", iso_seconds, title="Expires")
    ]
    changed_at: Annotated[
        int, Wire("Time when the certificate was set, ISO 8601 UTC.", "changedAt", iso_seconds, title="Set at")
    ]
    usable: Annotated[
        bool,
        Wire(
            "Whether the service can read the private key. If not, the domain uses the installation's certificate.",
            title="Usable",
        ),
    ]
    warnings: Annotated[
        tuple[str, ...],
        Wire("What supplicants refuse about the certificate; empty if nothing.", "warnings", list, list[str]),
    ]


def checked_chain(pem: str) -> list[x509.Certificate]:
    """Return the certificates in a PEM text. Raises Invalid about the field `certificate` if there are too many
    certificates or names, or if a part of a certificate cannot be read: answers and checks read these parts later."""
    try:
        chain = certificates(pem, MAX_CHAIN)
    except PemError as error:
        raise invalid_field("certificate", str(error)) from None
    try:
        for each in chain:
            _read_parts(each)
        names = _alternative_names(chain[0])
    except UNREADABLE:
        unread = "must be certificates whose names, dates, extensions and signature algorithms can be read"
        raise invalid_field("certificate", unread) from None
    if names > MAX_NAMES:
        raise invalid_field("certificate", f"must have at most {MAX_NAMES} subject alternative names")
    return chain


def check_key(own: x509.Certificate) -> None:
    """Raise Invalid about the field `certificate` if signatures with the key of a server's certificate take long."""
    key = own.public_key()
    is_short = isinstance(key, rsa.RSAPublicKey) and key.key_size <= MAX_BITS
    if not is_short and not (isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in CURVES):
        wanted = f"must have an RSA key of at most {MAX_BITS} bits, or an EC key on P-256, P-384 or P-521"
        raise invalid_field("certificate", f"{wanted}; this key is {key_name(own)}")


def entry(found: DomainCertificate, warnings: Sequence[str]) -> CertificateEntry:
    """Return what answers show of a certificate. A part that cannot be read is empty."""
    own = found.chain[0]
    return CertificateEntry(
        found.row.domain_id,
        found.row.realm,
        names_in(own),
        _part(lambda: name_of(own.issuer), ""),
        _part(lambda: key_name(own), ""),
        sum(len(each.public_bytes(Encoding.DER)) for each in found.chain),
        fingerprint(own),
        _part(lambda: round(own.not_valid_before_utc.timestamp()) * SECOND, 0),
        _part(lambda: round(own.not_valid_after_utc.timestamp()) * SECOND, 0),
        found.row.changed_at,
        found.certificate is not None,
        tuple(warnings),
    )


def days_left(found: DomainCertificate, now: int) -> int | None:
    """Return the number of whole days until the first certificate of a chain expires; 0 after the expiry. Return None
    if a time cannot be read. now: in microseconds since 1970."""
    ends = _part(lambda: min(each.not_valid_after_utc.timestamp() for each in found.chain), None)
    return None if ends is None else max(0, int((ends - now / SECOND) // DAY_S))


def names_in(own: x509.Certificate) -> tuple[str, ...]:
    """Return the host names in a certificate. They are empty if its alternative names cannot be read."""
    return _part(lambda: tuple(host_names(own)), ())


def _part(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except UNREADABLE:
        return otherwise


def _read_parts(each: x509.Certificate) -> tuple[object, ...]:
    """Read the parts of a certificate that are parsed only now. Raises one of UNREADABLE."""
    dates = (each.not_valid_before_utc.timestamp(), each.not_valid_after_utc.timestamp())
    names = (name_of(each.subject), name_of(each.issuer))
    return (dates, names, each.public_key(), each.signature_hash_algorithm, each.extensions)


def _alternative_names(own: x509.Certificate) -> int:
    try:
        return len(list(own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value))
    except x509.ExtensionNotFound:
        return 0
