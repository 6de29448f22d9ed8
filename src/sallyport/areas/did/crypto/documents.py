"""DIDs and their documents (W3C DID Core 1.0): the keys of a DID, and their purposes.

A did:key or did:jwk contains its key. The document of a did:web is at a URL. A resolver fetches this document and
passes it to `parse`. A document is valid only for its own DID, so a document with a method id of another DID is
refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from sallyport.areas.did.crypto.encoding import (
    CURVES,
    canonical,
    from_base58,
    from_base64url,
    read_object,
    to_base64url,
)
from sallyport.areas.did.crypto.keys import PublicKey, from_jwk, from_multikey
from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON

AUTHENTICATION: Final = "authentication"
ASSERTION: Final = "assertionMethod"
PURPOSES: Final = (AUTHENTICATION, ASSERTION, "capabilityDelegation", "capabilityInvocation")
CONTEXT: Final[list[JSON]] = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"]
JWK_CONTEXT: Final[list[JSON]] = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"]
MAX_LENGTH: Final = 2048
MAX_METHODS: Final = 64
_DID_KEY: Final = "did:key:"
_JWK_PREFIX: Final = b"\xd1\xd6\x03"
"""The multicodec prefix of a public key as a canonical JWK (jwk_jcs-pub)."""
_DID: Final = re.compile(
    r"did:([a-z0-9]+):((?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+(?::(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+)*)"
)
_HOST: Final = re.compile(
    r"(?=.{1,253}(?::|$))[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::[0-9]{1,5})?"
)


@dataclass(frozen=True, slots=True)
class Method:
    """A verification method: a key of a DID, and the purposes for which the key may be used. id: the DID with a
    fragment. purposes: a subset of PURPOSES."""

    id: str
    key: PublicKey
    purposes: frozenset[str] = frozenset(PURPOSES)


@dataclass(frozen=True, slots=True)
class Document:
    """A DID document. content: the document as published."""

    did: str
    methods: tuple[Method, ...]
    content: dict[str, JSON] = field(compare=False)

    def key(self, method_id: str, purpose: str) -> PublicKey:
        """Return the key of a method if the key may be used for the purpose. Raises CredentialError `issuer` if the
        key must not be used for the purpose, or if the DID has no such method."""
        for method in self.methods:
            if method.id == method_id and purpose in method.purposes:
                return method.key
        raise CredentialError(f"the DID has no key with this id for {purpose}", "issuer")

    def names(self, did: JSON) -> bool:
        """Return whether a text is the DID of this document. The two forms of a did:key with the same key, multikey and
        jwk_jcs-pub, are the same DID. Raises CredentialError if the text is a malformed did:key."""
        if did == self.did:
            return True
        is_key = isinstance(did, str) and did.startswith(_DID_KEY) and self.did.startswith(_DID_KEY)
        return is_key and resolve(str(did)).methods[0].key == self.methods[0].key

    def holder_key(self, key_id: str, purpose: str) -> PublicKey:
        """Return the key that the `kid` of a token names. A relative `kid` (`#key-1`) is an id of this document. If
        `kid` is absent or has no fragment, the key is the only key that the DID has for the purpose.

        Raises CredentialError `issuer` if `kid` names a key of another DID, a key that must not be used for the
        purpose, or no key although the DID has several.
        """
        if key_id.startswith("#"):
            return self.key(self.did + key_id, purpose)
        did, _, fragment = key_id.partition("#")
        if did.startswith("did:"):
            if not self.names(did):
                raise CredentialError("the key belongs to another DID", "issuer")
            if fragment:
                return (self if did == self.did else resolve(did)).key(key_id, purpose)
        found = [method for method in self.methods if purpose in method.purposes]
        if len(found) != 1:
            raise CredentialError(f"the token names no key (kid), and the DID has {len(found)} for {purpose}", "issuer")
        return found[0].key


def split(did: str) -> tuple[str, str]:
    """Return the method and the method-specific id of a DID. Raises CredentialError if the text is not a DID. A DID URL
    is not a DID."""
    found = _DID.fullmatch(did) if len(did) <= MAX_LENGTH else None
    if found is None:
        raise CredentialError("the text is not a DID")
    return found[1], found[2]


def did_of(method_id: str) -> str:
    """Return the DID in the id of a verification method. Raises CredentialError if the id does not contain a DID."""
    did, hash_, fragment = method_id.partition("#")
    if not hash_ or not fragment:
        raise CredentialError("the id of a verification method must be a DID with a fragment")
    split(did)
    return did


def key_did(key: PublicKey) -> str:
    """Return the did:key of a key (did:key section 3.1.2)."""
    return f"did:key:{key.multikey}"


def jwk_did(key: PublicKey) -> str:
    """Return the did:jwk of a key."""
    return f"did:jwk:{to_base64url(canonical(key.jwk))}"


@lru_cache(maxsize=4096)
def resolve(did: str) -> Document:
    """Return the document of a did:key or did:jwk. All callers share the cached document, so they must not change its
    content.

    Raises CredentialError if the DID has no key of a supported curve. Raises CredentialError `unresolved` if the method
    of the DID is neither key nor jwk.
    """
    method, identifier = split(did)
    if method == "key":
        octets = from_base58(identifier[1:]) if identifier.startswith("z") else b""
        if octets.startswith(_JWK_PREFIX):
            return _of_jwk(did, _canonical_jwk(octets[len(_JWK_PREFIX) :]), identifier)
        return of_methods(did, [Method(f"{did}#{identifier}", from_multikey(identifier))])
    if method == "jwk":
        return _of_jwk(did, read_object(from_base64url(identifier)), "0")
    raise CredentialError("the method of the DID is not supported", "unresolved")


def _canonical_jwk(octets: bytes) -> dict[str, JSON]:
    """Return the JWK of a did:key. Raises CredentialError if it is not in the canonical form (RFC 8785), because a key
    must have only one DID."""
    jwk = read_object(octets)
    if canonical(jwk) != octets:
        raise CredentialError("the JWK in the DID is not in the canonical form (RFC 8785)")
    return jwk


def _of_jwk(did: str, jwk: dict[str, JSON], fragment: str) -> Document:
    """Return a document that contains the JWK in its original form. A JWK that is meant only for encryption gets no
    purposes."""
    key, method_id = from_jwk(jwk), f"{did}#{fragment}"
    purposes = PURPOSES if jwk.get("use", "sig") == "sig" else ()
    method: dict[str, JSON] = {"id": method_id, "type": "JsonWebKey2020", "controller": did, "publicKeyJwk": jwk}
    content: dict[str, JSON] = {"@context": JWK_CONTEXT, "id": did, "verificationMethod": [method]}
    content |= {purpose: [method_id] for purpose in purposes}
    return Document(did, (Method(method_id, key, frozenset(purposes)),), content)


def of_methods(did: str, methods: Sequence[Method]) -> Document:
    """Return the document of a DID with these verification methods, in the Multikey form."""
    listed: list[JSON] = [
        {"id": each.id, "type": "Multikey", "controller": did, "publicKeyMultibase": each.key.multikey}
        for each in methods
    ]
    content: dict[str, JSON] = {"@context": CONTEXT, "id": did, "verificationMethod": listed}
    content |= {purpose: [each.id for each in methods if purpose in each.purposes] for purpose in PURPOSES}
    return Document(did, tuple(methods), content)


def web_did(base: str, *path: str) -> str:
    """Return the did:web for a path below the URL `base`, such as `https://host:8443/did`. path: the parts of the path.
    Each part consists of letters, digits, `-`, `_` and `.`."""
    _, _, rest = base.partition("://")
    host, *folders = rest.rstrip("/").split("/")
    return ":".join(["did:web", host.replace(":", "%3A"), *folders, *path])


def web_address(did: str) -> str:
    """Return the URL of a did:web's document (did:web section 3.2). Raises CredentialError if the DID is not a
    did:web, or has no host."""
    method, identifier = split(did)
    host, *path = map(unquote, identifier.split(":"))
    if method != "web" or not _HOST.fullmatch(host):
        raise CredentialError("the DID is not a did:web with a host")
    if any(not re.fullmatch(r"[A-Za-z0-9._-]+", part) or set(part) == {"."} for part in path):
        raise CredentialError("the DID is a did:web with an invalid path")
    return f"https://{host}/{'/'.join(path or ['.well-known'])}/did.json"


def parse(did: str, octets: bytes) -> Document:
    """Parse a document that was fetched for a DID. Verification methods of unknown curves are ignored. Raises
    CredentialError if the document is malformed or belongs to another DID."""
    content = read_object(octets)
    if content.get("id") != did:
        raise CredentialError("the document belongs to another DID")
    keys: dict[str, PublicKey] = {}
    allowed: dict[str, set[str]] = {}
    for each in _items(content.get("verificationMethod")):
        _add_key(did, each, keys)
    for purpose in PURPOSES:
        for each in _items(content.get(purpose)):
            method_id = _absolute(did, each) if isinstance(each, str) else _add_key(did, each, keys)
            allowed.setdefault(method_id, set()).add(purpose)
    methods = [Method(each, key, frozenset(allowed.get(each, ()))) for each, key in keys.items()]
    return Document(did, tuple(methods), content)


def _items(value: JSON) -> list[JSON]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MAX_METHODS:
        raise CredentialError(f"the document's verification methods are not an array of at most {MAX_METHODS} entries")
    return value


def _add_key(did: str, value: JSON, keys: dict[str, PublicKey]) -> str:
    """Add the key of an embedded verification method to `keys`, by its id. Return the id. Raises CredentialError if
    the method is malformed."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise CredentialError("a verification method has no id")
    method_id = _absolute(did, str(value["id"]))
    if method_id in keys:
        raise CredentialError("a verification method has a duplicate id")
    key = _key(value) if value.get("controller", did) == did else None
    if key is not None:
        keys[method_id] = key
    return method_id


def _key(method: dict[str, JSON]) -> PublicKey | None:
    multikey, jwk = method.get("publicKeyMultibase"), method.get("publicKeyJwk")
    if isinstance(jwk, dict):
        return from_jwk(jwk) if str(jwk.get("crv")) in CURVES else None
    if isinstance(multikey, str):
        try:
            return from_multikey(multikey)
        except CredentialError:
            return None
    return None


def _absolute(did: str, method_id: str) -> str:
    """Return the absolute id of a method. Raises CredentialError if the method belongs to another DID."""
    whole = did + method_id if method_id.startswith("#") else method_id
    if did_of(whole) != did:
        raise CredentialError("a verification method belongs to another DID")
    return whole
