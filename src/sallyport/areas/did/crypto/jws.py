"""Signed compact tokens (JSON Web Signature, RFC 7515). A token has a header, a payload and a signature. The header and
the payload are JSON objects.

The algorithm in the header must be an algorithm of the key. `none` and HMAC are not supported. joserfc is not used
here, because it accepts duplicate names and its ECDSA signatures may have the higher s (`keys`).
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sallyport.areas.did.crypto.encoding import CURVES, from_base64url, read_object, to_base64url
from sallyport.areas.did.crypto.keys import PrivateKey, PublicKey
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON

MAX_LENGTH: Final = 256 << 10
"""Maximum length of a token, in characters."""
JWT: Final = frozenset({"jwt"})
PRESENTATION_TYPES: Final = JWT | {"vp+jwt", "vp+ld+jwt"}
"""Accepted types (`typ`) of tokens, in lower case. A presentation may have a type of its own (W3C Securing Verifiable
Credentials using JOSE and COSE, section 3.1.2)."""
ALGORITHMS: Final = frozenset(name for curve in CURVES.values() for name in curve.algorithms)


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key, and the id of the verification method with its public key."""

    method_id: str
    key: PrivateKey


@dataclass(frozen=True, slots=True)
class Token:
    """A parsed token whose signature is not verified yet. key_id: the id of the verification method, from the header;
    empty if the header has none. kind: the type (`typ`) in lower case, such as `jwt`."""

    algorithm: str
    key_id: str
    kind: str
    header: dict[str, JSON]
    payload: dict[str, JSON]
    signed: bytes
    signature: bytes

    def verify(self, key: PublicKey) -> None:
        """Verify the signature with a public key. The algorithm in the header must be an algorithm of this key.
        Raises CredentialError `signature` if the signature is wrong."""
        if self.algorithm not in key.curve.algorithms or not key.verify(self.signature, self.signed):
            raise CredentialError("the signature is not valid", "signature")


def sign(payload: dict[str, JSON], signer: Signer) -> str:
    """Return a signed token. payload: a JSON object."""
    header: dict[str, JSON] = {"alg": signer.key.curve.algorithm, "kid": signer.method_id, "typ": "JWT"}
    signed = f"{to_base64url(_octets(header))}.{to_base64url(_octets(payload))}"
    return f"{signed}.{to_base64url(signer.key.sign(signed.encode()))}"


def parse(text: str, types: Collection[str] = JWT, *, needs_key_id: bool = True) -> Token:
    """Parse a token. The signature is not verified. types: the accepted values of `typ`, in lower case.

    Raises CredentialError if the token is too long, is malformed, or has a duplicate name. Raises CredentialError if
    the algorithm or the type is not accepted, if there is a critical extension (RFC 7515 section 4.1.11), or if
    `kid` is missing and needed.
    """
    parts = text.split(".") if len(text) <= MAX_LENGTH else []
    if len(parts) != 3 or not text.isascii():
        raise CredentialError("the token is not a compact JWT")
    header, payload = read_object(from_base64url(parts[0])), read_object(from_base64url(parts[1]))
    algorithm, key_id = header.get("alg"), header.get("kid", "")
    kind = str(header.get("typ", "JWT")).lower().removeprefix("application/")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise CredentialError(
            f"the token's algorithm is not accepted; use one of {', '.join(sorted(ALGORITHMS))}", "signature"
        )
    if "crit" in header or "b64" in header:
        raise CredentialError("the token has an extension (crit, b64) that is not supported")
    if kind not in types:
        raise CredentialError(f"the type (typ) of the token is not accepted; use {' or '.join(sorted(types))}")
    if not isinstance(key_id, str) or (needs_key_id and not key_id):
        raise CredentialError("the token has no key id (kid)")
    signed = f"{parts[0]}.{parts[1]}".encode()
    return Token(algorithm, key_id, kind, header, payload, signed, from_base64url(parts[2]))


def _octets(value: dict[str, JSON]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
