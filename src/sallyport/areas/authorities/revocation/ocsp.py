"""OCSP without input and output (RFC 6960, RFC 9654): requests about one certificate, and what a response says.

A response counts only if the certificate's issuer has signed it, or a responder whose certificate the same key has
issued for this purpose (id-kp-OCSPSigning). The issuer is known by its key. The hash of the request is SHA-1, which is
the one that all responders know (RFC 5019 section 2.1.1); it only names the certificate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID, SignatureAlgorithmOID

from sallyport.areas.authorities.revocation.entries import read_header
from sallyport.areas.authorities.revocation.lists import HASHES, SKEW_US, is_named, key_hash, verify_digest
from sallyport.areas.authorities.revocation.state import RevocationStatus
from sallyport.base.clock import SECOND, from_us
from sallyport.outgoing.pem import MAX_BITS

NONCE: Final = 32
"""Number of octets of a nonce (RFC 9654 section 2.1)."""
FRESH_US: Final = 3600 * SECOND
"""How old a response without a nonce, or without nextUpdate, may be, in microseconds."""
MAX_USE_US: Final = 3600 * SECOND
"""The longest time for which a response is used, in microseconds, so that a revocation is seen soon."""
MIN_USE_US: Final = 300 * SECOND
"""For how long a response without nextUpdate is used, and an answer that the certificate is unknown."""
MAX_RESPONSE: Final = 16 * 1024
_MAX_CERTIFICATES: Final = 4
_VERSION: Final = 0xA0
_BY_NAME: Final = 0xA1


class OcspError(ValueError):
    """The error for a response that cannot be used. The message says why."""


@dataclass(frozen=True, slots=True)
class OcspAnswer:
    """What a responder says about a certificate. this_update, until: microseconds. The answer may be used before
    `until`. is_hold: whether the certificate is only on hold, so that it can become good again."""

    status: RevocationStatus
    this_update: int
    until: int
    detail: str = ""
    is_hold: bool = False


@dataclass(frozen=True, slots=True)
class OcspQuestion:
    """A question about a certificate.

    serial: its serial number. issuer: its issuer in the verified chain. issuer_name: the name of the issuer in the
    certificate, in DER. nonce: the nonce of the request, or empty. is_revoked: whether the issuer's lists have a serial
    number, for the certificate of a responder.
    """

    serial: int
    issuer: x509.Certificate
    issuer_name: bytes
    nonce: bytes = b""
    is_revoked: Callable[[int], bool] = lambda _serial: False

    def request(self) -> bytes:
        """Return the request in DER."""
        name, key = (hashlib.sha1(each).digest() for each in (self.issuer_name, _key_bits(self.issuer)))
        builder = ocsp.OCSPRequestBuilder().add_certificate_by_hash(name, key, self.serial, hashes.SHA1())  # noqa: S303
        if self.nonce:
            builder = builder.add_extension(x509.OCSPNonce(self.nonce), critical=False)
        return builder.build().public_bytes(Encoding.DER)


def read_response(octets: bytes, question: OcspQuestion, now: int) -> OcspAnswer:
    """Return what a response says about the certificate of a question. Raises OcspError. Call it in a worker thread.

    now: microseconds.
    """
    try:
        return _read(octets, question, now)
    except OcspError:
        raise
    except Exception as error:  # a response of a tenant's responder must not end a task that serves all tenants
        raise OcspError("the response cannot be read") from error


def _read(octets: bytes, question: OcspQuestion, now: int) -> OcspAnswer:
    response = ocsp.load_der_ocsp_response(octets)
    if response.response_status is not ocsp.OCSPResponseStatus.SUCCESSFUL:
        raise OcspError(f"the responder answered {response.response_status.name.lower().replace('_', ' ')}")
    single = next((each for each in response.responses if _is_about(each, question)), None)
    if single is None:
        raise OcspError("the response is about another certificate")
    _check_signature(response, question, now)
    if any(each.critical and not isinstance(each.value, x509.OCSPNonce) for each in response.extensions):
        raise OcspError("the response has an unknown critical extension")
    this_update = _us(single.this_update_utc)
    next_update = None if single.next_update_utc is None else _us(single.next_update_utc)
    if this_update > now + SKEW_US:
        raise OcspError("the response is not valid yet; check the clocks of both machines")
    if next_update is not None and next_update <= now:
        raise OcspError(f"the response has expired: nextUpdate is {_shown(next_update)}")
    is_fresh = this_update > now - FRESH_US
    if next_update is None and not is_fresh:
        raise OcspError(f"the response is old and has no nextUpdate: thisUpdate is {_shown(this_update)}")
    if question.nonce and not _has_nonce(response, question.nonce) and not is_fresh:
        raise OcspError(f"the response has no nonce and is old: thisUpdate is {_shown(this_update)}")
    longest = now + MAX_USE_US
    until = now + MIN_USE_US if next_update is None else min(next_update, longest)
    status = single.certificate_status
    if status is ocsp.OCSPCertStatus.GOOD:
        return OcspAnswer(RevocationStatus.GOOD, this_update, until)
    if status is ocsp.OCSPCertStatus.REVOKED:
        reason = single.revocation_reason
        since = single.revocation_time_utc
        detail = f"since {since:%Y-%m-%d %H:%M} UTC" if since else ""
        is_hold = reason is x509.ReasonFlags.certificate_hold
        return OcspAnswer(RevocationStatus.REVOKED, this_update, until, f"{detail}{_in_words(reason)}", is_hold)
    return OcspAnswer(RevocationStatus.UNKNOWN, this_update, min(until, now + MIN_USE_US))


def _in_words(reason: x509.ReasonFlags | None) -> str:
    return "" if reason is None else f" ({reason.value})"


def _is_about(single: ocsp.OCSPSingleResponse, question: OcspQuestion) -> bool:
    """Return whether a single response has the certificate's identifier: the number, and the hashes of the issuer's
    name and key (RFC 6960 section 4.1.1)."""
    if single.serial_number != question.serial:
        return False
    name = hashlib.new(single.hash_algorithm.name, question.issuer_name).digest()
    key = hashlib.new(single.hash_algorithm.name, _key_bits(question.issuer)).digest()
    return name == single.issuer_name_hash and key == single.issuer_key_hash


def _key_bits(certificate: x509.Certificate) -> bytes:
    """Return the octets of the BIT STRING in a certificate's key, without its count of unused bits."""
    octets = memoryview(certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    _, start, _ = read_header(octets, 0)
    _, _, algorithm_end = read_header(octets, start)
    _, bits, end = read_header(octets, algorithm_end)
    return bytes(octets[bits + 1 : end])


def _has_nonce(response: ocsp.OCSPResponse, nonce: bytes) -> bool:
    """Return whether a response has the nonce of its request. Return False if it has none. Raises OcspError if it has
    another one."""
    try:
        found = response.extensions.get_extension_for_class(x509.OCSPNonce).value.nonce
    except x509.ExtensionNotFound:
        return False
    if found != nonce:
        raise OcspError("the response has the nonce of another request")
    return True


def _check_signature(response: ocsp.OCSPResponse, question: OcspQuestion, now: int) -> None:
    algorithm = response.signature_hash_algorithm
    if algorithm is not None and algorithm.name not in HASHES:
        raise OcspError(f"the response is signed with a weak hash ({algorithm.name})")
    is_delegated = False
    for signer in (question.issuer, *_delegates(response, question, now)):
        if _names(response, signer):
            if _has_signed(response, signer):
                return
            is_delegated = True
    if is_delegated:
        raise OcspError("the response is not signed by its responder's key")
    raise OcspError("the responder is neither the issuer, nor has it a valid certificate of the issuer for OCSP")


def _delegates(response: ocsp.OCSPResponse, question: OcspQuestion, now: int) -> Iterator[x509.Certificate]:
    """Yield the certificates in a response that the issuer has issued for responders (RFC 6960 section 4.2.2.2)."""
    at, issuer = from_us(now), question.issuer
    for each in response.certificates[:_MAX_CERTIFICATES]:
        if key_hash(each) == key_hash(issuer) or not each.not_valid_before_utc <= at <= each.not_valid_after_utc:
            continue
        if _may_respond(each) and _is_short(each):
            try:
                each.verify_directly_issued_by(issuer)
            except (InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm):
                continue
            algorithm = each.signature_hash_algorithm
            if (algorithm is None or algorithm.name in HASHES) and not question.is_revoked(each.serial_number):
                yield each


def _may_respond(certificate: x509.Certificate) -> bool:
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    return ExtendedKeyUsageOID.OCSP_SIGNING in usages


def _is_short(certificate: x509.Certificate) -> bool:
    """Return whether a key is short enough to verify a signature quickly."""
    key = certificate.public_key()
    return not isinstance(key, rsa.RSAPublicKey) or (key.key_size <= MAX_BITS and key.public_numbers().e < 1 << 32)


def _names(response: ocsp.OCSPResponse, signer: x509.Certificate) -> bool:
    """Return whether a response names a certificate as its responder, by name or by key."""
    if response.responder_key_hash is not None:
        return response.responder_key_hash == hashlib.sha1(_key_bits(signer), usedforsecurity=False).digest()
    return is_named(signer, _responder_name(response), lambda: response.responder_name or x509.Name([]))


def _responder_name(response: ocsp.OCSPResponse) -> bytes:
    """Return the name of a responder in DER, or nothing if the response has none (RFC 6960 section 4.2.1)."""
    octets = memoryview(response.tbs_response_bytes)
    _, at, _ = read_header(octets, 0)
    tag, start, end = read_header(octets, at)
    if tag == _VERSION:
        tag, start, end = read_header(octets, end)
    return bytes(octets[start:end]) if tag == _BY_NAME else b""


def _has_signed(response: ocsp.OCSPResponse, signer: x509.Certificate) -> bool:
    key, algorithm, signed = signer.public_key(), response.signature_hash_algorithm, response.tbs_response_bytes
    try:
        if algorithm is None:
            if not isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
                return False
            key.verify(response.signature, signed)
            return True
        digest = hashlib.new(algorithm.name, signed).digest()
        verify_digest(key, response.signature, digest, algorithm, _parameters(response, key))
    except InvalidSignature:
        return False
    return True


def _parameters(response: ocsp.OCSPResponse, key: object) -> object:
    """Return the parameters of a response's signature."""
    if isinstance(key, ec.EllipticCurvePublicKey):
        return ec.ECDSA(response.signature_hash_algorithm)  # type: ignore[arg-type]
    return padding.PKCS1v15() if response.signature_algorithm_oid in _PKCS1 else None


_PKCS1: Final = frozenset(
    {
        SignatureAlgorithmOID.RSA_WITH_SHA256,
        SignatureAlgorithmOID.RSA_WITH_SHA384,
        SignatureAlgorithmOID.RSA_WITH_SHA512,
    }
)


def _us(at: datetime) -> int:
    return round(at.timestamp()) * SECOND


def _shown(at: int) -> str:
    return f"{from_us(at):%Y-%m-%d %H:%M} UTC"
