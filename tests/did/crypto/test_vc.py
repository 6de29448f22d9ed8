"""Credentials and presentations as tokens: what holds, and each way in which one does not."""

import pytest

from sallyport.base.clock import SECOND
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON
from sallyport.did.crypto import jws, vc
from sallyport.did.crypto.documents import Document, Method, did_of, of_methods, resolve
from sallyport.did.crypto.jws import Signer
from tests.did.crypto.signers import HOLDER, ISSUERS, NOW, credential, did, signer

ISSUER = ISSUERS["Ed25519"]
VERIFIER = "did:web:verifier.test"
DAY = 86_400 * SECOND


def verified(text: str, issuer: Document | None = None, now: int = NOW) -> vc.Credential:
    """A credential's token, by its own issuer unless another is given."""
    token = jws.parse(text)
    return vc.verify(token, issuer or resolve(did_of(token.key_id)), now)


def refused(text: str, issuer: Document | None = None, now: int = NOW) -> str:
    """Why a credential's token is refused."""
    with pytest.raises(CredentialError) as error:
        verified(text, issuer, now)
    return error.value.reason


def claimed(**changes: JSON) -> str:
    """A credential's token whose claims were changed, or (None) left out, before it was signed."""
    payload = {**jws.parse(vc.sign(credential(ISSUER), ISSUER)).payload, **changes}
    return jws.sign({name: value for name, value in payload.items() if value is not None}, ISSUER)


@pytest.mark.parametrize("name", ISSUERS)
def test_what_was_issued_holds(name: str) -> None:
    """A credential of each curve is verified, and the token has its claims."""
    document = credential(ISSUERS[name])
    text = vc.sign(document, ISSUERS[name])
    held = verified(text)
    assert held.document == document
    assert (held.issuer, held.subject, held.id) == (did(ISSUERS[name]), did(HOLDER), document["id"])
    payload = jws.parse(text).payload
    assert (payload["nbf"], payload["exp"]) == (1_767_225_600, 1_798_761_600)
    assert held.expires_at == 1_798_761_600 * SECOND


def test_an_issuer_may_be_an_object() -> None:
    """`issuer` as an object is identified by its id."""
    assert verified(claimed(vc=credential(ISSUER, issuer={"id": did(ISSUER), "name": "x"}))).issuer == did(ISSUER)


def test_what_a_document_leaves_to_the_claims() -> None:
    """did-jwt-vc takes what the claims say out of the document: the claims stand then."""
    document = credential(ISSUER)
    for member in ("issuer", "issuanceDate", "expirationDate", "id"):
        del document[member]
    held = verified(claimed(vc=document))
    assert (held.issuer, held.expires_at) == (did(ISSUER), 1_798_761_600 * SECOND)


def test_times() -> None:
    """Before it begins a credential is not valid yet, and with its last second it has expired."""
    text = vc.sign(credential(ISSUER), ISSUER)
    assert refused(text, now=NOW - SECOND) == "not_yet_valid"
    assert refused(text, now=1_798_761_600 * SECOND) == "expired"
    assert verified(text, now=1_798_761_599 * SECOND)


def test_another_key() -> None:
    """A changed payload, and a key that is not the issuer's, do not verify."""
    header, _, signature = vc.sign(credential(ISSUER), ISSUER).split(".")
    other = vc.sign(credential(ISSUER, id="urn:uuid:7f1bb1f1-9f5a-4c3e-8d6a-1f2f5a2a9c11"), ISSUER).split(".")[1]
    assert refused(f"{header}.{other}.{signature}") == "signature"
    forged = Signer(ISSUER.method_id, signer(9).key)
    assert refused(vc.sign(credential(ISSUER), forged)) == "signature"


def test_a_kid_of_another_did() -> None:
    """A signer with a key of its own is not the issuer that the credential names."""
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
def test_claims_that_differ_from_the_document(changes: dict[str, JSON], reason: str) -> None:
    """Claims and document say the same, or nothing holds."""
    assert refused(claimed(**changes)) == reason


def test_a_key_that_may_not_issue() -> None:
    """The method must be in assertionMethod."""
    only_logs_in = Method(ISSUER.method_id, ISSUER.key.public, frozenset({"authentication"}))
    assert refused(vc.sign(credential(ISSUER), ISSUER), of_methods(did(ISSUER), [only_logs_in])) == "issuer"


def presented(
    by: Signer = HOLDER, *, audience: str = VERIFIER, nonce: str = "n-1", now: int = NOW, **changes: JSON
) -> list[str]:
    """The tokens in a presentation made with these, changed, signed again, and verified for VERIFIER and n-1."""
    held = vc.sign(credential(ISSUER), ISSUER)
    text = vc.present([held], by, audience=audience, nonce=nonce, id="urn:uuid:p", now=NOW)
    payload = {**jws.parse(text).payload, **changes}
    token = jws.parse(jws.sign({name: value for name, value in payload.items() if value is not None}, by))
    return vc.verify_presentation(token, resolve(did(by)), audience=VERIFIER, nonce="n-1", now=now)


def test_what_was_presented_holds() -> None:
    """The credentials' tokens come out of it; its audience may be a list."""
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
def test_presentations_that_do_not_hold(changes: dict[str, JSON], reason: str) -> None:
    """Another audience, an old nonce, another time or holder, and no credentials are refused, each for its reason."""
    with pytest.raises(CredentialError) as error:
        presented(**changes)  # type: ignore[arg-type]
    assert error.value.reason == reason


def test_a_credential_is_no_presentation() -> None:
    """The issuer's own token proves nothing about who holds it."""
    token = jws.parse(vc.sign(credential(ISSUER), ISSUER))
    with pytest.raises(CredentialError):
        vc.verify_presentation(token, resolve(did(ISSUER)), audience=VERIFIER, nonce="n-1", now=NOW)


def test_a_clock_that_is_a_little_ahead() -> None:
    """A wallet's clock may be a minute ahead of ours."""
    assert presented(now=NOW - vc.LEEWAY)


def test_day_is_not_needed() -> None:
    """A credential without an end does not expire."""
    document = credential(ISSUER)
    del document["expirationDate"]
    assert verified(vc.sign(document, ISSUER), now=NOW + 36_500 * DAY).expires_at is None
