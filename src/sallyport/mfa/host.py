"""The configuration of a provider, and the parts of the service that it may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from pydantic import ConfigDict

from sallyport.base.model import Model
from sallyport.mfa.provider import Provider

if TYPE_CHECKING:
    from sallyport.base.clock import Clock
    from sallyport.outgoing.http import HttpFactory


class Fields(Model):
    """The configuration of a provider, in the interface's spelling. A secret is a SecretStr, and never returned."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class Seeds(Protocol):
    """The one-time-password seeds of the endpoint users."""

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the user's confirmed seed, base32; None if there is none. StoreError, SecretError."""

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Store the time step of an accepted code, on disk when this returns. False: it, or a later one, is spent."""


class WalletPrompts(Protocol):
    """Presentation requests to the wallets of users who log in. All calls raise StoreError."""

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Whether a user of the domain holds a valid credential of that issuer. schema_id 0: of any schema."""

    async def open(
        self,
        domain_id: int,
        user: str,
        issuer_did: str,
        schema_id: int,
        *,
        challenge_id: str,
        purpose: str,
        expires_at: int,
    ) -> int | None:
        """Ask the user's wallet for that credential. Return the request's id, the same for the same challenge_id, or
        None if the user holds none. purpose: as the user reads it. expires_at: microseconds."""

    async def answer(self, request_id: int, *, within_s: float) -> bool | None:
        """Return True if the request was met, False if it was declined, withdrawn or expired, None if it is still open
        after that time."""

    async def withdraw(self, request_id: int) -> None:
        """Close the request: the login is over."""


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the service that a provider may use. domain: the name of the domain that it serves."""

    domain_id: int
    domain: str
    http: HttpFactory
    seeds: Seeds
    wallets: WalletPrompts
    clock: Clock


class ConfiguredProvider(Provider, Protocol):
    """A provider as the service makes it. A package adds its own by an entry point in the group `sallyport.mfa` that
    names a class like this; the class must pass `sallyport.mfa.contract`."""

    fields: ClassVar[type[Fields]]

    def __init__(self, fields: Fields, host: Host) -> None:
        """Keep the configuration; connect to nothing yet."""
