"""Limits on the answers of an LDAP server, tested without a connection."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.directory.reading.answers import (
    READING,
    SHORT,
    Answers,
    Limits,
    Policy,
    RawEntry,
    Result,
    TooLarge,
)
from tests.areas.directory.reading.fake_directory import Person, control, entry_message, push, result_message

LIMITS = Limits(octets=4_000, message=3_000, values=30, entry_values=20, attributes=5, messages=9)
BOUND, DONE = result_message(0x61), result_message(0x65)
PAGE, POLICY = b"1.2.840.113556.1.4.319", b"1.3.6.1.4.1.42.2.27.8.5.1"
COOKIE = push(0x30, push(0x02, b"\0") + push(0x04, b"next"))
SUCCESS = Result(0, "")
ANN = Person("ann", attributes={"mail": ["ann@x", "a@x"], "empty": []})


def bound() -> Answers:
    """Return the parser for the answers on a connection whose bind has succeeded."""
    answers = Answers(LIMITS)
    answers.feed(BOUND)
    answers.request(2)
    return answers


@given(st.lists(st.integers(0, 1_000), max_size=8))
def test_messages_are_split_from_any_chunks(cuts: list[int]) -> None:
    """However the octets are split into chunks, all complete messages are passed on and all complete entries are
    kept.
    """
    octets = entry_message(ANN) * 3 + DONE
    places = [0, *sorted(cut % len(octets) for cut in cuts), len(octets)]
    answers = bound()
    for start, end in pairwise(places):
        answers.feed(octets[start:end])
        assert answers.result == (SUCCESS if end == len(octets) else None)
    values = {"samaccountname": (b"ann",), "mail": (b"ann@x", b"a@x"), "empty": ()}
    assert answers.entries == [RawEntry(ANN.dn, values)] * 3


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
    """An entry with too many attributes, values or octets is refused."""
    with pytest.raises(TooLarge, match=limit):
        bound().feed(entry_message(person))


def test_an_excessive_length_is_refused_at_once() -> None:
    """A message that declares an excessive length is refused before its octets have arrived."""
    with pytest.raises(TooLarge):
        bound().feed(b"\x30\x84\x03\x93\x87\x00")


def test_the_octets_of_an_answer_are_counted_for_each_request() -> None:
    """The limit on octets applies to the sum of all messages that answer the same request."""
    answers, octets = bound(), entry_message(Person("a", attributes={"x": ["v" * 2_500]}))
    answers.feed(octets)
    answers.request(2)
    answers.feed(octets)
    with pytest.raises(TooLarge, match="4,000 octets"):
        answers.feed(octets)


@pytest.mark.parametrize("octets", [b"SSH-2.0-x\r\n", b"\x30\x03\x02\x09\x01", b"\x30\x02\x02\x85"])
def test_octets_that_are_not_ldap_are_refused(octets: bytes) -> None:
    """Octets that are not an LDAP message are refused."""
    with pytest.raises(ValueError, match="not an LDAP message"):
        bound().feed(octets)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(result_message(0x65, control(PAGE)), id="a control without a value"),
        pytest.param(result_message(0x65, control(PAGE, b"")), id="a control with an empty value"),
        pytest.param(result_message(0x65, control(PAGE, COOKIE[:-1])), id="a control whose value is cut off"),
        pytest.param(result_message(0x61), id="a second answer to the bind"),
        pytest.param(push(0x30, push(0x02, b"\2") + push(0x65)), id="a result without its parts"),
        pytest.param(push(0x30, push(0x02, b"\2") + push(0x67)), id="an answer to another operation"),
        pytest.param(
            entry_message(ANN).replace(b"\x02\x01\x02", b"\x1f\x01\x01\x02", 1), id="a tag of more than one octet"
        ),
        pytest.param(entry_message(Person("a", attributes={"\xe9": ["v"]})), id="an attribute beyond ASCII"),
        pytest.param(entry_message(ANN).replace(b"\x31", b"\x04"), id="values that are no set"),
    ],
)
def test_a_malformed_message_is_refused(octets: bytes) -> None:
    """A malformed message is refused. C libraries have crashed on some of these messages, and misread others."""
    with pytest.raises(ValueError, match="LDAP message"):
        bound().feed(octets)


def test_an_entry_before_the_bind_response_is_refused() -> None:
    """The first message must be the response to the bind."""
    with pytest.raises(ValueError, match="unexpected LDAP message"):
        Answers(LIMITS).feed(entry_message(ANN))


def test_unused_controls_are_dropped() -> None:
    """The paging cookie of a search and the password policy of a bind are read. All other controls are dropped."""
    locked = control(POLICY, push(0x30, push(0x81, b"\1")))
    assert result(0x61, locked) == Result(0, "", has_control=True, policy=Policy.LOCKED)
    assert result(0x65, control(PAGE, COOKIE)) == Result(0, "", has_control=True, cookie=b"next")
    assert result(0x65, control(b"1.2.840.113556.1.4.474")) == SUCCESS
    assert result(0x65, locked) == SUCCESS
    assert result(0x61, control(PAGE, COOKIE)) == SUCCESS


def result(kind: int, controls: bytes) -> Result | None:
    """Return the result that an answer of a kind has."""
    answers = bound() if kind == 0x65 else Answers(LIMITS)
    if kind == 0x61:
        answers.request(2)
    answers.feed(result_message(kind, controls))
    return answers.result


@pytest.mark.parametrize(
    ("value", "policy"),
    [
        pytest.param(push(0x30), None, id="no warning and no error"),
        pytest.param(push(0x30, push(0xA0, push(0x80, b"\x0e"))), None, id="a warning"),
        pytest.param(push(0x30, push(0x81, b"\0")), Policy.EXPIRED, id="expired"),
        pytest.param(push(0x30, push(0xA0, push(0x81, b"\1")) + push(0x81, b"\2")), Policy.MUST_CHANGE, id="both"),
        pytest.param(push(0x30, push(0x81, b"\7")), None, id="an error of another operation"),
    ],
)
def test_the_password_policy_of_a_bind(value: bytes, policy: Policy | None) -> None:
    """The error in the control is the state of the account."""
    assert result(0x61, control(POLICY, value)) == Result(0, "", has_control=True, policy=policy)


def test_references_and_notices_are_dropped() -> None:
    """Referrals are dropped, because they are never followed. Unsolicited notifications are dropped, because they need
    no answer.
    """
    answers = bound()
    answers.feed(result_message(0x73) + result_message(0x78) + result_message(0x79))
    assert (answers.result, answers.entries) == (None, [])
    answers.feed(DONE)
    assert answers.result == SUCCESS


def test_a_result_of_another_request_is_dropped() -> None:
    """A result with another messageID does not end the search, and a second result does not replace the first one."""
    answers = bound()
    answers.feed(DONE.replace(b"\x02\x01\x02", b"\x02\x01\x03"))
    assert answers.result is None
    refused = push(0x30, push(0x02, b"\2") + push(0x65, push(0x0A, b"\x35") + push(0x04) + push(0x04, b"no")))
    answers.feed(refused + DONE)
    assert answers.result == Result(53, "no")


def test_the_number_of_values_in_an_answer_is_limited() -> None:
    """The number of values in all entries of an answer is limited, because each value takes more memory than its
    octets.
    """
    octets = entry_message(Person("a", attributes={"x": ["v"] * 10}))
    with pytest.raises(TooLarge, match="30 values"):
        bound().feed(octets * 3)


def test_entries_of_an_earlier_answer_are_dropped() -> None:
    """When the next request has been sent, messages with the ID of an earlier request are dropped."""
    answers = bound()
    answers.feed(entry_message(ANN))
    answers.request(3)
    answers.feed(entry_message(ANN))
    assert answers.entries == []


def test_values_of_a_repeated_attribute_are_merged() -> None:
    """If an attribute is repeated, all its values are kept under its name in lower case."""
    answers = bound()
    answers.feed(entry_message(Person("a", attributes={"Mail": ["x"], "mail": ["y"]})))
    (entry,) = answers.entries
    assert entry.values["mail"] == (b"x", b"y")


def test_octets_that_complete_a_long_message_are_not_short() -> None:
    """The octets that complete a long message count with the octets before them, because the whole message is parsed
    when the last octet arrives.
    """
    answers = Answers(READING)
    answers.feed(BOUND)
    octets = entry_message(Person("a", attributes={"x": ["v" * SHORT]}))
    assert answers.is_short(octets[:SHORT])
    assert not answers.is_short(octets)
    answers.feed(octets[:SHORT])
    assert not answers.is_short(octets[SHORT:])


def test_the_number_of_messages_in_an_answer_is_limited() -> None:
    """The number of messages in an answer is limited, because many small messages take more memory than their
    octets.
    """
    with pytest.raises(TooLarge, match="9 messages"):
        bound().feed(DONE * 10)
