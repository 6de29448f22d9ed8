"""From a DID to its document: at once for did:key and did:jwk, from the store for the service's own did:web, and over
the network for those of hosts that the operator has named.

Nobody who sends a DID chooses where the service connects to: a host that is not named is not asked, and the networks of
`egress` hold as well. A fetched document is kept for a few minutes; a failure is not.
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
    """hosts: `host` or `host:port` of foreign did:web that may be asked. http: None asks nobody. now: seconds. most:
    documents that are kept."""

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
        """CredentialError `malformed`; `unresolved`: another method, an unknown own one, a host that is not asked or
        gives no document."""
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
