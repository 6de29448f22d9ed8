"""Documents with embedded proofs: the official vectors, and the ways in which a proof is invalid."""

import pytest

from sallyport.areas.did.crypto import proofs
from sallyport.areas.did.crypto.documents import ASSERTION, AUTHENTICATION, Method, of_methods, resolve
from sallyport.areas.did.crypto.encoding import ED25519, from_base58
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.keys import PrivateKey, from_multikey
from sallyport.areas.did.crypto.vc import LEEWAY
from sallyport.base.clock import SECOND
from sallyport.base.errors import CredentialError
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON
from tests.areas.did.crypto.signers import HOLDER, ISSUERS, NOW, credential, did, signer

ALUMNI: dict[str, JSON] = {
    "@context": ["https://www.w3.org/ns/credentials/v2", "https://www.w3.org/ns/credentials/examples/v2"],
    "id": "urn:uuid:58172aac-d8ba-11ed-83dd-0b3aef56cc33",
    "type": ["VerifiableCredential", "AlumniCredential"],
    "name": "Alumni Credential",
    "description": "A minimum viable example of an Alumni Credential.",
    "issuer": "https://vc.example/issuers/5678",
    "validFrom": "2023-01-01T00:00:00Z",
    "credentialSubject": {"id": "did:example:abcdefgh", "alumniOf": "The School of Examples"},
}
CREATED = 1_677_281_798 * SECOND
EDDSA_DID = "did:key:z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2"
EDDSA_METHOD = f"{EDDSA_DID}#{EDDSA_DID.removeprefix('did:key:')}"
EDDSA_2020_HASHES = (
    "04e14bcf5727cba0c0aa04a04d22a56fef915d5f8f7756bb92ae67cb1d0c4847"  # the hash of the canonical proof options
    "517744132ae165a5349155bef0bb0cf2258fff99dfe1dbd914b938d775a36017"  # the hash of the canonical document
)
ECDSA_DID = "did:key:zDnaepBuvsQ8cpsWrVKw8fbpGpvPeNSjVPTWoq6cRqaYzBKVP"


def test_the_vector_of_eddsa_jcs_2022() -> None:
    """The example of EdDSA Cryptosuites 1.0, B.3 is reproduced octet for octet with its private key. It verifies with
    its public key.
    """
    private = from_base58("3u2en7t5LR2WtQH5PfFqMqwVHBeXouLzo6haApm8XHqvjxq")
    assert private[:2] == b"\x80\x26"
    signed = proofs.sign(
        ALUMNI, Signer(EDDSA_METHOD, PrivateKey(ED25519, Secret(private[2:]))), purpose=ASSERTION, at=CREATED
    )
    assert signed["proof"] == {
        "type": "DataIntegrityProof",
        "cryptosuite": "eddsa-jcs-2022",
        "created": "2023-02-24T23:36:38Z",
        "verificationMethod": EDDSA_METHOD,
        "proofPurpose": "assertionMethod",
        "@context": ALUMNI["@context"],
        "proofValue": "z2HnFSSPPBzR36zdDgK8PbEHeXbR56YF24jwMpt3R1eHXQzJDMWS93FCzpvJpwTWd3GAVFuUfjoJdcnTMuVor51aX",
    }
    assert proofs.verify(signed, resolve(EDDSA_DID), purpose=ASSERTION, now=NOW) == ALUMNI


def test_ed25519_signature_2020_is_refused() -> None:
    """The signature in the example of EdDSA Cryptosuites 1.0, B.2 verifies over the published hashes, but the suite is
    refused. It signs the JSON-LD form of a document. This form leaves out members that no context defines, such as the
    claims of credentials, so a proof would stay valid if these were changed.
    """
    value = "z57Mm1vboMtZiCyJ4aReZsv8co4Re64Y8GEjL1ZARzMbXZgkARFLqFs1P345NpPGG2hgCrS4nNdvJhpwnrNyG3kEF"
    key = from_multikey(EDDSA_DID.removeprefix("did:key:"))
    assert key.verify(from_base58(value[1:]), bytes.fromhex(EDDSA_2020_HASHES))
    context = [*_context(ALUMNI), "https://w3id.org/security/suites/ed25519-2020/v1"]
    proof: dict[str, JSON] = {
        "type": "Ed25519Signature2020",
        "created": "2023-02-24T23:36:38Z",
        "verificationMethod": EDDSA_METHOD,
        "proofPurpose": "assertionMethod",
        "proofValue": value,
    }
    signed: dict[str, JSON] = {**ALUMNI, "@context": context, "proof": proof}
    with pytest.raises(CredentialError) as refused:
        proofs.verify(signed, resolve(EDDSA_DID), purpose=ASSERTION, now=NOW)
    assert refused.value.reason == "malformed" and "eddsa-jcs-2022" in str(refused.value)


def _context(document: dict[str, JSON]) -> list[JSON]:
    context = document["@context"]
    assert isinstance(context, list)
    return context


def test_the_vector_of_ecdsa_jcs_2019() -> None:
    """The example of the specification with P-256 verifies."""
    proof: dict[str, JSON] = {
        "type": "DataIntegrityProof",
        "cryptosuite": "ecdsa-jcs-2019",
        "created": "2023-02-24T23:36:38Z",
        "verificationMethod": f"{ECDSA_DID}#{ECDSA_DID.removeprefix('did:key:')}",
        "proofPurpose": "assertionMethod",
        "proofValue": "zq6PrUMCtqY5obCSsrQxuFJdGffCDxvFuopdZiBPUBRTFEs1VVsBZi8YiEwVWgHYrXxoV93gBHqGDBtQLPFxpZxz",
    }
    assert proofs.verify({**ALUMNI, "proof": proof}, resolve(ECDSA_DID), purpose=ASSERTION, now=NOW) == ALUMNI


def proved(by: Signer = HOLDER, **changes: JSON) -> dict[str, JSON]:
    """Return a credential with its holder's proof for verifier.test and challenge c-1. The given members of the proof
    are changed after it was signed.
    """
    secured = proofs.sign(
        credential(ISSUERS["Ed25519"]), by, purpose=AUTHENTICATION, at=NOW, challenge="c-1", domain="verifier.test"
    )
    proof = secured["proof"]
    assert isinstance(proof, dict)
    return {**secured, "proof": {**proof, **changes}}


def check(secured: dict[str, JSON], *, challenge: str = "c-1", domain: str = "verifier.test", now: int = NOW) -> None:
    """Verify a proof that the holder has made."""
    proofs.verify(secured, resolve(did(HOLDER)), purpose=AUTHENTICATION, now=now, challenge=challenge, domain=domain)


@pytest.mark.parametrize("name", ["Ed25519", "P-256"])
def test_a_valid_proof_is_accepted(name: str) -> None:
    """A valid proof of each suite is accepted, even if it has additional members of the suite."""
    document = credential(ISSUERS[name])
    secured = proofs.sign(document, ISSUERS[name], purpose=ASSERTION, at=NOW, extra={"jws": "a.b.c"})
    assert proofs.verify(secured, resolve(did(ISSUERS[name])), purpose=ASSERTION, now=NOW) == document
    proof = secured["proof"]
    assert isinstance(proof, dict)
    with pytest.raises(CredentialError):
        proofs.verify(
            {**secured, "proof": {**proof, "jws": "a.b.d"}}, resolve(did(ISSUERS[name])), purpose=ASSERTION, now=NOW
        )


def test_secp256k1_has_no_suite() -> None:
    """No suite supports secp256k1, so creating a proof with such a key is refused."""
    with pytest.raises(CredentialError):
        proofs.sign({}, ISSUERS["secp256k1"], purpose=ASSERTION, at=NOW)


SUBJECT = {"id": did(HOLDER), "epmUsername": "alice"}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"credentialSubject": {**SUBJECT, "epmUsername": "root"}}, id="a changed claim"),
        pytest.param({"credentialSubject": {**SUBJECT, "undefined term": 1}}, id="a new claim"),
        pytest.param({"more": None}, id="a new member"),
        pytest.param({"@context": []}, id="another context"),
        pytest.param({"expirationDate": "2028-01-01T00:00:00Z"}, id="a later expiry"),
    ],
)
def test_a_changed_member_invalidates_the_proof(changes: dict[str, JSON]) -> None:
    """If a member at any depth is added or changed, the proof is invalid."""
    secured = proved()
    check(secured)
    assert secured["credentialSubject"] == SUBJECT
    with pytest.raises(CredentialError) as error:
        check({**secured, **changes})
    assert error.value.reason == "signature"


def test_a_removed_member_invalidates_the_proof() -> None:
    secured = proved()
    del secured["expirationDate"]
    with pytest.raises(CredentialError) as error:
        check(secured)
    assert error.value.reason == "signature"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"challenge": "c-0"}, "nonce"),
        ({"domain": "other.test"}, "audience"),
        ({"proofPurpose": "assertionMethod"}, "issuer"),
        ({"verificationMethod": ISSUERS["Ed25519"].method_id}, "issuer"),
        ({"proofValue": "z"}, "signature"),
        ({"proofValue": "u" + "A" * 86}, "signature"),
        ({"cryptosuite": "ecdsa-jcs-2019"}, "signature"),
        ({"cryptosuite": "eddsa-rdfc-2022"}, "malformed"),
        ({"type": "Ed25519Signature2018"}, "malformed"),
        ({"created": "2026-01-01T00:00:01Z"}, "signature"),
        ({"created": "2026-01-02T00:00:00Z"}, "not_yet_valid"),
        ({"created": "once"}, "malformed"),
        ({"expires": "2025-01-01T00:00:00Z"}, "expired"),
        ({"expires": "2027-01-01T00:00:00Z"}, "signature"),
        ({"nonce": "x"}, "signature"),
        ({"proofPurpose": 7}, "malformed"),
        ({"proofValue": None}, "malformed"),
    ],
)
def test_an_unsuitable_proof_is_refused(changes: dict[str, JSON], reason: str) -> None:
    """For each member of a proof, a wrong value is refused with a reason of its own."""
    with pytest.raises(CredentialError) as error:
        check(proved(**changes))
    assert error.value.reason == reason


@pytest.mark.parametrize(
    "request_",
    [{"challenge": "c-2"}, {"challenge": ""}, {"domain": "elsewhere.test"}, {"domain": ""}],
    ids=["another challenge", "no challenge", "another domain", "no domain"],
)
def test_a_replayed_proof_is_refused(request_: dict[str, str]) -> None:
    """A proof is valid only for its own challenge and its own domain."""
    with pytest.raises(CredentialError):
        check(proved(), **request_)  # type: ignore[arg-type]


def test_a_proof_of_another_holder_is_refused() -> None:
    """The key that the proof names must be a key of the holder."""
    with pytest.raises(CredentialError) as error:
        check(proved(signer(9)))
    assert error.value.reason == "issuer"


def test_a_proof_of_the_issuer_is_not_accepted_from_the_holder() -> None:
    """A proof for assertion shows that the issuer issued the credential. It is not accepted as a proof of the holder
    who presents it.
    """
    secured = proofs.sign(credential(ISSUERS["Ed25519"]), ISSUERS["Ed25519"], purpose=ASSERTION, at=NOW)
    with pytest.raises(CredentialError):
        check(secured)


PROOF = proved()["proof"]


@pytest.mark.parametrize(
    "proof", [None, [], [PROOF], [PROOF, PROOF], "text"], ids=["none", "empty", "a list of one", "two", "text"]
)
def test_a_document_must_have_one_proof(proof: JSON) -> None:
    """The proof of a document must be one object. A missing proof and a list of proofs are refused."""
    with pytest.raises(CredentialError):
        check({**proved(), "proof": proof})


def test_a_clock_skew_of_a_minute_is_accepted() -> None:
    """A proof from a wallet whose clock is up to a minute ahead of the service's clock is accepted."""
    check(proved(), now=NOW - LEEWAY)
    with pytest.raises(CredentialError):
        check(proved(), now=NOW - LEEWAY - SECOND)


def test_a_proof_verifies_with_a_did_web_document() -> None:
    web = "did:web:a.test"
    by = Signer(f"{web}#1", HOLDER.key)
    secured = proofs.sign({"id": "x"}, by, purpose=ASSERTION, at=NOW)
    document = of_methods(web, [Method(by.method_id, HOLDER.key.public)])
    assert proofs.verify(secured, document, purpose=ASSERTION, now=NOW) == {"id": "x"}
