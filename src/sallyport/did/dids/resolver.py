"""Resolution of DIDs: a did:key or did:jwk by itself, the service's own did:web from the store, and a did:web of a host
that the operator has named over the network.

The sender of a DID must not choose where the service connects to: only named hosts are asked, within the networks of
`egress`. A fetched document is cached for a few minutes; a failure is not.
"""

from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import urlsplit

import trio

from sallyport.base.bounded import ExpiringMap
from sallyport.base.errors import CredentialError
from sallyport.did.crypto.documents import Document, parse, resolve, split, web_address
from sallyport.did.dids import repo
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory, exchange
from sallyport.store.model import Store

KEPT_S: Final = 300.0
MAX_KEPT: Final = 256
TIMEOUT_S: Final = 5.0
LARGEST: Final = 64 << 10
"""Octets of a document."""


class Resolver:
    """hosts: `host` or `host:port` of foreign did:web that may be asked. http: None asks no host. now: seconds. most:
    documents in the cache."""

    def __init__(
        self,
        store: Store,
        http: HttpFactory | None = None,
        hosts: Collection[str] = (),
        now: Callable[[], float] = trio.current_time,
        most: int = MAX_KEPT,
    ) -> None:
        self._store = store
        self._http = http
        self._hosts = frozenset(host.lower() for host in hosts)
        self._now = now
        self._kept = ExpiringMap[str, Document](most, KEPT_S)

    async def resolve(self, did: str) -> Document:
        """Return the document of a DID. CredentialError `malformed`; `unresolved`: another method, an unknown own DID,
        a host that is not in `hosts` or has no document."""
        method, _ = split(did)
        if method != "web":
            return resolve(did)
        own = await self._store.search(lambda tx: repo.document(tx, did))
        return own or await self._foreign(did)

    async def _foreign(self, did: str) -> Document:
        address = web_address(did)
        place = urlsplit(address)
        document = self._kept.get(did, now=self._now())
        if document is not None:
            return document
        if self._http is None or place.netloc.lower() not in self._hosts:
            raise CredentialError("the DID is at a host that is not asked", "unresolved")
        client = self._http(f"https://{place.netloc}", timeout_s=TIMEOUT_S)
        try:
            accept = {"Accept": "application/did+json, */*;q=0.1"}
            answer = await exchange(client, "GET", place.path, headers=accept, most=LARGEST)
        except ProviderError as error:
            raise CredentialError(str(error), "unresolved") from None
        finally:
            await client.aclose()
        if answer.status_code != 200:
            raise CredentialError("the DID's host has no document of it", "unresolved")
        found = parse(did, answer.content)
        self._kept.put(did, found, now=self._now())
        return found
