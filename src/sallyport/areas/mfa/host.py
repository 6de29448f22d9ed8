"""The services that a provider may use, and a cache that prevents duplicate prompts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol, TypeAlias

import trio

from sallyport.areas.mfa.fields import Fields as Fields  # noqa: PLC0414  what a provider subclasses
from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.provider import Answer, Code, Outcome, Provider, Question, Strength
from sallyport.base.bounded import ExpiringMap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sallyport.base.clock import Clock
    from sallyport.outgoing.http import HttpFactory

    Products = Callable[[], Awaitable[Sequence[str]]]

_REMEMBERED: Final = 10_000
KEPT_S: Final = 300.0  # longer than any login lasts


class Seeds(Protocol):
    """The one-time-password seeds of endpoint users."""

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the user's confirmed seed in base32, or None if the user has none. Raises StoreError, SecretError."""

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Store the time step of an accepted code, so that the code cannot be used again. Return False if this step or
        a later one was already used.

        When this returns, the time step is on disk.
        """


WalletAnswer: TypeAlias = Literal["accepted", "declined", "withdrawn", "expired"]


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

    async def answer(self, request_id: int, *, within_s: float) -> WalletAnswer | None:
        """Wait for the wallet's answer. Return None if the request is still open after `within_s` seconds."""

    async def withdraw(self, request_id: int) -> None:
        """Close a request whose login has ended."""


class StepUpState(StrEnum):
    """The states of a step-up, see `areas.factors.stepup`."""

    OPEN = "open"
    PROVEN = "proven"
    USED = "used"
    """The login has continued with the proof."""
    DENIED = "denied"
    """The person says that the login is not theirs."""
    UNBOUND = "unbound"
    """The browser does not have the address of the station."""
    WRONG = "wrong"
    """Too many digits or proofs were wrong."""
    OVER = "over"
    """The login has ended without an answer."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The page of a step-up. address: its URL. code: its code, as a person types it at `site`. site: the URL of the
    page for codes, without the scheme."""

    address: str
    code: str
    site: str


class StepUpRequests(Protocol):
    """Requests by which a login asks a person for a proof on a page. Each call may raise StoreError."""

    @property
    def has_pages(self) -> bool:
        """Whether the service has the pages on which people prove a factor."""

    @property
    def has_mail(self) -> bool:
        """Whether pages can be brought by mail, while a login waits at its device."""

    @property
    def offered(self) -> frozenset[str]:
        """The names of the factors that the service can check."""

    async def check(self, factor: str, domain_id: int) -> str:
        """Test the server with which a domain's people prove a factor. Return the result in words. Raises
        ProviderError."""

    @property
    def address_length(self) -> int:
        """The length of the address of a page."""

    def can_compare(self, address: str) -> bool:
        """Return whether an address is global, so that the address of a browser can be compared with it."""

    async def factors_of(self, domain_id: int, user: str) -> frozenset[str]:
        """Return the names of the factors that a person has now."""

    async def open(self, question: Question, fields: OwnFields) -> Opened | None:
        """Open a step-up whose id is the challenge_id of the question. Return None if the person has too many open
        step-ups, or gets none now, see `paused`. A call that repeats a challenge_id opens no second one."""

    async def paused(self, domain_id: int, user: str) -> str:
        """Return until when a person gets no page, and why: the person has denied a login, or has not answered. Return
        an empty text without a pause."""

    async def mail(self, question: Question, page: Opened) -> bool:
        """Send the address of a page to the person by mail, unless it was sent before. Return False if the person has
        no mail address, or has got too many mails, or if the mail cannot be sent."""

    async def state_of(self, stepup_id: str, *, within_s: float) -> tuple[StepUpState, Strength]:
        """Wait until a step-up is not open, at most `within_s` seconds. Return its state and the strength of the
        proof."""

    async def use(self, stepup_id: str) -> StepUpState:
        """Mark a proof as used by its login. Return USED, or the state that forbids it."""

    async def proof_of(self, stepup_id: str) -> tuple[str, Strength]:
        """Return the factor that was proved, and the strength of the proof."""

    async def check_digits(self, stepup_id: str, code: Code) -> bool:
        """Return whether a user has typed the digits that the page shows. False if it shows none."""

    async def take_answer(self, stepup_id: str) -> bool:
        """Count a typed answer before it is checked. Return False if the login may not type another one."""

    async def answer_was_wrong(self, stepup_id: str) -> int:
        """Note that the last answer was wrong. Return how many are left. The last one ends the step-up."""

    async def spend_code(self, factor: str, domain_id: int, user: str, code: Code) -> bool:
        """Return whether a user has typed a right code of a factor, and make it invalid. False for factors without
        such codes."""

    async def end(self, stepup_id: str) -> None:
        """End a step-up whose login has ended."""


class EnrolmentRequests(Protocol):
    """Enrolment links for people without a factor, which a challenge shows."""

    @property
    def address_length(self) -> int:
        """The length of the address of a link."""

    async def offer(self, question: Question) -> str | None:
        """Make a link for the person of a login, and return its address. Return None if the person has a factor or an
        open link of an operator, gets no prompt now, or is an administrator. Raises StoreError."""


class NoEnrolments:
    """The links of a service without pages of people."""

    address_length = 0

    async def offer(self, question: Question) -> str | None:
        """Return None, because there are no pages."""
        return None


NO_ENROLMENTS: Final = NoEnrolments()


async def no_products() -> Sequence[str]:
    """Return no products, for a host without an inventory."""
    return ()


@dataclass(frozen=True, slots=True)
class Host:
    """The services that a provider may use. domain: the name of the provider's domain. products: a function that
    returns the products of the domain's devices."""

    domain_id: int
    domain: str
    http: HttpFactory
    seeds: Seeds
    wallets: WalletPrompts
    own: StepUpRequests
    clock: Clock
    products: Products = no_products
    enrolments: EnrolmentRequests = NO_ENROLMENTS


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
