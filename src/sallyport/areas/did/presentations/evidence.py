"""Verify that a submitted presentation was made by the holder for one request.

A presentation has one of these forms. In each form, the holder's signature covers the audience and the nonce of the
request:

- a VP-JWT, as text, or as `proof.jws` or `proof.jwt` of a document;
- a presentation document with the holder's proof, which contains the credential as a token or as a document;
- a credential document with the holder's proof, and perhaps the issuer's proof too.

The purpose of the holder's proof is authentication. An issuer's proof (assertionMethod) only proves that a credential
was issued. It does not prove who sends the credential: every verifier that has seen the credential could send the
issuer's proof again.
"""

import json
from dataclasses import dataclass
from typing import Final

from sallyport.areas.did.crypto import jws, proofs, vc
from sallyport.areas.did.crypto.documents import AUTHENTICATION, Document
from sallyport.areas.did.crypto.encoding import as_list
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON

MAX_PRESENTATION: Final = 64 << 10
"""Maximum length of a submitted presentation as JSON, in characters."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The values that a presentation must contain. holder: the DID document of the holder. audience: the DID of the
    verifier. nonce: the nonce of the request."""

    holder: Document
    audience: str
    nonce: str


@dataclass(frozen=True, slots=True)
class ShownCredential:
    """A presented credential that is not verified yet. Either its token or its document is set."""

    token: str = ""
    document: dict[str, JSON] | None = None

    @property
    def credential_id(self) -> str:
        """Return the credential's identifier, from its token or document. Raises CredentialError if the token is
        malformed."""
        claimed = jws.parse(self.token).payload.get("jti") if self.document is None else self.document.get("id")
        return claimed if isinstance(claimed, str) else ""


def read(presentation: str | dict[str, JSON], binding: Binding, now: int) -> ShownCredential:
    """Verify that a presentation was made by the holder for this request. Return the credential in the presentation.
    now: the time in microseconds. Raises CredentialError."""
    size = len(presentation) if isinstance(presentation, str) else len(json.dumps(presentation))
    if size > MAX_PRESENTATION:
        raise CredentialError("the presentation is too large")
    if isinstance(presentation, str):
        return _of_token(presentation, binding, now)
    proof = _holders_proof(presentation.get("proof"))
    if (token := _token_in(proof)) is not None:
        return _of_token(token, binding, now)
    document = proofs.verify(
        {**presentation, "proof": proof},
        binding.holder,
        purpose=AUTHENTICATION,
        now=now,
        challenge=binding.nonce,
        domain=binding.audience,
    )
    kinds = as_list(document.get("type"))
    if vc.PRESENTATION in kinds:
        return _credential_in(document, binding)
    if vc.CREDENTIAL in kinds:
        return ShownCredential(document=document)
    raise CredentialError("the document is neither a presentation nor a credential")


def _of_token(text: str, binding: Binding, now: int) -> ShownCredential:
    shown = vc.verify_presentation(
        jws.parse(text, jws.PRESENTATION_TYPES, needs_key_id=False),
        binding.holder,
        audience=binding.audience,
        nonce=binding.nonce,
        now=now,
    )
    if len(shown) > 1:
        raise CredentialError("a presentation must contain exactly one credential")
    return ShownCredential(shown[0])


def _holders_proof(proof: JSON) -> dict[str, JSON]:
    """Return the holder's proof. proof: one proof, or an array of proofs that may also contain an issuer's proof.
    Raises CredentialError if the number of the holder's proofs is not one."""
    found = [
        each for each in as_list(proof) if isinstance(each, dict) and each.get("proofPurpose") != "assertionMethod"
    ]
    if len(found) != 1:
        raise CredentialError("a presentation must have one proof of its holder", "holder")
    return found[0]


def _token_in(proof: dict[str, JSON]) -> str | None:
    """Return the VP-JWT in a proof. Return None for a data integrity proof, even if the proof has a `jws`."""
    token = None if "proofValue" in proof else proof.get("jws", proof.get("jwt"))
    return token if isinstance(token, str) else None


def _credential_in(document: dict[str, JSON], binding: Binding) -> ShownCredential:
    """Return the credential in a presentation document. Raises CredentialError."""
    if not binding.holder.names(document.get("holder", binding.holder.did)):
        raise CredentialError("the presentation belongs to another holder", "holder")
    listed = as_list(document.get("verifiableCredential"))
    if len(listed) != 1:
        raise CredentialError("a presentation must contain exactly one credential")
    (credential,) = listed
    if isinstance(credential, str):
        return ShownCredential(credential)
    if not isinstance(credential, dict):
        raise CredentialError("a presentation must contain a credential")
    return ShownCredential(document={name: value for name, value in credential.items() if name != "proof"})
