"""The entrance of decentralized identity: DIDs, schemas, credentials, wallets, presentations."""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from sallyport.areas.did import public
from sallyport.areas.did.credentials import operations as credentials_api
from sallyport.areas.did.credentials.schemas import Schemas
from sallyport.areas.did.credentials.service import Credentials
from sallyport.areas.did.credentials.status import StatusLists
from sallyport.areas.did.dids import operations as dids_api
from sallyport.areas.did.dids.resolver import Resolver
from sallyport.areas.did.dids.service import Dids
from sallyport.areas.did.peers import AccessTargets, Guesses, Sessions, Tokens
from sallyport.areas.did.presentations import operations as presentations_api
from sallyport.areas.did.presentations.prompts import LoginPrompts, OpenRequests
from sallyport.areas.did.presentations.service import Presentations
from sallyport.areas.did.presentations.verifier import Verifier
from sallyport.areas.did.wallets import operations as wallets_api
from sallyport.areas.did.wallets.guard import Tries
from sallyport.areas.did.wallets.repo import WalletRows
from sallyport.areas.did.wallets.service import Wallets
from sallyport.areas.did.wallets.users import UserCredentials
from sallyport.areas.entrance import Area, Parts
from sallyport.base.clock import now_us
from sallyport.metrics import CredentialMetrics, PresentationMetrics
from sallyport.settings.settings import Settings
from sallyport.store.erasure import DependentTable, Rows
from sallyport.store.model import Tx
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class DidArea(Area):
    """The services of decentralized identity.

    users: the service for the credentials of endpoint users. prompts: the service that asks a wallet for the second
    factor of a login. guesses: limits the wrong keys, and the wrong presentations, of one token.
    """

    erased_rows = (
        Rows("presentation_requests", "presentation requests"),
        Rows("credential_users", key="credential_id"),
        Rows(
            "credentials", "credentials", parts=(DependentTable("credential_tokens", "credential_id", "credential_id"),)
        ),
        Rows("credential_schemas", "credential schemas"),
        Rows(
            "dids",
            "DIDs",
            parts=(DependentTable("did_keys", "id", "did_id"), DependentTable("status_lists", "id", "issuer_id")),
            searched="tenant_id",
        ),
        WalletRows("wallets", "wallets", searched="domain_id"),
    )
    sealed = (
        Sealed("did_keys", "sealed", ("id",), "did_keys/{}/sealed"),
        Sealed("credentials", "password", ("id",), "credentials/{}/password"),
    )

    def __init__(
        self, parts: Parts, sessions: Sessions, tokens: Tokens, targets: AccessTargets, guesses: Guesses
    ) -> None:
        store, vault, clock = parts.store, parts.vault, parts.clock

        def base() -> str:
            return parts.settings.did_url or parts.link_base()

        self.requests, tries = OpenRequests(clock, parts.notices), Tries(guesses, clock)
        self.dids = Dids(store, vault, sessions, self.requests, base, clock)
        self.resolver = Resolver(store, parts.http, parts.settings.did_web_hosts)
        self.schemas = Schemas(store, vault, base, clock)
        self.lists = StatusLists(store, vault, base, clock)
        metrics = CredentialMetrics(parts.registry)
        self.credentials = Credentials(store, vault, self.schemas, self.lists, sessions, self.requests, metrics, clock)
        self.users = UserCredentials(clock)
        self.wallets = Wallets(store, tokens, vault, tries, clock)
        self.verifier = Verifier(store, targets, clock)
        shown = PresentationMetrics(parts.registry)
        self.presentations = Presentations(store, vault, self.requests, tries, shown, clock)
        self.prompts = LoginPrompts(store, self.requests, clock)

    def apply(self, settings: Settings) -> None:
        """Fetch documents of did:web from the hosts of the settings."""
        self.resolver.use(settings.did_web_hosts)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of DIDs, schemas, credentials, wallets and presentations."""
        return [
            wallets_api.operations(self.wallets, gate),
            presentations_api.operations(self.verifier, self.presentations, gate),
            dids_api.operations(self.dids, gate),
            credentials_api.schema_operations(self.schemas, gate),
            credentials_api.operations(self.credentials, now_us, gate),
        ]

    def routes(self, gate: Gate) -> Sequence[BaseRoute]:
        """Return the public documents, and the resolution of DIDs."""
        return public.routes(self.dids, self.schemas, self.lists, self.resolver, gate)

    def void(self, tx: Tx, at: int) -> None:
        """Withdraw the open presentation requests."""
        self.requests.void(tx)
