"""An authority with EC keys for tests: it issues certificates, revocation lists and OCSP responses, good and bad."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from sallyport.areas.authorities.revocation.entries import read_header, split_list
from sallyport.base.clock import from_us
from tests.areas import SetClock

NOW: Final = from_us(SetClock().now)
DAY: Final = timedelta(days=1)
LISTS: Final = "http://pki.example.test/ca.crl"


def named(name: str) -> x509.Name:
    """Return a subject with a common name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def point(*addresses: str) -> x509.DistributionPoint:
    """Return a distribution point."""
    return x509.DistributionPoint([x509.UniformResourceIdentifier(each) for each in addresses], None, None, None)


def scope(**given: object) -> x509.IssuingDistributionPoint:
    """Return the extension that limits the scope of a list."""
    fields: dict[str, object] = {
        "full_name": None, "relative_name": None, "only_contains_user_certs": False, "only_contains_ca_certs": False,
        "only_some_reasons": None, "indirect_crl": False, "only_contains_attribute_certs": False,
    }  # fmt: skip
    return x509.IssuingDistributionPoint(**{**fields, **given})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Issuer:
    """An authority, a responder or a client."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls, name: str = "Example CA", *, signs_lists: bool = True) -> "Issuer":
        """Return a new authority with a self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(True, False, False, False, False, True, signs_lists, False, False)
        builder = _certificate(named(name), named(name), key).add_extension(usage, critical=True)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @property
    def pem(self) -> str:
        """Its certificate in PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        name: str | x509.Name = "alice",
        *,
        serial: int = 0,
        lists: Sequence[x509.DistributionPoint] = (),
        responder: str = "",
    ) -> x509.Certificate:
        """Return a client's certificate. lists: its distribution points. responder: its OCSP responder."""
        return self.client(name, serial=serial, lists=lists, responder=responder).certificate

    def client(
        self,
        name: str | x509.Name,
        *,
        serial: int = 0,
        lists: Sequence[x509.DistributionPoint] = (),
        responder: str = "",
    ) -> "Issuer":
        """Return a client's certificate with its key, see `issue`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = named(name) if isinstance(name, str) else name
        builder = _certificate(subject, self.certificate.subject, key, serial)
        if lists:
            builder = builder.add_extension(x509.CRLDistributionPoints(lists), critical=False)
        if responder:
            access = x509.AccessDescription(
                AuthorityInformationAccessOID.OCSP, x509.UniformResourceIdentifier(responder)
            )
            builder = builder.add_extension(x509.AuthorityInformationAccess([access]), critical=False)
        return Issuer(builder.sign(self.key, hashes.SHA256()), key)

    def subordinate(self, name: str = "Issuing CA", lists: Sequence[x509.DistributionPoint] = ()) -> "Issuer":
        """Return an authority whose certificate this one has issued."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _certificate(named(name), self.certificate.subject, key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        if lists:
            builder = builder.add_extension(x509.CRLDistributionPoints(lists), critical=False)
        return Issuer(builder.sign(self.key, hashes.SHA256()), key)

    def responder(self, *, usage: bool = True, until: datetime = NOW + DAY) -> "Issuer":
        """Return a responder with a certificate of this authority. usage: whether it is issued for OCSP."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _certificate(named("responder"), self.certificate.subject, key, until=until)
        if usage:
            builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.OCSP_SIGNING]), critical=False)
        return Issuer(builder.sign(self.key, hashes.SHA256()), key)

    def crl(
        self,
        *serials: int,
        number: int | None = 1,
        base: int | None = None,
        removed: Sequence[int] = (),
        since: datetime = NOW - DAY,
        until: datetime | None = NOW + DAY,
        extensions: Sequence[tuple[x509.ExtensionType, bool]] = (),
        name: x509.Name | None = None,
        algorithm: hashes.HashAlgorithm | None = None,
    ) -> bytes:
        """Return a revocation list in DER. base: the number of the list to which a delta list applies. removed: the
        serial numbers that a delta list removes."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(name or self.certificate.subject)
        builder = builder.last_update(since)
        # `cryptography` makes no list without nextUpdate
        builder = builder.next_update(until or NOW + DAY)
        if number is not None:
            builder = builder.add_extension(x509.CRLNumber(number), critical=False)
        if base is not None:
            builder = builder.add_extension(x509.DeltaCRLIndicator(base), critical=True)
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        for serial in (*serials, *removed):
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(since)
            if serial in removed:
                entry = entry.add_extension(x509.CRLReason(x509.ReasonFlags.remove_from_crl), critical=False)
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign(self.key, algorithm or hashes.SHA256()).public_bytes(Encoding.DER)

    def answer(
        self,
        certificate: x509.Certificate,
        issuer: "Issuer",
        status: ocsp.OCSPCertStatus = ocsp.OCSPCertStatus.GOOD,
        *,
        nonce: bytes = b"",
        since: datetime = NOW,
        until: datetime | None = NOW + DAY,
        with_certificate: bool = True,
        algorithm: hashes.HashAlgorithm | None = None,
        reason: x509.ReasonFlags = x509.ReasonFlags.key_compromise,
    ) -> bytes:
        """Return an OCSP response in DER, signed by this authority or responder. issuer: the certificate's issuer."""
        is_revoked = status is ocsp.OCSPCertStatus.REVOKED
        builder = ocsp.OCSPResponseBuilder().add_response(
            certificate,
            issuer.certificate,
            hashes.SHA1(),  # noqa: S303
            status,
            since,
            until,
            since if is_revoked else None,
            reason if is_revoked else None,
        )
        builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, self.certificate)
        if with_certificate:
            builder = builder.certificates([self.certificate])
        if nonce:
            builder = builder.add_extension(x509.OCSPNonce(nonce), critical=False)
        return builder.sign(self.key, algorithm or hashes.SHA256()).public_bytes(Encoding.DER)


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    serial: int = 0,
    until: datetime = NOW + 36_500 * DAY,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(NOW - 365 * DAY)
        .not_valid_after(until)
    )


def nonce_of(request: bytes) -> bytes:
    """Return the nonce of a request in DER, or nothing."""
    extensions = ocsp.load_der_ocsp_request(request).extensions
    try:
        return extensions.get_extension_for_class(x509.OCSPNonce).value.nonce
    except x509.ExtensionNotFound:
        return b""


def der_value(tag: int, content: bytes) -> bytes:
    """Return a value in DER."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(octets))) + octets + content


def with_entries(issuer: Issuer, der: bytes, serials: Iterable[int]) -> bytes:
    """Return a revocation list with other entries than those of a list in DER. `cryptography` makes no long list in
    reasonable time. serials: serial numbers of 16 octets; the reason of each is a compromised key."""
    parts = split_list(der)
    reason = bytes.fromhex("170d3236303130313030303030305a300c300a0603551d1504030a0101")
    entries = b"".join(der_value(0x30, b"\2\x10" + each.to_bytes(16) + reason) for each in serials)
    signed = bytes(parts.signed).replace(der_value(0x30, bytes(parts.entries)), der_value(0x30, entries))
    signed = der_value(0x30, signed[2 + (signed[1] & 0x7F if signed[1] & 0x80 else 0) :])
    signature = issuer.key.sign(signed, ec.ECDSA(hashes.SHA256()))
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")
    return der_value(0x30, signed + algorithm + der_value(3, b"\0" + signature))


def with_serial(issuer: Issuer, serial: bytes) -> x509.Certificate:
    """Return a client's certificate with any octets as its serial number. `cryptography` makes only good numbers."""
    marker = b"\x11" * 20
    signed = issuer.issue(serial=int.from_bytes(marker)).tbs_certificate_bytes
    _, start, end = read_header(memoryview(signed), 0)
    signed = der_value(0x30, signed[start:end].replace(der_value(2, marker), der_value(2, serial), 1))
    signature = issuer.key.sign(signed, ec.ECDSA(hashes.SHA256()))
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")
    whole = der_value(0x30, signed + algorithm + der_value(3, b"\0" + signature))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `cryptography` warns of numbers that are not positive
        return x509.load_der_x509_certificate(whole)
