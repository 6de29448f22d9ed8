"""Who loses their access: told, in the transaction that takes it away, to what ends their sessions."""

from collections.abc import Sequence
from typing import Protocol

from sallyport.store.model import Tx


class Revocations(Protocol):
    """Ends the sessions of users once the transaction is through."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Users of a domain lose their access. reason: for a person."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Whether to lose a group is to lose access."""


class NoRevocations:
    """Sessions last until they end by themselves."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """Nothing ends."""

    def group_matters(self, domain_id: int, group: str) -> bool:
        """Never."""
        return False
