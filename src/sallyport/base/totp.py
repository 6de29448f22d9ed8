"""Codes of authenticator apps (TOTP, RFC 6238: SHA-1, 6 digits, 30 s, T0 is 0).

A code is accepted in its own time step, and in the step before and after it. The caller accepts each step once.
"""

from __future__ import annotations

import hashlib
import io
from base64 import b32decode, b32encode
from binascii import Error as Base32Error
from collections.abc import Callable
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

from pyotp import HOTP

from sallyport.base.clock import SECOND

if TYPE_CHECKING:
    from hashlib import _Hash

STEP_S: Final = 30
DIGITS: Final = 6
SLACK: Final = (0, -1, 1)  # the present step comes first, because most codes belong to it
NEARBY: Final = 20
"""Number of time steps before and after the present one in which a wrong code is looked for."""
BORDER: Final = 4
"""Width of the quiet zone around a QR code, in modules (ISO/IEC 18004 section 9.1)."""
# In octets of UTF-8. With percent-encoded names of this length the URI is far below the 2,300 octets of a QR code.
MAX_ISSUER_LENGTH, MAX_ACCOUNT_LENGTH = 64, 128

Matches = Callable[[str], bool]
"""A function that returns whether a code is the typed one."""


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


def matching_steps(seed: bytes, matches: Matches, now_us: int) -> list[int]:
    """Return those of the currently accepted time steps whose code is the typed one (RFC 6238 section 5.2). There is
    rarely more than one."""
    present = step_at(now_us)
    return [step for slack in SLACK if (step := present + slack) >= 0 and matches(hotp(seed, step))]


def matching_step(seed: str, digits: str, now_us: int) -> int | None:
    """Return the accepted time step to which a code belongs, or None if the code is wrong. seed: in base32."""
    steps = matching_steps(seed_octets(seed), lambda code: compare_digest(code, digits), now_us)
    return steps[0] if steps else None


def seconds_off(seed: bytes, matches: Matches, now_us: int) -> int:
    """Return by how many seconds the clock of a phone is about fast, if a wrong code is right for another time nearby.
    The result is negative if the clock is slow, and 0 if the code is of no time nearby."""
    present = step_at(now_us)
    for step in sorted(range(max(present - NEARBY, 0), present + NEARBY + 1), key=lambda step: abs(step - present)):
        if matches(hotp(seed, step)):
            return round(step * STEP_S + STEP_S / 2 - now_us / SECOND)
    return 0


def clock_off(seconds: int) -> str:
    """Return the description of a phone's clock. seconds: how far it is ahead."""
    return f"the phone's clock is off by about {abs(seconds)} s ({'fast' if seconds > 0 else 'slow'})"


def otpauth(seed: str, *, issuer: str, account: str) -> str:
    """Return the URI of a seed for authenticator apps (Google's Key URI format). Long names are truncated, so that the
    URI fits into a QR code."""
    issuer, account = quote(_cut(issuer, MAX_ISSUER_LENGTH), safe=""), quote(_cut(account, MAX_ACCOUNT_LENGTH), safe="")
    return f"otpauth://totp/{issuer}:{account}?secret={seed}&issuer={issuer}&algorithm=SHA1&digits=6&period={STEP_S}"


def _cut(text: str, octets: int) -> str:
    return text.encode()[:octets].decode(errors="ignore")


def qr_code(text: str, form: Literal["element", "address", "terminal"]) -> str:
    """Return the QR code of a text: an SVG element, the same image as a `data:` address, or lines of half-block
    characters. Call it in a worker thread: an image takes 10 to 60 ms.

    An image is black on white. The lines are for a terminal with a dark background. On a light background, the colours
    are inverted, but scanners can still read the code.
    """
    import segno

    if form == "terminal":
        out = io.StringIO()
        segno.make_qr(text, error="l").terminal(out, border=BORDER, compact=True)
        return out.getvalue().rstrip("\n")
    code = segno.make_qr(text, error="m")
    written = code.svg_inline if form == "element" else code.svg_data_uri
    return written(scale=4, border=BORDER, dark="#000", light="#fff")
