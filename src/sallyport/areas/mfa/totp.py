"""The provider for TOTP codes of authenticator apps (RFC 6238). It checks a code with the seed of the endpoint user,
and makes no connections.

X is 30 seconds and T0 is 0. A code is accepted in its own time step, and in the step before and after it, but only
once. The used step is on disk before the login continues. So an observed code cannot be used again.
"""

from __future__ import annotations

import hashlib
from base64 import b32decode, b32encode
from binascii import Error as Base32Error
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from pyotp import HOTP

from sallyport.areas.mfa.host import Fields, Host
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.base.clock import SECOND
from sallyport.base.errors import SecretError

if TYPE_CHECKING:
    from hashlib import _Hash

STEP_S: Final = 30
DIGITS: Final = 6
NEARBY: Final = 20
"""Number of time steps before and after the present one in which a wrong code is looked for."""
USED: Final = "the code, or a newer one, was used before"
SLACK: Final = (0, -1, 1)  # the present step comes first, because most codes belong to it


def hotp(seed: bytes, counter: int, *, digits: int = DIGITS, digest: Callable[..., _Hash] = hashlib.sha1) -> str:
    """Return the HOTP code for a counter (RFC 4226 section 5.3). digest: the hash function, sha1, sha256 or sha512 of
    hashlib."""
    return HOTP(b32encode(seed).decode(), digits=digits, digest=digest).at(counter)


def step_at(now_us: int) -> int:
    """Return the time step of a time (RFC 6238 section 4.2). now_us: the time in microseconds."""
    return now_us // (STEP_S * SECOND)


def seed_octets(seed: str) -> bytes:
    """Decode a base32 seed, which may have spaces, dashes, lower-case letters and no padding. Raises ValueError."""
    text = seed.replace(" ", "").replace("-", "").rstrip("=").upper()
    try:
        octets = b32decode(text + "=" * (-len(text) % 8))
    except (Base32Error, ValueError):
        octets = b""
    if not octets:
        raise ValueError("the seed is not base32")
    return octets


def matching_steps(seed: bytes, code: Code, now_us: int) -> list[int]:
    """Return those of the currently accepted time steps whose code equals the typed code. There is rarely more than
    one."""
    present = step_at(now_us)
    return [present + slack for slack in SLACK if code.matches(hotp(seed, present + slack))]


def described(seed: bytes, code: Code, now_us: int) -> str:
    """Return why a code of a time step that is not accepted is wrong, if the code belongs to a step nearby. Otherwise
    return an empty text.

    Never show the text to the user who logs in. It would tell an attacker which guess becomes valid later.
    """
    present = step_at(now_us)
    for away in sorted(range(-NEARBY, NEARBY + 1), key=abs):
        if present + away >= 0 and code.matches(hotp(seed, present + away)):
            if away in SLACK:
                return USED
            middle_us = (2 * (present + away) + 1) * STEP_S * SECOND // 2
            return off_by(round((middle_us - now_us) / SECOND))
    return ""


def off_by(seconds: int) -> str:
    """Return the description of a code that was right for another time. seconds: how far the phone is ahead."""
    way = "fast" if seconds > 0 else "slow"
    return f"the code is right for another time: the phone's clock is off by about {abs(seconds)} s ({way})"


class TotpFields(Fields):
    """The configuration of the provider. It has no fields, because the seeds belong to the users."""


class Totp:
    """The provider for endpoint users with an authenticator app."""

    name: ClassVar[str] = "totp"
    fields: ClassVar[type[Fields]] = TotpFields
    asks_for_codes: ClassVar[bool] = True
    only_codes: ClassVar[bool] = True

    def __init__(self, fields: Fields, host: Host) -> None:
        self._host = host

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user has a confirmed seed."""
        return Enrolment.NOT_ENROLLED if await self._seed(user) is None else Enrolment.ENROLLED

    async def check(self) -> str:
        """Return a text for the admin: there is no server to test."""
        return "codes are checked by this service; no server is asked"

    async def start(self, question: Question) -> Answer:
        """Ask the user for a code."""
        enrolled = await self._seed(question.user) is not None
        return Answer(Outcome.CODE if enrolled else Outcome.NOT_ENROLLED)

    async def poll(self, handle: str) -> Answer:
        """Raise ProviderError. `poll` is never needed, because no answer of this provider is WAITING."""
        raise ProviderError("this provider has no push to wait for, only typed codes")

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a code, and store its time step, so that it cannot be used again. Raises StoreError if the step cannot
        be stored."""
        seed = await self._seed(question.user)
        if seed is None:
            return Answer(Outcome.NOT_ENROLLED)
        for step in matching_steps(seed, code, self._host.clock()):
            if await self._host.seeds.spend(question.domain_id, question.user, step):
                return Answer(Outcome.APPROVED)
        return Answer(Outcome.WRONG_CODE, detail=described(seed, code, self._host.clock()))

    async def cancel(self, handle: str) -> None:
        """Do nothing, because there is no prompt."""

    async def aclose(self) -> None:
        """Do nothing, because there are no connections."""

    async def _seed(self, user: str) -> bytes | None:
        try:
            seed = await self._host.seeds.seed(self._host.domain_id, user)
            return None if seed is None else seed_octets(seed)
        except (SecretError, ValueError):
            raise ProviderError("the user's seed cannot be read") from None
