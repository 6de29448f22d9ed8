"""What a second factor is to the login path: the questions it asks a provider, and the answers it gets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest
from typing import TYPE_CHECKING, ClassVar, Protocol

from pydantic import ConfigDict

from sallyport.base.model import Model
from sallyport.outgoing.errors import ProviderError as ProviderError  # noqa: PLC0414  what a provider raises
from sallyport.radius.password import chap_holds

if TYPE_CHECKING:
    from sallyport.base.clock import Clock
    from sallyport.outgoing.http import HttpFactory


class Outcome(StrEnum):
    """What a provider says."""

    APPROVED = "approved"
    DENIED = "denied"  # by the user, or by the provider for the user (locked, forbidden)
    WRONG_CODE = "wrong code"
    WAITING = "waiting"  # for the user; ask again with `poll`
    CODE = "code"  # the user must type one; it comes with `verify`
    NOT_ENROLLED = "not enrolled"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider says to a question.

    handle: names the conversation for `poll` or `verify`; at most 4,000 characters; kept in the store, so that
    another process can go on with it. text: shown to the user beside a challenge; empty for the service's own words.
    again_s: when to ask again, for WAITING; 0 where `poll` itself waits at the provider.
    """

    outcome: Outcome
    handle: str = ""
    text: str = ""
    again_s: float = 1.0


class Enrolment(StrEnum):
    """Whether a user has a second factor with a provider."""

    ENROLLED = "enrolled"
    NOT_ENROLLED = "not enrolled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Question:
    """One login that needs a second factor.

    challenge_id: 32 hex digits, the same in every call for this login: an idempotency key. user: the name without its
    realm. device: the NAS's name; source: its address; station: Calling-Station-Id. expires_at: microseconds, UTC.
    """

    challenge_id: str
    domain_id: int
    domain: str
    user: str
    device: str
    source: str
    station: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Code:
    """What the user typed, as it came over RADIUS: clear text (PAP), or a CHAP response, which can only be compared.

    text: None for a CHAP response; empty for none. response, challenge: RFC 2865 section 5.3, of 17 octets and of at
    least 5.
    """

    text: str | None
    response: bytes = b""
    challenge: bytes = b""

    def matches(self, candidate: str) -> bool:
        """Whether the user typed this."""
        if self.text is not None:
            return compare_digest(self.text.strip().encode(), candidate.encode())
        return len(self.response) == 17 and chap_holds(self.response, candidate.encode(), self.challenge)


class Fields(Model):
    """What a provider is configured with, in the interface's spelling; a secret is a SecretStr, and never returned."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class Seeds(Protocol):
    """The one-time-password seeds of the endpoint users."""

    async def seed(self, domain_id: int, user: str) -> str | None:
        """The user's confirmed seed, base32; None for a user without one, or for nobody. StoreError, SecretError."""

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Keep the time step of an accepted code, on disk when this returns. False: it, or a later one, is spent."""


class WalletPrompts(Protocol):
    """Presentation requests to the wallets of those who log in. All of them raise StoreError."""

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
        """Ask the user's wallet for that credential; the request's id, which is the same for the same challenge_id.
        None: the user holds none. purpose: what for, as the user reads it. expires_at: microseconds."""

    async def answer(self, request_id: int, *, within_s: float) -> bool | None:
        """Whether the request was met (True), or declined, withdrawn or out of time (False); None: it is still open
        after that time."""

    async def withdraw(self, request_id: int) -> None:
        """Nobody waits for the answer any more."""


@dataclass(frozen=True, slots=True)
class Host:
    """What the service lends a provider. domain: the name of the domain that it serves."""

    domain_id: int
    domain: str
    http: HttpFactory
    seeds: Seeds
    wallets: WalletPrompts
    clock: Clock


class Provider(Protocol):
    """One domain's second factor. Others add theirs by an entry point in the group `sallyport.mfa` that names a class
    like this; it must pass `sallyport.mfa.contract`.

    Every call has a deadline from outside and may be cancelled. Raises ProviderError where the provider cannot be
    asked. No call but `start` may disturb the user.
    """

    name: ClassVar[str]
    fields: ClassVar[type[Fields]]
    asks_for_codes: ClassVar[bool]
    """Whether `verify` takes a code: then one may be typed behind the password.

    A class that lets nobody in without one may say so by `only_codes: ClassVar[bool] = True`: logins that cannot carry
    a code, such as MS-CHAP, are told apart then without asking.
    """

    def __init__(self, fields: Fields, host: Host) -> None:
        """Keep the configuration; connect to nothing yet."""

    async def enrolled(self, user: str) -> Enrolment:
        """Whether the user has a second factor here; never disturbs the user."""

    async def start(self, question: Question) -> Answer:
        """Begin: prompt the user where the provider pushes. The same challenge_id again begins nothing new."""

    async def poll(self, handle: str) -> Answer:
        """How a WAITING answer's conversation stands: APPROVED, DENIED or WAITING."""

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a code: APPROVED, DENIED, WRONG_CODE, NOT_ENROLLED, or CODE for one more. handle: of the CODE or
        WRONG_CODE answer before, or empty where the code came with the password."""

    async def cancel(self, handle: str) -> None:
        """The login is over without an answer: take the prompt back, where the provider can."""

    async def aclose(self) -> None:
        """Close connections."""
