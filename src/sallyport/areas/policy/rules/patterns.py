"""Patterns of login rules, and an index that finds the patterns that match a text.

In a pattern, `*` matches any characters, `?` matches one character, and every other character matches itself in upper
or lower case. There are no regular expressions, because an admin of a tenant could write one that takes seconds.

A domain may have 1,000 rules with 1,000 values each. A value without wildcards, and a pattern whose only wildcard is a
`*` at its start or its end, are looked up in a table. All other patterns of an index are one automaton: an integer in
which each bit is a place in a pattern. For each character of the text, a few operations on this integer move all
patterns at once. So the time depends on the lengths of the text and of all patterns together, whatever they contain.
The total length is limited to MAX_PLACES: a text of 253 characters then takes less than 0.1 ms.
"""

import re
from typing import Final, TypeVar

from sallyport.base.text import fold

Key = TypeVar("Key", str, int)

MAX_PLACES: Final = 4096
"""Maximum number of characters in all patterns of a domain's rules that are neither a prefix nor a suffix."""
_STARS: Final = re.compile(r"\*{2,}")


def folded_pattern(pattern: str) -> str:
    """Return a pattern in the form for comparison. A sequence of `*` becomes one."""
    return _STARS.sub("*", fold(pattern))


def cost(pattern: str) -> int:
    """Return the number of places that a pattern takes in the automaton. It is 0 for a pattern that is looked up."""
    bare = pattern.removesuffix("*") if pattern.endswith("*") else pattern.removeprefix("*")
    return len(pattern) + 1 if "*" in bare or "?" in bare else 0


def add_name(rules: dict[Key, int], key: Key, bit: int) -> None:
    """Add a rule, as a bit, to the rules that name a value."""
    rules[key] = rules[key] | bit if key in rules else bit  # names that occur in only one rule share an integer


def _of_size(parts: dict[int, dict[str, int]], size: int) -> dict[str, int]:
    """Return the rules by the beginning or the end of `size` characters. The sizes in `parts` stay in ascending order,
    so that a short text is compared only with short parts."""
    if size not in parts:
        parts[size] = {}
        for larger in sorted(each for each in parts if each > size):
            parts[larger] = parts.pop(larger)
    return parts[size]


class Patterns:
    """The patterns for one kind of text, each with the rules that have it. A set of rules is an integer in which each
    bit is a rule."""

    __slots__ = ("_any", "_ends", "_exact", "_last", "_loops", "_marks", "_prefixes", "_rules", "_starts", "_suffixes")

    def __init__(self) -> None:
        self._exact: dict[str, int] = {}
        self._prefixes: dict[int, dict[str, int]] = {}
        self._suffixes: dict[int, dict[str, int]] = {}
        # The automaton. A pattern with n characters and `?` has n + 1 places: before the first, and after each of them.
        self._marks: dict[str, int] = {}  # the places after a character
        self._any = 0  # the places after a `?`
        self._loops = 0  # the places at which a `*` stands
        self._starts = 0
        self._ends = 0
        self._last: dict[str, int] = {}  # the last place of each pattern
        self._rules: dict[int, int] = {}  # the rules by the last place of a pattern

    def add(self, pattern: str, bit: int) -> None:
        """Add a rule, as a bit, to the rules that have a pattern. pattern: a result of `folded_pattern`."""
        if cost(pattern):
            self._add_places(pattern, bit)
        elif pattern.endswith("*"):
            add_name(_of_size(self._prefixes, len(pattern) - 1), pattern[:-1], bit)
        elif pattern.startswith("*"):
            add_name(_of_size(self._suffixes, len(pattern) - 1), pattern[1:], bit)
        else:
            self.add_exact(pattern, bit)

    def add_exact(self, text: str, bit: int) -> None:
        """Add a rule, as a bit, to the rules that have a text without wildcards. text: folded."""
        add_name(self._exact, text, bit)

    def matching(self, text: str) -> int:
        """Return the rules, as bits, with a pattern that matches a text. text: folded."""
        rules = self._exact.get(text, 0)
        length = len(text)
        for size, known in self._prefixes.items():
            if size > length:
                break
            rules |= known.get(text[:size], 0)
        for size, known in self._suffixes.items():
            if size > length:
                break
            rules |= known.get(text[length - size :], 0)
        return rules | self._run(text) if self._starts else rules

    def _add_places(self, pattern: str, bit: int) -> None:
        if pattern in self._last:
            add_name(self._rules, self._last[pattern], bit)
            return
        place = self._ends.bit_length()
        self._starts |= 1 << place
        for character in pattern:
            if character == "*":
                self._loops |= 1 << place
                continue
            place += 1
            if character == "?":
                self._any |= 1 << place
            else:
                self._marks[character] = self._marks.get(character, 0) | 1 << place
        self._ends |= 1 << place
        self._last[pattern] = place
        add_name(self._rules, place, bit)

    def _run(self, text: str) -> int:
        reached, marks, any_, loops = self._starts, self._marks, self._any, self._loops
        for character in text:
            reached = ((reached << 1) & (marks.get(character, 0) | any_)) | (reached & loops)
            if not reached:
                return 0
        reached &= self._ends
        rules = 0
        while reached:
            last = reached.bit_length() - 1
            rules |= self._rules[last]
            reached ^= 1 << last
        return rules
