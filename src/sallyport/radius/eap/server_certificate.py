"""The certificate that the TLS server for EAP shows to supplicants, with its chain and its private key.

A supplicant in front of a network has no host name to ask for, so TLS inside EAP has no SNI. The caller chooses the
certificate of a conversation before the conversation begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from sallyport.base.errors import ConfigError
from sallyport.radius.eap.trust import has_signed

ServerKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
"""The kinds of private keys with which TLS servers sign. Supplicants know RSA and EC."""
NO_CERTIFICATE: Final = "contains no readable certificate in PEM"
NO_KEY: Final = "does not contain the key of the server's certificate"
_MAX_ADDED: Final = 8
"""Maximum number of intermediate certificates that are added to a chain."""


@dataclass(frozen=True, slots=True, eq=False)
class ServerCertificate:
    """A server certificate. Each object is its own key in the cache of TLS contexts.

    chain: the server's certificate, followed by the certificates that are sent with it. key: its private key.
    """

    chain: tuple[x509.Certificate, ...]
    key: ServerKey

    @classmethod
    def parse(cls, chain: bytes, key: bytes, *, chain_name: str, key_name: str) -> Self:
        """Return the certificate in two PEM texts, which may be the same. Raises ConfigError with the name of the text
        that cannot be used.

        The arithmetic of an RSA key is not checked, because the check takes 50 ms. A key with a wrong factor fails
        when it signs.
        """
        try:
            certificates = tuple(x509.load_pem_x509_certificates(chain))
        except ValueError:
            raise ConfigError(f"{chain_name} {NO_CERTIFICATE}") from None
        try:
            found = load_pem_private_key(key, None, unsafe_skip_rsa_key_validation=True)
        except (ValueError, TypeError):
            raise ConfigError(f"{key_name} {NO_KEY}") from None
        if not isinstance(found, ServerKey) or _public(found.public_key()) != _public(certificates[0].public_key()):
            raise ConfigError(f"{key_name} {NO_KEY}")
        return cls(certificates, found)

    @classmethod
    def read(cls, certificate_file: Path, key_file: Path) -> Self:
        """Return the certificate in two PEM files. Raises ConfigError."""
        texts = []
        for path, flaw in ((certificate_file, NO_CERTIFICATE), (key_file, NO_KEY)):
            try:
                texts.append(path.read_bytes())
            except OSError:
                raise ConfigError(f"{path}: the file {flaw}") from None
        return cls.parse(*texts, chain_name=f"{certificate_file}: the file", key_name=f"{key_file}: the file")

    def completed(self, authorities: Sequence[x509.Certificate]) -> Self:
        """Return the certificate with the intermediate certificates that its chain lacks. No root is added, because
        supplicants have it. authorities: the certificates among which the issuers are looked for."""
        added = list[x509.Certificate]()
        while len(added) < _MAX_ADDED:
            issuer = _intermediate((*self.chain, *added)[-1], authorities)
            if issuer is None or issuer in self.chain or issuer in added:
                break
            added.append(issuer)
        return replace(self, chain=(*self.chain, *added)) if added else self


def _public(key: CertificatePublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _intermediate(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> x509.Certificate | None:
    """Return the intermediate certificate that has signed another one. Return None if there is none, or if a root has
    signed it."""
    if certificate.issuer == certificate.subject:
        return None
    for each in authorities:
        if each.subject == certificate.issuer != each.issuer and has_signed(each, certificate):
            return each
    return None
