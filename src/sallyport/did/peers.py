"""What decentralized identity needs of other areas: sessions, tokens, and the endpoints of presentation requests."""

from collections.abc import Sequence
from typing import Protocol

from sallyport.store.model import Tx


class Sessions(Protocol):
    """Ends the sessions of users once the transaction is committed, if their domain disconnects on revocation."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """End the sessions of users of a domain. reason: for a person."""


class Tokens(Protocol):
    """Makes access tokens."""

    def wallet_token(self, tx: Tx, tenant_id: int, email: str) -> tuple[int, str]:
        """Make a token with the role wallet; its id, and the token."""

    def end_wallet_token(self, tx: Tx, tenant_id: int, token_id: int) -> None:
        """Revoke a token."""

    def forget(self) -> None:
        """Forget cached tokens, so that a revocation holds from now on."""


class Guesses(Protocol):
    """Counts failures by source, and forgets them with time."""

    def too_many(self, source: str, now: int) -> bool:
        """Return whether this source has to wait. now: microseconds."""

    def fail(self, source: str, now: int) -> None:
        """Count one more."""


class Person(Protocol):
    """An endpoint user."""

    @property
    def id(self) -> int:
        """Its userId."""

    @property
    def domain_id(self) -> int:
        """Its domain."""

    @property
    def name(self) -> str:
        """Its userName."""


class AccessTarget(Protocol):
    """An instance or a group; see `endpoints.targets`."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def is_active(self) -> bool:
        """Whether it grants anything."""

    @property
    def session_s(self) -> int | None:
        """The longest session of its users."""

    def admits(self, tx: Tx, method: str, names: Sequence[str]) -> bool:
        """Return whether one of the users of these names, or, without names, any user may authenticate so there."""


class AccessTargets(Protocol):
    """Knows the instances and groups."""

    def find(self, tx: Tx, tenant_id: int, domain_id: int, name: str, *, group: bool = False) -> AccessTarget | None:
        """Return the tenant's instance or group of that name or id; one of the domain first."""

    def members(self, tx: Tx, group_id: int) -> Sequence[Person]:
        """Return the users of a group."""
