"""The second factor as the login path sees it: the questions that a provider is asked, and its answers."""

from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest
from typing import ClassVar, Final, Protocol

from sallyport.outgoing.errors import ProviderError as ProviderError  # noqa: PLC0414  what a provider raises
from sallyport.radius.password import chap_holds

CHECK_USER: Final = "sallyport-check"
"""Name of a user that a check asks about and that no provider should know."""


class Outcome(StrEnum):
    """The outcomes of a question."""

    APPROVED = "approved"
    DENIED = "denied"  # the user denied, or the provider refuses the user (locked, forbidden)
    WRONG_CODE = "wrong code"
    WAITING = "waiting"  # ask again with `poll`
    CODE = "code"  # the user must type a code, which `verify` gets
    NOT_ENROLLED = "not enrolled"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question.

    handle: identifies the conversation for `poll` or `verify`; at most 4,000 characters. It is stored, so that another
    process can continue with it. text: shown to the user with a challenge; empty: the service's own text. again_s: for
    WAITING, seconds until the next `poll`; 0 if `poll` itself waits for the user.
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
        """Return whether the user typed this code."""
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
    """Whether `verify` takes a code, which may then follow the password. A class that admits no user without a code may
    have `only_codes: ClassVar[bool] = True`. A login that cannot carry a code, such as MS-CHAP, is then refused without
    a call.
    """

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user has a second factor here. It sends no prompt."""

    async def start(self, question: Question) -> Answer:
        """Start a challenge: send a push, or ask for a code. A repeated challenge_id starts nothing new."""

    async def poll(self, handle: str) -> Answer:
        """Return the state after a WAITING answer: APPROVED, DENIED or WAITING."""

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a code; return APPROVED, DENIED, WRONG_CODE, NOT_ENROLLED, or CODE if another code is needed. handle:
        of the CODE or WRONG_CODE answer before; empty if the code came with the password."""

    async def cancel(self, handle: str) -> None:
        """Cancel the prompt of a login that ended without an answer, if the provider can."""

    async def aclose(self) -> None:
        """Close connections."""
