"""TLS messages in fragments inside EAP-TLS, TTLS and PEAP (RFC 5216 sections 2.1.5 and 3.1).

Each message begins with an octet of flags, whose low bits are the version of TTLS or PEAP; the first fragment of
several tells the length of all. Each fragment but the last is acknowledged by an empty message.
"""

from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.eap.packet import HEADER

LENGTH: Final = 0x80
MORE: Final = 0x40
START: Final = 0x20
MAX_MESSAGE: Final = 65_536
"""Octets of a whole message: a chain of certificates and all that goes with it."""
SMALLEST: Final = 64
_VERSION: Final = 0x07
_OVERHEAD: Final = HEADER + 5  # the flags and the length


class Framing:
    """Both directions of one conversation. version: of TTLS or PEAP. fragment_size: the most octets of an EAP packet
    of ours, from 64 on."""

    def __init__(self, version: int, fragment_size: int) -> None:
        self._version = version
        self._room = max(fragment_size, SMALLEST) - _OVERHEAD
        self._out = b""
        self._in = bytearray()
        self._announced = 0

    def start(self) -> bytes:
        """The message that begins it."""
        return bytes((START | self._version,))

    def acknowledgement(self) -> bytes:
        """The message that asks for the next fragment."""
        return bytes((self._version,))

    @property
    def is_sending(self) -> bool:
        """Whether fragments are left, each to be sent when the one before is acknowledged."""
        return bool(self._out)

    def send(self, message: bytes) -> bytes:
        """The first fragment of a message, or the whole."""
        if len(message) <= self._room:
            return bytes((self._version,)) + message
        self._out = message[self._room :]
        return bytes((self._version | LENGTH | MORE,)) + len(message).to_bytes(4) + message[: self._room]

    def next(self) -> bytes:
        """The next fragment."""
        piece, self._out = self._out[: self._room], self._out[self._room :]
        return bytes((self._version | (MORE if self._out else 0),)) + piece

    def receive(self, data: bytes) -> bytes | None:
        """The whole message that this fragment ends, empty for an acknowledgement; None: more is to come.

        PacketError: it is of another version, longer than announced or than `MAX_MESSAGE`, or brings nothing.
        """
        if not data:
            raise PacketError("a message without flags")
        flags, piece = data[0], data[1:]
        if flags & _VERSION != self._version:
            raise PacketError(f"version {flags & _VERSION} instead of {self._version}")
        if flags & LENGTH:
            if len(piece) < 4:
                raise PacketError("a fragment ends within its length")
            self._announce(int.from_bytes(piece[:4]))
            piece = piece[4:]
        self._in += piece
        if len(self._in) > (self._announced or MAX_MESSAGE):
            raise PacketError("fragments are longer than their message")
        if flags & MORE:
            if not piece:
                raise PacketError("a fragment without octets")
            return None
        return self._whole()

    def _announce(self, length: int) -> None:
        if length > MAX_MESSAGE or (self._announced and length != self._announced):
            raise PacketError(f"a message of {length} octets is announced")
        self._announced = length

    def _whole(self) -> bytes:
        message, announced = bytes(self._in), self._announced
        self._in.clear()
        self._announced = 0
        if announced and len(message) != announced:
            raise PacketError(f"{len(message)} octets instead of {announced}")
        return message
