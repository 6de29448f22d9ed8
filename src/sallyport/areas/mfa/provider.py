"""The protocol between the login path and an MFA provider."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest
from typing import ClassVar, Final, Protocol

from sallyport.base.text import plain_code
from sallyport.outgoing.errors import ProviderError as ProviderError  # noqa: PLC0414  what a provider raises
from sallyport.radius.password import chap_holds

NO_BREAK_SPACES: Final = (b"\xc2\xa0", b"\xa0")
"""A no-break space in UTF-8, and in Windows-1252."""
MAX_TIMEOUT_S: Final = 300
"""Maximum time that a user may take to answer, in seconds."""
ENROL: Final = "enrol"
"""The handle of a challenge that shows an enrolment link. Few people answer it: most log in again, when they have
enrolled. So it does not show whether the device can answer challenges."""
CHECK_USER: Final = "sallyport-check"
"""The user name that tests of a provider use. No provider should know this user."""


NO_WEB: Final = "the provider must be own, with the factor oidc"
"""Why most providers cannot confirm users whose password nobody has checked."""


class Outcome(StrEnum):
    """The outcomes of a call to a provider."""

    APPROVED = "approved"
    DENIED = "denied"  # the provider refuses the user (locked, forbidden), or the user has denied without a reason
    NOT_ME = "not me"  # the user says that another person has started the login
    UNANSWERED = "unanswered"  # the user has not answered the prompt, and it has expired at the provider
    WRONG_CODE = "wrong code"
    WAITING = "waiting"  # `poll` must be called
    CODE = "code"  # the user must type a code, for `verify`
    NOT_ENROLLED = "not enrolled"
    UNBOUND = "unbound"  # the proof is not bound to the login
    NOT_RETURNED = "not returned"  # the login cannot carry the digits of the page
    NO_TRIES_LEFT = "no tries left"  # too many codes or proofs of this login were wrong
    TOO_MANY = "too many"  # the user has too many open requests


class Strength(StrEnum):
    """The strength of a second factor. The members are ordered: `ANY < TWO_CHANNELS < PHISHING_RESISTANT`.

    TWO_CHANNELS: the user has proved the factor in another channel than the login, and the proof is bound to this login
    by digits that the user types back. PHISHING_RESISTANT: the proof is a passkey or its equal, and it comes from the
    address of the station that logs in.
    """

    ANY = "any"
    TWO_CHANNELS = "two_channels"
    PHISHING_RESISTANT = "phishing_resistant"

    def __lt__(self, other: str) -> bool:
        return _STRENGTHS.index(self) < _STRENGTHS.index(other)

    def __le__(self, other: str) -> bool:
        return _STRENGTHS.index(self) <= _STRENGTHS.index(other)

    def __gt__(self, other: str) -> bool:
        return _STRENGTHS.index(self) > _STRENGTHS.index(other)

    def __ge__(self, other: str) -> bool:
        return _STRENGTHS.index(self) >= _STRENGTHS.index(other)


_STRENGTHS: Final[list[str]] = list(Strength)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a provider to a call.

    handle: a text of at most 4,000 characters that identifies the challenge in `poll` and `verify`. The service stores
    the handle, so that another process can continue the challenge. text: a text that asks the user for an answer; if it
    is empty, the service uses its own text. detail: a text about the outcome that only admins see, such as the reason
    why a code is wrong. again_s: the time until the next `poll` after WAITING, in seconds, or 0 if `poll` itself waits
    for the user. strength: the strength of the factor that the user has proved, if the outcome is APPROVED.
    """

    outcome: Outcome
    handle: str = ""
    text: str = ""
    again_s: float = 1.0
    detail: str = ""
    strength: Strength = Strength.ANY


class Enrolment(StrEnum):
    """Whether a user has a second factor at a provider."""

    ENROLLED = "enrolled"
    NOT_ENROLLED = "not enrolled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Enrolled:
    """Whether a user has a second factor at a provider, and how strong an answer of the user can be at most."""

    enrolment: Enrolment
    strongest: Strength = Strength.ANY


@dataclass(frozen=True, slots=True)
class Question:
    """A login that needs a second factor.

    challenge_id: an idempotency key of 32 hex digits, the same in all calls for one login. user: the name of the user,
    without the realm. device: the name of the NAS. source: the address of the NAS. station: the Calling-Station-Id.
    expires_at: the expiry of the login, in microseconds, UTC. signed: whether the request is signed, so that its other
    attributes are those that the NAS has sent. address: the IP address of the station in a signed request, or empty.
    place: the name of the RADIUS client and the tags of the device. takes_codes: whether the method carries typed
    codes. shows_challenges: False if no user has answered the last challenges of the device. is_checked: whether the
    login has passed a first factor. Otherwise everybody who knows the name may have started it.
    """

    challenge_id: str
    domain_id: int
    domain: str
    user: str
    device: str
    source: str
    station: str
    expires_at: int
    signed: bool = False
    address: str = ""
    place: str = ""
    takes_codes: bool = True
    shows_challenges: bool = True
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class Code:
    """A code that the user has typed. With PAP, the text of the code is known. With CHAP, only a response is known; it
    can be compared with the response to an expected code.

    text: the code, empty if the user has typed no code, or None if there is only a CHAP response. If the user has typed
    digits with separators, `text` has only the digits. response: the CHAP response, 17 octets (RFC 2865 section 5.3).
    challenge: the CHAP challenge, at least 5 octets.
    """

    text: str | None
    response: bytes = b""
    challenge: bytes = b""

    def __post_init__(self) -> None:
        if self.text is not None:
            object.__setattr__(self, "text", plain_code(self.text))

    @property
    def is_empty(self) -> bool:
        """Whether the user has typed nothing, or only blanks."""
        return self.matches("")

    def matches(self, candidate: str) -> bool:
        """Return whether the user has typed this code. candidate: an expected code."""
        if self.text is not None:
            return compare_digest(self.text.strip().encode(), candidate.encode())
        if len(self.response) != 17:
            return False
        return any(chap_holds(self.response, each, self.challenge) for each in _spellings(candidate.encode()))


def _spellings(code: bytes) -> Iterator[bytes]:
    """Yield a code as it may be typed: in one group, and in two with a separator."""
    yield code
    half = len(code) // 2
    for separator in (b" ", b"-", *NO_BREAK_SPACES):
        yield code[:half] + separator + code[half:]


class Provider(Protocol):
    """The second factor of one domain.

    The caller sets a deadline for every call, and may cancel the call. A call raises ProviderError if the provider
    cannot be asked. Only `start` may prompt the user.

    A class may also have a method `async def check(self) -> str`. It tests whether the provider is reachable and
    accepts its keys, and returns the result in words. If the test fails, it raises ProviderError with the error and the
    remedy. For a class without this method, the service calls `enrolled` with the user CHECK_USER.

    A class may also have `most_calls: ClassVar[int]`, the maximum number of simultaneous calls for logins. The default
    is 2,048, the number of connections of an HTTP client.

    A class may also have `strongest: ClassVar[Strength]`, the highest strength that its answers can have. The default
    is `Strength.ANY`. A login that needs more is refused without a call.

    A class may also have `hints: Sequence[str]`, warnings about its configuration, and the static method
    `refuse(fields, host)`, which raises Conflict or Invalid if the service lacks what a configuration needs. It may
    have `binds_by_code: bool`, whether the user must type digits of a page: the reason of a refusal is then another. It
    may have `shows_links: bool`, whether a challenge shows an enrolment link to a user who is not enrolled, and
    `web_problem: str`, why it cannot confirm users whose password nobody has checked; empty if it can. The default is
    `NO_WEB`.
    """

    name: ClassVar[str]
    asks_for_codes: ClassVar[bool]
    """Whether `verify` accepts codes. If it does, users may type a code after the password.

    A class that always needs a code may also have `only_codes: ClassVar[bool] = True`. A login that cannot contain a
    code, such as MS-CHAP, is then refused without a call.
    """

    async def enrolled(self, user: str) -> Enrolment | Enrolled:
        """Return whether the user has a second factor. This must not send a prompt.

        An `Enrolled` also says how strong the user's answer can be at most. Without it, this is the provider's
        `strongest`.
        """

    async def start(self, question: Question) -> Answer:
        """Send a push, or ask for a code. If a challenge_id is repeated, no second prompt is sent."""

    async def poll(self, handle: str) -> Answer:
        """Return the state of a challenge: APPROVED, DENIED, NOT_ME, UNANSWERED or WAITING. handle: the handle of the
        WAITING answer."""

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a code. Return APPROVED, DENIED, NOT_ME, WRONG_CODE, NOT_ENROLLED, or CODE if another code is needed.

        handle: the handle of the previous CODE or WRONG_CODE answer; empty if the code followed the password.
        """

    async def cancel(self, handle: str) -> None:
        """Cancel the prompt of a login that has ended without an answer. A provider that cannot do this does
        nothing."""

    async def aclose(self) -> None:
        """Close connections."""
