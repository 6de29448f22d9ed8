"""Credentials and presentations as tokens (W3C Verifiable Credentials Data Model 1.1, section 6.3.1).

A token contains the whole document as `vc`, and claims that repeat parts of the document. The claims must be equal to
the document. Otherwise a verifier that reads the claims would see another credential than a verifier that reads `vc`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.did.crypto import jws
from sallyport.areas.did.crypto.documents import ASSERTION, AUTHENTICATION, Document, did_of
from sallyport.areas.did.crypto.encoding import as_list
from sallyport.areas.did.crypto.jws import Signer, Token
from sallyport.base.clock import SECOND, from_iso
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON

CONTEXT: Final = "https://www.w3.org/2018/credentials/v1"
CREDENTIAL: Final = "VerifiableCredential"
PRESENTATION: Final = "VerifiablePresentation"
ENVELOPED: Final = "EnvelopedVerifiableCredential"
_DATA_URL: Final = re.compile(r"data:application/(?:vc\+|vc\+ld\+|vc-ld\+)?jwt[;,]([A-Za-z0-9_.-]+)")
LEEWAY: Final = 60 * SECOND
"""Maximum time by which a wallet's clock may be ahead of the service's clock."""
LIFETIME: Final = 300 * SECOND
"""Lifetime of a presentation that the service creates."""
MAX_CREDENTIALS: Final = 16
"""Maximum number of credentials in a presentation."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential whose signature, issuer, claims and times are verified. expires_at: the time in microseconds, or
    None if the credential does not expire."""

    id: str
    issuer: str
    subject: str
    expires_at: int | None
    document: dict[str, JSON]


def sign(document: dict[str, JSON], signer: Signer) -> str:
    """Return a credential document as a signed token. The dates in the document must not have fractions of a second."""
    subject = document["credentialSubject"]
    payload: dict[str, JSON] = {"iss": document["issuer"], "jti": document["id"], "vc": document}
    if isinstance(subject, dict) and "id" in subject:
        payload["sub"] = subject["id"]
    for claim, member in (("nbf", "issuanceDate"), ("exp", "expirationDate")):
        if member in document:
            payload[claim] = _seconds(document[member])
    return jws.sign(payload, signer)


def verify(token: Token, issuer: Document, now: int) -> Credential:
    """Verify a credential's token. issuer: the document of `did_of(token.key_id)`. now: the time in microseconds.

    Raises CredentialError with one of these codes. `signature`: the signature is wrong. `issuer`: the key, `iss` or
    `vc.issuer` does not belong to the issuer's DID. `claims`: another claim differs from `vc`. `not_yet_valid`,
    `expired`: the credential is not valid at this time.
    """
    token.verify(issuer.key(token.key_id, ASSERTION))
    payload, document = token.payload, token.payload.get("vc")
    if not isinstance(document, dict) or CREDENTIAL not in as_list(document.get("type")):
        raise CredentialError("the token contains no credential")
    stated = document.get("issuer", payload.get("iss"))
    if not payload.get("iss") == issuer.did == (stated.get("id") if isinstance(stated, dict) else stated):
        raise CredentialError("the credential belongs to another issuer", "issuer")
    subject = document.get("credentialSubject")
    if not isinstance(subject, dict):
        raise CredentialError("a credential must have one subject")
    for claim, said in (("sub", subject.get("id")), ("jti", document.get("id"))):
        if said is not None and payload.get(claim) != said:
            raise CredentialError(f"the claim {claim} differs from the credential", "claims")
    valid_from = _moment(payload, "nbf", document.get("issuanceDate"))
    expires_at = _moment(payload, "exp", document.get("expirationDate"))
    if valid_from is None:
        raise CredentialError("the credential does not state the start of its validity", "claims")
    _in_time(valid_from, expires_at, now)
    return Credential(str(payload.get("jti", "")), issuer.did, str(payload.get("sub", "")), expires_at, {**document})


def present(
    credentials: Sequence[str],
    signer: Signer,
    *,
    audience: str,
    nonce: str,
    id: str,
    now: int,
    lifetime: int = LIFETIME,
) -> str:
    """Return a presentation as a token that is signed with the signer's key. audience: the verifier's DID."""
    held: dict[str, JSON] = {
        "@context": [CONTEXT],
        "type": [PRESENTATION],
        "verifiableCredential": list[JSON](credentials),
    }
    seconds = now // SECOND
    return jws.sign(
        {
            "iss": did_of(signer.method_id),
            "aud": audience,
            "nonce": nonce,
            "jti": id,
            "nbf": seconds,
            "exp": seconds + lifetime // SECOND,
            "vp": held,
        },
        signer,
    )


def verify_presentation(token: Token, holder: Document, *, audience: str, nonce: str, now: int) -> list[str]:
    """Verify a presentation's token. Return the tokens of its credentials, which are not verified. now: the time in
    microseconds.

    The presentation is the claim `vp`. In a token with a type of its own (`vp+jwt`) it may also be the payload itself.

    Raises CredentialError with one of these codes. `signature`: the signature is wrong. `issuer`, `holder`: the key,
    `iss` or the presentation's holder does not belong to the holder's DID. `audience`, `nonce`: the presentation is for
    another verifier or request. `not_yet_valid`, `expired`: the presentation is not valid at this time.
    """
    payload, is_typed = token.payload, "vp" not in token.payload and token.kind != "jwt"
    held = payload if is_typed else payload.get("vp")
    key, named = holder.holder_key(token.key_id, AUTHENTICATION), _holder_in(held)
    if not holder.names(payload.get("iss", named if is_typed else None)):
        raise CredentialError("the presentation belongs to another holder", "holder")
    token.verify(key)
    if not isinstance(held, dict) or PRESENTATION not in as_list(held.get("type")):
        raise CredentialError("the token contains no presentation")
    if named is not None and not holder.names(named):
        raise CredentialError("the presentation belongs to another holder", "holder")
    if audience not in as_list(payload.get("aud")):
        raise CredentialError("the presentation is for another verifier", "audience")
    if payload.get("nonce") != nonce:
        raise CredentialError("the presentation is for another request", "nonce")
    expires_at = _moment(payload, "exp", None)
    if expires_at is None:
        raise CredentialError("the presentation does not state the end of its validity", "claims")
    _in_time((_moment(payload, "nbf", None) or 0) - LEEWAY, expires_at, now)
    credentials = as_list(held.get("verifiableCredential"))
    tokens = [text for each in credentials if (text := _token_of(each))]
    if not 0 < len(tokens) == len(credentials) <= MAX_CREDENTIALS:
        raise CredentialError(f"a presentation must have 1 to {MAX_CREDENTIALS} tokens of credentials")
    return tokens


def _holder_in(presentation: JSON) -> JSON:
    """Return the DID of the holder that a presentation states, or None."""
    stated = presentation.get("holder") if isinstance(presentation, dict) else None
    return stated.get("id") if isinstance(stated, dict) else stated


def _token_of(credential: JSON) -> str:
    """Return the token of a credential in a presentation: the token itself, or the token in a data URL (Verifiable
    Credentials Data Model 2.0, section 4.13). Return an empty text if there is no token."""
    if not isinstance(credential, dict):
        return credential if isinstance(credential, str) else ""
    found = _DATA_URL.fullmatch(str(credential.get("id")))
    return found[1] if found is not None and ENVELOPED in as_list(credential.get("type")) else ""


def _moment(payload: dict[str, JSON], claim: str, stated: JSON) -> int | None:
    """Return the time in a claim of a token in microseconds, or None if the claim is absent. stated: the same time, as
    the document states it. Raises CredentialError `claims` if the two times differ."""
    value = payload.get(claim)
    if value is None and stated is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1 << 40:
        raise CredentialError(f"the claim {claim} is not a time", "claims")
    if stated is not None and _seconds(stated) != value:
        raise CredentialError(f"the claim {claim} differs from the credential", "claims")
    return int(value * SECOND)


def _seconds(moment: JSON) -> int:
    try:
        return from_iso(str(moment)) // SECOND
    except (ValueError, OverflowError):
        raise CredentialError("a date of the credential is not an ISO 8601 time", "claims") from None


def _in_time(valid_from: int, expires_at: int | None, now: int) -> None:
    if now < valid_from:
        raise CredentialError("the token is not valid yet", "not_yet_valid")
    if expires_at is not None and now >= expires_at:
        raise CredentialError("the token is expired", "expired")
