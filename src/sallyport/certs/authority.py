"""A certificate authority without input and output. It takes names, public keys and the time `now`, and returns
certificates.

The keys of a new authority and its servers are on the curve P-256. The server's certificate has half the octets of one
with RSA, so it takes fewer rounds of EAP, and a signature takes a seventh of the time. RFC 8446 section 9.1 demands the
curve. An authority with RSA keys is for older devices. The keys of clients are RSA keys, because some devices import no
other. The certificates have these properties:

    all        version 3, SHA-256, a random serial number, valid from an hour before the issue, because clocks differ
    authority  path length 0, ten years, so that it outlasts the devices on which it is installed by hand
    server     the extended key usage serverAuth (for Windows), a subject alternative name (Android checks no other
               name), and at most 397 days (Apple accepts 825 days from a private authority, 398 from a public one)
    client     the extended key usage clientAuth; its subject alternative name identifies the client

The certificates follow RFC 5280. The user principal name is Microsoft's otherName 1.3.6.1.4.1.311.20.2.3.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from ipaddress import ip_address
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sallyport.base.addresses import canonical_host
from sallyport.base.errors import Invalid

CA_BITS: Final = 3072
BITS: Final = 2048  # small, because every EAP-TLS login transfers the whole certificate in fragments
SigningKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
CA_LIFE: Final = timedelta(days=3650)
LIFE: Final = timedelta(days=397)
SKEW: Final = timedelta(hours=1)
UPN: Final = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")
MAX_NAME: Final = 64  # ub-common-name (RFC 5280 appendix A.1)
UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What the properties of a certificate raise if a part of it cannot be read. A part is parsed only when it is read."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._@+ -]*[A-Za-z0-9._+-])?")
_MAIL = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9._-]+")
_HOST = re.compile(r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


class KeyKind(StrEnum):
    """The kind of a key: ECDSA with P-256, or RSA."""

    P256 = "p256"
    RSA = "rsa"


class Usage(Enum):
    """The purpose of a certificate, as its extended key usage."""

    SERVER = ExtendedKeyUsageOID.SERVER_AUTH
    CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority's certificate and private key."""

    certificate: x509.Certificate
    key: SigningKey

    @classmethod
    def new(cls, name: str, now: datetime, kind: KeyKind = KeyKind.P256) -> "Authority":
        """Return a new authority with a self-signed certificate. kind: the kind of its key."""
        key = new_key(kind, CA_BITS)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, checked_name(name))])
        certificate = (
            _blank(subject, subject, key.public_key(), now, CA_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    def server(self, hosts: Sequence[str], key: PublicKey, now: datetime) -> x509.Certificate:
        """Return a certificate for a server. Raises Invalid if a host is neither a host name nor an IP address.

        hosts: the host names and IP addresses of the server.
        """
        return self._sign(hosts[0], [_host(each) for each in hosts], Usage.SERVER, key, now)

    def client(self, name: str, key: PublicKey, now: datetime) -> x509.Certificate:
        """Return a certificate for a client: a user, a machine or a RADIUS server. Raises Invalid if the name is not
        allowed in a certificate."""
        return self._sign(name, _client_names(checked_name(name)), Usage.CLIENT, key, now)

    def _sign(
        self, name: str, names: list[x509.GeneralName], usage: Usage, key: PublicKey, now: datetime
    ) -> x509.Certificate:
        own = self.certificate
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:MAX_NAME])])
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return (
            _blank(subject, own.subject, key, now, min(LIFE, own.not_valid_after_utc - now + SKEW))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                _key_usage(digital_signature=True, key_encipherment=isinstance(key, rsa.RSAPublicKey)), critical=True
            )
            .add_extension(x509.ExtendedKeyUsage([usage.value]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(issuer_key, critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def revocations(
        self, revoked: Iterable[x509.RevokedCertificate], number: int, now: datetime
    ) -> x509.CertificateRevocationList:
        """Return the certificate revocation list (RFC 5280 section 5). number: the CRL number.

        The list is valid for the same time as a certificate. A renewal of the server's certificate also signs a new
        list, so that the list is replaced before it expires.
        """
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(now - SKEW)
            .next_update(now - SKEW + LIFE)
            .add_extension(issuer_key, critical=False)
            .add_extension(x509.CRLNumber(number), critical=False)
        )
        for each in revoked:
            builder = builder.add_revoked_certificate(each)
        return builder.sign(self.key, hashes.SHA256())


def new_key(kind: KeyKind = KeyKind.RSA, bits: int = BITS) -> SigningKey:
    """Return a new private key. bits: the length of an RSA key."""
    if kind is KeyKind.P256:
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def kind_of(key: PublicKey) -> KeyKind:
    """Return the kind of a key."""
    return KeyKind.RSA if isinstance(key, rsa.RSAPublicKey) else KeyKind.P256


def taken_back(serial: int, now: datetime) -> x509.RevokedCertificate:
    """Return the entry for a revoked certificate in a certificate revocation list. serial: the serial number of the
    certificate."""
    return x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()


def common_name(certificate: x509.Certificate) -> str:
    """Return the common name of the subject, or an empty string."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint of a certificate, in 64 hex digits."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def host_names(certificate: x509.Certificate) -> list[str]:
    """Return the host names and IP addresses in a certificate's subject alternative name. The order is that of the
    certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(each.value) for each in names if isinstance(each, x509.DNSName | x509.IPAddress)]


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """The content of a peer's certificate.

    fingerprint: the SHA-256 of the certificate in hex. names: the host names and addresses in canonical form. If the
    certificate has neither host names nor addresses, `names` contains only the common name (RFC 6125 section 6.4.4). A
    wildcard has no special meaning.
    """

    fingerprint: str
    names: tuple[str, ...]
    expires: datetime


def read_peer(certificate: bytes) -> PeerCertificate:
    """Return the content of a certificate in DER. Raises ValueError if the certificate cannot be parsed."""
    shown = x509.load_der_x509_certificate(certificate)
    try:
        names = host_names(shown) or [common_name(shown)]
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from None
    return PeerCertificate(
        fingerprint(shown), tuple(canonical_host(name) for name in names if name), shown.not_valid_after_utc
    )


def checked_name(name: str) -> str:
    """Return the name if it is allowed in a certificate and in a file name. Raises Invalid."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        wanted = f"a name must have at most {MAX_NAME} characters, only letters, digits, spaces and ._@+-"
        raise Invalid(f"{wanted}, begin with a letter or digit, and not end with a space or @")
    return name


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        if len(name) > 253 or not all(_LABEL.fullmatch(each) for each in name.split(".")):
            raise Invalid(f"{name!r} is neither a host name nor an IP address") from None
        return x509.DNSName(name)


def _client_names(name: str) -> list[x509.GeneralName]:
    """Return the subject alternative names for a client.

    A host gets its host name or address. A user gets a user principal name. If the name of the user is a mail address,
    the user also gets this mail address.
    """
    if _HOST.fullmatch(name):
        return [x509.DNSName(name)]
    try:
        return [x509.IPAddress(ip_address(name))]
    except ValueError:
        octets = name.encode()
        principal = x509.OtherName(UPN, bytes((0x0C, len(octets))) + octets)  # a UTF8String in DER
        return [principal, x509.RFC822Name(name)] if _MAIL.fullmatch(name) else [principal]


def _blank(
    subject: x509.Name, issuer: x509.Name, key: PublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now - SKEW + life)
    )


def _key_usage(
    *,
    digital_signature: bool = False,
    key_encipherment: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=key_encipherment,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
