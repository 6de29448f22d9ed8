"""Regular expressions of schemas, whose time is known before they run.

Python tries one way after the other, and some expressions have exponentially many. Here a group may not be repeated,
so that the ways are a product: of the length for each unbounded repetition, of their number for bounded ones and for
alternatives, and once more of the length where the match may begin anywhere.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

LONGEST: Final = 512
MAX_DEGREE: Final = 4
MAX_FACTOR: Final = 4096
_ATOM: Final = re.compile(r"\\([^\W_]|.)|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEATED: Final = re.compile(r"\)(?:[*+]|\{)")
_BOUNDS: Final = re.compile(r"\{(\d*)(,?)(\d*)\}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression with at most `factor * length ** degree` ways to match."""

    expression: re.Pattern[str]
    factor: int
    degree: int

    def ways(self, length: int) -> int:
        """How many ways there are at most to match a text of that length."""
        return int(self.factor * max(length, 1) ** self.degree)


@lru_cache(maxsize=1024)
def compiled(text: str) -> Pattern:
    """ValueError, with the reason: it is no expression, or has too many ways."""
    if len(text) > LONGEST:
        raise ValueError("a pattern is too long")
    try:
        expression = re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise ValueError("a pattern is no regular expression") from None
    if any(found[1] and found[1] in "123456789k" for found in _ATOM.finditer(text)):
        raise ValueError("a pattern refers back")
    bare = _ATOM.sub("a", text)
    if "(?" in bare.replace("(?:", "(") or _REPEATED.search(bare):
        raise ValueError("a pattern repeats a group, or looks around")
    factor, degree = 2 ** (bare.count("?") + bare.count("|")), bare.count("*") + bare.count("+")
    for least, comma, most in _BOUNDS.findall(bare):
        if comma and not most:
            degree += 1
        elif comma:
            factor *= int(most) - int(least or 0) + 1
    if not bare.startswith("^") or "|" in bare:
        degree += 1
    if degree > MAX_DEGREE or factor > MAX_FACTOR:
        raise ValueError("a pattern has too many ways to match")
    return Pattern(expression, factor, degree)
