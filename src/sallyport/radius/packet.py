"""The packet codec: it parses and verifies requests, and encodes and signs replies (RFC 2865, 2866, 2869, 5080, 5997).

`decode` verifies a packet, and reads the first value of each attribute type. Repeated attributes and vendor attributes
are parsed only when the caller reads them, because only new devices and proxied requests need them. This code runs more
often than any other code of the service. So it uses `attributes.Layout`, and its classes are not dataclasses.

The codec prefers the interpreter's built-in MD5 to OpenSSL's MD5. The built-in MD5 works even if a system policy
forbids MD5 in OpenSSL. It takes half the time for packets of a few hundred octets (HMAC-MD5 of 200 octets: 0.7 instead
of 1.9 µs).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest
from secrets import token_bytes
from struct import Struct
from typing import TYPE_CHECKING, Final

from sallyport.base.errors import PacketError
from sallyport.base.text import composed
from sallyport.radius.attributes import (
    CHAP_PASSWORD,
    EAP_MESSAGE,
    HEADER,
    MESSAGE_AUTHENTICATOR,
    PROXY_STATE,
    USER_PASSWORD,
    VENDOR_SPECIFIC,
    Layout,
    layout_of,
    pull_vendor_attributes,
)

if TYPE_CHECKING:
    from hashlib import _Hash

try:
    from _md5 import md5 as _md5
except ImportError:  # an interpreter that was built without _md5
    _md5 = hashlib.md5

md5: "Callable[[bytes], _Hash]" = _md5
ZERO: Final = bytes(16)

ACCESS_REQUEST: Final = 1
ACCESS_ACCEPT: Final = 2
ACCESS_REJECT: Final = 3
ACCOUNTING_REQUEST: Final = 4
ACCOUNTING_RESPONSE: Final = 5
ACCESS_CHALLENGE: Final = 11
STATUS_SERVER: Final = 12

CODE_NAMES: Final = {
    ACCESS_REQUEST: "Access-Request",
    ACCESS_ACCEPT: "Access-Accept",
    ACCESS_REJECT: "Access-Reject",
    ACCOUNTING_REQUEST: "Accounting-Request",
    ACCOUNTING_RESPONSE: "Accounting-Response",
    ACCESS_CHALLENGE: "Access-Challenge",
    STATUS_SERVER: "Status-Server",
}

MIN_LENGTH: Final = HEADER
MAX_LENGTH: Final = 4096


class SharedSecret:
    """The shared secret of a RADIUS client and the service, with the prepared state of HMAC-MD5 (RFC 2104)."""

    __slots__ = ("_inner", "_outer", "octets")

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        key = (md5(octets).digest() if len(octets) > 64 else octets).ljust(64, b"\0")
        self._inner = md5(bytes(octet ^ 0x36 for octet in key))
        self._outer = md5(bytes(octet ^ 0x5C for octet in key))

    def hmac_md5(self, message: bytes) -> bytes:
        """Return the HMAC-MD5 of a message under this secret: 16 octets."""
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()

    def __repr__(self) -> str:
        return "***"


class Request:
    """A parsed request of a RADIUS client. `decode` verifies its lengths and authenticators. `peek` verifies only its
    lengths.

    code, identifier: header fields. authenticator: 16 octets. data: the packet without padding. first: the first value
    of each attribute type. signed: whether the packet has a Message-Authenticator, which `decode` verifies and `peek`
    does not.
    """

    __slots__ = ("_layout", "_vendors", "authenticator", "code", "data", "first", "identifier", "signed")

    def __init__(self, data: bytes, layout: Layout, first: dict[int, bytes]) -> None:
        self.code = data[0]
        self.identifier = data[1]
        self.authenticator = data[4:20]
        self.data = data
        self.first = first
        self.signed = layout.signature != 0
        self._layout = layout
        self._vendors: dict[tuple[int, int], list[bytes]] | None = None

    def integers(self, kinds: tuple[int, ...]) -> tuple[int | None, ...]:
        """Return the first value of each given type as a number. An element is None if the value is missing or does not
        have four octets.

        kinds: two or more types. Pass a constant, because `kinds` is the key of a cache.
        """
        return self._layout.integers(self.data, kinds)

    def values(self, kind: int) -> list[bytes]:
        """Return all values of an attribute type, in order."""
        return self._layout.values(self.data, kind) if kind in self.first else []

    def without(self, kinds: frozenset[int]) -> bytes:
        """Return the attributes in octets and in order, except the attributes of the given types.

        kinds: the types to leave out, see `Layout.without`.
        """
        return self._layout.without(self.data, kinds)

    def vendor_values(self) -> Mapping[tuple[int, int], Sequence[bytes]]:
        """Return the values of each (vendor, type) in Vendor-Specific attributes, in order. They are parsed only
        once."""
        if self._vendors is None:
            found: dict[tuple[int, int], list[bytes]] = {}
            for value in self.values(VENDOR_SPECIFIC):
                vendor, pairs = pull_vendor_attributes(value)
                for kind, inner in pairs:
                    found.setdefault((vendor, kind), []).append(inner)
            self._vendors = found
        return self._vendors

    def integer(self, kind: int) -> int | None:
        """Return the first value of an attribute as a number. Return None if the attribute is absent, or does not have
        four octets."""
        octets = self.first.get(kind)
        return int.from_bytes(octets) if octets and len(octets) == 4 else None

    def text(self, kind: int) -> str:
        """Return the first value of an attribute as text for people (see `as_text`). Return "" if the attribute is
        absent."""
        return as_text(self.first.get(kind, b""))


def as_text(value: bytes) -> str:
    """Decode octets as UTF-8. If they are not valid UTF-8, decode them as Latin-1, in which every octet is a character.

    NUL becomes U+FFFD, because some databases do not accept NUL in a text.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return text.replace("\0", "\ufffd") if "\0" in text else text


def as_name(value: bytes) -> str:
    """Return a user's name as text in Unicode normalization form C. Octets are decoded as in `as_text`."""
    return composed(as_text(value))


def decode(datagram: bytes, secret: SharedSecret) -> Request:
    """Parse a request, and verify it with the secret of the RADIUS client.

    datagram: the octets as received; octets after the packet's Length are padding (RFC 2865 section 3). Raises
    PacketError. The reason in this error is the label of a metric: malformed, unknown_type, bad_authenticator,
    bad_message_authenticator, or unsigned (a required Message-Authenticator is missing).
    """
    data = _open(datagram)
    layout = layout_of(data)
    first, code = layout.first(data), data[0]
    if code == ACCESS_REQUEST:
        if layout.names > 1:  # RFC 2865 section 5.44; a home server could check another user than the first
            raise PacketError("the request has more than one User-Name")
        _check_access_request(data, first, layout.signature, secret)
    elif code == ACCOUNTING_REQUEST:
        _check_accounting_request(data, layout.signature, secret)
    elif code == STATUS_SERVER:
        _check_status_server(data, layout.signature, secret)
    else:
        raise PacketError(f"the packet has the unknown code {code}", "unknown_type")
    return Request(data, layout, first)


def peek(datagram: bytes) -> Request:
    """Parse a request of an unknown sender, without verifying it. Raises PacketError if the datagram is not a RADIUS
    request.

    In the result, `signed` only means that a Message-Authenticator is present.
    """
    data = _open(datagram)
    if data[0] not in (ACCESS_REQUEST, ACCOUNTING_REQUEST, STATUS_SERVER):
        raise PacketError(f"the packet has the unknown code {data[0]}", "unknown_type")
    layout = layout_of(data)
    return Request(data, layout, layout.first(data))


def _open(datagram: bytes) -> bytes:
    """Return the packet without padding. Raises PacketError if the Length is wrong."""
    size = len(datagram)
    if size < MIN_LENGTH:
        raise PacketError(f"the packet has {size} octets, fewer than {MIN_LENGTH}")
    length = datagram[2] << 8 | datagram[3]
    if length != size:
        if not MIN_LENGTH <= length <= size:
            raise PacketError(f"the packet has {size} octets, but its length field is {length}")
        datagram = datagram[:length]
    if length > MAX_LENGTH:
        raise PacketError(f"the packet has {length} octets, more than {MAX_LENGTH}")
    return datagram


def _check_access_request(data: bytes, first: dict[int, bytes], signature: int, secret: SharedSecret) -> None:
    if signature:
        if not message_authenticator_holds(data, signature, secret):
            raise PacketError("the Message-Authenticator does not match", "bad_message_authenticator")
    elif EAP_MESSAGE in first:  # RFC 3579 section 3.1
        raise PacketError("the request has an EAP-Message but no Message-Authenticator", "unsigned")
    if EAP_MESSAGE in first and (USER_PASSWORD in first or CHAP_PASSWORD in first):
        raise PacketError("the request has both an EAP-Message and a password")


def _check_accounting_request(data: bytes, signature: int, secret: SharedSecret) -> None:
    if not accounting_authenticator_holds(data, secret):
        raise PacketError("the Request Authenticator does not match", "bad_authenticator")
    if signature and not message_authenticator_holds(_with_authenticator(data, ZERO), signature, secret):
        raise PacketError("the Message-Authenticator does not match", "bad_message_authenticator")


def _check_status_server(data: bytes, signature: int, secret: SharedSecret) -> None:
    if not signature:  # RFC 5997 section 3
        raise PacketError("the Status-Server has no Message-Authenticator", "unsigned")
    if not message_authenticator_holds(data, signature, secret):
        raise PacketError("the Message-Authenticator does not match", "bad_message_authenticator")


def _with_authenticator(data: bytes, authenticator: bytes) -> bytes:
    return data[:4] + authenticator + data[20:]


def message_authenticator_holds(data: bytes, at: int, secret: SharedSecret) -> bool:
    """Return whether a packet's Message-Authenticator is correct (RFC 3579 section 3.2).

    data: the packet. In an answer, the caller must first replace the authenticator by the authenticator of the request.
    In an accounting request, the caller must replace the authenticator by zeros. at: the offset of the value of the
    Message-Authenticator.
    """
    return compare_digest(secret.hmac_md5(data[:at] + ZERO + data[at + 16 :]), data[at : at + 16])


def accounting_authenticator_holds(data: bytes, secret: SharedSecret) -> bool:
    """Return whether the Request Authenticator of an Accounting-Request is correct (RFC 2866 section 3)."""
    return compare_digest(md5(data[:4] + ZERO + data[20:] + secret.octets).digest(), data[4:20])


def response_authenticator(head: bytes, request_authenticator: bytes, body: bytes, secret: SharedSecret) -> bytes:
    """Return the Response Authenticator: MD5(code + identifier + length + request authenticator + attributes + secret)
    (RFC 2865 section 3).

    head: code, identifier and length of the answer. body: the attributes of the answer.
    """
    return md5(head + request_authenticator + body + secret.octets).digest()


_HEAD: Final = Struct("!BBH")  # code, identifier, length (RFC 2865 section 3)
_MESSAGE_AUTHENTICATOR_HEAD: Final = bytes((MESSAGE_AUTHENTICATOR, 18))
_BLANK_SIGNATURE: Final = _MESSAGE_AUTHENTICATOR_HEAD + ZERO


def encode_reply(code: int, request: Request, secret: SharedSecret, attributes: bytes = b"") -> bytes:
    """Return the signed answer to a request. The answer repeats the request's Proxy-State attributes in order.

    attributes: more attributes in octets. An answer to an Access-Request begins with a Message-Authenticator
    (BlastRADIUS, CVE-2024-3596). Raises PacketError if the answer would have more than 4096 octets.
    """
    if PROXY_STATE in request.first:
        attributes += b"".join(bytes((PROXY_STATE, len(value) + 2)) + value for value in request.values(PROXY_STATE))
    signed = code != ACCOUNTING_RESPONSE
    length = MIN_LENGTH + len(attributes) + (18 if signed else 0)
    if length > MAX_LENGTH:
        raise PacketError(f"the answer would have {length} octets, more than {MAX_LENGTH}")
    head = _HEAD.pack(code, request.identifier, length)
    authenticator = request.authenticator
    if signed:
        signature = secret.hmac_md5(head + authenticator + _BLANK_SIGNATURE + attributes)
        attributes = _MESSAGE_AUTHENTICATOR_HEAD + signature + attributes
    return head + response_authenticator(head, authenticator, attributes, secret) + attributes


def encode_request(
    code: int, identifier: int, secret: SharedSecret, attributes: bytes, *, authenticator: bytes | None = None
) -> bytes:
    """Return a request that the service itself sends, in octets. The request begins with a Message-Authenticator,
    except for accounting (RFC 2866 section 3).

    attributes: the attributes in octets. authenticator: the 16 octets with which the passwords in `attributes` were
    encrypted; None for random octets.
    """
    if code == ACCOUNTING_REQUEST:
        head = _HEAD.pack(code, identifier, MIN_LENGTH + len(attributes))
        return head + response_authenticator(head, ZERO, attributes, secret) + attributes
    head = _HEAD.pack(code, identifier, MIN_LENGTH + 18 + len(attributes)) + (authenticator or token_bytes(16))
    signature = secret.hmac_md5(head + _BLANK_SIGNATURE + attributes)
    return head + _MESSAGE_AUTHENTICATOR_HEAD + signature + attributes


class Reply:
    """The answer to a request that the service has sent. Its lengths and authenticators are verified.

    code: the header field. data: the packet without padding. first: the first value of each attribute type.
    """

    __slots__ = ("_layout", "code", "data", "first")

    def __init__(self, data: bytes, layout: Layout) -> None:
        self.code = data[0]
        self.data = data
        self.first = layout.first(data)
        self._layout = layout

    def without(self, kinds: frozenset[int]) -> bytes:
        """Return the attributes in octets and in order, except the attributes of the given types.

        kinds: the types to leave out, see `Layout.without`.
        """
        return self._layout.without(self.data, kinds)

    def values(self, kind: int) -> list[bytes]:
        """Return all values of an attribute type in order."""
        return self._layout.values(self.data, kind)


def decode_reply(datagram: bytes, request: bytes, secret: SharedSecret) -> tuple[int, dict[int, bytes]]:
    """Decode and verify the answer to a request that the service has sent. Return the code and the first value of each
    attribute type. Raises PacketError (see `open_reply`)."""
    reply = open_reply(datagram, request, secret)
    return reply.code, reply.first


def open_reply(datagram: bytes, request: bytes, secret: SharedSecret) -> Reply:
    """Decode and verify the answer to a request that the service has sent (RFC 2865 section 3).

    request: the sent octets. Raises PacketError if a length, the identifier, the Response Authenticator or the
    Message-Authenticator is wrong. The usual cause is a wrong secret, or an answer to another request.
    """
    length = int.from_bytes(datagram[2:4]) if len(datagram) >= MIN_LENGTH else 0
    if not MIN_LENGTH <= length <= len(datagram) or length > MAX_LENGTH:
        raise PacketError(f"the answer has {len(datagram)} octets, but its length field is {length}")
    data = datagram[:length]
    if data[1] != request[1]:
        raise PacketError("the answer is for another request")
    proved = _with_authenticator(data, request[4:20])  # both authenticators are computed over these octets
    if md5(proved + secret.octets).digest() != data[4:20]:
        raise PacketError("the Response Authenticator does not match", "bad_authenticator")
    layout = layout_of(data)
    if layout.signature and not message_authenticator_holds(proved, layout.signature, secret):
        raise PacketError("the Message-Authenticator does not match", "bad_message_authenticator")
    return Reply(data, layout)
