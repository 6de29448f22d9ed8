"""What issuing needs of others: the wallets of holders, and who ends the sessions of those who lose a credential."""

from collections.abc import Sequence
from typing import Protocol

from sallyport.store.model import Tx
from sallyport.web.scope import Caller


class Wallets(Protocol):
    """Knows the wallets of holders."""

    def check(self, tx: Tx, domain_id: int, wallet_id: int) -> None:
        """NotFound: the domain has no such wallet."""

    def seal(self, tx: Tx, domain_id: int, wallet_id: int, clear: bytes, identity: str) -> bytes:
        """Seal something for whoever has the wallet's key. NotFound: the domain has no such wallet."""

    def own(self, tx: Tx, caller: Caller, wallet_id: int) -> None:
        """NotFound: the tenant has no such wallet. Forbidden: the caller is another wallet."""


class Sessions(Protocol):
    """Ends the sessions of users once the transaction is through, where their domain says so."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Users of a domain lose their access. reason: for a person."""


class Requests(Protocol):
    """Knows the open presentation requests."""

    def withdraw(self, tx: Tx, domain_id: int, *, holder_did: str = "", issuer_did: str = "") -> Sequence[int]:
        """Close up to SLICE requests for a holder's credentials of an issuer, empty for any; which those were."""

    def wake(self, request_ids: Sequence[int]) -> None:
        """That is on disk: who waits for them is told."""
