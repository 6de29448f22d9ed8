"""Tests of the layouts of packets: the cache avoids reading all attributes again, and changes no value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import (
    MAX_KEPT,
    MESSAGE_AUTHENTICATOR,
    PROXY_STATE,
    SAME_LENGTH,
    USER_NAME,
    Layout,
    Layouts,
    pull_attributes,
    push_attribute,
)

HEAD = bytes(20)
FIELD = st.tuples(st.integers(1, 255).filter(lambda kind: kind != MESSAGE_AUTHENTICATOR), st.binary(max_size=8))


def packet(*fields: tuple[int, bytes]) -> bytes:
    """Return a header with attributes."""
    return HEAD + b"".join(push_attribute(*field) for field in fields)


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
    layouts.of(packet((1, bytes(250)), *[(2, b"")] * 99))
    assert layouts.of(first) is not layout
