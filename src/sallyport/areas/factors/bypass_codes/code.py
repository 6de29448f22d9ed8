"""A bypass code, and what an operator asks for."""

import re
import secrets
from dataclasses import dataclass
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.text import plain_code

MAX_CODES: Final = 10
"""Maximum number of codes of a person: one for each first digit."""
MAX_USES: Final = 100
MAX_HOURS: Final = 8784
"""Maximum time until codes expire: a year."""
MAX_WRONG: Final = 10
"""Number of wrong tries that end a code."""
MAX_OF_DOMAIN: Final = 20_000
"""Maximum number of codes in a domain."""
RANDOM_DIGITS: Final = 7
_FORM: Final = re.compile(rf"[0-9]{{{1 + RANDOM_DIGITS}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class BypassCode:
    """A bypass code as it is stored. number: its first digit. uses: how often it may be used. used: how often it was
    used. wrong: the number of wrong tries since its last use. sealed: the sealed hash. Times are in microseconds."""

    id: int
    domain_id: int
    user_name: Annotated[str, Wire("Name of the user.", "userName", title="User")]
    number: Annotated[int, Wire("First digit of the code.", "firstDigit", title="First digit")]
    sealed: bytes
    uses: Annotated[int, Wire("How often the code may be used.", title="Permitted uses")]
    used: Annotated[int, Wire("How often the code was used.", title="Uses")]
    wrong: int
    created_at: Annotated[int, Wire("When the code was made, ISO 8601 UTC.", "createdAt", iso, title="Made")]
    expires_at: Annotated[int, Wire("When the code expires, ISO 8601 UTC.", "expiresAt", iso, title="Expires")]
    last_used_at: Annotated[
        int | None,
        Wire("When the code was used last, ISO 8601 UTC. Empty: never.", "lastUsedAt", iso, empty=True, title="Used"),
    ]

    @Wire(
        f"`valid`, `used` (as often as permitted), `expired`, or `guessed` (ended by {MAX_WRONG} wrong tries).",
        after="firstDigit",
        title="State",
    )
    def state(self, now: int) -> str:
        """Return the state of the code at a time."""
        if self.used >= self.uses:
            return "used"
        if self.expires_at <= now:
            return "expired"
        return "guessed" if self.wrong >= MAX_WRONG else "valid"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The codes that an operator asks for. codes: their number. uses: how often each may be used. hours: the time until
    they expire."""

    codes: int = 1
    uses: int = 1
    hours: int = 24


def new_codes(number: int) -> list[str]:
    """Return different codes with different first digits, in ascending order."""
    first = sorted(secrets.SystemRandom().sample(range(10), number))
    return [f"{each}{secrets.randbelow(10**RANDOM_DIGITS):0{RANDOM_DIGITS}}" for each in first]


def digits_of(typed: str) -> str:
    """Return the digits of a typed text that has the form of a bypass code, otherwise an empty text. Blanks and dashes
    are ignored."""
    digits = plain_code(typed.strip())
    return digits if _FORM.fullmatch(digits) else ""


def in_groups(code: str) -> str:
    """Return a code as people read it: in two groups of four digits."""
    return f"{code[:4]} {code[4:]}"
