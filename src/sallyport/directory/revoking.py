"""What directories tell of who has lost their access, to what ends their sessions."""

from collections.abc import Sequence
from typing import Protocol

from sallyport.store.model import Tx


class Revocations(Protocol):
    """Ends the sessions of users once the transaction is through, in domains that say so."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Users of a domain lose their access. reason: for a person."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Whether to lose a group is to lose access."""
