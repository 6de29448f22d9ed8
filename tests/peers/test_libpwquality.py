"""Tests that compare the password engine with libpwquality.

For random parameters, and random passwords at the limits of all rules, both must give the same verdict and the same
first failed rule. The engine does not check dictionaries and the similarity to the last password, and neither does this
test.
"""

import ctypes
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

import pytest

from sallyport.agentwire.state import Quality, Rules
from sallyport.areas.passwords.engine import GUIDANCE, Failure, failures

CASES = 240_000
CHUNKS = 8
A_SETTING = 60
"""The number of passwords that are tried with each set of parameters."""
# pwquality.h; these calls cannot cause other errors.
ERRORS = {
    -10: "dcredit",
    -11: "ucredit",
    -12: "lcredit",
    -13: "ocredit",
    -14: "minlen",
    -15: "palindrome",
    -18: "minclass",
    -19: "maxrepeat",
    -20: "empty",
    -25: "usercheck",
    -27: "maxclassrepeat",
    -29: "maxsequence",
}
CREDITS = ("dcredit", "ucredit", "lcredit", "ocredit")
NAMES = ("", "ann", "root", "Administrator", "o'Neil", "zoë.k", "1234", "abba", "j\udcffrg")
# Pieces of letters, digits, others, controls, UTF-8 of all lengths, and octets that are no UTF-8.
ALPHABETS = (
    "aB3.",
    "abcdefg",
    "ABCXYZ",
    "0123456789",
    "abcABC123!/:@[`{~",
    "aé1Ö",
    "ž漢🔑a",
    "\x01 \x7f\udc80\udcffa9",
)

try:
    LIBRARY: ctypes.CDLL | None = ctypes.CDLL("libpwquality.so.1")
except OSError:
    LIBRARY = None
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(LIBRARY is None, reason="libpwquality1 is not installed"),
]


class Library:
    """libpwquality with one set of parameters and without a dictionary."""

    def __init__(self, quality: Quality) -> None:
        assert LIBRARY is not None and quality.minlen is not None
        LIBRARY.pwquality_default_settings.restype = ctypes.c_void_p
        self._settings = ctypes.c_void_p(LIBRARY.pwquality_default_settings())
        self._auxiliary = ctypes.c_void_p()
        values = {
            **dict(zip(CREDITS, quality.credits, strict=True)),
            **{name: int(getattr(quality, name)) for name in Quality.__slots__ if name != "credits"},
            "dictcheck": 0,
        }
        for name, value in values.items():
            assert LIBRARY.pwquality_set_option(self._settings, f"{name}={value}".encode()) == 0

    def close(self) -> None:
        """Free the parameters."""
        assert LIBRARY is not None
        LIBRARY.pwquality_free_settings(self._settings)

    def first_failure(self, password: str, user: str) -> str:
        """Return the first rule that fails, or an empty text if the password passes."""
        assert LIBRARY is not None
        given = [text.encode("utf-8", "surrogateescape") for text in (password, user)]
        result = LIBRARY.pwquality_check(
            self._settings, given[0], None, given[1] or None, ctypes.byref(self._auxiliary)
        )
        return "" if result >= 0 else ERRORS[result]


def some_quality(draw: random.Random) -> Quality:
    """Return parameters. Most of them are demanding, and some are outside the library's own limits."""

    def at_times(low: int, high: int) -> int:
        return draw.randint(low, high) if draw.random() < 0.4 else 0

    return Quality(
        minlen=draw.choice([0, 5, 6, 7, 8, 8, 10, 12, 15]),
        credits=(at_times(-3, 3), at_times(-3, 3), at_times(-3, 3), at_times(-3, 3)),
        minclass=at_times(1, 6),
        maxrepeat=at_times(1, 4),
        maxclassrepeat=at_times(1, 5),
        maxsequence=at_times(1, 5),
        usercheck=draw.random() < 0.5,
    )


def some_password(draw: random.Random, user: str) -> str:
    """Return a password made of pieces that the rules check: random characters, runs, sequences, and the user's name in
    any case."""
    pieces: list[str] = []
    wanted = draw.choice([0, 3, 4, 5, 6, 6, 7, 7, 8, 8, 9, 10, 12, 16, 24])
    while sum(map(len, pieces)) < wanted:
        alphabet = draw.choice(ALPHABETS)
        kind = draw.randrange(6)
        if kind <= 1:
            pieces.append("".join(draw.choices(alphabet, k=draw.randint(1, 6))))
        elif kind == 2:
            pieces.append(draw.choice(alphabet) * draw.randint(1, 5))
        elif kind == 3:
            start, step = draw.choice([0x2D, 0x38, 0x3E, 0x41, 0x57, 0x5E, 0x61, 0x77]), draw.choice([1, -1])
            pieces.append("".join(chr(start + step * place) for place in range(draw.randint(2, 6))))
        elif kind == 4 and user:
            name = draw.choice([user, user[::-1], user[:-1], user[1:]])
            pieces.append(draw.choice([name, name.upper(), name.lower(), name.swapcase()]))
        else:
            pieces.append("".join(draw.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789.-#", k=4)))
    password = "".join(pieces)
    chance = draw.random()
    if user and chance < 0.04:  # the name, which may contain a character more than once
        return "".join(each * draw.choice([1, 1, 2, 3]) for each in draw.choice([user, user[::-1]]))
    mirrored = password + draw.choice([password[::-1], password[-2::-1], password[::-1].swapcase()])
    return mirrored if chance < 0.12 else password


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_engine_is_the_library(chunk: int) -> None:
    """For any parameters and any password both verdicts are the same.

    The samples make every rule fail often, and many passwords pass.
    """
    draw = random.Random(chunk)
    seen: Counter[str] = Counter()
    for _ in range(CASES // CHUNKS // A_SETTING):
        quality = some_quality(draw)
        with closing(Library(quality)) as library:
            for _ in range(A_SETTING):
                user = draw.choice(NAMES)
                password = some_password(draw, user)
                expected = library.first_failure(password, user)
                found = failures(Rules(quality=quality), password, user)
                assert first(found) == expected, (quality, password, user)
                seen[expected] += 1
    assert seen.keys() == {"", *ERRORS.values()}
    assert min(seen.values()) > CASES // CHUNKS // 1000, seen


@pytest.mark.parametrize("rule", Quality.__slots__)
def test_a_rule_by_itself(rule: str) -> None:
    """If only one rule is set, so that no other rule hides it, and minlen is minimal, both verdicts are the same."""
    draw = random.Random(rule)
    for _ in range(100):
        quality = Quality(**{"minlen": 0, rule: getattr(some_quality(draw), rule)})
        with closing(Library(quality)) as library:
            for _ in range(40):
                user = draw.choice(NAMES)
                password = some_password(draw, user)
                expected = library.first_failure(password, user)
                assert first(failures(Rules(quality=quality), password, user)) == expected, (quality, password, user)


def test_the_fields_of_the_interface() -> None:
    """In ASCII, minLen is the same as minlen without credits. The guidance is the same as minlen=8 minclass=3."""
    assert GUIDANCE.quality is not None
    draw = random.Random(7)
    for length in range(6, 16):
        with closing(Library(Quality(minlen=length))) as plain:
            for _ in range(200):
                password = "".join(draw.choices("aB3.xyz", k=draw.randint(1, 17)))
                short = bool(failures(Rules(min_length=length), password))
                assert short is (plain.first_failure(password, "") == "minlen")
    with closing(Library(GUIDANCE.quality)) as guidance:
        assert [guidance.first_failure(each, "") for each in ("Abcdef1x", "abcdefgh", "Ab1x")] == [
            "", "minclass", "minlen",
        ]  # fmt: skip


def first(found: Sequence[Failure]) -> str:
    """Return the first rule that failed, or an empty text."""
    return found[0].rule if found else ""
