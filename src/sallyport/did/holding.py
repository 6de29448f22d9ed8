"""The holder's side, put together: wallets, the credentials of endpoint users, presentations, login prompts."""

from sallyport.base.clock import Clock, now_us
from sallyport.did.held.endpoints import UserCredentials
from sallyport.did.presentations.asking import Verifier
from sallyport.did.presentations.peers import AccessTargets, Meter
from sallyport.did.presentations.prompts import LoginPrompts
from sallyport.did.presentations.service import Presentations
from sallyport.did.presentations.waker import Waker
from sallyport.did.wallets.guard import Guesses, Tries
from sallyport.did.wallets.sealing import HolderKeys
from sallyport.did.wallets.service import Tokens, Wallets
from sallyport.store.model import Store
from sallyport.store.vault import Vault


class Holding:
    """What holders do, and what is asked of them. keys: seals for holders. users: of endpoint users. prompts: of
    logins."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        tokens: Tokens,
        targets: AccessTargets,
        guesses: Guesses,
        meter: Meter,
        clock: Clock = now_us,
    ) -> None:
        waker, tries = Waker(), Tries(guesses, clock)
        self.keys = HolderKeys()
        self.users = UserCredentials(clock)
        self.wallets = Wallets(store, tokens, vault, tries, clock)
        self.verifier = Verifier(store, targets, clock)
        self.presentations = Presentations(store, vault, waker, tries, meter, clock)
        self.prompts = LoginPrompts(store, waker, clock)
