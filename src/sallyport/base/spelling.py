"""Misspelled names: the known name that a caller probably meant.

A near miss of a known name differs only in case, in `_` and `-`, in one edit (a letter that is added, missing, replaced
or swapped with its neighbour), or in the singular for the plural. Names of three or fewer characters have no near
misses, because many of them differ in one letter from each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

MIN_LENGTH: Final = 4
"""Minimum number of characters of a name that has near misses."""
MAX_LENGTH: Final = 64
"""Maximum number of characters of a name that is compared. Longer names are not near any name of the program."""
_SIMILAR: Final = 0.7
"""Minimum similarity of a guess, by difflib's ratio."""


class Spellings:
    """The known names of one kind, such as the fields of an object.

    The names are indexed by their length, so that a name is compared with few others: requests may have many names.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self._known = tuple(known)
        self._by_length = defaultdict[int, list[tuple[str, str]]](list)
        for name in self._known:
            plain = _plain(name)
            if len(name) >= MIN_LENGTH:
                self._by_length[len(plain)].append((plain, name))

    def near(self, name: str) -> list[str]:
        """Return the known names of which `name` is a near miss."""
        if not MIN_LENGTH <= len(name) <= MAX_LENGTH:
            return []
        plain = _plain(name)
        lengths = range(len(plain) - 2, len(plain) + 3)  # `ies` and `y` differ by two
        candidates = (each for length in lengths for each in self._by_length.get(length, ()))
        return [known for other, known in candidates if _is_near(plain, other)]

    def nearest(self, name: str) -> str | None:
        """Return the known name that is most similar to `name`, or None if no name is similar."""
        if len(name) > MAX_LENGTH:
            return None
        if near := self.near(name):
            return near[0]
        plain = {_plain(known): known for known in self._known}
        found = get_close_matches(_plain(name), plain, 1, _SIMILAR)
        return plain[found[0]] if found else None

    def most_similar(self, name: str) -> list[str]:
        """Return the name that `nearest` returns, as a list of at most one name."""
        found = self.nearest(name)
        return [] if found is None else [found]


def unknown_field(meant: Sequence[str], known: Sequence[str] = ()) -> str:
    """Return the message about unknown fields of an object.

    meant: the known fields that the sender probably meant. known: all known fields, if the message lists them.
    """
    wanted = f": did you mean {' or '.join(meant)}?" if meant else ""
    listed = f"{' The' if meant else ': the'} known fields are {', '.join(known)}" if known else ""
    return f"unknown field{wanted}{listed}"


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _is_near(one: str, other: str) -> bool:
    return one == other or _singular(one) == _singular(other) or _is_one_edit(one, other)


def _singular(plain: str) -> str:
    if plain.endswith("ies"):
        return f"{plain[:-3]}y"
    if plain.endswith(("sses", "xes", "ches", "shes")):
        return plain.removesuffix("es")
    return plain if plain.endswith("ss") else plain.removesuffix("s")


def _is_one_edit(one: str, other: str) -> bool:
    """Return whether one added, missing, replaced or swapped letter makes one text the other."""
    short, long = sorted((one, other), key=len)
    at = next((index for index, letter in enumerate(short) if letter != long[index]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or swapped
