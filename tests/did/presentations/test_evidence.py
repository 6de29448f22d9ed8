"""The credential that a presentation proves, for each form of presentation, and presentations that are invalid."""

from collections.abc import Callable

import pytest

from sallyport.base.clock import SECOND, iso_seconds
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON
from sallyport.did.crypto import jws, proofs, vc
from sallyport.did.crypto.documents import ASSERTION, AUTHENTICATION, resolve
from sallyport.did.crypto.jws import Signer
from sallyport.did.presentations.evidence import Binding, ShownCredential, read
from tests.did.crypto.signers import HOLDER, ISSUERS, NOW, credential, did, signer

ISSUER = ISSUERS["Ed25519"]
VERIFIER = did(ISSUER)
NONCE = "a nonce of this request"
ASKED = Binding(resolve(did(HOLDER)), VERIFIER, NONCE)
DOCUMENT = credential(ISSUER)
TOKEN = vc.sign(DOCUMENT, ISSUER)
MALLORY = signer(9)
Presentation = str | dict[str, JSON]


def token(
    by: Signer = HOLDER,
    held: tuple[str, ...] = (TOKEN,),
    *,
    audience: str = VERIFIER,
    nonce: str = NONCE,
    at: int = NOW,
) -> str:
    """Return a VP-JWT."""
    return vc.present(held, by, audience=audience, nonce=nonce, id="urn:uuid:p", now=at)


def proven(
    document: dict[str, JSON],
    by: Signer = HOLDER,
    *,
    purpose: str = AUTHENTICATION,
    challenge: str = NONCE,
    domain: str = VERIFIER,
) -> dict[str, JSON]:
    """Return the document with a proof added."""
    return proofs.sign(document, by, purpose=purpose, at=NOW, challenge=challenge, domain=domain)


def held(credential: JSON, **more: JSON) -> dict[str, JSON]:
    """Return a presentation document that contains a credential."""
    return {"@context": [vc.CONTEXT], "type": [vc.PRESENTATION], "verifiableCredential": credential, **more}


def tokened(jws: str, **more: JSON) -> dict[str, JSON]:
    """Return the document of the credential with a proof that has the fields of the HTTP interface."""
    proof: dict[str, JSON] = {
        "type": "JsonWebSignature2020",
        "created": iso_seconds(NOW),
        "jws": jws,
        "proofPurpose": AUTHENTICATION,
        "verificationMethod": HOLDER.method_id,
    }
    return {**DOCUMENT, "proof": {**proof, **more}}


def refused(presentation: Presentation, at: int = NOW) -> str:
    """Return the reason for which a presentation is refused."""
    with pytest.raises(CredentialError) as error:
        read(presentation, ASKED, at)
    return error.value.reason


def beside_the_issuers(document: dict[str, JSON]) -> dict[str, JSON]:
    """Return a document that has the proof of the holder and the proof of the issuer."""
    issuers = proofs.sign(DOCUMENT, ISSUER, purpose=ASSERTION, at=NOW)
    return {**document, "proof": [issuers["proof"], document["proof"]]}


@pytest.mark.parametrize(
    ("presentation", "shown"),
    [
        (token(), ShownCredential(TOKEN)),
        (
            {"type": ["VerifiablePresentation"], "proof": {"type": "JwtProof2020", "jwt": token()}},
            ShownCredential(TOKEN),
        ),
        (tokened(token()), ShownCredential(TOKEN)),
        (proven(DOCUMENT), ShownCredential(document=DOCUMENT)),
        (beside_the_issuers(proven(DOCUMENT)), ShownCredential(document=DOCUMENT)),
        (proven(held(TOKEN)), ShownCredential(TOKEN)),
        (proven(held([TOKEN], holder=did(HOLDER))), ShownCredential(TOKEN)),
        (proven(held(proofs.sign(DOCUMENT, ISSUER, purpose=ASSERTION, at=NOW))), ShownCredential(document=DOCUMENT)),
    ],
    ids=["token", "JwtProof2020", "jws", "document", "two proofs", "presentation", "its list", "its document"],
)
def test_each_form_of_presentation_is_read(presentation: Presentation, shown: ShownCredential) -> None:
    """The result has the credential and the ID of the credential."""
    found = read(presentation, ASKED, NOW)
    assert found == shown
    assert found.credential_id == DOCUMENT["id"]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: token(MALLORY), "issuer"),
        (lambda: token(nonce="another nonce"), "nonce"),
        (lambda: token(nonce=""), "nonce"),
        (lambda: token(audience="did:web:elsewhere.test"), "audience"),
        (lambda: token(at=NOW - 3600 * SECOND), "expired"),
        (lambda: token(at=NOW + 3600 * SECOND), "not_yet_valid"),
        (lambda: token(held=(TOKEN, TOKEN)), "malformed"),
        (lambda: tokened(token(MALLORY)), "issuer"),
        (lambda: tokened(token(nonce="another nonce")), "nonce"),
        (lambda: tokened(token(audience="did:web:elsewhere.test")), "audience"),
        (lambda: tokened(TOKEN), "issuer"),
        (lambda: tokened(token(), proofPurpose=ASSERTION), "holder"),
        (lambda: proven(DOCUMENT, MALLORY), "issuer"),
        (lambda: proven(DOCUMENT, challenge="another nonce"), "nonce"),
        (lambda: proven(DOCUMENT, challenge=""), "nonce"),
        (lambda: proven(DOCUMENT, domain="did:web:elsewhere.test"), "audience"),
        (lambda: proven(DOCUMENT, purpose="capabilityInvocation"), "issuer"),
        (lambda: proofs.sign(DOCUMENT, ISSUER, purpose=ASSERTION, at=NOW), "holder"),
        (lambda: proven(DOCUMENT, purpose=ASSERTION), "holder"),
        (lambda: {**proven(DOCUMENT), "issuer": did(MALLORY)}, "signature"),
        (lambda: proven(held(TOKEN, holder=did(MALLORY))), "holder"),
        (lambda: proven(held([TOKEN, TOKEN])), "malformed"),
        (lambda: proven(held([])), "malformed"),
        (lambda: proven(held(7)), "malformed"),
        (lambda: proven({"type": ["Something"]}), "malformed"),
        (lambda: DOCUMENT, "holder"),
        (lambda: {**DOCUMENT, "proof": [proven(DOCUMENT)["proof"]] * 2}, "holder"),
        (lambda: {**DOCUMENT, "proof": "x"}, "holder"),
        (lambda: {**DOCUMENT, "proof": {"type": "DataIntegrityProof", "cryptosuite": ["eddsa-jcs-2022"]}}, "malformed"),
        (lambda: {**DOCUMENT, "proof": {"type": "DataIntegrityProof", "cryptosuite": {}}}, "malformed"),
        (lambda: {**proven(DOCUMENT), "extra": 10**400}, "malformed"),
        (lambda: {"proof": {"jwt": "a.b.c"}}, "malformed"),
        (lambda: proven({**DOCUMENT, "more": "x" * (64 << 10)}), "malformed"),
        (lambda: token(held=("x" * (64 << 10),)), "malformed"),
        (lambda: "no token", "malformed"),
        (lambda: TOKEN, "issuer"),
    ],
)
def test_an_invalid_presentation_is_refused(make: Callable[[], Presentation], reason: str) -> None:
    """A presentation is refused if it has another key, nonce, verifier or time, if it has only the proof of the issuer,
    or if its claims were changed.
    """
    assert refused(make()) == reason


def test_a_key_that_is_not_the_holders_is_refused() -> None:
    """A token is refused if it names the holder's key but is signed with another one. It is also refused if its
    algorithm uses no public key.
    """
    forged = jws.sign(jws.parse(token()).payload, Signer(HOLDER.method_id, MALLORY.key))
    assert refused(forged) == "signature"
