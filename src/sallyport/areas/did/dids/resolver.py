"""Find the document of a DID.

A did:key or did:jwk contains its document. The document of a did:web of this service is in the store. The document of a
did:web of another host is fetched over the network if the operator has allowed the host.

The sender of a DID must not be able to choose the address to which the service connects. So the service connects only
to allowed hosts, and only within the networks of `egress`. A fetched document is cached for a few minutes. Failures are
not cached.
"""

from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import urlsplit

import trio

from sallyport.areas.did.crypto.documents import Document, parse, resolve, split, web_address
from sallyport.areas.did.dids import repo
from sallyport.base.bounded import ExpiringMap
from sallyport.base.errors import CredentialError
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.store.model import Store

KEPT_S: Final = 300.0
MAX_KEPT: Final = 256
TIMEOUT_S: Final = 5.0
MAX_SIZE: Final = 64 << 10
"""Maximum size of a document, in octets."""


class Resolver:
    """Finds the documents of DIDs. hosts: the hosts from which foreign did:web documents may be requested, as `host`
    or `host:port`. http: the HTTP clients; None if no document may be requested. now: a function that returns the
    time in seconds. most: the maximum number of cached documents."""

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
        self.use(hosts)
        self._now = now
        self._kept = ExpiringMap[str, Document](most, KEPT_S)

    def use(self, hosts: Collection[str]) -> None:
        """Set the hosts from which documents may be requested."""
        self._hosts = frozenset(host.lower() for host in hosts)

    async def resolve(self, did: str) -> Document:
        """Return the document of a DID. Raises CredentialError `malformed` if the DID or its document is malformed.

        Raises CredentialError `unresolved` if the method of the DID is not supported, or if a did:web of this service
        does not exist. Raises CredentialError `unresolved` also if the host of a did:web is not in `hosts`, or does not
        return a document.
        """
        method, _ = split(did)
        if method != "web":
            return resolve(did)
        own = await self._store.search(lambda tx: repo.document(tx, did))
        return own or await self._foreign(did)

    async def _foreign(self, did: str) -> Document:
        address = web_address(did)
        url = urlsplit(address)
        document = self._kept.get(did, now=self._now())
        if document is not None:
            return document
        if self._http is None or url.netloc.lower() not in self._hosts:
            raise CredentialError("the host of the DID is not in the setting did_web_hosts", "unresolved")
        client = self._http(f"https://{url.netloc}", timeout_s=TIMEOUT_S, most=MAX_SIZE)
        try:
            accept = {"Accept": "application/did+json, */*;q=0.1"}
            answer = await client.get(url.path, headers=accept)
        except ProviderError as error:
            raise CredentialError(str(error), "unresolved") from None
        finally:
            await client.aclose()
        if answer.status_code != 200:
            raise CredentialError("the host of the DID has not returned a document for this DID", "unresolved")
        found = parse(did, answer.content)
        self._kept.put(did, found, now=self._now())
        return found
