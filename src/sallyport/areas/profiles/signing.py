"""The signature of Apple's configuration profiles: CMS signed data (RFC 5652) that contains the profile.

A device shows the name of a signer that it trusts. The certificate is one that devices trust already, such as that of a
web server with its chain. The settings `profile_certificate` and `profile_key` name its files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, pkcs7

from sallyport.base.bounded import BoundedMap
from sallyport.base.errors import Conflict, StartError
from sallyport.certs.folder import read_certificates

MAX_KEPT: Final = 256
"""Maximum number of signed files in memory. A file has about 6 KiB."""


@dataclass(frozen=True, slots=True)
class _Signer:
    stamp: tuple[int, ...]
    certificate: x509.Certificate
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    chain: Sequence[x509.Certificate]


class ProfileSigner:
    """Signs configuration profiles, if there is a key.

    certificate, key: the files in PEM, or None. They are read again when they have changed. A signature of RSA takes
    1 ms, so an unchanged profile is signed once.
    """

    def __init__(self, certificate: Path | None, key: Path | None) -> None:
        self.use(certificate, key)
        self._signer: _Signer | None = None
        self._signed = BoundedMap[tuple[tuple[int, ...], bytes], bytes](MAX_KEPT)

    def use(self, certificate: Path | None, key: Path | None) -> None:
        """Sign with these files from now on."""
        self._files = (certificate, key) if certificate and key else None

    def signed(self, content: bytes, tenant_id: int) -> bytes:
        """Return the signed profile, or the content itself without a key. Call this function in a worker thread, by one
        thread at a time.

        Raises Conflict if the files cannot be used, because an unsigned file would be shown as not verified.
        """
        if self._files is None:
            return content
        try:
            signer = self._present(*self._files)
        except (OSError, StartError, ValueError, TypeError, UnsupportedAlgorithm):
            raise Conflict(
                "the key that signs profiles cannot be used: check the settings profile_certificate and profile_key"
            ) from None
        found = self._signed.get((signer.stamp, content))
        if found is None:
            builder = pkcs7.PKCS7SignatureBuilder().set_data(content)
            builder = builder.add_signer(signer.certificate, signer.key, hashes.SHA256())
            for each in signer.chain:
                builder = builder.add_certificate(each)
            found = builder.sign(Encoding.DER, [pkcs7.PKCS7Options.Binary])
            self._signed.put((signer.stamp, content), found, tenant_id)
        return found

    def _present(self, certificate: Path, key: Path) -> _Signer:
        status = [path.stat() for path in (certificate, key)]
        stamp = tuple([part for each in status for part in (each.st_ino, each.st_mtime_ns, each.st_size)])
        if self._signer is None or self._signer.stamp != stamp:
            own, *chain = read_certificates(certificate)
            loaded = load_pem_private_key(key.read_bytes(), None)
            if not isinstance(loaded, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
                raise ValueError("the key is neither RSA nor EC")
            if loaded.public_key() != own.public_key():
                raise ValueError("the key does not belong to the certificate")
            self._signer = _Signer(stamp, own, loaded, chain)
        return self._signer
