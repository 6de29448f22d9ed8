"""Where the attributes of a packet stand (RFC 2865 section 5).

A device sends the same attributes with the same lengths again and again. So what a walk over a packet has found is
kept, and tried on the next packet of that length: the packet as one number, masked to the octets of types and lengths,
tells at once whether it is laid out the same, and one call takes out all values. That needs a third of the time of the
walk, which is the dearest part of a login.
"""

from struct import Struct
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import MAX_ATTRIBUTES, MESSAGE_AUTHENTICATOR

HEADER: Final = 20
SAME_LENGTH: Final = 16
MOST: Final = 1024


class Layout:
    """The attributes of a packet without padding.

    mask, heads: a packet of this length is laid out so where `number & mask == heads`; number: its octets as one, the
    first being the highest. signature: where the Message-Authenticator's value begins; 0: there is none.
    """

    __slots__ = ("_attributes", "_kinds", "_parts", "_unpack", "heads", "mask", "signature")

    def __init__(self, packet: bytes) -> None:
        """PacketError: a length octet is below 2 or runs past the end, there are too many attributes, or two
        Message-Authenticators, or one that is not 16 octets."""
        end, at = len(packet), HEADER
        mask, found, first = bytearray(end), list[tuple[int, int, int]](), dict[int, tuple[int, int]]()
        while at < end:
            size = packet[at + 1] if at + 1 < end else 0
            if size < 2 or at + size > end:
                raise PacketError(f"attribute at octet {at}: length {size}")
            mask[at] = mask[at + 1] = 0xFF
            found.append((packet[at], at, at + size))
            first.setdefault(packet[at], (at + 2, at + size))
            at += size
        if len(found) > MAX_ATTRIBUTES:
            raise PacketError(f"more than {MAX_ATTRIBUTES} attributes")
        self._attributes = found
        self.signature = _signature(found)
        self.mask = int.from_bytes(mask)
        self.heads = int.from_bytes(packet) & self.mask
        self._kinds = tuple(first)
        self._unpack = _struct(first, end).unpack
        self._parts: dict[frozenset[int], list[slice]] = {}

    def first(self, packet: bytes) -> dict[int, bytes]:
        """The first value of each type."""
        return dict(zip(self._kinds, self._unpack(packet), strict=True))

    def values(self, packet: bytes, kind: int) -> list[bytes]:
        """All values of a type, in order."""
        return [packet[at + 2 : end] for found, at, end in self._attributes if found == kind]

    def without(self, packet: bytes, kinds: frozenset[int]) -> bytes:
        """The attributes in octets and in order, but for those of some types. kinds: one of few sets."""
        parts = self._parts.get(kinds)
        if parts is None:
            parts = self._parts[kinds] = self._stretches(kinds)
        return b"".join([packet[part] for part in parts])

    def _stretches(self, kinds: frozenset[int]) -> list[slice]:
        """As few parts of a packet as can be, with all but some types."""
        parts, begun = list[slice](), HEADER
        for kind, at, end in self._attributes:
            if kind in kinds:
                parts.append(slice(begun, at))
                begun = end
        return [part for part in (*parts, slice(begun, None)) if part.start != part.stop]


def _signature(attributes: list[tuple[int, int, int]]) -> int:
    places = [(at, end) for kind, at, end in attributes if kind == MESSAGE_AUTHENTICATOR]
    if len(places) > 1:
        raise PacketError("a second Message-Authenticator", "bad_message_authenticator")
    if places and places[0][1] - places[0][0] != 18:
        raise PacketError("Message-Authenticator is not 16 octets", "bad_message_authenticator")
    return places[0][0] + 2 if places else 0


def _struct(places: dict[int, tuple[int, int]], length: int) -> Struct:
    """Takes the octets at some places, which are in order, out of a packet."""
    parts, at = "", 0
    for begin, end in places.values():
        parts += f"{begin - at}x{end - begin}s"
        at = end
    return Struct(f"{parts}{length - at}x")


class Layouts:
    """Those of late; what is remembered changes no answer."""

    def __init__(self) -> None:
        self._known: dict[int, list[Layout]] = {}  # by length of the packet
        self._room = MOST

    def of(self, packet: bytes) -> Layout:
        """A packet's. PacketError: see `Layout`."""
        alike = self._known.get(len(packet), ())
        number = int.from_bytes(packet)
        for layout in alike:
            if number & layout.mask == layout.heads:
                return layout
        layout = Layout(packet)
        self._keep(layout, len(packet))
        return layout

    def _keep(self, layout: Layout, length: int) -> None:
        if not self._room:
            self._known.clear()
            self._room = MOST
        alike = self._known.setdefault(length, [])
        if len(alike) == SAME_LENGTH:
            alike.pop(0)
        else:
            self._room -= 1
        alike.append(layout)


layout_of: Final = Layouts().of
"""Where a packet's attributes stand. packet: without padding. PacketError: see `Layout`."""
