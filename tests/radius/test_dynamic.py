"""Tests of Disconnect and CoA requests and their answers (RFC 5176): with octets of the RFC, octets of pyrad, and
hostile octets."""

from contextlib import suppress
from hashlib import md5
from hmac import new as hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrad.dictionary import Dictionary
from pyrad.packet import CoAPacket

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    ERROR_CAUSE,
    EVENT_TIMESTAMP,
    MESSAGE_AUTHENTICATOR,
    USER_NAME,
    pull_attributes,
    push_attribute,
)
from sallyport.radius.dynamic import ROOM, DynamicReply, RequestKind, decode, encode
from sallyport.radius.packet import SharedSecret
from tests.areas.dynamic.nas import answer

SECRET = SharedSecret(b"xyzzy5461")
AT = 1_767_225_600
SESSION = push_attribute(USER_NAME, b"ann") + push_attribute(ACCT_SESSION_ID, b"s1")
REQUEST = encode(RequestKind.DISCONNECT, 7, SECRET, SESSION, at=AT)


def answered(code: int, attributes: bytes = b"", *, request: bytes = REQUEST, secret: bytes = SECRET.octets) -> bytes:
    """Return an answer to REQUEST, or to another request."""
    return answer(request, code, attributes, secret=secret)


def test_a_request_by_the_letter_of_the_rfc() -> None:
    """Message-Authenticator is computed over zeros, and then the Request Authenticator over all octets.

    The request contains Event-Timestamp.
    """
    assert (REQUEST[0], REQUEST[1], int.from_bytes(REQUEST[2:4])) == (40, 7, len(REQUEST))
    pairs = list(pull_attributes(REQUEST, 20))
    assert [kind for kind, _ in pairs] == [MESSAGE_AUTHENTICATOR, EVENT_TIMESTAMP, USER_NAME, ACCT_SESSION_ID]
    assert dict(pairs)[EVENT_TIMESTAMP] == AT.to_bytes(4)
    blank = REQUEST[:4] + bytes(16) + REQUEST[20:22] + bytes(16) + REQUEST[38:]
    assert REQUEST[22:38] == hmac(SECRET.octets, blank, "md5").digest()
    assert REQUEST[4:20] == md5(REQUEST[:4] + bytes(16) + REQUEST[20:] + SECRET.octets).digest()


@pytest.mark.parametrize("kind", RequestKind)
@given(identifier=st.integers(0, 255), value=st.binary(min_size=1, max_size=253), secret=st.binary(min_size=1))
def test_pyrad_takes_our_requests(kind: RequestKind, identifier: int, value: bytes, secret: bytes) -> None:
    """pyrad accepts both authenticators of a request."""
    packet = encode(kind, identifier, SharedSecret(secret), push_attribute(ACCT_SESSION_ID, value), at=AT)
    read = CoAPacket(packet=packet, secret=secret, dict=Dictionary())
    assert (read.code, read.id) == (kind, identifier)
    assert read.VerifyCoARequest()
    assert read.verify_message_authenticator()
    assert read[ACCT_SESSION_ID] == [value]


@pytest.mark.parametrize("kind", RequestKind)
@pytest.mark.parametrize("acknowledged", [True, False])
def test_pyrads_answers_are_read(kind: RequestKind, acknowledged: bool) -> None:
    """An answer that pyrad makes is read with its Error-Cause, whether it is signed or not."""
    request = encode(kind, 9, SECRET, SESSION, at=AT)
    for signed in (True, False):
        reply = CoAPacket(packet=request, secret=SECRET.octets, dict=Dictionary()).CreateReply()
        reply.code = kind + (1 if acknowledged else 2)
        reply[ERROR_CAUSE] = [(503).to_bytes(4)]
        if signed:
            reply.add_message_authenticator()
        assert decode(reply.ReplyPacket(), request, SECRET) == DynamicReply(acknowledged, 503)


def test_an_error_cause_of_no_length_is_none() -> None:
    """An Error-Cause that does not have four octets is ignored."""
    assert decode(answered(42, push_attribute(ERROR_CAUSE, b"\1\2")), REQUEST, SECRET) == DynamicReply(False, None)
    assert decode(answered(41), REQUEST, SECRET) == DynamicReply(True, None)


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (answered(41, secret=b"another"), "bad_authenticator"),
        (answered(44), "unknown_type"),
        (answered(45), "unknown_type"),
        (answered(40), "unknown_type"),
        (answered(2), "unknown_type"),
        (answered(41, request=encode(RequestKind.DISCONNECT, 7, SECRET, SESSION, at=AT + 1)), "bad_authenticator"),
        (answered(41, request=bytes((40, 8)) + REQUEST[2:]), "malformed"),
        (answered(41, push_attribute(MESSAGE_AUTHENTICATOR, bytes(16))), "bad_message_authenticator"),
        (answered(41)[:19], "malformed"),
        (answered(41) [:3] + b"\x15" + answered(41)[4:], "malformed"),
    ],
)  # fmt: skip
def test_an_unfit_answer_is_refused(datagram: bytes, reason: str) -> None:
    """An answer is refused if it has another secret, belongs to another request or is of another kind.

    Cut octets are refused too.
    """
    with pytest.raises(PacketError) as raised:
        decode(datagram, REQUEST, SECRET)
    assert raised.value.reason == reason


@given(st.binary(max_size=4200))
def test_any_datagram_is_an_answer_or_refused(datagram: bytes) -> None:
    """Any octets from the network are read as an answer or raise PacketError."""
    with suppress(PacketError):
        decode(datagram, REQUEST, SECRET)


@given(st.binary(max_size=600))
def test_any_attributes_of_a_nas_are_read_or_refused(attributes: bytes) -> None:
    """Any attributes with the right secret are read as an answer or raise PacketError."""
    with suppress(PacketError):
        assert not decode(answered(42, attributes), REQUEST, SECRET).acknowledged


def test_the_room_fills_the_packet() -> None:
    """If a request fills the room that is reported, it has 4096 octets."""
    assert len(encode(RequestKind.CHANGE, 1, SECRET, bytes(ROOM), at=AT)) == 4096
