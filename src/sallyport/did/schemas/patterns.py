"""Regular expressions of credential schemas, with a bound of their cost that is known before they run.

`re` backtracks and holds the interpreter lock until it is done, so one match must be short. A group may not be
repeated: the number of ways to match is then a product. The unbounded repetitions and the start of the match divide a
text of n characters in `comb(n + degree, degree)` ways; each bounded repetition and alternative multiplies them. The
literals and the longest class of an expression weigh each way, since they are compared again in each.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Final

LONGEST: Final = 512
MAX_DEGREE: Final = 4
MAX_FACTOR: Final = 4096
MAX_RANGES: Final = 32
"""Ranges in classes, such as `a-z`: to compile one takes up to 65,536 steps."""
_WEIGHED: Final = 32
"""Literals that are compared in the time of one way."""
_ATOM: Final = re.compile(r"\\([^\W_]|.)|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEATED: Final = re.compile(r"\)(?:[*+]|\{)")
_BOUNDS: Final = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression, and the numbers that bound its cost. repeated: characters that bounded
    repetitions need. size: characters of the expression, with its longest class."""

    expression: re.Pattern[str]
    factor: int
    degree: int
    repeated: int
    size: int

    def cost(self, length: int) -> int:
        """Return the most steps that a search in a text of this length takes; one takes up to 70 ns."""
        weight = 1 + (min(self.repeated, length) + self.size) // _WEIGHED
        return self.factor * comb(length + self.degree + 1, self.degree) * weight


@lru_cache(maxsize=1024)
def compiled(text: str) -> Pattern:
    """Return a pattern. ValueError, with the reason: it is no expression, or has too many ways to match."""
    if len(text) > LONGEST:
        raise ValueError("a pattern is too long")
    atoms = list(_ATOM.finditer(text))
    if any(found[1] and found[1] in "123456789k" for found in atoms):
        raise ValueError("a pattern refers back")
    bare = _ATOM.sub("a", text)
    if "(?" in bare.replace("(?:", "(") or _REPEATED.search(bare):
        raise ValueError("a pattern repeats a group, or looks around")
    classes = [found[0] for found in atoms if found[0].startswith("[")]
    if sum(each.count("-") for each in classes) > MAX_RANGES:
        raise ValueError("a pattern has too many ranges")
    factor, degree = 2 ** (bare.count("?") + bare.count("|")), bare.count("*") + bare.count("+")
    repeated = 0
    for least, comma, most in _BOUNDS.findall(bare):
        repeated += int(least or 0)
        if comma and not most:
            degree += 1
        elif comma:
            factor *= max(int(most) - int(least or 0) + 1, 1)
    if not bare.startswith("^") or "|" in bare:
        degree += 1
    if degree > MAX_DEGREE or factor > MAX_FACTOR:
        raise ValueError("a pattern has too many ways to match")
    try:
        expression = re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise ValueError("a pattern is no regular expression") from None
    return Pattern(expression, factor, degree, repeated, len(bare) + max(map(len, classes), default=0))
