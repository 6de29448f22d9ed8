"""Certificates of authorities that the tests make."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.radius.eap.certificates import Issued

NOW = datetime.now(UTC).replace(microsecond=0)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class MadeAuthority:
    """The certificate and the key of an authority. issuer: the authority that has signed it; None if it has signed
    itself. key_id: its SubjectKeyIdentifier; empty for none, and None for that of its key. extensions: further
    extensions."""

    def __init__(
        self,
        name: str = "Test CA",
        issuer: "MadeAuthority | None" = None,
        *,
        key: Key | None = None,
        ca: bool | None = True,
        signs: bool = True,
        hash_: hashes.HashAlgorithm | None = None,
        key_id: bytes | None = None,
        extensions: Sequence[x509.ExtensionType] = (),
    ) -> None:
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
        signer = issuer or self
        usage = dict.fromkeys(
            ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "encipher_only", "decipher_only"), False,
        )  # fmt: skip
        blank = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(signer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=1))
            .not_valid_after(NOW + timedelta(days=1))
            .add_extension(x509.KeyUsage(**usage, key_cert_sign=signs, crl_sign=True), critical=True)
        )
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        if key_id != b"":
            blank = blank.add_extension(x509.SubjectKeyIdentifier(key_id) if key_id else identifier, critical=False)
        if ca is not None:
            blank = blank.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        for each in extensions:
            blank = blank.add_extension(each, critical=False)
        self.certificate = blank.sign(signer.key, hash_ or hashes.SHA256())
        self.pem = self.certificate.public_bytes(Encoding.PEM).decode()


def sid_extension(sid: str) -> x509.UnrecognizedExtension:
    """Return the extension in which AD CS writes the SID of an account: its OCTET STRING in an alternative name."""
    octets = b"\x04" + bytes((len(sid),)) + sid.encode()
    name = x509.OtherName(x509.ObjectIdentifier("1.3.6.1.4.1.311.25.2.1"), octets)
    written = x509.SubjectAlternativeName([name]).public_bytes()
    return x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.311.25.2"), written)


def issued(
    authority: MadeAuthority,
    file: Path,
    common_name: str,
    chain: str = "",
    *,
    key_id: bytes | None = None,
    names: Sequence[x509.GeneralName] = (),
    sid: str = "",
) -> Issued:
    """Return a client's certificate, with its key and a chain in a file. key_id: its AuthorityKeyIdentifier; None for
    that of the authority's key. names: its alternative names. sid: the SID of its account, or empty."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    blank = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
        .issuer_name(authority.name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.AuthorityKeyIdentifier(key_id, None, None) if key_id else identifier, critical=False)
    )
    if names:
        blank = blank.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if sid:
        blank = blank.add_extension(sid_extension(sid), critical=False)
    made = blank.sign(authority.key, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(made.public_bytes(Encoding.PEM) + chain.encode() + secret)
    return Issued(made, file)
