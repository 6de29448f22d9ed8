"""Tests of patterns in login rules."""

import sys
from collections.abc import Callable
from fnmatch import translate
from re import IGNORECASE, fullmatch
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.policy.rules.patterns import MAX_PLACES, Patterns, cost, folded_pattern
from sallyport.base.text import fold

TraceFunction = Callable[[FrameType, str, object], object]


def matching(text: str, *patterns: str) -> list[int]:
    """Return the positions of the patterns that match a text."""
    index = Patterns()
    for place, pattern in enumerate(patterns):
        index.add(folded_pattern(pattern), 1 << place)
    found = index.matching(fold(text))
    return [place for place in range(len(patterns)) if found & 1 << place]


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        ("Gi1/0/1", ["gi1/0/1"], ["Gi1/0/11", "Gi1/0/", ""]),
        ("GigabitEthernet1/0/*", ["gigabitethernet1/0/7", "GigabitEthernet1/0/"], ["GigabitEthernet1/1/7", "x"]),
        ("*.corp.example", ["pc1.CORP.example"], ["corp.example", "pc1.corp.example.net"]),
        ("*", ["", "x"], []),
        ("Gi?/0/*", ["Gi1/0/7", "gi2/0/"], ["Gi10/0/7", "Gi/0/7"]),
        ("*lobby*", ["AP-Lobby-2", "lobby"], ["lobb"]),
        ("a**b", ["ab", "axxb"], ["abc"]),
        ("?", ["x"], ["", "xx"]),
        ("[0-9].+", ["[0-9].+"], ["1ab"]),
        ("straße*", ["STRASSE 1"], ["stras"]),
    ],
)
def test_a_pattern_has_two_wildcards(pattern: str, texts: list[str], others: list[str]) -> None:
    """Every other character matches itself, in upper or lower case."""
    assert [text for text in (*texts, *others) if matching(text, pattern)] == texts


texts = st.text("ab/", max_size=8)


@given(st.lists(st.text("ab/*?", max_size=8), max_size=8), texts)
def test_the_index_agrees_with_fnmatch(patterns: list[str], text: str) -> None:
    """Many patterns together find what each of them finds alone."""
    expected = [place for place, each in enumerate(patterns) if fullmatch(translate(each), text, IGNORECASE)]
    assert matching(text, *patterns) == expected


def test_rules_share_patterns() -> None:
    """Several rules may have the same pattern, of any kind."""
    for pattern in ("exact", "begin*", "*end", "b*g"):
        index = Patterns()
        for bit in (1, 4):
            index.add(pattern, bit)
        assert index.matching(pattern.replace("*", "")) == 5


def test_the_cost_of_a_pattern_is_its_length_in_the_automaton() -> None:
    """A text, a beginning and an end cost nothing, because they are looked up."""
    assert [cost(each) for each in ("abc", "abc*", "*abc", "*", "")] == [0] * 5
    assert [cost(each) for each in ("a*c", "a?", "*a*", "?")] == [4, 3, 4, 2]


def lines(index: Patterns, text: str) -> int:
    """Return the number of lines that a look-up of a text runs."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        index.matching(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("part", ["*a", "*a?", "?*", "a*b*"])
def test_the_cost_of_hostile_patterns_is_linear(part: str) -> None:
    """The most that a domain may have of the costliest patterns runs four lines for each character of the text."""
    index = Patterns()
    pattern = folded_pattern(part * 60 + "*b")
    for place in range(MAX_PLACES // cost(pattern)):
        index.add(pattern + "?" * (place % 2) + chr(0x4E00 + place), 1 << place)

    assert 100 < lines(index, "a" * 253) - lines(index, "a" * 153) <= 400


def test_a_short_text_is_not_compared_with_long_patterns() -> None:
    """A request may have many hundred short values, and a domain beginnings and ends of every length."""
    index = Patterns()
    for length in range(250, 0, -1):
        index.add("a" * length + "*", 1)
        index.add("*" + "b" * length, 2)
    assert index.matching("aab") == 3
    assert lines(index, "aab") < 40
