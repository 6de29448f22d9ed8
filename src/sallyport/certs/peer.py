"""Whose certificate a peer has shown."""

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from sallyport.base.addresses import canonical_host
from sallyport.certs.authority import common_name, fingerprint
from sallyport.certs.directory import host_names


@dataclass(frozen=True, slots=True)
class Peer:
    """A certificate's content. fingerprint: SHA-256 in hex. names: its host names and addresses in canonical form, or
    its common name if it has none of those (RFC 6125 section 6.4.4). A wildcard is a name like any other."""

    fingerprint: str
    names: tuple[str, ...]
    expires: datetime


def peer(certificate: bytes) -> Peer:
    """Who a certificate in DER is of. ValueError: it cannot be understood."""
    shown = x509.load_der_x509_certificate(certificate)
    try:
        names = host_names(shown) or [common_name(shown)]
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from None
    return Peer(fingerprint(shown), tuple(canonical_host(name) for name in names if name), shown.not_valid_after_utc)
