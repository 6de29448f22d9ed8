"""EAP packets and their way through RADIUS."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import pull_attributes
from sallyport.radius.authenticator import SharedSecret
from sallyport.radius.eap.packet import (
    FAILURE,
    IDENTITY,
    RESPONSE,
    SUCCESS,
    Packet,
    decode,
    encode,
    end,
    pull_eap_message,
    push_eap_message,
)
from sallyport.radius.packet import ACCESS_REQUEST, encode_request
from sallyport.radius.packet import decode as decode_request


def test_a_response_in_octets() -> None:
    """Code, identifier, length, Type and data stand where RFC 3748 section 4.1 has them."""
    assert encode(Packet(RESPONSE, 7, IDENTITY, b"ann")) == bytes.fromhex("02070008 01 616e6e")
    assert decode(bytes.fromhex("02070008 01 616e6e")) == Packet(RESPONSE, 7, IDENTITY, b"ann")


def test_what_is_behind_the_length_is_padding() -> None:
    """Octets past the Length are ignored (RFC 3748 section 4)."""
    assert decode(bytes.fromhex("02070006 01 61 ffff")).data == b"a"


@pytest.mark.parametrize("octets", ["", "0207", "02070004", "0207000901616e6e", "0207000401616e6e", "0507000501"])
def test_lies_about_the_length_are_refused(octets: str) -> None:
    """A packet that is too short, runs past its end or is of an unknown code is none."""
    with pytest.raises(PacketError):
        decode(bytes.fromhex(octets))


@given(st.binary(max_size=64))
def test_any_octets_are_a_packet_or_refused(octets: bytes) -> None:
    """Nothing but PacketError."""
    with suppress(PacketError):
        assert encode(decode(octets)) == octets[: int.from_bytes(octets[2:4])]


def test_success_and_failure() -> None:
    """Four octets, with the identifier of the response."""
    assert end(SUCCESS, 9) == bytes.fromhex("03090004")
    assert end(FAILURE, 9) == bytes.fromhex("04090004")


@given(st.binary(min_size=1, max_size=3000))
def test_a_long_packet_takes_several_attributes(octets: bytes) -> None:
    """Attributes of at most 253 octets carry it, in order, and give it back (RFC 3579 section 3.1)."""
    secret = SharedSecret(b"secret")
    attributes = push_eap_message(octets)
    assert all(len(value) <= 253 for _, value in pull_attributes(attributes))
    request = decode_request(encode_request(ACCESS_REQUEST, 1, secret, attributes), secret)
    assert pull_eap_message(request) == octets
