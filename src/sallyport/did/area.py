"""The parts of decentralized identity, put together over a store."""

from collections.abc import Callable, Collection

from sallyport.base.clock import Clock, now_us
from sallyport.did.credentials.service import Credentials
from sallyport.did.credentials.status import StatusLists
from sallyport.did.dids.resolver import Resolver
from sallyport.did.dids.service import Dids
from sallyport.did.peers import Requests, Sessions, Wallets
from sallyport.did.schemas.service import Schemas
from sallyport.metrics import CredentialMetrics
from sallyport.outgoing.http import HttpFactory
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault


class Issuing:
    """DIDs, schemas, credentials and their status. base: the address that the service's own DIDs, schemas and lists
    begin with. hosts: of foreign did:web that may be asked."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        metrics: CredentialMetrics,
        wallets: Wallets,
        sessions: Sessions,
        requests: Requests,
        base: Callable[[], str],
        clock: Clock = now_us,
        *,
        http: HttpFactory | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self.dids = Dids(store, vault, wallets, sessions, requests, base, clock)
        self.resolver = Resolver(store, http, hosts)
        self.schemas = Schemas(store, vault, base, clock)
        self.lists = StatusLists(store, vault, base, clock)
        self.credentials = Credentials(
            store, vault, self.schemas, self.lists, wallets, sessions, requests, metrics, clock
        )

    def check_key(self, tx: Tx) -> None:
        """Open a key in a store that is to take the place of this one. SecretError."""
        self.dids.check_key(tx)
