"""The configuration of a provider, the parts of the service that a provider may use, and a cache that prevents
duplicate prompts."""

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
    """The configuration of a provider, with the field names of the API. A secret is a SecretStr, and is never
    returned."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class Seeds(Protocol):
    """The one-time-password seeds of the endpoint users."""

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the user's confirmed seed in base32; None if there is none. Raises StoreError, SecretError."""

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Store the time step of an accepted code, so that the code cannot be used again. The time step is on disk when
        this returns. Return False if this step or a later one was already used."""


class WalletPrompts(Protocol):
    """Presentation requests to wallets for logins. Each call may raise StoreError."""

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Return whether a user of the domain holds a valid credential of the issuer. schema_id: 0 for any schema."""

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
        """Open a request to the user's wallet for such a credential, and return the id of the request. Return None if
        the user holds no such credential. For the same challenge_id the same id is returned. purpose: the text for the
        user. expires_at: the expiry time in microseconds."""

    async def answer(self, request_id: int, *, within_s: float) -> bool | None:
        """Wait for the answer. Return True if the request was accepted, False if it was declined, withdrawn or expired,
        and None if it is still pending after `within_s` seconds."""

    async def withdraw(self, request_id: int) -> None:
        """Close the request, because the login has ended."""


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of the service that a provider may use. domain: the name of the provider's domain."""

    domain_id: int
    domain: str
    http: HttpFactory
    seeds: Seeds
    wallets: WalletPrompts
    clock: Clock


class ConfiguredProvider(Provider, Protocol):
    """A provider class that the service can create. An installed package can add one by an entry point in the group
    `sallyport.mfa`. The class must pass the tests in `sallyport.mfa.contract`."""

    fields: ClassVar[type[Fields]]

    def __init__(self, fields: Fields, host: Host) -> None:
        """Store the configuration, without connecting."""


class Once:
    """A cache of the first answers to the last challenges, so that a repeated challenge sends no second prompt. Only
    answers with a prompt or a handle are cached, because repeating a refusal sends no prompt. An answer is deleted
    after KEPT_S seconds, because its handle may be secret. After a restart, the handles are in the store."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._answers = ExpiringMap[str, Answer](remembered, KEPT_S)
        self._beginning: dict[str, trio.Event] = {}

    async def start(self, challenge_id: str, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer of `begin`, which runs once for each challenge_id. A simultaneous second call waits for the
        first call; if that fails or is cancelled, the second call runs `begin` again. The exceptions of `begin`
        propagate."""
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
