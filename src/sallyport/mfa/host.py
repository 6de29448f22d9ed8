"""The configuration of a provider, and the parts of the service that it may use; one prompt for one challenge, for a
provider whose service has no idempotency keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import trio
from pydantic import ConfigDict

from sallyport.base.bounded import ExpiringMap
from sallyport.base.model import Model
from sallyport.mfa.provider import Answer, Outcome, Provider

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sallyport.base.clock import Clock
    from sallyport.outgoing.http import HttpFactory

_REMEMBERED: Final = 10_000
KEPT_S: Final = 300.0  # longer than any login lasts


class Fields(Model):
    """The configuration of a provider, in the interface's spelling. A secret is a SecretStr, and never returned."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class Seeds(Protocol):
    """The one-time-password seeds of the endpoint users."""

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the user's confirmed seed, base32; None if there is none. Raises StoreError, SecretError."""

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Store the time step of an accepted code; it is on disk when this returns. False: this step or a later one is
        spent."""


class WalletPrompts(Protocol):
    """Presentation requests to wallets at a login. All calls raise StoreError."""

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
        None if the user holds no such credential. purpose: the text that the user reads. expires_at: microseconds."""

    async def answer(self, request_id: int, *, within_s: float) -> bool | None:
        """Return True if the request was accepted, False if it was declined, withdrawn or expired, None if it is still
        open after that time."""

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


class Once:
    """A cache of the answers that started the last challenges. After a restart the store has their handles. Only
    answers with a prompt or a handle are cached: a repeated refusal sends no prompt. An answer is kept for KEPT_S,
    since its handle may be a secret.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._answers = ExpiringMap[str, Answer](remembered, KEPT_S)
        self._beginning: dict[str, trio.Event] = {}

    async def start(self, challenge_id: str, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer of `begin`, which runs once for a challenge_id. A second call waits for the first; if that
        fails or is cancelled, it runs `begin` again. The exceptions of `begin` propagate."""
        while (running := self._beginning.get(challenge_id)) is not None:
            await running.wait()
        known = self._answers.get(challenge_id, now=trio.current_time())
        if known is not None:
            return known
        done = self._beginning[challenge_id] = trio.Event()
        try:
            answer = await begin()
            if answer.outcome is Outcome.WAITING or answer.handle:
                self._answers.put(challenge_id, answer, now=trio.current_time())
        finally:
            del self._beginning[challenge_id]
            done.set()
        return answer
