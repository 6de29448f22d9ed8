"""Certificate revocation lists: whether a list may be used, and what it says about a certificate (RFC 5280 sections 5
and 6.3).

A list is used only if a certificate of the authority has signed it, found by name and by key. It says something about a
certificate only if the same key has issued the certificate, and if the certificate is in the list's scope
(IssuingDistributionPoint). Indirect lists and lists of some reasons only are refused.

All functions that take a whole list run in a worker thread, see `entries`.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import AuthorityInformationAccessOID

from sallyport.areas.authorities.revocation.entries import (
    REMOVED,
    REVOKED,
    SERIAL,
    Entries,
    ListError,
    ListParts,
    pull_entries,
    split_list,
)
from sallyport.base.clock import SECOND
from sallyport.radius.eap.certificate import UNREADABLE

MAX_LIST: Final = 32 * 1024 * 1024
"""Maximum number of octets of a list."""
SKEW_US: Final = 300 * SECOND
"""By how much the clock of an authority may be ahead of this machine, in microseconds."""
_MIN_ENTRY_SIZE: Final = 20
"""Number of octets of the shortest entry."""
_MAX_UNHASHED_SIZE: Final = 1024 * 1024
"""Maximum number of octets of a list that is not signed by its hash. `cryptography` would hold the interpreter lock for
the whole list."""
_PEM: Final = b"-----BEGIN X509 CRL-----"
_PEM_END: Final = b"-----END X509 CRL-----"
_MAX_PEM_SIZE: Final = 2 * 1024 * 1024
_MAX_NAME_SIZE: Final = 2048
"""Maximum number of octets of a name that is compared other than octet by octet."""
_MAX_ADDRESSES: Final = 4
"""Maximum number of addresses that are read from one certificate or list."""
HASHES: Final = {"sha256", "sha384", "sha512"}
"""The hash algorithms of signatures that count as strong."""
_UNDERSTOOD: Final = (
    x509.AuthorityKeyIdentifier,
    x509.CRLNumber,
    x509.DeltaCRLIndicator,
    x509.FreshestCRL,
    x509.IssuingDistributionPoint,
    x509.AuthorityInformationAccess,
    x509.IssuerAlternativeName,
)


def key_hash(certificate: x509.Certificate) -> bytes:
    """Return the SHA-256 of the key of a certificate (SubjectPublicKeyInfo)."""
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(key).digest()


@dataclass(frozen=True, slots=True)
class Scope:
    """The certificates that a list is about (RFC 5280 section 5.2.5).

    users, authorities: whether it is about certificates of users, and of authorities. addresses: the distribution
    points of its certificates; empty for all.
    """

    users: bool = True
    authorities: bool = True
    addresses: frozenset[str] = frozenset()

    def covers(self, certificate: x509.Certificate) -> bool:
        """Return whether a certificate is in the scope. Its issuer is not checked."""
        if not (self.authorities if is_authority(certificate) else self.users):
            return False
        return not self.addresses or not self.addresses.isdisjoint(distribution_points(certificate))


@dataclass(frozen=True, slots=True)
class RevocationList:
    """A verified list.

    issuer_key: the `key_hash` of the authority that has signed it. number: the CRL number, or None. base: for a delta
    list, the number of the complete list to which it applies, otherwise None. this_update, next_update: microseconds.
    freshest: the addresses of its delta list. size: the number of octets of the list. sha256: the hash of the list, by
    which it is recognized.
    """

    issuer_key: bytes
    number: int | None
    base: int | None
    this_update: int
    next_update: int
    scope: Scope
    freshest: tuple[str, ...]
    size: int
    sha256: bytes
    entries: Entries = field(repr=False)

    def is_valid(self, now: int) -> bool:
        """Return whether the list has not expired. now: microseconds."""
        return now < self.next_update

    def is_like(self, other: RevocationList) -> bool:
        """Return whether another list is about the same certificates: of the same key and scope, and complete or not
        as this one."""
        same = self.issuer_key == other.issuer_key and self.scope == other.scope
        return same and (self.base is None) == (other.base is None)

    def may_replace(self, other: RevocationList, now: int) -> bool:
        """Return whether this list may replace another list from the same address. It must not be older, and must be
        like it. One of another key or scope replaces only an expired list: an address may serve any signed list. A
        delta list never replaces a complete one."""
        if not self.is_like(other):
            same_kind = (self.base is None) == (other.base is None)
            return same_kind and not other.is_valid(now) and self.this_update >= other.this_update
        if self.number is not None and other.number is not None and self.number != other.number:
            return self.number > other.number
        return self.this_update >= other.this_update

    def takes_delta(self, delta: RevocationList) -> bool:
        """Return whether a delta list applies to this list, and is newer (RFC 5280 section 5.2.4)."""
        if delta.base is None or delta.number is None or self.number is None or self.base is not None:
            return False
        same = delta.issuer_key == self.issuer_key and delta.scope == self.scope
        return same and delta.base <= self.number < delta.number

    def covers(self, certificate: x509.Certificate, issuer_key: bytes) -> bool:
        """Return whether the list is about a certificate. issuer_key: the `key_hash` of the certificate's issuer."""
        return issuer_key == self.issuer_key and self.scope.covers(certificate)


def is_revoked(serial: int, complete: RevocationList, delta: RevocationList | None = None, now: int = 0) -> bool:
    """Return whether a list has a serial number. delta: a delta list that the list takes, or None. An expired one
    removes nothing from the list. now: microseconds."""
    change = None if delta is None else delta.entries.find(serial)
    if change == REVOKED:
        return True
    if change == REMOVED and delta is not None and delta.is_valid(now):
        return False
    return complete.entries.find(serial) == REVOKED


def read_list(octets: bytes, issuers: tuple[x509.Certificate, ...], now: int) -> RevocationList:
    """Return a list if one of the authority's certificates has signed it. Raises ListError. Call it in a worker thread.

    octets: the list in DER, or in PEM. issuers: the certificates of the authority. now: microseconds.
    """
    der = _der(octets)
    parts = split_list(der)
    try:
        head = x509.load_der_x509_crl(parts.head)
        issuer = _signer(head, parts, issuers)
        extensions = list(head.extensions)
    except (*UNREADABLE, x509.InvalidVersion, TypeError, OverflowError) as error:
        raise error if isinstance(error, ListError) else ListError("it cannot be read") from None
    for each in extensions:
        if each.critical and not isinstance(each.value, _UNDERSTOOD):
            raise ListError(f"it has an unknown critical extension ({each.oid.dotted_string})")
    this_update = _us(head.last_update_utc)
    if this_update > now + SKEW_US:
        raise ListError("it is not valid yet; check the clocks of both machines")
    if head.next_update_utc is None:
        raise ListError("it does not say when the next list follows (nextUpdate)")
    number = base = None
    freshest: tuple[str, ...] = ()
    scope = Scope()
    for value in (each.value for each in extensions):
        if isinstance(value, x509.CRLNumber):
            number = value.crl_number
        elif isinstance(value, x509.DeltaCRLIndicator):
            base = value.crl_number
        elif isinstance(value, x509.FreshestCRL):
            freshest = _addresses(value)
        elif isinstance(value, x509.IssuingDistributionPoint):
            scope = _scope(value)
    if any(each is not None and not 0 <= each < 1 << 8 * SERIAL for each in (number, base)):
        raise ListError(f"its number is negative or has more than {SERIAL} octets")
    return RevocationList(
        key_hash(issuer),
        number,
        base,
        this_update,
        _us(head.next_update_utc),
        scope,
        freshest,
        len(der),
        hashlib.sha256(der).digest(),
        Entries.of(pull_entries(parts.entries), len(parts.entries) // (2 * _MIN_ENTRY_SIZE)),
    )


def _der(octets: bytes) -> bytes:
    if len(octets) > MAX_LIST:
        raise ListError(f"it has more than {MAX_LIST // 1024 // 1024} MiB")
    if not octets.lstrip()[: len(_PEM)].startswith(_PEM):
        return octets
    if len(octets) > _MAX_PEM_SIZE:
        raise ListError("it is too large for PEM: publish it in DER")
    inside = octets.strip().removeprefix(_PEM).removesuffix(_PEM_END)
    try:
        return binascii.a2b_base64(b"".join(inside.split()), strict_mode=True)
    except ValueError:
        raise ListError("it is not a certificate revocation list in PEM") from None


def _signer(
    head: x509.CertificateRevocationList, parts: ListParts, issuers: tuple[x509.Certificate, ...]
) -> x509.Certificate:
    """Return the certificate whose key has signed a list. Raises ListError."""
    named = [each for each in issuers if is_named(each, parts.issuer, lambda: head.issuer)]
    if not named:
        is_short = len(parts.issuer) <= _MAX_NAME_SIZE
        name = head.issuer.rfc4514_string()[:200] if is_short else f"a name of {len(parts.issuer)} octets"
        raise ListError(f"its issuer is not a certificate of this authority: {name}")
    for each in named:
        if may_sign_lists(each) and _has_signed(each, head, parts.signed):
            return each
    raise ListError("it is not signed by its issuer's key")


def is_named(certificate: x509.Certificate, name: bytes, read: Callable[[], x509.Name]) -> bool:
    """Return whether a certificate has a name, which was not signed by the certificate yet.

    name: the name in DER. read: returns the same name. Making its object takes long, so only a short name is read,
    because some programs write a name with other types of strings.
    """
    return certificate.subject.public_bytes() == name or (len(name) <= _MAX_NAME_SIZE and certificate.subject == read())


def may_sign_lists(certificate: x509.Certificate) -> bool:
    """Return whether an authority's certificate allows it to sign revocation lists."""
    try:
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.crl_sign
    except x509.ExtensionNotFound:
        return True
    except UNREADABLE:
        return False


def _has_signed(issuer: x509.Certificate, head: x509.CertificateRevocationList, signed: memoryview) -> bool:
    algorithm = head.signature_hash_algorithm
    key = issuer.public_key()
    try:
        if algorithm is None:
            if len(signed) > _MAX_UNHASHED_SIZE or not isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
                return False
            key.verify(head.signature, bytes(signed))
            return True
        if algorithm.name not in HASHES:
            raise ListError(f"it is signed with a weak hash ({algorithm.name})")
        digest = hashlib.new(algorithm.name, signed).digest()  # releases the interpreter lock
        verify_digest(key, head.signature, digest, algorithm, head.signature_algorithm_parameters)
    except (InvalidSignature, UnsupportedAlgorithm, TypeError):
        return False
    return True


def verify_digest(
    key: object, signature: bytes, digest: bytes, algorithm: hashes.HashAlgorithm, parameters: object
) -> None:
    """Verify the signature of a hash by an RSA or ECDSA key. Raises InvalidSignature, UnsupportedAlgorithm.

    parameters: the parameters of the signature's algorithm, as `cryptography` returns them.
    """
    if isinstance(key, rsa.RSAPublicKey) and isinstance(parameters, padding.PKCS1v15 | padding.PSS):
        key.verify(signature, digest, parameters, Prehashed(algorithm))
    elif isinstance(key, ec.EllipticCurvePublicKey) and isinstance(parameters, ec.ECDSA):
        key.verify(signature, digest, ec.ECDSA(Prehashed(algorithm)))
    else:
        raise InvalidSignature


def _scope(point: x509.IssuingDistributionPoint) -> Scope:
    if point.indirect_crl:
        raise ListError("it is an indirect list, with certificates of other issuers")
    if point.only_some_reasons is not None:
        raise ListError("it has revocations for some reasons only")
    if point.only_contains_attribute_certs:
        raise ListError("it is about attribute certificates only")
    if point.relative_name is not None:
        raise ListError("its distribution point is a relative name")
    names = frozenset(map(_general, point.full_name or ()))
    return Scope(not point.only_contains_ca_certs, not point.only_contains_user_certs, names)


def _general(name: x509.GeneralName) -> str:
    return str(name.value) if isinstance(name, x509.UniformResourceIdentifier) else repr(name)


def is_authority(certificate: x509.Certificate) -> bool:
    """Return whether a certificate is one of an authority (BasicConstraints)."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except UNREADABLE:
        return False
    except x509.ExtensionNotFound:
        return False


def distribution_points(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the addresses at which a certificate says that its revocation list is, at most four, of any scheme. Points
    of other issuers and of some reasons only are left out."""
    try:
        return _addresses(certificate.extensions.get_extension_for_class(x509.CRLDistributionPoints).value)
    except (x509.ExtensionNotFound, *UNREADABLE):
        return ()


def delta_points(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the addresses of the delta list that a certificate names (FreshestCRL)."""
    try:
        return _addresses(certificate.extensions.get_extension_for_class(x509.FreshestCRL).value)
    except (x509.ExtensionNotFound, *UNREADABLE):
        return ()


def responder_of(certificate: x509.Certificate) -> str:
    """Return the address of the OCSP responder that a certificate names, or an empty text."""
    try:
        access = certificate.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
    except (x509.ExtensionNotFound, *UNREADABLE):
        return ""
    for each in access:
        is_http = isinstance(each.access_location, x509.UniformResourceIdentifier)
        if is_http and each.access_method == AuthorityInformationAccessOID.OCSP:
            return str(each.access_location.value)
    return ""


def _addresses(points: x509.CRLDistributionPoints | x509.FreshestCRL) -> tuple[str, ...]:
    found = [
        str(name.value)
        for point in points
        if point.crl_issuer is None and point.reasons is None
        for name in point.full_name or ()
        if isinstance(name, x509.UniformResourceIdentifier)
    ]
    return tuple(dict.fromkeys(found))[:_MAX_ADDRESSES]


def _us(at: datetime) -> int:
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * SECOND
