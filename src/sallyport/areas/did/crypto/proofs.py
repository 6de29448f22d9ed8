"""Documents that contain a proof (W3C Data Integrity 1.0), with the cryptosuites eddsa-jcs-2022 and ecdsa-jcs-2019.

Both suites sign the canonical JSON. So the proof covers every member, even a member that no JSON-LD context defines,
and no context must be fetched.
"""

from hashlib import sha256
from typing import Final

from sallyport.areas.did.crypto import jws
from sallyport.areas.did.crypto.documents import ASSERTION, Document
from sallyport.areas.did.crypto.encoding import ED25519, P256, Curve, as_list, canonical, from_base58, to_base58
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.vc import LEEWAY
from sallyport.base.clock import from_iso, iso_seconds
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON

SUITES: Final = {"eddsa-jcs-2022": ED25519, "ecdsa-jcs-2019": P256}
KIND: Final = "DataIntegrityProof"


def suite_of(curve: Curve) -> str | None:
    """Return the cryptosuite of a curve. Return None for secp256k1, which has no cryptosuite."""
    return next((name for name, each in SUITES.items() if each is curve), None)


def sign(
    document: dict[str, JSON],
    signer: Signer,
    *,
    purpose: str,
    at: int,
    challenge: str = "",
    domain: str = "",
    extra: dict[str, JSON] | None = None,
) -> dict[str, JSON]:
    """Return the document with a proof. at: the time of the proof, in microseconds. extra: further members of the
    proof, which are signed too. Raises CredentialError if there is no cryptosuite for the key's curve."""
    suite = suite_of(signer.key.curve)
    if suite is None:
        raise CredentialError("the key's curve has no cryptosuite")
    proof: dict[str, JSON] = {
        "type": KIND,
        "cryptosuite": suite,
        "created": iso_seconds(at),
        "verificationMethod": signer.method_id,
        "proofPurpose": purpose,
    }
    proof |= {name: value for name, value in (("challenge", challenge), ("domain", domain)) if value}
    proof |= extra or {}
    if "@context" in document:
        proof["@context"] = document["@context"]
    value = "z" + to_base58(signer.key.sign(_digest(document, proof)))
    return {**document, "proof": {**proof, "proofValue": value}}


def secure(document: dict[str, JSON], signer: Signer, at: int, token: str = "") -> dict[str, JSON]:
    """Return a document with an assertion proof that is made by the signer.

    token: the document as a VC-JWT. The token becomes the proof's `jws`. If the token is empty, `jws` is a new token
    with the document as payload. A secp256k1 key has no cryptosuite, so a proof with such a key has only `jws`.
    """
    token = token or jws.sign(document, signer)
    if suite_of(signer.key.curve) is not None:
        return sign(document, signer, purpose=ASSERTION, at=at, extra={"jws": token})
    proof: dict[str, JSON] = {
        "type": "JwtProof2020",
        "created": iso_seconds(at),
        "verificationMethod": signer.method_id,
        "proofPurpose": ASSERTION,
        "jws": token,
    }
    return {**document, "proof": proof}


def verify(
    secured: dict[str, JSON], signer: Document, *, purpose: str, now: int, challenge: str = "", domain: str = ""
) -> dict[str, JSON]:
    """Verify that the signer's DID made the proof for this purpose, challenge and domain. Return the document
    without its proof. now: the time in microseconds.

    Raises CredentialError with one of these codes. `issuer`: the key does not belong to the signer's DID, or must
    not be used for this purpose. `nonce`, `audience`: the proof is for another challenge or domain. `signature`: the
    signature is wrong. `not_yet_valid`, `expired`: the proof is not valid at this time.
    """
    proof = _proof(secured)
    if _text(proof, "proofPurpose") != purpose:
        raise CredentialError("the proof is for another purpose", "issuer")
    key = signer.key(_text(proof, "verificationMethod"), purpose)
    if _text(proof, "challenge") != challenge:
        raise CredentialError("the proof is for another challenge", "nonce")
    if _text(proof, "domain") != domain:
        raise CredentialError("the proof is for another domain", "audience")
    if proof.get("created") is not None and _time(proof["created"]) > now + LEEWAY:
        raise CredentialError("the proof is not valid yet", "not_yet_valid")
    if "expires" in proof and _time(proof["expires"]) <= now:
        raise CredentialError("the proof is expired", "expired")
    document = {name: value for name, value in secured.items() if name != "proof"}
    context = as_list(proof.get("@context", []))
    if context != as_list(document.get("@context", []))[: len(context)]:
        raise CredentialError("the proof has another context than the document", "signature")
    if "@context" in proof:
        document["@context"] = proof["@context"]
    value = _text(proof, "proofValue")
    signature = from_base58(value[1:]) if value.startswith("z") else b""
    if SUITES[str(proof["cryptosuite"])] is not key.curve or not key.verify(signature, _digest(document, proof)):
        raise CredentialError("the signature is not valid", "signature")
    return document


def _proof(secured: dict[str, JSON]) -> dict[str, JSON]:
    proof = secured.get("proof")
    if not isinstance(proof, dict) or proof.get("type") != KIND or str(proof.get("cryptosuite")) not in SUITES:
        raise CredentialError(f"the document must have one proof of type {KIND}, with one of {', '.join(SUITES)}")
    return proof


def _digest(document: dict[str, JSON], proof: dict[str, JSON]) -> bytes:
    """Return the octets that are signed. These are the hash of the proof without its signature, and after it the hash
    of the document (eddsa-jcs-2022 section 3.3.4)."""
    options = {name: value for name, value in proof.items() if name != "proofValue"}
    return sha256(canonical(options)).digest() + sha256(canonical(document)).digest()


def _time(moment: JSON) -> int:
    """Return a time of a proof in microseconds. Raises CredentialError if the value is not a time."""
    try:
        return from_iso(str(moment))
    except (ValueError, OverflowError):
        raise CredentialError("a time of the proof is not an ISO 8601 time") from None


def _text(proof: dict[str, JSON], name: str) -> str:
    """Return a member of a proof, or an empty text if it is absent. Raises CredentialError if the member is not
    text."""
    value = proof.get(name, "")
    if not isinstance(value, str):
        raise CredentialError("a member of the proof is not text")
    return value
