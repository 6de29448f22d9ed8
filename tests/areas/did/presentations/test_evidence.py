"""The credential that a presentation proves, for each form of presentation, and presentations that are invalid."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from sallyport.areas.did.crypto import jws, proofs, vc
from sallyport.areas.did.crypto.documents import ASSERTION, AUTHENTICATION, Method, of_methods, resolve
from sallyport.areas.did.crypto.encoding import canonical, to_base58, to_base64url
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.presentations.evidence import Binding, ShownCredential, read
from sallyport.base.clock import SECOND, iso_seconds
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON
from tests.areas.did.crypto.signers import HOLDER, ISSUERS, NOW, credential, did, signer

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


# --- tokens of other wallets ----------------------------------------------------------------------------------------

DID = did(HOLDER)
JWK_DID = "did:key:z" + to_base58(b"\xd1\xd6\x03" + canonical(HOLDER.key.public.jwk))
FRAGMENT = HOLDER.method_id.partition("#")[2]
VP: dict[str, JSON] = {"type": [vc.PRESENTATION], "verifiableCredential": [TOKEN]}


def signed(header: dict[str, JSON], by: Signer = HOLDER, *, held: dict[str, JSON] | None = None, **claims: JSON) -> str:
    """Return a VP-JWT with this header. held: the payload of a token whose payload is the presentation itself."""
    own: dict[str, JSON] = {"vp": VP} if held is None else held
    payload: dict[str, JSON] = {"iss": DID, "aud": VERIFIER, "nonce": NONCE, "exp": NOW // SECOND + 60, **own, **claims}
    parts = (
        {"alg": by.key.curve.algorithm, **header},
        {name: each for name, each in payload.items() if each is not None},
    )
    text = ".".join(to_base64url(canonical(part)) for part in parts)
    return f"{text}.{to_base64url(by.key.sign(text.encode()))}"


KIDS: dict[str, dict[str, JSON]] = {
    "absolute": {"kid": HOLDER.method_id}, "absent": {}, "empty": {"kid": ""}, "DID": {"kid": DID},
    "relative": {"kid": f"#{FRAGMENT}"}, "a name": {"kid": "key-1"}, "a thumbprint": {"kid": "NzbLsXh8uDCcd"},
    "DID of the JWK": {"kid": JWK_DID}, "key of the JWK": {"kid": f"{JWK_DID}#{JWK_DID.removeprefix('did:key:')}"},
}  # fmt: skip


@pytest.mark.parametrize("header", KIDS.values(), ids=KIDS)
@pytest.mark.parametrize("typ", ["JWT", "vp+jwt", "application/vp+jwt", "VP+JWT", "vp+ld+jwt", None])
def test_a_key_that_is_not_named_is_the_only_key(header: dict[str, JSON], typ: str | None) -> None:
    """If `kid` does not name a key, the key is the only one of the holder. The type of a presentation is accepted."""
    text = signed({**header, **({"typ": typ} if typ else {})})
    assert read(text, ASKED, NOW) == ShownCredential(TOKEN)
    assert read(tokened(text), ASKED, NOW) == ShownCredential(TOKEN)


@pytest.mark.parametrize("issuer", [DID, JWK_DID])
def test_both_forms_of_a_did_key_are_the_holder(issuer: str) -> None:
    """A did:key whose key is written as a JWK is the same holder, whichever form was registered."""
    text = signed({}, iss=issuer, vp={**VP, "holder": issuer})
    assert read(text, ASKED, NOW) == ShownCredential(TOKEN)
    assert read(text, replace(ASKED, holder=resolve(JWK_DID)), NOW) == ShownCredential(TOKEN)


@pytest.mark.parametrize("kid", ["absolute", "absent", "empty", "DID", "relative", "a name"])
def test_a_token_of_another_holder_is_refused(kid: str) -> None:
    """`iss` must be the expected holder, and the signature must be made with the holder's key."""
    assert refused(signed(KIDS[kid], iss=did(MALLORY))) == "holder"
    assert refused(signed(KIDS[kid], iss=None)) == "holder"
    assert refused(signed(KIDS[kid], MALLORY)) == "signature"
    assert refused(signed(KIDS[kid], vp={**VP, "holder": did(MALLORY)})) == "holder"


@pytest.mark.parametrize(
    "kid",
    [did(MALLORY), MALLORY.method_id, "#another", f"{DID}#another", f"{JWK_DID}#another", "did:web:elsewhere.test"],
)
def test_a_kid_of_another_key_is_refused(kid: str) -> None:
    assert refused(signed({"kid": kid})) == "issuer"


@pytest.mark.parametrize("kid", ["absent", "empty", "DID", "a name", "a thumbprint"])
def test_a_key_of_several_must_be_named(kid: str) -> None:
    """If the holder has several keys for authentication, `kid` must name one of them. A key that must not be used for
    authentication does not count.
    """
    web = "did:web:holder.test"
    own, other = Method(f"{web}#{FRAGMENT}", HOLDER.key.public), Method(f"{web}#2", MALLORY.key.public)
    several = replace(ASKED, holder=of_methods(web, [own, other]))
    header: dict[str, JSON] = {name: str(value).replace(DID, web) for name, value in KIDS[kid].items()}
    with pytest.raises(CredentialError, match="names no key"):
        read(signed(header, iss=web), several, NOW)
    one = replace(ASKED, holder=of_methods(web, [own, replace(other, purposes=frozenset({ASSERTION}))]))
    assert read(signed(header, iss=web), one, NOW) == ShownCredential(TOKEN)
    for named in (own.id, f"#{FRAGMENT}"):
        assert read(signed({"kid": named}, iss=web), several, NOW) == ShownCredential(TOKEN)


ENVELOPED: dict[str, JSON] = {"type": "EnvelopedVerifiableCredential", "id": f"data:application/vc+jwt,{TOKEN}"}


@pytest.mark.parametrize("credential", [TOKEN, ENVELOPED], ids=["token", "enveloped"])
@pytest.mark.parametrize("claims", [{}, {"iss": None, "holder": DID}, {"holder": {"id": DID}}], ids=str)
def test_the_payload_of_a_typed_token_is_the_presentation(credential: JSON, claims: dict[str, JSON]) -> None:
    """The payload of a token with the type `vp+jwt` is the presentation itself. Such a token may state its holder
    instead of `iss`.
    """
    held: dict[str, JSON] = {"type": ["VerifiablePresentation"], "verifiableCredential": [credential]}
    assert read(signed({"typ": "vp+jwt"}, held=held, **claims), ASKED, NOW) == ShownCredential(TOKEN)
    assert refused(signed({"typ": "JWT"}, held=held)) == "malformed"
    assert refused(signed({"typ": "vp+jwt"}, held=held, iss=did(MALLORY))) == "holder"
    assert refused(signed({"typ": "vp+jwt"}, held=held, iss=None)) == "holder"


@pytest.mark.parametrize("typ", ["vc+jwt", "JWE", "kb+jwt", "at+jwt", "", 7])
def test_another_type_is_refused(typ: JSON) -> None:
    assert refused(signed({"kid": HOLDER.method_id, "typ": typ})) == "malformed"


def test_a_credential_is_no_presentation() -> None:
    """The type of a presentation is not accepted for a credential, and a credential must name its key."""
    for header in ({"kid": ISSUER.method_id, "typ": "vp+jwt"}, {}):
        shown = read(signed({}, vp={**VP, "verifiableCredential": [signed(header, ISSUER)]}), ASKED, NOW)
        with pytest.raises(CredentialError):
            _ = shown.credential_id
