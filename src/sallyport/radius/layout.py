"""Where the attributes of a packet stand (RFC 2865 section 5).

A device sends the same attributes with the same lengths again and again. So what a walk over a packet has found is
kept, and tried on the next packet of that length: the packet as one number, masked to the octets of types and lengths,
tells at once whether it is laid out the same, and where each value is. That needs a third of the time of the walk,
which is the dearest part of a login.
"""

from collections.abc import Callable
from operator import itemgetter
from struct import Struct
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import MAX_ATTRIBUTES, MESSAGE_AUTHENTICATOR

HEADER: Final = 20
INTEGER: Final = 6
"""Octets of an attribute that is an integer, with its type and length."""
SAME_LENGTH: Final = 16
"""Layouts of packets of one length."""
MOST: Final = 16_384
"""Attributes of all layouts: some megabytes, whatever anybody sends."""
NO_PARTS: Final = (slice(0), slice(0))
"""Of less than two parts `itemgetter` makes no tuple."""
Picked = Callable[[tuple[int | None, ...]], tuple[int | None, ...]]


class Layout:
    """The attributes of a packet without padding.

    mask, heads: a packet of this length is laid out so where `number & mask == heads`; number: its octets as one, the
    first being the highest. signature: where the Message-Authenticator's value begins; 0: there is none.
    """

    __slots__ = ("_attributes", "_integers", "_kinds", "_parts", "_places", "_pull", "heads", "mask", "signature")

    def __init__(self, packet: bytes) -> None:
        """PacketError: a length octet is below 2 or runs past the end, there are too many attributes, or two
        Message-Authenticators, or one that is not 16 octets."""
        end, at = len(packet), HEADER
        mask = bytearray(end)
        found: list[tuple[int, int, int]] = []
        kinds: dict[int, None] = {}
        values = [f"{HEADER}x"]
        while at < end:
            size = packet[at + 1] if at + 1 < end else 0
            after = at + size
            if size < 2 or after > end:
                raise PacketError(f"attribute at octet {at}: length {size}")
            kind = packet[at]
            mask[at] = mask[at + 1] = 0xFF
            found.append((kind, at, after))
            values.append(f"{size}x" if kind in kinds else f"2x{size - 2}s")
            kinds[kind] = None
            at = after
        if len(found) > MAX_ATTRIBUTES:
            raise PacketError(f"more than {MAX_ATTRIBUTES} attributes")
        self._attributes = found
        self._kinds = tuple(kinds)
        self._pull = Struct("".join(values)).unpack
        self._parts: dict[frozenset[int], Callable[[bytes], tuple[bytes, ...]]] = {}
        self._places: dict[int, list[slice]] = {}
        self._integers: dict[tuple[int, ...], tuple[Struct, Picked]] = {}
        self.signature = _signature(found) if MESSAGE_AUTHENTICATOR in kinds else 0
        self.mask = int.from_bytes(mask)
        self.heads = int.from_bytes(packet) & self.mask

    def __len__(self) -> int:
        """How many attributes there are."""
        return len(self._attributes)

    def first(self, packet: bytes) -> dict[int, bytes]:
        """The first value of each type."""
        return dict(zip(self._kinds, self._pull(packet)))  # noqa: B905  to ask for strictness takes as long as two values

    def integers(self, packet: bytes, kinds: tuple[int, ...]) -> tuple[int | None, ...]:
        """The first value of each of some types as a number; None where there is none, or it has not four octets.
        kinds: two or more, one of few such tuples."""
        found = self._integers.get(kinds)
        if found is None:
            found = self._integers[kinds] = self._integer_places(kinds)
        places, pick = found
        return pick((*places.unpack(packet), None))

    def _integer_places(self, wanted: tuple[int, ...]) -> tuple[Struct, Picked]:
        seen, kinds, places = set[int](), list[int](), [f"!{HEADER}x"]
        for kind, at, end in self._attributes:
            is_integer = kind not in seen and end - at == INTEGER
            seen.add(kind)
            places.append("2xI" if is_integer else f"{end - at}x")
            if is_integer:
                kinds.append(kind)
        return Struct("".join(places)), itemgetter(*(kinds.index(kind) if kind in kinds else -1 for kind in wanted))

    def values(self, packet: bytes, kind: int) -> list[bytes]:
        """All values of a type, in order. kind: one of few."""
        places = self._places.get(kind)
        if places is None:
            places = [slice(at + 2, end) for found, at, end in self._attributes if found == kind]
            self._places[kind] = places
        return [packet[place] for place in places]

    def without(self, packet: bytes, kinds: frozenset[int]) -> bytes:
        """The attributes in octets and in order, but for those of some types. kinds: one of few sets."""
        parts = self._parts.get(kinds)
        if parts is None:
            parts = self._parts[kinds] = itemgetter(*self._stretches(kinds), *NO_PARTS)
        return b"".join(parts(packet))

    def _stretches(self, kinds: frozenset[int]) -> list[slice]:
        """As few parts of a packet as can be, with all but some types."""
        parts, begun = list[slice](), HEADER
        for kind, at, end in self._attributes:
            if kind in kinds:
                parts.append(slice(begun, at))
                begun = end
        return [part for part in (*parts, slice(begun, None)) if part.start != part.stop]


def _signature(attributes: list[tuple[int, int, int]]) -> int:
    (_, at, end), *more = (each for each in attributes if each[0] == MESSAGE_AUTHENTICATOR)
    if more:
        raise PacketError("a second Message-Authenticator", "bad_message_authenticator")
    if end - at != 18:
        raise PacketError("Message-Authenticator is not 16 octets", "bad_message_authenticator")
    return at + 2


class Layouts:
    """Return the recent layouts; they change no answer."""

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
        if self._room < len(layout):
            self._known.clear()
            self._room = MOST
        alike = self._known.setdefault(length, [])
        if len(alike) == SAME_LENGTH:
            self._room += len(alike.pop(0))
        self._room -= len(layout)
        alike.append(layout)


layout_of: Final = Layouts().of
"""Where a packet's attributes stand. packet: without padding. PacketError: see `Layout`."""
