"""Tests of OCSP: requests, and which responses count."""

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.authorities.revocation.ocsp import (
    FRESH_US,
    MAX_RESPONSE,
    MAX_USE_US,
    MIN_USE_US,
    OcspAnswer,
    OcspError,
    OcspQuestion,
    _responder_name,
    read_response,
)
from sallyport.areas.authorities.revocation.state import RevocationStatus
from sallyport.base.clock import SECOND
from tests.areas import SetClock
from tests.areas.authorities.revocation.issuer import DAY, NOW, Issuer, nonce_of

CA = Issuer.new()
TWIN = Issuer.new()
CERTIFICATE = CA.issue()
US = SetClock().now
REVOKED, UNKNOWN = ocsp.OCSPCertStatus.REVOKED, ocsp.OCSPCertStatus.UNKNOWN
NONCE = bytes(range(32))
COMMON = x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")


def read(octets: bytes, nonce: bytes = b"", certificate: x509.Certificate = CERTIFICATE) -> OcspAnswer:
    """Return what a response says about a certificate of the authority of the tests."""
    return read_response(octets, question(nonce, certificate), US)


def question(nonce: bytes = b"", certificate: x509.Certificate = CERTIFICATE) -> OcspQuestion:
    """Return the question about a certificate of the authority of the tests."""
    return OcspQuestion(certificate.serial_number, CA.certificate, certificate.issuer.public_bytes(), nonce)


def test_the_issuer_answers() -> None:
    """A response of the issuer counts until its nextUpdate, but no longer than an hour."""
    soon = timedelta(minutes=10)
    assert read(CA.answer(CERTIFICATE, CA)) == OcspAnswer(RevocationStatus.GOOD, US, US + MAX_USE_US)
    assert read(CA.answer(CERTIFICATE, CA, until=NOW + soon)).until == US + 600 * SECOND
    revoked = read(CA.answer(CERTIFICATE, CA, REVOKED))
    assert revoked.status is RevocationStatus.REVOKED
    assert revoked.detail == "since 2026-01-01 00:00 UTC (keyCompromise)"
    unknown = read(CA.answer(CERTIFICATE, CA, UNKNOWN))
    assert (unknown.status, unknown.until) == (RevocationStatus.UNKNOWN, US + MIN_USE_US)


def test_a_responder_of_the_issuer_answers() -> None:
    """A responder whose certificate the issuer has issued for OCSP counts as the issuer does."""
    assert read(CA.responder().answer(CERTIFICATE, CA, REVOKED)).status is RevocationStatus.REVOKED


def test_a_response_without_next_update_counts_if_it_is_fresh() -> None:
    """Without nextUpdate, a response counts for five minutes, and not at all if it is an hour old."""
    assert read(CA.answer(CERTIFICATE, CA, until=None)).until == US + MIN_USE_US
    with pytest.raises(OcspError, match="old and has no nextUpdate"):
        read(CA.answer(CERTIFICATE, CA, since=NOW - timedelta(microseconds=FRESH_US), until=None))


def test_the_nonce_of_the_request_comes_back() -> None:
    """A response with the request's nonce counts. One without a nonce counts if it is fresh. One with another nonce is
    refused."""
    old = NOW - timedelta(hours=2)
    assert read(CA.answer(CERTIFICATE, CA, nonce=NONCE, since=old), NONCE).status is RevocationStatus.GOOD
    assert read(CA.answer(CERTIFICATE, CA), NONCE).status is RevocationStatus.GOOD
    with pytest.raises(OcspError, match="no nonce and is old"):
        read(CA.answer(CERTIFICATE, CA, since=old), NONCE)
    with pytest.raises(OcspError, match="nonce of another request"):
        read(CA.answer(CERTIFICATE, CA, nonce=NONCE[::-1]), NONCE)


def test_a_request_names_the_certificate_and_has_the_nonce() -> None:
    """A request has the certificate's number, and a nonce only if there is one."""
    request = question(NONCE).request()
    assert ocsp.load_der_ocsp_request(request).serial_number == CERTIFICATE.serial_number
    assert nonce_of(request) == NONCE
    assert nonce_of(question().request()) == b""


OTHER = CA.issue("bob")
OF_TWIN = TWIN.issue(serial=CERTIFICATE.serial_number)
REFUSED = {
    "an expired one": (CA.answer(CERTIFICATE, CA, since=NOW - 2 * DAY, until=NOW - DAY), "has expired: nextUpdate"),
    "one from the future": (CA.answer(CERTIFICATE, CA, since=NOW + DAY, until=NOW + 2 * DAY), "not valid yet"),
    "one about another certificate": (CA.answer(OTHER, CA), "about another certificate"),
    "one about the same number of another issuer": (TWIN.answer(OF_TWIN, TWIN), "about another certificate"),
    "an authority of the same name": (TWIN.answer(CERTIFICATE, CA), "neither the issuer"),
    "a foreign responder": (TWIN.responder().answer(CERTIFICATE, CA), "neither the issuer"),
    "a client's certificate": (CA.responder(usage=False).answer(CERTIFICATE, CA), "neither the issuer"),
    "a responder that has expired": (CA.responder(until=NOW - DAY).answer(CERTIFICATE, CA), "neither the issuer"),
    "a responder without its certificate": (
        CA.responder().answer(CERTIFICATE, CA, with_certificate=False),
        "neither the issuer",
    ),
    "a short hash": (CA.answer(CERTIFICATE, CA, algorithm=hashes.SHA224()), "weak hash"),
    "try later": (
        ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.TRY_LATER).public_bytes(Encoding.DER),
        "answered try later",
    ),
    "a page": (b"<html>", "cannot be read"),
}


@pytest.mark.parametrize(("octets", "why"), REFUSED.values(), ids=REFUSED)
def test_a_response_is_refused(octets: bytes, why: str) -> None:
    """A response that does not count is refused with the reason."""
    with pytest.raises(OcspError, match=why):
        read(octets)


def test_a_revoked_responder_is_refused() -> None:
    """A responder whose certificate is on the issuer's list does not count."""
    responder = CA.responder()
    revoked = responder.certificate.serial_number
    asked = replace(question(), is_revoked=lambda serial: serial == revoked)
    with pytest.raises(OcspError, match="neither the issuer"):
        read_response(responder.answer(CERTIFICATE, CA), asked, US)


ANSWER = CA.responder().answer(CERTIFICATE, CA, nonce=NONCE)


@given(at=st.integers(0, 2000), octet=st.integers(0, 255))
def test_a_response_with_any_changed_octet_is_refused_or_the_same(at: int, octet: int) -> None:
    """No changed octet makes a response say something else."""
    octets = bytearray(ANSWER)
    octets[at % len(octets)] = octet
    try:
        found = read(bytes(octets), NONCE)
    except OcspError:
        return
    assert found == read(ANSWER, NONCE)


def test_a_responder_is_known_by_the_octets_of_its_name() -> None:
    """A response that names its responder counts; the name is found without reading it. A long one is not read."""
    for signer in (CA, CA.client(x509.Name([COMMON] * 1000))):
        single = (CERTIFICATE, CA.certificate, hashes.SHA1(), ocsp.OCSPCertStatus.GOOD)  # noqa: S303
        builder = ocsp.OCSPResponseBuilder().add_response(*single, NOW, NOW + DAY, None, None)
        builder = builder.responder_id(ocsp.OCSPResponderEncoding.NAME, signer.certificate)
        response = builder.sign(signer.key, hashes.SHA256())
        assert _responder_name(response) == signer.certificate.subject.public_bytes()
        if signer is CA:
            assert read(response.public_bytes(Encoding.DER)).status is RevocationStatus.GOOD
        else:
            with pytest.raises(OcspError, match="neither the issuer"):
                read(response.public_bytes(Encoding.DER))
    assert MAX_RESPONSE == 16_384
