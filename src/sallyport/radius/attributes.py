"""Attribute numbers, and the layout of attributes in a packet (RFC 2865 section 5).

A device sends the same attributes with the same lengths again and again. So `Layouts` caches the positions of the
attributes (a `Layout`) for recent packets. One operation on two large integers compares all attribute types and lengths
of a new packet with a cached layout. Parsing is the most expensive part of a login, and this comparison takes only a
third of its time.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import itemgetter
from struct import Struct
from typing import Final

from sallyport.base.errors import PacketError

# RFC 2865 section 5
USER_NAME: Final = 1
USER_PASSWORD: Final = 2
CHAP_PASSWORD: Final = 3
NAS_IP_ADDRESS: Final = 4
NAS_PORT: Final = 5
SERVICE_TYPE: Final = 6
FRAMED_PROTOCOL: Final = 7
FRAMED_MTU: Final = 12
REPLY_MESSAGE: Final = 18
STATE: Final = 24
CLASS: Final = 25
VENDOR_SPECIFIC: Final = 26
SESSION_TIMEOUT: Final = 27
CALLED_STATION_ID: Final = 30
CALLING_STATION_ID: Final = 31
NAS_IDENTIFIER: Final = 32
PROXY_STATE: Final = 33
CHAP_CHALLENGE: Final = 60
NAS_PORT_TYPE: Final = 61
# RFC 2866 section 5
ACCT_STATUS_TYPE: Final = 40
ACCT_DELAY_TIME: Final = 41
ACCT_INPUT_OCTETS: Final = 42
ACCT_OUTPUT_OCTETS: Final = 43
ACCT_SESSION_ID: Final = 44
ACCT_SESSION_TIME: Final = 46
ACCT_INPUT_PACKETS: Final = 47
ACCT_OUTPUT_PACKETS: Final = 48
ACCT_TERMINATE_CAUSE: Final = 49
ACCT_MULTI_SESSION_ID: Final = 50
# RFC 2869 section 5
ACCT_INPUT_GIGAWORDS: Final = 52
ACCT_OUTPUT_GIGAWORDS: Final = 53
EVENT_TIMESTAMP: Final = 55
# RFC 2865 section 5.8, RFC 3162 section 2.3, RFC 4818 section 3, RFC 6911 section 3.1
FRAMED_IP_ADDRESS: Final = 8
FRAMED_INTERFACE_ID: Final = 96
FRAMED_IPV6_PREFIX: Final = 97
DELEGATED_IPV6_PREFIX: Final = 123
FRAMED_IPV6_ADDRESS: Final = 168
# RFC 2868 and 2869
TUNNEL_CLIENT_ENDPOINT: Final = 66
CONNECT_INFO: Final = 77
EAP_MESSAGE: Final = 79
MESSAGE_AUTHENTICATOR: Final = 80
ACCT_INTERIM_INTERVAL: Final = 85
NAS_PORT_ID: Final = 87
# RFC 3162, 4372, 5580, 7268
NAS_IPV6_ADDRESS: Final = 95
CHARGEABLE_USER_IDENTITY: Final = 89
# RFC 5176 section 3.5
ERROR_CAUSE: Final = 101

MAX_ATTRIBUTES: Final = 200
"""Maximum number of attributes in a packet. A packet with more attributes is malformed, as in FreeRADIUS."""
HEADER: Final = 20
"""Length of a packet's header in octets."""
INTEGER: Final = 6
"""Length of an integer attribute in octets, including its type and length octets."""
SAME_LENGTH: Final = 16
"""Maximum number of cached layouts for packets of one length."""
MAX_KEPT: Final = 16_384
"""Maximum number of attributes in all cached layouts together. They take some megabytes at most."""
NO_PARTS: Final = (slice(0), slice(0))
"""Two empty slices, added to the slices of a layout. With fewer than two keys, `itemgetter` would not return a
tuple."""
_MAX_PARTS: Final = 16
"""Maximum number of cached sets of attributes that a layout leaves out."""
Picked = Callable[[tuple[int | None, ...]], tuple[int | None, ...]]


def pull_attributes(body: bytes, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (type, value) for each attribute (RFC 2865 section 5).

    body: octets in which the attributes begin at offset `at`. value: 0..253 octets, as sent. Raises PacketError if a
    length octet is below 2 or runs past the end.
    """
    end = len(body)
    while at < end:
        size = body[at + 1] if at + 1 < end else 0
        if size < 2 or at + size > end:
            raise PacketError(f"the attribute at octet {at} has the invalid length {size}")
        yield body[at], body[at + 2 : at + size]
        at += size


def push_attribute(kind: int, value: bytes) -> bytes:
    """Return one attribute in octets. Raises ValueError if the value is longer than 253 octets."""
    if len(value) > 253:
        raise ValueError(f"the value of attribute {kind} has {len(value)} octets, more than 253")
    return bytes((kind, len(value) + 2)) + value


def push_vendor_attribute(vendor: int, kind: int, value: bytes) -> bytes:
    """Return one vendor attribute in octets, in a Vendor-Specific attribute of its own (RFC 2865 section 5.26)."""
    return push_attribute(VENDOR_SPECIFIC, vendor.to_bytes(4) + push_attribute(kind, value))


def combine(found: bytes, chosen: bytes) -> bytes:
    """Return the attributes of `found` and `chosen` in octets. An attribute of `found` is left out if `chosen` contains
    an attribute of the same type, or of the same (vendor, type)."""
    taken = {_key(kind, value) for kind, value in pull_attributes(chosen)}
    kept = (pair for pair in pull_attributes(found) if _key(*pair) not in taken)
    return b"".join(push_attribute(kind, value) for kind, value in kept) + chosen


combined: Final = lru_cache(1024)(combine)
"""`combine` with a cache, for attributes that are the same in many replies."""


def _key(kind: int, value: bytes) -> tuple[int, int, int]:
    return (kind, 0, 0) if kind != VENDOR_SPECIFIC else (kind, int.from_bytes(value[:4]), int.from_bytes(value[4:5]))


def pull_vendor_attributes(value: bytes) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the vendor's number and the (type, value) pairs of a Vendor-Specific value (RFC 2865 section 5.26).

    If the value does not have the format that the RFC suggests, the list of pairs is empty. The packet is still valid.
    """
    size = len(value)
    if size < 4:
        return 0, []
    vendor = int.from_bytes(value[:4])
    if size > 5 and value[5] == size - 4:  # one pair, as nearly all senders have it
        return vendor, [(value[4], value[6:])]
    try:
        return vendor, list(pull_attributes(value, 4))
    except PacketError:
        return vendor, []


class Layout:
    """The positions of the attributes in a packet. The packet must have no padding.

    mask, heads: a packet of the same length has this layout if `number & mask == heads`, where `number` is the packet,
    read as one big-endian integer. signature: the offset of the value of the Message-Authenticator; 0 if the packet has
    none. names: the number of User-Name attributes.
    """

    __slots__ = (
        "_attributes", "_integers", "_kinds", "_parts", "_places", "_pull", "heads", "mask", "names", "signature",
    )  # fmt: skip

    def __init__(self, packet: bytes) -> None:
        """Parse a packet. Raises PacketError for each of these faults:

        - A length octet is below 2 or runs past the end.
        - There are too many attributes, or two Message-Authenticators.
        - The Message-Authenticator does not have 16 octets.
        """
        end, at = len(packet), HEADER
        mask = bytearray(end)
        found: list[tuple[int, int, int]] = []
        kinds: dict[int, None] = {}
        values = [f"{HEADER}x"]
        while at < end:
            size = packet[at + 1] if at + 1 < end else 0
            after = at + size
            if size < 2 or after > end:
                raise PacketError(f"the attribute at octet {at} has the invalid length {size}")
            kind = packet[at]
            mask[at] = mask[at + 1] = 0xFF
            found.append((kind, at, after))
            values.append(f"{size}x" if kind in kinds else f"2x{size - 2}s")
            kinds[kind] = None
            at = after
        if len(found) > MAX_ATTRIBUTES:
            raise PacketError(f"the packet has more than {MAX_ATTRIBUTES} attributes")
        self._attributes = found
        self._kinds = tuple(kinds)
        self._pull = Struct("".join(values)).unpack
        self._parts: dict[frozenset[int], Callable[[bytes], tuple[bytes, ...]]] = {}
        self._places: dict[int, list[slice]] = {}
        self._integers: dict[tuple[int, ...], tuple[Struct, Picked]] = {}
        self.signature = _signature(found) if MESSAGE_AUTHENTICATOR in kinds else 0
        self.names = sum(kind == USER_NAME for kind, *_ in found)
        self.mask = int.from_bytes(mask)
        self.heads = int.from_bytes(packet) & self.mask

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self._attributes)

    def first(self, packet: bytes) -> dict[int, bytes]:
        """Return the first value of each attribute type."""
        return dict(zip(self._kinds, self._pull(packet)))  # noqa: B905  to ask for strictness takes as long as two values

    def integers(self, packet: bytes, kinds: tuple[int, ...]) -> tuple[int | None, ...]:
        """Return the first value of each given type as a number. An element is None if the value is missing or does not
        have four octets.

        kinds: two or more types. Pass a constant, because `kinds` is the key of a cache.
        """
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
        """Return all values of an attribute type, in order. kind: the type. Pass a constant, because it is the key of a
        cache."""
        places = self._places.get(kind)
        if places is None:
            places = [slice(at + 2, end) for found, at, end in self._attributes if found == kind]
            self._places[kind] = places
        return [packet[index] for index in places]

    def without(self, packet: bytes, kinds: frozenset[int]) -> bytes:
        """Return the attributes in octets and in order, except the attributes of the given types.

        kinds: the types to leave out. Pass a value of which there are few, because `kinds` is the key of a cache.
        """
        parts = self._parts.get(kinds)
        if parts is None:
            if len(self._parts) >= _MAX_PARTS:
                self._parts.clear()
            parts = self._parts[kinds] = itemgetter(*self._stretches(kinds), *NO_PARTS)
        return b"".join(parts(packet))

    def _stretches(self, kinds: frozenset[int]) -> list[slice]:
        """Return the parts of a packet, as slices, that contain all attributes except those of the given types.
        Adjacent attributes are in one slice."""
        parts, begun = list[slice](), HEADER
        for kind, at, end in self._attributes:
            if kind in kinds:
                parts.append(slice(begun, at))
                begun = end
        return [part for part in (*parts, slice(begun, None)) if part.start != part.stop]


def _signature(attributes: list[tuple[int, int, int]]) -> int:
    (_, at, end), *more = (each for each in attributes if each[0] == MESSAGE_AUTHENTICATOR)
    if more:
        raise PacketError("the packet has two Message-Authenticators", "bad_message_authenticator")
    if end - at != 18:
        raise PacketError(
            f"the Message-Authenticator has {end - at - 2} octets instead of 16", "bad_message_authenticator"
        )
    return at + 2


class Layouts:
    """A cache of the layouts of recent packets."""

    def __init__(self) -> None:
        self._known: dict[int, list[Layout]] = {}  # by the length of the packet
        self._room = MAX_KEPT

    def of(self, packet: bytes) -> Layout:
        """Return the layout of a packet, from the cache if possible. Raises PacketError if the packet is malformed."""
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
            self._room = MAX_KEPT
        alike = self._known.setdefault(length, [])
        if len(alike) == SAME_LENGTH:
            self._room += len(alike.pop(0))
        self._room -= len(layout)
        alike.append(layout)


layout_of: Final = Layouts().of
"""Return the layout of a packet without padding. Raises PacketError if the packet is malformed."""
