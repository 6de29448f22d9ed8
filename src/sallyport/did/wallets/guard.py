"""Who may act for a wallet.

A token with the role wallet acts for its own wallet alone; an admin's or operator's for every one of the tenant. Where
the walletKey is asked for, both must bring it. Whoever sends wrong ones is stopped for a while: counted by token, so
that nobody can keep somebody else out.
"""

from typing import Protocol

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Forbidden, TooMany, Unauthenticated
from sallyport.did.wallets.key import is_key
from sallyport.did.wallets.model import Wallet
from sallyport.web.scope import Caller, Role

WRONG_KEY = "invalid walletKey"
NOT_YOURS = "not the token's wallet"


class Guesses(Protocol):
    """Counts failures by source, and lets them be forgotten with time."""

    def too_many(self, source: str, now: int) -> bool:
        """Whether this source has to wait. now: microseconds."""

    def fail(self, source: str, now: int) -> None:
        """Count one more."""


class Tries:
    """The wrong walletKeys and presentations of each token."""

    def __init__(self, guesses: Guesses, clock: Clock = now_us) -> None:
        self._guesses = guesses
        self._clock = clock

    def check(self, caller: Caller) -> None:
        """TooMany: the caller has failed too often."""
        if self._guesses.too_many(_source(caller), self._clock()):
            raise TooMany("too many wrong wallet keys or presentations: try again in a minute")

    def failed(self, caller: Caller) -> None:
        """Count one more."""
        self._guesses.fail(_source(caller), self._clock())


def own(caller: Caller, wallet: Wallet) -> None:
    """Forbidden: the caller is another wallet."""
    if caller.role is Role.WALLET and wallet.token_id != caller.token_id:
        raise Forbidden(NOT_YOURS)


def check_key(tries: Tries, caller: Caller, wallets: list[Wallet], wallet_key: str) -> Wallet:
    """The one of these wallets that has the key. Unauthenticated: none has. Forbidden, TooMany."""
    tries.check(caller)
    matching = [wallet for wallet in wallets if is_key(wallet_key, wallet.key_hash)]
    if not matching:
        tries.failed(caller)
        raise Unauthenticated(WRONG_KEY)
    own(caller, matching[0])
    return matching[0]


def _source(caller: Caller) -> str:
    return f"token {caller.token_id}"
