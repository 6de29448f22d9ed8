"""The codec of EAP packets and EAP-Message attributes (RFC 3748 section 4, RFC 3579 section 3.1).

It also splits the TLS messages of EAP-TLS, TTLS and PEAP into fragments, and joins them (RFC 5216 sections 2.1.5 and
3.1).
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import EAP_MESSAGE, push_attribute
from sallyport.radius.packet import Request

# RFC 3748 section 4
REQUEST: Final = 1
RESPONSE: Final = 2
SUCCESS: Final = 3
FAILURE: Final = 4

# RFC 3748 section 5, RFC 5216, RFC 5281, MS-PEAP, draft-kamath-pppext-eap-mschapv2
IDENTITY: Final = 1
NAK: Final = 3
MD5: Final = 4
GTC: Final = 6
TLS: Final = 13
TTLS: Final = 21
PEAP: Final = 25
MSCHAPV2: Final = 26
EXTENSIONS: Final = 33

NAMED_OUTSIDE: Final = frozenset({IDENTITY, MD5, GTC, MSCHAPV2})
"""The types that prove the password of the EAP identity itself. Other types may have another name inside."""
TYPE_NAMES: Final = {MD5: "md5", GTC: "gtc", TLS: "tls", TTLS: "ttls", PEAP: "peap", MSCHAPV2: "mschapv2"}
HEADER: Final = 5
_HEADER: Final = Struct("!BBHB")  # code, identifier, length, type
_CARRIED: Final = 253  # maximum octets in one attribute


@dataclass(frozen=True, slots=True)
class Packet:
    """An EAP request or response. kind: its Type. data: its Type-Data."""

    code: int
    identifier: int
    kind: int
    data: bytes


def decode(octets: bytes) -> Packet:
    """Parse an EAP request or response (RFC 3748 section 4.1). Octets after the packet's Length are padding. Raises
    PacketError."""
    size = len(octets)
    if size < HEADER:
        raise PacketError(f"the EAP packet has {size} octets, fewer than {HEADER}")
    code, identifier, length, kind = _HEADER.unpack_from(octets)
    if not HEADER <= length <= size:
        raise PacketError(f"the EAP packet has {size} octets, but its length field is {length}")
    if code not in (REQUEST, RESPONSE):
        raise PacketError(f"the EAP packet has the code {code}, but must be a request or a response")
    return Packet(code, identifier, kind, octets[HEADER:length])


def encode(packet: Packet) -> bytes:
    """Return an EAP request or response in octets."""
    return _HEADER.pack(packet.code, packet.identifier, HEADER + len(packet.data), packet.kind) + packet.data


def end(code: int, identifier: int) -> bytes:
    """Return EAP-Success or EAP-Failure in octets (RFC 3748 section 4.2). identifier: the identifier of the client's
    last response."""
    return bytes((code, identifier, 0, 4))


def pull_eap_message(request: Request) -> bytes:
    """Return the EAP packet of a RADIUS request. It is the joined values of the EAP-Message attributes."""
    return b"".join(request.values(EAP_MESSAGE))


def push_eap_message(octets: bytes) -> bytes:
    """Return an EAP packet as EAP-Message attributes in octets. A long packet is split into several attributes."""
    if len(octets) <= _CARRIED:
        return push_attribute(EAP_MESSAGE, octets)
    return b"".join([push_attribute(EAP_MESSAGE, octets[at : at + _CARRIED]) for at in range(0, len(octets), _CARRIED)])


LENGTH: Final = 0x80
MORE: Final = 0x40
START: Final = 0x20
MAX_MESSAGE: Final = 65_536
"""Maximum length of a reassembled message in octets, enough for a long certificate chain."""
MIN_FRAGMENT_SIZE: Final = 64
_VERSION: Final = 0x07
_OVERHEAD: Final = HEADER + 5  # EAP header, flags and message length


class Framing:
    """The fragmentation and reassembly of the TLS messages in one conversation.

    Each fragment begins with an octet of flags. The low bits of this octet are the version of TTLS or PEAP. The first
    of several fragments contains the length of the whole message. An empty message acknowledges each fragment except
    the last.

    version: the version of TTLS or PEAP. fragment_size: the maximum length of an EAP packet that is sent, in octets; at
    least 64.
    """

    def __init__(self, version: int, fragment_size: int) -> None:
        self._version = version
        self._room = max(fragment_size, MIN_FRAGMENT_SIZE) - _OVERHEAD
        self._out = b""
        self._in = bytearray()
        self._announced = 0

    def start(self) -> bytes:
        """Return the Start message of the method."""
        return bytes((START | self._version,))

    def acknowledgement(self) -> bytes:
        """Return the empty message that acknowledges a fragment."""
        return bytes((self._version,))

    @property
    def is_sending(self) -> bool:
        """Return whether fragments of the last message must still be sent. Each fragment is sent after the client has
        acknowledged the previous fragment."""
        return bool(self._out)

    def send(self, message: bytes) -> bytes:
        """Start to send a message. If the message fits into one fragment, return the whole message. Otherwise return
        the first fragment."""
        if len(message) <= self._room:
            return bytes((self._version,)) + message
        self._out = message[self._room :]
        return bytes((self._version | LENGTH | MORE,)) + len(message).to_bytes(4) + message[: self._room]

    def next(self) -> bytes:
        """Return the next fragment of the message."""
        piece, self._out = self._out[: self._room], self._out[self._room :]
        return bytes((self._version | (MORE if self._out else 0),)) + piece

    def receive(self, data: bytes) -> bytes | None:
        """Process a fragment. Return the whole message after its last fragment, and None before that. An
        acknowledgement is an empty message.

        Raises PacketError if the version or the total length is wrong, if the message is longer than MAX_MESSAGE
        octets, or if a fragment is empty.
        """
        if not data:
            raise PacketError("the EAP message has no flags")
        flags, piece = data[0], data[1:]
        if flags & _VERSION != self._version:
            raise PacketError(f"the EAP message has the version {flags & _VERSION} instead of {self._version}")
        if flags & LENGTH:
            if len(piece) < 4:
                raise PacketError(f"the length field of a fragment has {len(piece)} octets instead of 4")
            self._announce(int.from_bytes(piece[:4]))
            piece = piece[4:]
        elif not flags & MORE and not self._in:
            return piece  # most messages have one fragment, without the optional length
        self._in += piece
        if len(self._in) > (self._announced or MAX_MESSAGE):
            raise PacketError("the fragments are together longer than the announced length of their message")
        if flags & MORE:
            if not piece:
                raise PacketError("a fragment has no octets, although more fragments follow")
            return None
        return self._whole()

    def _announce(self, length: int) -> None:
        if length > MAX_MESSAGE or (self._announced and length != self._announced):
            raise PacketError(
                f"a fragment announces {length} octets: more than {MAX_MESSAGE}, or not the same length as before"
            )
        self._announced = length

    def _whole(self) -> bytes:
        message, announced = bytes(self._in), self._announced
        self._in.clear()
        self._announced = 0
        if announced and len(message) != announced:
            raise PacketError(f"the message has {len(message)} octets instead of the announced {announced}")
        return message
