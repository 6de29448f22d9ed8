"""The trust anchors of client certificates of some domains, and the certificates that a client has proved with them.

A bundle may have intermediate certificates: those that another certificate of the bundle has signed. OpenSSL follows
them up to the anchor, so that the name constraints and the path length of the anchor count. All other certificates are
trust anchors, also those that are not self-signed. The key of the certificate of a bundle that is nearest to the client
says whose certificate it is. Names say nothing: every authority can copy them.
"""

import base64
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_FOR_CLIENTS: Final = bytes.fromhex("300c300a06082b06010505070302")
"""The auxiliary data (X509_CERT_AUX) that OpenSSL reads after a trusted certificate: trusted for TLS clients."""
MAX_DEPTH: Final = 8
"""Maximum number of intermediate certificates between a client's certificate and its anchor."""
_MAX_TRIED: Final = 4
"""Maximum number of anchors with the same name that are tried as the issuer of another anchor."""
MAX_ISSUERS_OCTETS: Final = 16_384
"""Maximum length in octets of the issuers that are kept with a TLS session. Longer chains are not resumed."""


def key_of(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of the SubjectPublicKeyInfo of a certificate, in hex."""
    return sha256(certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """The trust anchors of client certificates, without those of the installation.

    anchors: the certificates of all bundles. revoked: revoked certificates, as (key of the issuer, serial number).
    intermediates: those of `anchors` that are no trust anchors (`intermediates_of`). above: for the key of each
    certificate that another one has signed, the certificates up to the root.
    """

    anchors: Sequence[x509.Certificate]
    revoked: Set[tuple[str, int]] = frozenset()
    intermediates: Set[x509.Certificate] = frozenset()
    above: Mapping[str, tuple[x509.Certificate, ...]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "above", _chains(self.anchors))

    def pem(self) -> bytes:
        """Return the certificates in PEM for OpenSSL. A trust anchor is marked as trusted (openssl-x509, "Trusted
        certificates"). So no flag is needed that would make the intermediate certificates trust anchors too."""
        return b"".join(
            each.public_bytes(Encoding.PEM) if each in self.intermediates else _trusted(each) for each in self.anchors
        )

    def completed(self, chain: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
        """Return a verified chain with the anchors that have signed its last certificate, up to the root."""
        return (*chain, *self.above.get(key_of(chain[-1]), ()))

    def anchor_of(self, chain: Sequence[x509.Certificate]) -> str:
        """Return the key of the anchor of a verified chain that is nearest to the client. A certificate counts by its
        key, because TLS may have verified another certificate of the same key: a renewed or a cross-signed one."""
        keys = [key_of(each) for each in chain[1:]]
        return next((each for each in keys if each in self.above), keys[-1])

    def has_revoked(self, chain: Sequence[x509.Certificate]) -> bool:
        """Return whether the installation's own list has revoked a certificate of a verified chain."""
        if not self.revoked:
            return False
        return any((key_of(issuer), each.serial_number) in self.revoked for each, issuer in pairwise(chain))


def intermediates_of(bundle: Sequence[x509.Certificate]) -> frozenset[x509.Certificate]:
    """Return the certificates of a bundle below a trust anchor of the bundle. Certificates that have signed each other
    in a circle have no anchor above them, so they are anchors themselves."""
    above = _chains(bundle)
    return frozenset(each for each in bundle if (chain := above[key_of(each)]) and not above[key_of(chain[-1])])


def _trusted(certificate: x509.Certificate) -> bytes:
    text = base64.encodebytes(certificate.public_bytes(Encoding.DER) + _FOR_CLIENTS)
    return b"-----BEGIN TRUSTED CERTIFICATE-----\n" + text + b"-----END TRUSTED CERTIFICATE-----\n"


def _chains(anchors: Sequence[x509.Certificate]) -> Mapping[str, tuple[x509.Certificate, ...]]:
    """Return the anchors above each anchor, up to the root, by the key of the anchor. The signatures are checked."""
    by_subject: dict[bytes, list[x509.Certificate]] = {}
    for each in anchors:
        by_subject.setdefault(each.subject.public_bytes(), []).append(each)
    issuers = {key_of(each): _issuer(each, by_subject.get(each.issuer.public_bytes(), ())) for each in anchors}
    found: dict[str, tuple[x509.Certificate, ...]] = {}
    for key, issuer in issuers.items():
        above: list[x509.Certificate] = []
        at = issuer
        while at is not None and at not in above and len(above) < MAX_DEPTH:
            above.append(at)
            at = issuers[key_of(at)]
        found[key] = tuple(above)
    return found


def _issuer(certificate: x509.Certificate, candidates: Sequence[x509.Certificate]) -> x509.Certificate | None:
    """Return the certificate that has signed another one, or None. candidates: the certificates with the issuer's name,
    of which only a few are tried: a tenant may give the same name to hundreds."""
    if certificate.subject == certificate.issuer:
        return None
    return next((each for each in candidates[:_MAX_TRIED] if has_signed(each, certificate)), None)


def has_signed(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Return whether an authority has signed a certificate: names and signature."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:
        return False
    return True


def revoked_by(
    lists: Sequence[x509.CertificateRevocationList], authorities: Sequence[x509.Certificate]
) -> frozenset[tuple[str, int]]:
    """Return the revoked certificates of lists that an authority has signed, as (key of the issuer, serial number).
    authorities: the few authorities of the installation that a domain trusts too."""
    found = set[tuple[str, int]]()
    for each in lists:
        for authority in authorities:
            if each.issuer == authority.subject and each.is_signature_valid(authority.public_key()):  # type: ignore[arg-type]
                found.update((key_of(authority), entry.serial_number) for entry in each)
    return frozenset(found)


def kept_issuers(chain: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...] | None:
    """Return the issuers of a verified chain, to keep them with the TLS session. Return None if they are too long."""
    issuers = tuple(chain[1:])
    length = sum(len(each.public_bytes(Encoding.DER)) for each in issuers)
    return issuers if length <= MAX_ISSUERS_OCTETS else None
