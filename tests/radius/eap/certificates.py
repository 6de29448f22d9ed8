"""The certificate authority of the tests, which issues and revokes certificates."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID, NameOID

from sallyport.radius.eap.certificate import UPN

NOW = datetime.now(UTC)
PEM = serialization.Encoding.PEM


def upn(name: str) -> x509.GeneralName:
    """Return the otherName of a user principal name."""
    octets = name.encode()
    head = bytes((len(octets),)) if len(octets) < 128 else bytes((0x81, len(octets)))
    return x509.OtherName(UPN, b"\x0c" + head + octets)


class Authority:
    """A certificate authority.

    Its directory contains ca.pem, and the files that `certificate` and `revocations` write.
    """

    def __init__(self, directory: Path, name: str = "authority of the tests") -> None:
        self._directory = directory
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        usage = dict.fromkeys(
            ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "encipher_only", "decipher_only"), False,
        )  # fmt: skip
        own = (
            self._blank(self._name, self._key.public_key(), NOW + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(**usage, key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.file = directory / "ca.pem"
        self.file.write_bytes(own.public_bytes(PEM))

    def certificate(
        self,
        common_name: str,
        alternatives: Sequence[x509.GeneralName] = (),
        *,
        until: datetime | None = None,
        padding: int = 0,
        names: bytes = b"",
        extensions: Sequence[x509.ExtensionType] = (),
    ) -> "Issued":
        """Return a certificate with its key.

        padding: octets that make the certificate longer. names: its alternative names in DER. extensions: further
        extensions.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else [])
        blank = self._blank(subject, key.public_key(), until or NOW + timedelta(days=1))
        blank = blank.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if alternatives:
            # Critical if the subject is empty (RFC 5280 section 4.2.1.6), as Python 3.13 requires.
            blank = blank.add_extension(x509.SubjectAlternativeName(alternatives), critical=not common_name)
        if names:
            given = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, names)
            blank = blank.add_extension(given, critical=False)
        if padding:
            long = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), bytes(padding))
            blank = blank.add_extension(long, critical=False)
        for extension in extensions:
            blank = blank.add_extension(extension, critical=False)
        certificate = blank.sign(self._key, hashes.SHA256())
        file = self._directory / f"{certificate.serial_number}.pem"
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file.write_bytes(secret + certificate.public_bytes(PEM))
        return Issued(certificate, file)

    def revocations(
        self, *revoked: x509.Certificate, since: datetime = NOW - timedelta(hours=2), until: datetime | None = None
    ) -> Path:
        """Return a revocation list that contains these certificates."""
        blank = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._name)
            .last_update(since)
            .next_update(until or NOW + timedelta(days=1))
        )
        for each in revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(each.serial_number).revocation_date(NOW).build()
            blank = blank.add_revoked_certificate(entry)
        file = self._directory / "crl.pem"
        file.write_bytes(blank.sign(self._key, hashes.SHA256()).public_bytes(PEM))
        return file

    def _blank(self, name: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=1))
            .not_valid_after(until)
        )


class Issued:
    """A certificate, and the file that contains it and its key."""

    def __init__(self, certificate: x509.Certificate, file: Path) -> None:
        self.certificate = certificate
        self.file = file
