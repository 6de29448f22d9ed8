"""Conversion of JSON to messages and of messages to JSON: `sallyport.base.wire`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import WireError
from sallyport.base.wire import Many, Text, Whole, decode, dumps, loads


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Leaf:
    full_name: Annotated[str, Text(5, "[a-z]*", "lowercase letters")]


@dataclass(frozen=True, slots=True)
class Tree:
    leaves: Annotated[tuple[Leaf, ...], Many(2)] = ()
    height: Annotated[int, Whole(0, 9)] | None = None
    colour: Colour = Colour.RED
    alive: bool = True


def test_a_message_is_decoded_unchanged() -> None:
    tree = Tree((Leaf("ann"), Leaf("bob")), 3, Colour.RED, False)
    octets = dumps(tree)
    assert octets == b'{"alive":false,"colour":"red","height":3,"leaves":[{"fullName":"ann"},{"fullName":"bob"}]}'
    assert decode(Tree, loads(octets, most=1000)) == tree


def test_absent_and_null_fields_have_their_default() -> None:
    """Unknown fields are ignored."""
    assert decode(Tree, {"height": None, "newer": [1]}) == Tree()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "message: must be an object"),
        ({"leaves": {}}, "leaves: must be an array"),
        ({"leaves": [{}, {}, {}]}, "leaves: must have at most 2 entries"),
        ({"leaves": [{}]}, "leaves[0].fullName: is missing"),
        ({"leaves": [{"fullName": "a"}, {"fullName": 1}]}, "leaves[1].fullName: must be text"),
        ({"leaves": [{"fullName": "secret"}]}, "leaves[0].fullName: must have at most 5 characters"),
        ({"leaves": [{"fullName": "a\n"}]}, "leaves[0].fullName: must be lowercase letters"),
        ({"leaves": [{"fullName": "\ud800"}]}, "leaves[0].fullName: must be lowercase letters"),
        ({"height": True}, "height: must be a whole number from 0 to 9"),
        ({"height": 1.0}, "height: must be a whole number from 0 to 9"),
        ({"height": 10}, "height: must be a whole number from 0 to 9"),
        ({"colour": "blue"}, "colour: must be one of red"),
        ({"colour": ["red"]}, "colour: must be one of red"),
        ({"alive": 1}, "alive: must be true or false"),
    ],
)
def test_malformed_messages_are_refused(value: object, message: str) -> None:
    """The error names the field and the expected type but never the value."""
    with pytest.raises(WireError, match="^" + message.replace("[", r"\[") + "$"):
        decode(Tree, value)


@pytest.mark.parametrize(
    "octets", [b"", b"{", b"\xff", b'{"a":1,"a":2}', b"NaN", b"[" * 100_000, b"1" * 5000, b'"' + b"a" * 9999 + b'"']
)
def test_malformed_json_is_refused(octets: bytes) -> None:
    """Broken, ambiguous, deeply nested and long texts raise WireError."""
    with pytest.raises(WireError):
        loads(octets, most=200_000 if octets[:1] in b"[1" else 9999)


@given(st.binary(max_size=300) | st.text(alphabet='{}[]:,"01eheightlavsfulNmn ', max_size=60).map(str.encode))
def test_any_octets_are_a_message_or_a_wire_error(octets: bytes) -> None:
    try:
        assert isinstance(decode(Tree, loads(octets, most=1000)), Tree)
    except WireError as error:
        assert str(error)
