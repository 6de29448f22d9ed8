"""Create all services of decentralized identity."""

from collections.abc import Callable, Collection

from sallyport.areas.did.credentials.schemas import Schemas
from sallyport.areas.did.credentials.service import Credentials
from sallyport.areas.did.credentials.status import StatusLists
from sallyport.areas.did.dids.resolver import Resolver
from sallyport.areas.did.dids.service import Dids
from sallyport.areas.did.peers import AccessTargets, Guesses, Sessions, Tokens
from sallyport.areas.did.presentations.prompts import LoginPrompts, OpenRequests
from sallyport.areas.did.presentations.service import Presentations
from sallyport.areas.did.presentations.verifier import Verifier
from sallyport.areas.did.wallets.guard import Tries
from sallyport.areas.did.wallets.service import Wallets
from sallyport.areas.did.wallets.users import UserCredentials
from sallyport.base.clock import Clock, now_us
from sallyport.metrics import CredentialMetrics, PresentationMetrics
from sallyport.nodes.notices import Notices
from sallyport.outgoing.http import HttpFactory
from sallyport.store.model import Store
from sallyport.store.vault import Vault


class DidArea:
    """The services of decentralized identity.

    users: the service for the credentials of endpoint users. prompts: the service that asks a wallet for the second
    factor of a login. base: a function that returns the base URL of the service's own DIDs, schemas and status lists.
    hosts: the hosts from which the service may request foreign did:web documents.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        sessions: Sessions,
        tokens: Tokens,
        targets: AccessTargets,
        guesses: Guesses,
        credential_metrics: CredentialMetrics,
        presentation_metrics: PresentationMetrics,
        base: Callable[[], str],
        notices: Notices,
        clock: Clock = now_us,
        *,
        http: HttpFactory | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        requests, tries = OpenRequests(clock, notices), Tries(guesses, clock)
        self.dids = Dids(store, vault, sessions, requests, base, clock)
        self.resolver = Resolver(store, http, hosts)
        self.schemas = Schemas(store, vault, base, clock)
        self.lists = StatusLists(store, vault, base, clock)
        self.credentials = Credentials(
            store, vault, self.schemas, self.lists, sessions, requests, credential_metrics, clock
        )
        self.users = UserCredentials(clock)
        self.wallets = Wallets(store, tokens, vault, tries, clock)
        self.verifier = Verifier(store, targets, clock)
        self.presentations = Presentations(store, vault, requests, tries, presentation_metrics, clock)
        self.prompts = LoginPrompts(store, requests, clock)
        self.requests = requests
