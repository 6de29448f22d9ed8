"""Protocols (typing.Protocol) for what this package uses of other areas: sessions, tokens and endpoints."""

from collections.abc import Sequence
from typing import Protocol

from sallyport.store.model import Tx


class Sessions(Protocol):
    """The sessions of users. Some domains are set to disconnect on revocation. For such a domain, `revoke` ends
    sessions when the transaction is committed."""

    def revoke(self, tx: Tx, domain_id: int, names: Sequence[str], reason: str) -> None:
        """End the sessions of users of a domain. reason: text for an admin."""


class Tokens(Protocol):
    """The access tokens of wallets."""

    def wallet_token(self, tx: Tx, tenant_id: int, email: str) -> tuple[int, str]:
        """Create a token with the role wallet. Return its id and the token."""

    def end_wallet_token(self, tx: Tx, tenant_id: int, token_id: int) -> None:
        """Revoke a token."""

    def forget(self) -> None:
        """Clear cached tokens, so that a revocation takes effect at once."""


class Guesses(Protocol):
    """The number of failed attempts of each source. Failures expire after some time."""

    def too_many(self, source: str, now: int) -> bool:
        """Return whether a source must wait before the next attempt. now: the time in microseconds."""

    def fail(self, source: str, now: int) -> None:
        """Count one more failed attempt of a source. now: the time in microseconds."""


class Person(Protocol):
    """An endpoint user."""

    @property
    def id(self) -> int:
        """Return the userId."""

    @property
    def domain_id(self) -> int:
        """Return the id of the user's domain."""

    @property
    def name(self) -> str:
        """Return the userName."""


class AccessTarget(Protocol):
    """An instance or a group to which users get access (see `agents.targets`)."""

    @property
    def id(self) -> int:
        """Return the id."""

    @property
    def name(self) -> str:
        """Return the name."""

    @property
    def is_active(self) -> bool:
        """Return whether the target gives access to its users. Only a group can be inactive."""

    @property
    def session_s(self) -> int | None:
        """Return the maximum length of a session at the target in seconds, or None."""

    def admits(self, tx: Tx, method: str, names: Sequence[str]) -> bool:
        """Return whether one of the named users may use an authentication method at the target. If `names` is empty,
        return whether any user may use the method."""


class AccessTargets(Protocol):
    """The instances and groups of tenants."""

    def find(self, tx: Tx, tenant_id: int, domain_id: int, name: str, *, group: bool = False) -> AccessTarget | None:
        """Return an instance or a group of the tenant, or None. name: the name or the id of the target. If several
        targets match, a target in the given domain takes precedence."""

    def members(self, tx: Tx, group_id: int) -> Sequence[Person]:
        """Return the users of a group."""
