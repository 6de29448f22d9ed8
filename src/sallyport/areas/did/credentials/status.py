"""The lists of revoked credentials (W3C StatusList2021, section 3.2).

A list has one bit for each credential. Bit i is `octet[i >> 3] & (0x80 >> (i & 7))`. Each credential gets a random bit
in its issuer's newest list. So the index of the bit does not reveal the time of issue. A new list is started when half
of the bits are used. So a free random bit is found after at most two tries on average.

A list is signed when a verifier requests it. The signature is used again until the list changes, but for at most an
hour.
"""

import gzip
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from sallyport.areas.did.credentials import repo
from sallyport.areas.did.credentials.credential import Credential
from sallyport.areas.did.crypto import proofs, vc
from sallyport.areas.did.crypto.encoding import to_base64url
from sallyport.areas.did.dids import repo as dids
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock, iso_seconds
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault

CONTEXT: Final = "https://w3id.org/vc/status-list/2021/v1"
PURPOSE: Final = "revocation"
PATH: Final = "/credentials/status/"
"""URL path of the published lists."""
BITS: Final = 131_072
"""Number of bits in a list. The specification requires this minimum, so that a bit does not reveal its credential."""
MAX_ENTRIES: Final = BITS // 2
FRESH: Final = 3600 * SECOND
LIFETIME: Final = 86_400 * SECOND
"""Validity of a signed list. It is short, so that an old list is not accepted for long."""
MAX_CACHED: Final = 64


@dataclass(frozen=True, slots=True)
class Place:
    """The bit of a credential in a status list. url: the URL of the list."""

    list_id: int
    index: int
    url: str

    def entry(self) -> dict[str, JSON]:
        """Return the `credentialStatus` of the credential."""
        return {
            "id": f"{self.url}#{self.index}",
            "type": "StatusList2021Entry",
            "statusPurpose": PURPOSE,
            "statusListIndex": str(self.index),
            "statusListCredential": self.url,
        }


@dataclass(frozen=True, slots=True)
class Published:
    """A signed status list in two forms: a token (VC-JWT), and a document with a proof, as JSON."""

    version: int
    key_id: int
    made_at: int
    token: str
    document: str

    def is_current(self, version: int, key_id: int, now: int) -> bool:
        """Return whether the signed list has this version, was signed with this key, and is younger than FRESH."""
        return (self.version, self.key_id) == (version, key_id) and self.made_at <= now < self.made_at + FRESH


class StatusLists:
    """The lists of all issuers. base: a function that returns the service's URL, without a trailing slash. max_cached:
    the maximum number of signed lists in memory. The signed lists of one tenant may fill only a part of this memory."""

    def __init__(
        self, store: Store, vault: Vault, base: Callable[[], str], clock: Clock, *, max_cached: int = MAX_CACHED
    ) -> None:
        self._store = store
        self._vault = vault
        self._base = base
        self._clock = clock
        self._cached = BoundedMap[str, Published](max_cached)

    def place(self, tx: Tx, issuer_id: int) -> Place:
        """Reserve a bit for a new credential."""
        found = repo.list_with_room(tx, issuer_id, MAX_ENTRIES)
        if found is None:
            found = repo.add_list(tx, issuer_id, str(uuid4()), bytes(BITS // 8))
        index = secrets.randbelow(BITS)
        while repo.is_given(tx, found.id, index):
            index = secrets.randbelow(BITS)
        repo.take(tx, found.id)
        return Place(found.id, index, f"{self._base()}{PATH}{found.uuid}")

    def revoke(self, tx: Tx, credential: Credential) -> None:
        """Set the credential's bit, which marks the credential as revoked."""
        octets = bytearray(repo.bits(tx, credential.list_id))
        octets[credential.list_index >> 3] |= 0x80 >> (credential.list_index & 7)
        repo.put_bits(tx, credential.list_id, bytes(octets))

    async def published(self, uuid: str) -> Published:
        """Return a list with the signature of its issuer. Raises NotFound."""
        made, tenant_id = await self._store.search(lambda tx: self._signed(tx, uuid))  # keeps threads free for logins
        self._cached.put(uuid, made, tenant_id)
        return made

    def _signed(self, tx: Tx, uuid: str) -> tuple[Published, int]:
        """Return a signed list, and the tenant of its issuer. Raises NotFound."""
        found = repo.published(tx, uuid)
        issuer = None if found is None else dids.by_id(tx, found.issuer_id)
        key = None if issuer is None else dids.active_key(tx, issuer.id)
        if found is None or issuer is None or key is None:
            raise NotFound("status list not found")
        now, cached = self._clock(), self._cached.get(uuid)
        if cached is not None and cached.is_current(found.version, key.id, now):
            return cached, issuer.tenant_id
        signer = dids.signer(self._vault, key)
        document = list_document(f"{self._base()}{PATH}{uuid}", issuer.did, repo.bits(tx, found.id), now)
        token = vc.sign(document, signer)
        secured = json.dumps(proofs.secure(document, signer, now, token), ensure_ascii=False)
        return Published(found.version, key.id, now, token, secured), issuer.tenant_id


def list_document(list_url: str, issuer: str, bits: bytes, at: int) -> dict[str, JSON]:
    """Return the credential document that contains a list. at: the time of issue, in microseconds."""
    return {
        "@context": [vc.CONTEXT, CONTEXT],
        "id": list_url,
        "type": [vc.CREDENTIAL, "StatusList2021Credential"],
        "issuer": issuer,
        "issuanceDate": iso_seconds(at),
        "expirationDate": iso_seconds(at + LIFETIME),
        "credentialSubject": {
            "id": f"{list_url}#list",
            "type": "StatusList2021",
            "statusPurpose": PURPOSE,
            "encodedList": to_base64url(gzip.compress(bits, mtime=0)),
        },
    }
