"""The second factor as the login path sees it: the questions that a provider is asked, and its answers."""

from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest
from typing import ClassVar, Final, Protocol

from sallyport.outgoing.errors import ProviderError as ProviderError  # noqa: PLC0414  what a provider raises
from sallyport.radius.password import chap_holds

CHECK_USER: Final = "sallyport-check"
"""The user that a check asks about; no provider should know it."""


class Outcome(StrEnum):
    """The outcomes of a question."""

    APPROVED = "approved"
    DENIED = "denied"  # by the user, or by the provider for the user (locked, forbidden)
    WRONG_CODE = "wrong code"
    WAITING = "waiting"  # ask again with `poll`
    CODE = "code"  # needed from the user; it comes with `verify`
    NOT_ENROLLED = "not enrolled"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question.

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
    """A code that the user typed: clear text (PAP), or a CHAP response, which can only be compared.

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


class Provider(Protocol):
    """One domain's second factor.

    The caller sets a deadline for every call and may cancel it. A call raises ProviderError if the provider cannot be
    asked. Only `start` may prompt the user.

    A class may have `async def check(self) -> str`: it tests that the provider is reachable and accepts the keys, and
    returns the result in words. ProviderError: the error and its remedy. Without this method, a check asks for the
    enrolment of CHECK_USER.
    """

    name: ClassVar[str]
    asks_for_codes: ClassVar[bool]
    """Whether `verify` takes a code: then one may be typed behind the password.

    A class that admits no user without a code may have `only_codes: ClassVar[bool] = True`: logins that cannot carry a
    code, such as MS-CHAP, are refused then without asking.
    """

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
