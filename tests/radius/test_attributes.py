"""Tests of the layouts of packets: the cache avoids reading all attributes again, and changes no value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import PacketError
from sallyport.radius import attributes
from sallyport.radius.attributes import (
    MAX_KEPT,
    MESSAGE_AUTHENTICATOR,
    PROXY_STATE,
    SAME_LENGTH,
    USER_NAME,
    Layout,
    Layouts,
    combine,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.dictionary import load

HEAD = bytes(20)
FIELD = st.tuples(st.integers(1, 255).filter(lambda kind: kind != MESSAGE_AUTHENTICATOR), st.binary(max_size=8))


def packet(*fields: tuple[int, bytes]) -> bytes:
    """Return a header with attributes."""
    return HEAD + b"".join(push_attribute(*field) for field in fields)


def test_the_numbers_of_attributes() -> None:
    """Each attribute has the number that the dictionary of the RFCs gives it."""
    dictionary = load()
    limits = {"MAX_ATTRIBUTES", "HEADER", "INTEGER", "SAME_LENGTH", "MAX_KEPT", "_MAX_PARTS", "VENDOR_SPECIFIC"}
    numbers = {name: value for name, value in vars(attributes).items() if isinstance(value, int) and name not in limits}
    assert numbers
    assert numbers == {name: dictionary.attribute(name.replace("_", "-")).number for name in numbers}
    assert attributes.VENDOR_SPECIFIC == 26  # dictionaries have the attributes in it instead


@given(st.lists(FIELD, max_size=12), st.data())
def test_what_fits_has_its_own_values(fields: list[tuple[int, bytes]], data: st.DataObject) -> None:
    """A packet that has the types and lengths of another packet has the same layout, but its own values."""
    again = packet(*((kind, data.draw(st.binary(min_size=len(value), max_size=len(value)))) for kind, value in fields))
    layouts = Layouts()
    layout = layouts.of(packet(*fields))
    assert layouts.of(again) is layout
    pairs = list(pull_attributes(again, 20))
    first = dict(reversed(pairs))
    assert layout.first(again) == first
    numbers = {kind: int.from_bytes(octets) for kind, octets in first.items() if len(octets) == 4}
    kinds = (*first, 1, 2)  # of the packet, in its order, and some that it may lack
    assert layout.integers(again, kinds) == tuple(map(numbers.get, kinds))
    for kind, _ in pairs:
        assert layout.values(again, kind) == [value for found, value in pairs if found == kind]
        kept = [pair for pair in pairs if pair[0] not in {kind, PROXY_STATE}]
        assert list(pull_attributes(layout.without(again, frozenset({kind, PROXY_STATE})))) == kept


@given(st.lists(st.lists(FIELD, max_size=4), max_size=30))
def test_packets_of_one_length_are_distinguished(packets: list[list[tuple[int, bytes]]]) -> None:
    """Each packet is read as if it were the first one, whatever packets came before."""
    layouts = Layouts()
    for fields in packets:
        octets = packet(*fields).ljust(70, b"\1")
        try:
            read = Layout(octets).first(octets)
        except PacketError:
            with pytest.raises(PacketError):
                layouts.of(octets)
        else:
            assert layouts.of(octets).first(octets) == read


@pytest.mark.parametrize(
    ("octets", "message"),
    [
        (HEAD + b"\1", "the attribute at octet 20 has the invalid length 0"),
        (HEAD + b"\1\1", "the attribute at octet 20 has the invalid length 1"),
        (packet((USER_NAME, b"ann")) + b"\2\3", "the attribute at octet 25 has the invalid length 3"),
        (packet((MESSAGE_AUTHENTICATOR, bytes(15))), "the Message-Authenticator has 15 octets instead of 16"),
        (packet(*[(MESSAGE_AUTHENTICATOR, bytes(16))] * 2), "the packet has two Message-Authenticators"),
        (packet(*[(PROXY_STATE, b"")] * 201), "more than 200 attributes"),
    ],
)
def test_what_is_malformed_is_refused_each_time(octets: bytes, message: str) -> None:
    """A malformed packet is refused each time, and its layout is not stored."""
    layouts = Layouts()
    for _ in range(2):
        with pytest.raises(PacketError, match=message):
            layouts.of(octets)


def test_layouts_of_one_length_are_few() -> None:
    """The number of layouts of one length is limited. The oldest layout is removed first."""
    layouts = Layouts()
    packets = [packet((kind, b"")) for kind in range(1, SAME_LENGTH + 2)]
    found = [layouts.of(each) for each in packets[:-1]]
    assert [layouts.of(each) for each in packets[:-1]] == found
    layouts.of(packets[-1])
    assert layouts.of(packets[1]) is found[1]
    assert layouts.of(packets[0]) is not found[0]


def test_layouts_are_few_in_all() -> None:
    """The total number of layouts is limited.

    Layouts that an attacker invents only cost the time to read their attributes.
    """
    layouts = Layouts()
    first = packet((1, b""))
    layout = layouts.of(first)
    for number in range(MAX_KEPT // 100):
        layouts.of(packet((1, bytes(number)), *[(2, b"")] * 99))
        assert layouts.of(first) is layout
    layouts.of(packet((1, bytes(250)), *[(2, b"")] * (MAX_KEPT % 100 - 2)))
    assert layouts.of(first) is layout
    layouts.of(packet((1, bytes(251)), *[(2, b"")] * 98))
    again = layouts.of(first)
    assert again is not layout
    layouts.of(packet((1, bytes(252)), *[(2, b"")] * 99))
    assert layouts.of(first) is again


def test_layouts_that_take_turns_need_no_more_room() -> None:
    """Layouts of one length take the room of each other, and none of another length."""
    layouts = Layouts()
    first = packet((1, b""))
    layout = layouts.of(first)
    for number in range(2 * MAX_KEPT // 100):
        layouts.of(packet(*[(1, b"") if number >> bit & 1 else (2, b"") for bit in range(100)]))
    assert layouts.of(first) is layout


def test_few_sets_of_left_out_attributes_are_cached() -> None:
    """However many sets of types are left out, a layout remembers 16 of them."""
    octets = packet((1, b"a"), (2, b"b"))
    layout = Layout(octets)
    for number in range(3, 40):
        assert layout.without(octets, frozenset({2, number})) == push_attribute(1, b"a")
        assert len(layout._parts) == (number - 3) % 16 + 1


def test_an_attribute_has_253_octets_at_most() -> None:
    """A longer value is an error of the caller (RFC 2865 section 5)."""
    assert push_attribute(25, bytes(253))[:2] == b"\x19\xff"
    with pytest.raises(ValueError, match="254 octets"):
        push_attribute(25, bytes(254))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"", (0, [])),
        (b"\0\0\x09", (0, [])),
        (b"\0\0\0\x09", (9, [])),
        (b"\0\0\0\x09\x01\xff", (9, [])),
        (b"\0\0\0\x09\x01\x03a\x02\x02", (9, [(1, b"a"), (2, b"")])),
    ],
    ids=["empty", "short", "without attributes", "malformed", "two attributes"],
)
def test_vendor_attributes(value: bytes, found: tuple[int, list[tuple[int, bytes]]]) -> None:
    """A value that is not in the suggested format has no attributes (RFC 2865 section 5.26)."""
    assert pull_vendor_attributes(value) == found


def test_chosen_attributes_replace_those_of_their_type() -> None:
    """The chosen attributes come last, and replace found ones of the same type, or of the same vendor and type."""
    kept = push_attribute(18, b"hello") + push_vendor_attribute(9, 2, b"x") + push_vendor_attribute(10, 1, b"x")
    found = push_attribute(25, b"old") + kept + push_vendor_attribute(9, 1, b"old")
    chosen = push_vendor_attribute(9, 1, b"newer") + push_attribute(25, b"new")
    assert combine(found, chosen) == kept + chosen
