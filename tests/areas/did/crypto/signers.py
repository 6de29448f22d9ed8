"""Signers for tests. They have a fixed key of each curve and its did:key."""

from sallyport.areas.did.crypto.documents import key_did, resolve
from sallyport.areas.did.crypto.encoding import CURVES, ED25519, Curve
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.keys import PrivateKey
from sallyport.base.clock import SECOND
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON

NOW = 1_767_225_600 * SECOND  # 2026-01-01


def signer(number: int = 1, curve: Curve = ED25519) -> Signer:
    """Return the signer of a did:key. Each number gives another key."""
    key = PrivateKey(curve, Secret(bytes(31) + bytes((number,))))
    return Signer(resolve(key_did(key.public)).methods[0].id, key)


def did(of: Signer) -> str:
    """Return the DID of a signer."""
    return of.method_id.partition("#")[0]


ISSUERS = {name: signer(1, curve) for name, curve in CURVES.items()}
HOLDER = signer(2)


def credential(by: Signer, subject: str = did(HOLDER), /, **changes: JSON) -> dict[str, JSON]:
    """Return a credential document that is valid through 2026."""
    document: dict[str, JSON] = {
        "@context": ["https://www.w3.org/2018/credentials/v1"],
        "id": "urn:uuid:6f1bb1f1-9f5a-4c3e-8d6a-1f2f5a2a9c11",
        "type": ["VerifiableCredential"],
        "issuer": did(by),
        "issuanceDate": "2026-01-01T00:00:00Z",
        "expirationDate": "2027-01-01T00:00:00Z",
        "credentialSubject": {"id": subject, "epmUsername": "alice"},
    }
    return {**document, **changes}
