"""What those who issue know of wallets: seals that only their walletKey opens, and whose they are."""

from sallyport.base.errors import NotFound
from sallyport.did.wallets import guard, repo
from sallyport.did.wallets.key import seal_to
from sallyport.did.wallets.service import NO_WALLET, found
from sallyport.store.model import Tx
from sallyport.web.scope import Caller


class HolderKeys:
    """Satisfies did.peers.Wallets."""

    def seal(self, tx: Tx, domain_id: int, wallet_id: int, clear: bytes, identity: str) -> bytes:
        """Seal something for whoever has the wallet's key. NotFound: the domain has no such wallet."""
        public = repo.public_key(tx, domain_id, wallet_id)
        if public is None:
            raise NotFound(NO_WALLET)
        return seal_to(public, clear, identity)

    def check(self, tx: Tx, domain_id: int, wallet_id: int) -> None:
        """NotFound: the domain has no such wallet."""
        if repo.public_key(tx, domain_id, wallet_id) is None:
            raise NotFound(NO_WALLET)

    def own(self, tx: Tx, caller: Caller, wallet_id: int) -> None:
        """NotFound: the tenant has no such wallet. Forbidden: the caller is another wallet."""
        guard.own(caller, found(tx, caller.tenant_id, wallet_id))
