"""Limits of an LDAP server's answers, on octets alone."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.directory.reading.answers import Answers, Limits, TooLarge
from tests.directory.reading.fake_directory import Person, entry_message

LIMITS = Limits(octets=4_000, message=3_000, values=20, attributes=5)
ANN = Person("ann", attributes={"mail": ["ann@x", "a@x"], "empty": []})


@given(st.lists(st.integers(0, 1_000), max_size=8))
def test_messages_are_cut_out_of_any_parts(cuts: list[int]) -> None:
    """Whatever the parts in which octets arrive, complete messages are handed on, and nothing else."""
    octets = entry_message(ANN) * 3
    places = [0, *sorted(cut % len(octets) for cut in cuts), len(octets)]
    answers = Answers(LIMITS)
    ready = [answers.feed(octets[start:end]) for start, end in pairwise(places)]
    assert b"".join(ready) == octets
    assert all(len(part) % len(entry_message(ANN)) == 0 for part in ready)


@pytest.mark.parametrize(
    ("person", "limit"),
    [
        pytest.param(Person("a", attributes={f"x{n}": ["v"] for n in range(6)}), "5 attributes", id="attributes"),
        pytest.param(Person("a", attributes={"x": ["v"] * 21}), "20 values", id="values of one attribute"),
        pytest.param(Person("a", attributes={"x": ["v"] * 11, "y": ["v"] * 11}), "20 values", id="values of two"),
        pytest.param(Person("a", attributes={"x": ["v" * 3_000]}), "message of more than 3,000", id="one long value"),
    ],
)
def test_an_entry_that_exceeds_a_limit_is_refused(person: Person, limit: str) -> None:
    """An entry with too many attributes, values or octets is not handed on, and the limit is kept."""
    answers = Answers(LIMITS)
    with pytest.raises(TooLarge, match=limit):
        answers.feed(entry_message(person))
    assert limit in str(answers.exceeded)


def test_a_declared_size_is_refused_at_once() -> None:
    """A message is refused by its length, before its octets have arrived."""
    with pytest.raises(TooLarge):
        Answers(LIMITS).feed(b"\x30\x84\x03\x93\x87\x00")


def test_the_octets_of_an_answer_are_counted_for_each_request() -> None:
    """The limit of octets holds for all messages that answer one request."""
    answers, octets = Answers(LIMITS), entry_message(Person("a", attributes={"x": ["v" * 2_500]}))
    answers.feed(octets)
    answers.request()
    answers.feed(octets)
    with pytest.raises(TooLarge, match="4,000 octets"):
        answers.feed(octets)


@pytest.mark.parametrize("octets", [b"SSH-2.0-x\r\n", b"\x30\x03\x02\x09\x01", b"\x30\x02\x02\x85"])
def test_octets_that_are_no_ldap_are_refused(octets: bytes) -> None:
    """Octets without the form of a message end the conversation."""
    with pytest.raises(ValueError, match="not an LDAP message"):
        Answers(LIMITS).feed(octets)
