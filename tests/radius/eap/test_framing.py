"""Fragments, both ways."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import PacketError
from sallyport.radius.eap.packet import MAX_MESSAGE, Framing


@given(st.binary(max_size=5000), st.integers(64, 2000))
def test_a_message_arrives_as_it_was_sent(message: bytes, size: int) -> None:
    """Whatever its length and the size of fragments; none is longer than an EAP packet may be."""
    there, here = Framing(0, size), Framing(0, 1000)
    piece = there.send(message)
    while (whole := here.receive(piece)) is None:
        assert there.is_sending
        piece = there.next()
        assert len(piece) + 5 <= size
    assert whole == message
    assert not there.is_sending


def test_the_first_fragment_tells_the_length() -> None:
    """L and M and four octets in the first, M in the middle, nothing in the last (RFC 5216 section 3.1)."""
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
def test_fragments_that_lie_are_refused(pieces: list[bytes]) -> None:
    """No flags, another version, a cut length, no octets, too long, longer or shorter than announced."""
    framing = Framing(0, 1000)
    with pytest.raises(PacketError):
        for piece in pieces:
            framing.receive(piece)


def test_fragments_that_never_end() -> None:
    """A message without an announced length is cut off at 64 KiB."""
    framing = Framing(0, 1000)
    with pytest.raises(PacketError):
        for _ in range(MAX_MESSAGE // 1000 + 2):
            framing.receive(b"\x40" + bytes(1000))


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_any_fragments_are_a_message_or_refused(pieces: list[bytes]) -> None:
    """Nothing but PacketError."""
    framing = Framing(0, 1000)
    with suppress(PacketError):
        for piece in pieces:
            framing.receive(piece)
