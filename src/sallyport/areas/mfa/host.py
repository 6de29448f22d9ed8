"""The configuration of a provider, the services that a provider may use, and a cache that prevents duplicate
prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import trio
from pydantic import ConfigDict

from sallyport.areas.mfa.provider import Answer, Outcome, Provider
from sallyport.base.bounded import ExpiringMap
from sallyport.base.model import SentModel, Unknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sallyport.base.clock import Clock
    from sallyport.outgoing.http import HttpFactory

_REMEMBERED: Final = 10_000
KEPT_S: Final = 300.0  # longer than any login lasts


class Fields(SentModel):
    """The configuration of a provider, with the field names of the API. Secrets are of type SecretStr, so that no
    answer contains them."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    unknown: ClassVar[Unknown] = Unknown.NEAR_MISSES_REFUSED


class Seeds(Protocol):
    """The one-time-password seeds of endpoint users."""

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the user's confirmed seed in base32, or None if the user has none. Raises StoreError, SecretError."""

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Store the time step of an accepted code, so that the code cannot be used again. Return False if this step or
        a later one was already used.

        When this returns, the time step is on disk.
        """


class WalletPrompts(Protocol):
    """Requests by which a login asks a user's wallet for a credential. Each call may raise StoreError."""

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Return whether a user of the domain holds a valid credential of the issuer. schema_id: the schema of the
        credential, or 0 for any schema."""

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
        """Open a request to the user's wallet for a credential, and return the id of the request. Return None if the
        user holds no such credential. If a call repeats a challenge_id, it returns the id of the first request.

        purpose: the text that the wallet shows to the user. expires_at: the expiry of the request, in microseconds.
        """

    async def answer(self, request_id: int, *, within_s: float) -> bool | None:
        """Wait for the wallet's answer.

        Return True if the user has accepted the request. Return False if it was declined, withdrawn or expired. Return
        None if it is still pending after `within_s` seconds.
        """

    async def withdraw(self, request_id: int) -> None:
        """Close a request whose login has ended."""


@dataclass(frozen=True, slots=True)
class Host:
    """The services that a provider may use. domain: the name of the provider's domain."""

    domain_id: int
    domain: str
    http: HttpFactory
    seeds: Seeds
    wallets: WalletPrompts
    clock: Clock


class ConfiguredProvider(Provider, Protocol):
    """A provider class that the service can create.

    An installed package can add a class by an entry point in the group `sallyport.mfa`. The class must pass the tests
    in `contract`.
    """

    fields: ClassVar[type[Fields]]

    def __init__(self, fields: Fields, host: Host) -> None:
        """Store the configuration. A provider must not connect before one of its other methods is called."""


class Once:
    """A cache of recent challenges and their first answers, so that a repeated challenge sends no second prompt.

    Only answers with a prompt or a handle are cached. A refusal is not cached, because its repetition sends no prompt.
    An answer is deleted after KEPT_S seconds, because its handle may be secret. After a restart the cache is empty, but
    the store has the handles.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._answers = ExpiringMap[str, Answer](remembered, KEPT_S)
        self._beginning: dict[str, trio.Event] = {}

    async def start(self, challenge_id: str, begin: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run `begin` once for each challenge_id, and return its answer. Exceptions of `begin` propagate.

        If a call for the same challenge_id is already running, a second call waits for its end. If the first call fails
        or is cancelled, the second call runs its own `begin`.
        """
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
