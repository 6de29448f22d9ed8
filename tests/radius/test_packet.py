"""Tests of the codec with packets of the RFCs, with an independent implementation, and with any octets."""

import hashlib
import hmac
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyrad.dictionary import Dictionary
from pyrad.packet import AuthPacket

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import (
    CHAP_PASSWORD,
    EAP_MESSAGE,
    MAX_ATTRIBUTES,
    MESSAGE_AUTHENTICATOR,
    PROXY_STATE,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
    push_vendor_attribute,
)
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_REQUEST,
    ACCOUNTING_REQUEST,
    ACCOUNTING_RESPONSE,
    CODE_NAMES,
    STATUS_SERVER,
    SharedSecret,
    as_name,
    as_text,
    decode,
    decode_reply,
    encode_reply,
    encode_request,
    open_reply,
    peek,
    response_authenticator,
)
from sallyport.radius.password import chap_holds, hide_password, reveal_password

RFC_SECRET = SharedSecret(b"xyzzy5461")
SECRET = SharedSecret(b"s3cret")

# RFC 2865 section 7.1
PAP_REQUEST = bytes.fromhex(
    "010000380f403f9473978057bd83d5cb98f4227a01066e656d6f02120dbe708d93d413ce3196e43f782a0aee0406c0a80110050600000003"
)
PAP_ACCEPT = bytes.fromhex("0200002686fe220e7624ba2a1005f6bf9b55e0b20606000000010f06000000000e06c0a80103")
# RFC 2865 section 7.2
CHAP_REQUEST = bytes.fromhex(
    "010100472aee86f08d0d55969ca5978e0d3367a20108666c6f707379031316e97557c316185895f293ff6344077275"
    "0406c0a80110050600000014060600000002070600000001"
)
# RFC 5997 section 6.1
STATUS_REQUEST = bytes.fromhex("0cda00268a54f4686fb394c52866e302185d062350125a665e2e1e8411f3e243822097c84fa3")
STATUS_ACCEPT = bytes.fromhex("02da0014ef0d552a4bf2d693ec2b6fe8b5411d66")


def access_request(attributes: bytes = b"", *, signed: bool = True) -> bytes:
    """Return a valid Access-Request.

    An unsigned request has a random authenticator and nothing that proves its sender.
    """
    data = encode_request(ACCESS_REQUEST, 7, SECRET, push_attribute(USER_NAME, b"bob") + attributes)
    if signed:
        return data
    body = data[20 + 18 :]
    return data[:2] + (20 + len(body)).to_bytes(2) + data[4:20] + body


def test_the_codes_of_packets() -> None:
    """Each kind of packet has the code of the RFCs (RFC 2865 section 3, RFC 2866 section 3, RFC 5997 section 3)."""
    assert CODE_NAMES == {
        1: "Access-Request",
        2: "Access-Accept",
        3: "Access-Reject",
        4: "Accounting-Request",
        5: "Accounting-Response",
        11: "Access-Challenge",
        12: "Status-Server",
    }


def test_rfc_2865_pap() -> None:
    """The request of RFC 2865 section 7.1 is decoded with the user and the password of the RFC."""
    request = decode(PAP_REQUEST, RFC_SECRET)
    assert request.text(USER_NAME) == "nemo"
    assert reveal_password(request.first[USER_PASSWORD], RFC_SECRET, request.authenticator) == b"arctangent"
    assert not request.signed


def test_rfc_2865_accept() -> None:
    """The Access-Accept of RFC 2865 section 7.1 is authentic for its request, and with no other secret."""
    code, first = decode_reply(PAP_ACCEPT, PAP_REQUEST, RFC_SECRET)
    assert (code, first[14]) == (ACCESS_ACCEPT, bytes((192, 168, 1, 3)))
    with pytest.raises(PacketError):
        decode_reply(PAP_ACCEPT, PAP_REQUEST, SECRET)


def test_rfc_2865_chap() -> None:
    """The CHAP response of RFC 2865 section 7.2 is right for the password of the RFC.

    The challenge is the authenticator.
    """
    request = decode(CHAP_REQUEST, RFC_SECRET)
    assert chap_holds(request.first[3], b"arctangent", request.authenticator)
    assert not chap_holds(request.first[3], b"arctangenT", request.authenticator)


def test_rfc_5997_status_server() -> None:
    """The Status-Server of RFC 5997 section 6.1 and its answer are authentic."""
    assert decode(STATUS_REQUEST, RFC_SECRET).signed
    assert decode_reply(STATUS_ACCEPT, STATUS_REQUEST, RFC_SECRET) == (ACCESS_ACCEPT, {})


@pytest.mark.parametrize(
    ("key", "data", "digest"),
    [
        (b"\x0b" * 16, b"Hi There", "9294727a3638bb1c13f48ef8158bfc9d"),
        (b"Jefe", b"what do ya want for nothing?", "750c783e6ab0b503eaa86e310a5db738"),
        (b"\xaa" * 16, b"\xdd" * 50, "56be34521d144c88dbb8c733f0e8b3f6"),
        (b"\xaa" * 80, b"Test Using Larger Than Block-Size Key - Hash Key First", "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"),
    ],
)
def test_rfc_2202_hmac_md5(key: bytes, data: bytes, digest: str) -> None:
    """HMAC-MD5 with precomputed state equals the test vectors of RFC 2202 section 2."""
    assert SharedSecret(key).hmac_md5(data).hex() == digest


@given(st.binary(max_size=100), st.binary(max_size=300))
@example(b"k" * 64, b"")
@example(b"k" * 65, b"")
def test_hmac_md5_is_the_standard_librarys(key: bytes, data: bytes) -> None:
    """HMAC-MD5 of any octets under any key equals the standard library's."""
    assert SharedSecret(key).hmac_md5(data) == hmac.digest(key, data, "md5")


@given(st.binary(max_size=4200))
def test_any_datagram_is_parsed_or_refused(data: bytes) -> None:
    """Any octets from the network are decoded as a packet or raise PacketError."""
    with suppress(PacketError):
        decode(data, SECRET)


@given(st.data())
def test_a_mutated_packet_is_parsed_or_refused(data: st.DataObject) -> None:
    """If one octet of a signed packet is changed, the packet is refused, or it no longer has a signature."""
    packet = access_request(push_attribute(32, b"switch-1"))
    at = data.draw(st.integers(0, len(packet) - 1))
    octet = data.draw(st.integers(0, 255).filter(lambda value: value != packet[at]))
    with suppress(PacketError):
        assert not decode(packet[:at] + bytes((octet,)) + packet[at + 1 :], SECRET).signed


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", "malformed"),
        (b"\x01" * 19, "malformed"),
        (access_request()[:-1], "malformed"),
        (bytes((1, 7, 0, 19)) + bytes(16), "malformed"),
        (bytes((1, 7, 0x10, 1)) + bytes(4093), "malformed"),
        (bytes((1, 7, 0, 21)) + bytes(17), "malformed"),
        (bytes((1, 7, 0, 22)) + bytes(16) + b"\x01\x01", "malformed"),
        (bytes((1, 7, 0, 22)) + bytes(16) + b"\x01\x00", "malformed"),
        (bytes((1, 7, 0, 23)) + bytes(16) + b"\x01\x04x", "malformed"),
        (bytes((2, 7, 0, 20)) + bytes(16), "unknown_type"),
        (bytes((4, 7, 0, 20)) + bytes(16), "bad_authenticator"),
        (bytes((12, 7, 0, 20)) + bytes(16), "unsigned"),
        (bytes((1, 7, 0, 38)) + bytes(16) + b"\x50\x12" + bytes(16), "bad_message_authenticator"),
        (bytes((12, 7, 0, 38)) + bytes(16) + b"\x50\x12" + bytes(16), "bad_message_authenticator"),
        (bytes((1, 7, 0, 37)) + bytes(16) + b"\x50\x11" + bytes(15), "bad_message_authenticator"),
        (bytes((1, 7, 0, 56)) + bytes(16) + 2 * (b"\x50\x12" + bytes(16)), "bad_message_authenticator"),
        (access_request(push_attribute(EAP_MESSAGE, b"x"), signed=False), "unsigned"),
        (access_request(push_attribute(EAP_MESSAGE, b"x") + push_attribute(USER_PASSWORD, bytes(16))), "malformed"),
        (access_request(push_attribute(EAP_MESSAGE, b"x") + push_attribute(CHAP_PASSWORD, bytes(17))), "malformed"),
        (access_request(push_attribute(USER_NAME, b"ann")), "malformed"),
        (access_request(push_attribute(25, b"") * MAX_ATTRIBUTES), "malformed"),
    ],
)
def test_an_invalid_packet_is_refused(datagram: bytes, reason: str) -> None:
    """Each wrong length, authenticator or content is refused with the reason that its metric has."""
    with pytest.raises(PacketError) as refused:
        decode(datagram, SECRET)
    assert refused.value.reason == reason


def test_200_attributes_are_accepted() -> None:
    """As many attributes as the limit allows are accepted."""
    assert len(decode(access_request(push_attribute(25, b"") * (MAX_ATTRIBUTES - 2)), SECRET).values(25)) == 198


def test_octets_past_the_length_are_padding() -> None:
    """Octets after the Length of a packet are ignored (RFC 2865 section 3), also after a packet without attributes."""
    for packet in (access_request(), bytes((1, 7, 0, 20)) + bytes(16)):
        assert decode(packet + b"junk", SECRET).data == packet


def test_a_packet_has_4096_octets_at_most() -> None:
    """A packet of 4096 octets is accepted, and a longer one is refused (RFC 2865 section 3)."""
    most = access_request(of_length(4096 - len(access_request())))
    assert len(decode(most, SECRET).data) == 4096
    with pytest.raises(PacketError, match="4097 octets, more than 4096"):
        decode(access_request(of_length(4097 - len(access_request()))), SECRET)


def of_length(size: int) -> bytes:
    """Return attributes that have together this number of octets, 200 or more."""
    sizes = [*[200] * (size // 200 - 1), 150, size % 200 + 50]
    return b"".join(push_attribute(25, bytes(each - 2)) for each in sizes)


def accounting_request(signature: bytes | None = None) -> bytes:
    """Return an Accounting-Request with a Message-Authenticator, by default the right one (RFC 2869 section 5.14)."""
    head = bytes((ACCOUNTING_REQUEST, 7, 0, 38))
    right = SECRET.hmac_md5(head + bytes(16) + b"\x50\x12" + bytes(16))
    body = b"\x50\x12" + (right if signature is None else signature)
    return head + response_authenticator(head, bytes(16), body, SECRET) + body


def test_the_signature_of_an_accounting_request() -> None:
    """A Message-Authenticator is not necessary in accounting. If there is one, it must be right."""
    assert decode(accounting_request(), SECRET).signed
    with pytest.raises(PacketError) as refused:
        decode(accounting_request(bytes(16)), SECRET)
    assert refused.value.reason == "bad_message_authenticator"


@pytest.mark.parametrize("code", [ACCESS_REQUEST, ACCOUNTING_REQUEST, STATUS_SERVER])
def test_a_request_of_an_unknown_sender_is_read(code: int) -> None:
    """peek reads a request of each kind without its secret."""
    request = peek(encode_request(code, 3, SharedSecret(b"unknown"), push_attribute(USER_NAME, b"bob")))
    assert (request.code, request.identifier, request.text(USER_NAME)) == (code, 3, "bob")


def test_an_answer_of_an_unknown_sender_is_refused() -> None:
    """peek refuses packets that are not requests, such as answers."""
    with pytest.raises(PacketError) as refused:
        peek(PAP_ACCEPT)
    assert refused.value.reason == "unknown_type"


def test_numbers_and_texts_of_a_request() -> None:
    """A number has four octets. Without an attribute, a number is None and a text is empty."""
    request = decode(access_request(push_attribute(5, b"\0\0\1\2") + push_attribute(6, b"\1")), SECRET)
    assert (request.integer(5), request.integer(6), request.integer(7)) == (258, None, None)
    assert request.integers((5, 6, 7)) == (258, None, None)
    assert (request.text(USER_NAME), request.text(7)) == ("bob", "")
    assert request.without(frozenset({USER_NAME, MESSAGE_AUTHENTICATOR})) == b"\5\6\0\0\1\2\6\3\1"


def test_repeated_and_vendor_attributes_are_found() -> None:
    """All values of a type are found in order. Vendor attributes are found by vendor and type."""
    request = decode(
        access_request(
            push_attribute(25, b"a")
            + push_vendor_attribute(9, 1, b"method=dot1x")
            + push_attribute(25, b"b")
            + push_vendor_attribute(9, 1, b"audit-session-id=1")
            + push_attribute(26, b"\0\0")
            + push_attribute(26, b"\0\0\0\x09\x01\xff")
        ),
        SECRET,
    )
    assert request.values(25) == [b"a", b"b"]
    assert request.values(99) == []
    assert request.vendor_values() == {(9, 1): [b"method=dot1x", b"audit-session-id=1"]}


def test_an_answer_carries_proxy_state_and_is_signed_first() -> None:
    """Message-Authenticator is the first attribute of an answer.

    Proxy-State attributes are returned unchanged and in order.
    """
    request = decode(access_request(push_attribute(PROXY_STATE, b"one") + push_attribute(PROXY_STATE, b"")), SECRET)
    reply = encode_reply(ACCESS_ACCEPT, request, SECRET, push_attribute(25, b"staff"))
    assert reply[20] == MESSAGE_AUTHENTICATOR
    assert reply[38:] == push_attribute(25, b"staff") + push_attribute(PROXY_STATE, b"one") + b"\x21\x02"
    assert decode_reply(reply, request.data, SECRET)[0] == ACCESS_ACCEPT


def test_an_altered_answer_is_refused() -> None:
    """If any octet of an answer is changed, the answer is not authentic."""
    request = decode(access_request(), SECRET)
    reply = encode_reply(ACCESS_ACCEPT, request, SECRET, push_attribute(25, b"staff"))
    for at in range(len(reply)):
        with pytest.raises(PacketError):
            decode_reply(reply[:at] + bytes((reply[at] ^ 1,)) + reply[at + 1 :], request.data, SECRET)


def test_the_attributes_of_an_answer() -> None:
    """An answer of up to 4096 octets is read. Some of its attributes can be left out, for an answer to another client.
    Octets after it are padding."""
    request = decode(access_request(push_attribute(PROXY_STATE, b"one")), SECRET)
    body = of_length(4096 - 38 - len(push_attribute(PROXY_STATE, b"one")))
    datagram = encode_reply(ACCESS_ACCEPT, request, SECRET, body)
    reply = open_reply(datagram + b"junk", request.data, SECRET)
    assert (len(datagram), reply.data) == (4096, datagram)
    assert reply.without(frozenset({PROXY_STATE, MESSAGE_AUTHENTICATOR})) == body
    assert (reply.values(PROXY_STATE), reply.values(USER_NAME)) == ([b"one"], [])


def test_an_answer_has_4096_octets_at_most() -> None:
    """A longer answer is refused, even if its authenticator is right."""
    request = decode(access_request(), SECRET)
    head = bytes((ACCESS_ACCEPT, request.identifier)) + (4097).to_bytes(2)
    body = of_length(4097 - 20)
    authenticator = hashlib.md5(head + request.authenticator + body + SECRET.octets).digest()
    with pytest.raises(PacketError, match="4097"):
        open_reply(head + authenticator + body, request.data, SECRET)


def test_an_answer_past_the_limit_is_an_error() -> None:
    """If an answer would exceed 4096 octets with its Proxy-State, an error is raised."""
    many = b"".join(push_attribute(PROXY_STATE, bytes(253)) for _ in range(15)) + push_attribute(
        PROXY_STATE, bytes(240)
    )
    request = decode(access_request(many, signed=False), SECRET)
    with pytest.raises(PacketError, match="octets"):
        encode_reply(ACCESS_ACCEPT, request, SECRET)


@pytest.mark.parametrize("code", [ACCESS_REQUEST, ACCOUNTING_REQUEST, STATUS_SERVER])
def test_our_own_requests_are_authentic(code: int) -> None:
    """decode accepts the requests that encode_request makes.

    With another secret they are refused or cannot be decrypted.
    """
    data = encode_request(code, 3, SECRET, push_attribute(USER_NAME, b"bob"))
    assert decode(data, SECRET).code == code
    with pytest.raises(PacketError):
        decode(data, SharedSecret(b"other"))


def test_accounting_answers_carry_no_signature() -> None:
    """An Accounting-Response has only the Response Authenticator (RFC 2866 section 4.2)."""
    request = decode(encode_request(ACCOUNTING_REQUEST, 3, SECRET, push_attribute(44, b"1")), SECRET)
    reply = encode_reply(ACCOUNTING_RESPONSE, request, SECRET)
    assert len(reply) == 20
    assert decode_reply(reply, request.data, SECRET)[0] == ACCOUNTING_RESPONSE


@given(st.binary(min_size=1, max_size=128).filter(lambda clear: not clear.endswith(b"\0")))
def test_an_encrypted_password_is_decrypted(clear: bytes) -> None:
    """A password of up to 128 octets, in any encoding, is decrypted unchanged."""
    authenticator = bytes(range(16))
    hidden = hide_password(clear, SECRET, authenticator)
    assert len(hidden) % 16 == 0
    assert reveal_password(hidden, SECRET, authenticator) == clear


@pytest.mark.parametrize("size", [0, 1, 15, 17, 129, 144])
def test_a_password_field_of_a_wrong_length_is_refused(size: int) -> None:
    """A User-Password must have 16 to 128 octets, in multiples of 16 (RFC 2865 section 5.2)."""
    with pytest.raises(PacketError):
        reveal_password(bytes(size), SECRET, bytes(16))


def test_a_password_over_128_octets_is_not_encrypted() -> None:
    """A password over 128 octets raises an error, because RADIUS cannot carry it."""
    with pytest.raises(ValueError, match="128"):
        hide_password(bytes(129), SECRET, bytes(16))


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60))
def test_requests_are_compatible_with_pyrad(password: str) -> None:
    """pyrad reads names, encrypted passwords and signatures in the requests of the codec.

    The codec reads those in the requests of pyrad.
    """
    names = Dictionary()
    authenticator = bytes(range(16))
    hidden = hide_password(password.encode(), SECRET, authenticator)
    ours = encode_request(ACCESS_REQUEST, 9, SECRET, push_attribute(USER_PASSWORD, hidden), authenticator=authenticator)
    theirs = AuthPacket(packet=ours, secret=SECRET.octets, dict=names)
    assert theirs.PwDecrypt(theirs[USER_PASSWORD][0]) == password
    assert theirs.verify_message_authenticator()
    written = AuthPacket(id=9, secret=SECRET.octets, authenticator=authenticator, dict=names)
    written[USER_PASSWORD] = [written.PwCrypt(password)]
    written.add_message_authenticator()
    read = decode(written.RequestPacket(), SECRET)
    assert read.signed
    assert reveal_password(read.first[USER_PASSWORD], SECRET, authenticator) == password.encode()


def test_text_is_utf_8_or_latin_1_and_never_nul() -> None:
    """Names are decoded as UTF-8, or as Latin-1 if they are not valid UTF-8. A NUL never reaches the store."""
    assert as_text("zoë".encode()) == "zoë"
    assert as_text("zoë".encode("latin-1")) == "zoë"
    assert as_text(b"bob\0") == "bob\ufffd"
    assert as_name("zoe\u0308".encode()) == "zo\xeb"


def test_the_repr_of_a_secret_does_not_show_it() -> None:
    """The repr of a shared secret does not contain the secret."""
    assert repr(SharedSecret(b"testing123")) == "***"
