"""Authorization of requests that act for a wallet.

A token with the role wallet acts only for its own wallet. A token of an admin or operator acts for every wallet of the
tenant. An operation that needs the walletKey requires it from every caller. After too many wrong walletKeys or
presentations for a wallet, the caller's token is locked out of this wallet for a minute. Other wallets and other tokens
are not affected.
"""

from sallyport.areas.did.peers import Guesses
from sallyport.areas.did.wallets import repo
from sallyport.areas.did.wallets.key import is_key
from sallyport.areas.did.wallets.wallet import Wallet
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Forbidden, NotFound, TooMany, Unauthenticated
from sallyport.base.text import fold
from sallyport.store.model import Tx
from sallyport.web.scope import Caller, Role

WRONG_KEY = "invalid walletKey"
NOT_YOURS = "the token belongs to another wallet"
NO_WALLET = "wallet not found"


class Tries:
    """Counts wrong walletKeys and wrong presentations. Each pair of a token and a wallet has its own count.

    A wallet is identified by its id, or by an e-mail address. Wrong walletKeys for an address without a wallet are
    counted too. Otherwise the lock would reveal which addresses have a wallet.
    """

    def __init__(self, guesses: Guesses, clock: Clock = now_us) -> None:
        self._guesses = guesses
        self._clock = clock

    def check(self, caller: Caller, wallet: int | str) -> None:
        """Raise TooMany if the wallet is locked for the caller's token."""
        if self._guesses.too_many(_source(caller, wallet), self._clock()):
            raise TooMany("too many wrong wallet keys or presentations for this wallet: try again in a minute")

    def failed(self, caller: Caller, wallet: int | str) -> None:
        """Count a failure of the caller's token for the wallet."""
        self._guesses.fail(_source(caller, wallet), self._clock())


def wallet_of(tx: Tx, tenant_id: int, wallet_id: int) -> Wallet:
    """Return a wallet of the tenant. Raises NotFound."""
    wallet = repo.get(tx, tenant_id, wallet_id)
    if wallet is None:
        raise NotFound(NO_WALLET)
    return wallet


def own_wallet(tx: Tx, caller: Caller, wallet_id: int) -> Wallet:
    """Return a wallet for which the caller may act. Raises NotFound if the tenant has no such wallet. Raises
    Forbidden if the caller is another wallet."""
    wallet = wallet_of(tx, caller.tenant_id, wallet_id)
    _check_owner(caller, wallet)
    return wallet


def check_key(tries: Tries, caller: Caller, wallets: list[Wallet], wallet_key: str, email: str = "") -> Wallet:
    """Return the wallet whose walletKey is `wallet_key`. email: the e-mail address with which the caller found the
    wallets.

    Raises Unauthenticated if the walletKey belongs to none of the wallets. Raises Forbidden, TooMany.
    """
    matching = [wallet for wallet in wallets if is_key(wallet_key, wallet.key_hash)]
    asked: list[int | str] = [wallet.id for wallet in matching or wallets] or [fold(email.strip())]
    for each in asked:
        tries.check(caller, each)
    if not matching:
        for each in asked:
            tries.failed(caller, each)
        raise Unauthenticated(WRONG_KEY)
    _check_owner(caller, matching[0])
    return matching[0]


def _check_owner(caller: Caller, wallet: Wallet) -> None:
    if caller.role is Role.WALLET and wallet.token_id != caller.token_id:
        raise Forbidden(NOT_YOURS)


def _source(caller: Caller, wallet: int | str) -> str:
    return f"token {caller.token_id} wallet {wallet}"
