"""Tests of EAP packets, and of EAP-Message in RADIUS."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import pull_attributes
from sallyport.radius.eap.packet import (
    FAILURE,
    IDENTITY,
    MAX_MESSAGE,
    RESPONSE,
    SUCCESS,
    Framing,
    Packet,
    decode,
    encode,
    end,
    pull_eap_message,
    push_eap_message,
)
from sallyport.radius.packet import ACCESS_REQUEST, SharedSecret, encode_request
from sallyport.radius.packet import decode as decode_request


def test_a_response_in_octets() -> None:
    """Code, identifier, length, Type and data have the order of RFC 3748 section 4.1."""
    assert encode(Packet(RESPONSE, 7, IDENTITY, b"ann")) == bytes.fromhex("02070008 01 616e6e")
    assert decode(bytes.fromhex("02070008 01 616e6e")) == Packet(RESPONSE, 7, IDENTITY, b"ann")


def test_what_is_behind_the_length_is_padding() -> None:
    """Octets after the Length are ignored (RFC 3748 section 4)."""
    assert decode(bytes.fromhex("02070006 01 61 ffff")).data == b"a"


@pytest.mark.parametrize("octets", ["", "0207", "02070004", "0207000901616e6e", "0207000401616e6e", "0507000501"])
def test_wrong_lengths_are_refused(octets: str) -> None:
    """A packet is refused if it is too short, if its Length exceeds its octets, or if its code is unknown."""
    with pytest.raises(PacketError):
        decode(bytes.fromhex(octets))


@given(st.binary(max_size=64))
def test_any_octets_are_a_packet_or_refused(octets: bytes) -> None:
    """Any octets are decoded as a packet or raise PacketError."""
    with suppress(PacketError):
        assert encode(decode(octets)) == octets[: int.from_bytes(octets[2:4])]


def test_success_and_failure() -> None:
    """Success and Failure have four octets and the identifier of the response."""
    assert end(SUCCESS, 9) == bytes.fromhex("03090004")
    assert end(FAILURE, 9) == bytes.fromhex("04090004")


@given(st.binary(min_size=1, max_size=3000))
def test_a_long_packet_takes_several_attributes(octets: bytes) -> None:
    """A long packet is split into attributes of at most 253 octets, in order (RFC 3579 section 3.1)."""
    secret = SharedSecret(b"secret")
    attributes = push_eap_message(octets)
    assert all(len(value) <= 253 for _, value in pull_attributes(attributes))
    request = decode_request(encode_request(ACCESS_REQUEST, 1, secret, attributes), secret)
    assert pull_eap_message(request) == octets


@given(st.binary(max_size=5000), st.integers(64, 2000))
def test_a_message_arrives_as_it_was_sent(message: bytes, size: int) -> None:
    """A message of any length arrives unchanged in fragments of any size, and no fragment exceeds the size."""
    there, here = Framing(0, size), Framing(0, 1000)
    piece = there.send(message)
    while (whole := here.receive(piece)) is None:
        assert there.is_sending
        piece = there.next()
        assert len(piece) + 5 <= size
    assert whole == message
    assert not there.is_sending


def test_the_first_fragment_tells_the_length() -> None:
    """The first fragment has the flags L and M and the length, middle fragments have M, and the last fragment has no
    flags (RFC 5216 section 3.1)."""
    framing = Framing(0, 64)
    first, second, last = framing.send(b"x" * 150), framing.next(), framing.next()
    assert (first[:5], second[0], last[0]) == (b"\xc0" + (150).to_bytes(4), 0x40, 0)
    assert framing.start() == b"\x20"


@pytest.mark.parametrize(
    "pieces",
    [
        [b""],
        [b"\x01x"],
        [b"\x80\0\0"],
        [b"\x40"],
        [b"\xc0" + (MAX_MESSAGE + 1).to_bytes(4) + b"x"],
        [b"\xc0\0\0\0\x03abcd"],
        [b"\xc0\0\0\0\x03ab", b"\x80\0\0\0\x04c"],
        [b"\xc0\0\0\0\x03ab", b"\0"],
        [b"\xc0\0\0\0\x03ab", b"\0cd"],
    ],
)
def test_invalid_fragments_are_refused(pieces: list[bytes]) -> None:
    """Fragments are refused if they have another version, a cut length or no octets, are too long, or are longer or
    shorter than announced."""
    framing = Framing(0, 1000)
    with pytest.raises(PacketError):
        for piece in pieces:
            framing.receive(piece)


def test_fragments_that_never_end() -> None:
    """If a message has no announced length, it is refused beyond 64 KiB."""
    framing = Framing(0, 1000)
    with pytest.raises(PacketError):
        for _ in range(MAX_MESSAGE // 1000 + 2):
            framing.receive(b"\x40" + bytes(1000))


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_any_fragments_are_a_message_or_refused(pieces: list[bytes]) -> None:
    """Any fragments are decoded as a message or raise PacketError."""
    framing = Framing(0, 1000)
    with suppress(PacketError):
        for piece in pieces:
            framing.receive(piece)
