"""Credentials and presentations as JWTs: valid ones, and each reason to refuse one."""

import pytest

from sallyport.areas.did.crypto import jws, vc
from sallyport.areas.did.crypto.documents import Document, Method, did_of, of_methods, resolve
from sallyport.areas.did.crypto.jws import Signer
from sallyport.base.clock import SECOND
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON
from tests.areas.did.crypto.signers import HOLDER, ISSUERS, NOW, credential, did, signer

ISSUER = ISSUERS["Ed25519"]
VERIFIER = "did:web:verifier.test"
DAY = 86_400 * SECOND


def verified(text: str, issuer: Document | None = None, now: int = NOW) -> vc.Credential:
    """Verify the token of a credential. By default the DID document is that of its issuer."""
    token = jws.parse(text)
    return vc.verify(token, issuer or resolve(did_of(token.key_id)), now)


def refused(text: str, issuer: Document | None = None, now: int = NOW) -> str:
    """Return the reason for which the token of a credential is refused."""
    with pytest.raises(CredentialError) as error:
        verified(text, issuer, now)
    return error.value.reason


def claimed(**changes: JSON) -> str:
    """Return the token of a credential. The given claims are changed before it is signed; a claim whose value is None
    is left out.
    """
    payload = {**jws.parse(vc.sign(credential(ISSUER), ISSUER)).payload, **changes}
    return jws.sign({name: value for name, value in payload.items() if value is not None}, ISSUER)


@pytest.mark.parametrize("name", ISSUERS)
def test_an_issued_credential_is_verified(name: str) -> None:
    """A credential of each curve verifies, and the result has the claims of its token."""
    document = credential(ISSUERS[name])
    text = vc.sign(document, ISSUERS[name])
    held = verified(text)
    assert held.document == document
    assert (held.issuer, held.subject, held.id) == (did(ISSUERS[name]), did(HOLDER), document["id"])
    payload = jws.parse(text).payload
    assert (payload["nbf"], payload["exp"]) == (1_767_225_600, 1_798_761_600)
    assert held.expires_at == 1_798_761_600 * SECOND


def test_an_issuer_may_be_an_object() -> None:
    """If `issuer` is an object, its id identifies the issuer."""
    assert verified(claimed(vc=credential(ISSUER, issuer={"id": did(ISSUER), "name": "x"}))).issuer == did(ISSUER)


def test_claims_may_be_missing_in_the_document() -> None:
    """The document may lack what the registered claims contain, because some libraries, such as did-jwt-vc, remove
    it.
    """
    document = credential(ISSUER)
    for member in ("issuer", "issuanceDate", "expirationDate", "id"):
        del document[member]
    held = verified(claimed(vc=document))
    assert (held.issuer, held.expires_at) == (did(ISSUER), 1_798_761_600 * SECOND)


def test_a_credential_is_valid_between_its_times() -> None:
    """A credential is not valid before its start, and it has expired after its last second."""
    text = vc.sign(credential(ISSUER), ISSUER)
    assert refused(text, now=NOW - SECOND) == "not_yet_valid"
    assert refused(text, now=1_798_761_600 * SECOND) == "expired"
    assert verified(text, now=1_798_761_599 * SECOND)


def test_a_wrong_signature_is_refused() -> None:
    """A token with a changed payload, or with a signature of another key than the issuer's, does not verify."""
    header, _, signature = vc.sign(credential(ISSUER), ISSUER).split(".")
    other = vc.sign(credential(ISSUER, id="urn:uuid:7f1bb1f1-9f5a-4c3e-8d6a-1f2f5a2a9c11"), ISSUER).split(".")[1]
    assert refused(f"{header}.{other}.{signature}") == "signature"
    forged = Signer(ISSUER.method_id, signer(9).key)
    assert refused(vc.sign(credential(ISSUER), forged)) == "signature"


def test_a_key_of_another_did_is_refused() -> None:
    """The token must be signed by the issuer that the credential names."""
    assert refused(vc.sign(credential(ISSUER), HOLDER)) == "issuer"
    assert refused(vc.sign(credential(ISSUER), HOLDER), resolve(did(ISSUER))) == "issuer"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": did(HOLDER)}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"vc": credential(ISSUER, issuer=did(HOLDER))}, "issuer"),
        ({"vc": credential(ISSUER, issuer={"id": did(HOLDER)})}, "issuer"),
        ({"sub": did(ISSUER)}, "claims"),
        ({"sub": None}, "claims"),
        ({"jti": "urn:uuid:another"}, "claims"),
        ({"jti": None}, "claims"),
        ({"exp": 1_798_761_601}, "claims"),
        ({"exp": None}, "claims"),
        ({"exp": "1798761600"}, "claims"),
        ({"exp": True}, "claims"),
        ({"exp": 1 << 60}, "claims"),
        ({"nbf": 0}, "claims"),
        ({"nbf": None}, "claims"),
        ({"vc": credential(ISSUER, expirationDate="soon")}, "claims"),
        ({"vc": None}, "malformed"),
        ({"vc": "text"}, "malformed"),
        ({"vc": credential(ISSUER, type=["Other"])}, "malformed"),
        ({"vc": credential(ISSUER, credentialSubject=[])}, "malformed"),
    ],
)
def test_claims_that_contradict_the_document_are_refused(changes: dict[str, JSON], reason: str) -> None:
    assert refused(claimed(**changes)) == reason


def test_a_key_without_assertion_method_is_refused() -> None:
    only_logs_in = Method(ISSUER.method_id, ISSUER.key.public, frozenset({"authentication"}))
    assert refused(vc.sign(credential(ISSUER), ISSUER), of_methods(did(ISSUER), [only_logs_in])) == "issuer"


def presented(
    by: Signer = HOLDER, *, audience: str = VERIFIER, nonce: str = "n-1", now: int = NOW, **changes: JSON
) -> list[str]:
    """Return the tokens in a presentation for VERIFIER with nonce n-1. The given claims are changed before the
    presentation is signed and verified.
    """
    held = vc.sign(credential(ISSUER), ISSUER)
    text = vc.present([held], by, audience=audience, nonce=nonce, id="urn:uuid:p", now=NOW)
    payload = {**jws.parse(text).payload, **changes}
    token = jws.parse(jws.sign({name: value for name, value in payload.items() if value is not None}, by))
    return vc.verify_presentation(token, resolve(did(by)), audience=VERIFIER, nonce="n-1", now=now)


def test_a_valid_presentation_is_accepted() -> None:
    """The result has the tokens of the presented credentials. The audience may be a list."""
    (token,) = presented()
    assert verified(token).subject == did(HOLDER)
    assert presented(aud=["did:web:other.test", VERIFIER]) == [token]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"audience": "did:web:other.test"}, "audience"),
        ({"aud": None}, "audience"),
        ({"nonce": "n-0"}, "nonce"),
        ({"now": NOW + vc.LIFETIME}, "expired"),
        ({"now": NOW - vc.LEEWAY - SECOND}, "not_yet_valid"),
        ({"exp": None}, "claims"),
        ({"iss": did(ISSUER)}, "holder"),
        ({"iss": None}, "holder"),
        ({"vp": {"type": ["VerifiablePresentation"], "holder": did(ISSUER), "verifiableCredential": ["a"]}}, "holder"),
        ({"vp": {"type": ["VerifiablePresentation"], "verifiableCredential": []}}, "malformed"),
        ({"vp": {"type": ["VerifiablePresentation"], "verifiableCredential": ["a"] * 17}}, "malformed"),
        ({"vp": {"type": ["VerifiablePresentation"], "verifiableCredential": [{}]}}, "malformed"),
        ({"vp": {"type": ["VerifiablePresentation"]}}, "malformed"),
        ({"vp": {"type": ["VerifiableCredential"], "verifiableCredential": ["a"]}}, "malformed"),
        ({"vp": None}, "malformed"),
    ],
)
def test_an_unsuitable_presentation_is_refused(changes: dict[str, JSON], reason: str) -> None:
    """A presentation with another audience, nonce, time or holder, or without credentials, is refused. Each case has a
    reason of its own.
    """
    with pytest.raises(CredentialError) as error:
        presented(**changes)  # type: ignore[arg-type]
    assert error.value.reason == reason


def test_a_credential_is_not_accepted_as_a_presentation() -> None:
    """The token of a credential is not accepted as a presentation, because it does not prove who holds the
    credential.
    """
    token = jws.parse(vc.sign(credential(ISSUER), ISSUER))
    with pytest.raises(CredentialError):
        vc.verify_presentation(token, resolve(did(ISSUER)), audience=VERIFIER, nonce="n-1", now=NOW)


def test_a_clock_skew_of_a_minute_is_accepted() -> None:
    """A presentation from a wallet whose clock is up to a minute ahead of the service's clock is accepted."""
    assert presented(now=NOW - vc.LEEWAY)


def test_a_credential_without_an_end_does_not_expire() -> None:
    document = credential(ISSUER)
    del document["expirationDate"]
    assert verified(vc.sign(document, ISSUER), now=NOW + 36_500 * DAY).expires_at is None
