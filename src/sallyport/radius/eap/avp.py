"""Attributes inside TTLS, in the format of Diameter (RFC 5281 section 10)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sallyport.base.errors import PacketError

_VENDOR: Final = 0x80
_MANDATORY: Final = 0x40
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Avp:
    """One attribute. vendor: 0 for those of RADIUS. mandatory: who does not know it must refuse."""

    vendor: int
    code: int
    mandatory: bool
    value: bytes


def pull_avps(octets: bytes) -> Iterator[Avp]:
    """The attributes in a message. PacketError: one ends before its length, or there are too many."""
    at, count = 0, 0
    while at < len(octets):
        head = octets[at : at + 8]
        length = int.from_bytes(head[5:8])
        flags = head[4] if len(head) == 8 else 0
        start = 12 if flags & _VENDOR else 8
        count += 1
        if len(head) < 8 or length < start or at + length > len(octets) or count > MOST:
            raise PacketError(f"an attribute of length {length} inside TTLS")
        vendor = int.from_bytes(octets[at + 8 : at + 12]) if flags & _VENDOR else 0
        yield Avp(vendor, int.from_bytes(head[:4]), bool(flags & _MANDATORY), octets[at + start : at + length])
        at += length + -length % 4


def push_avp(code: int, value: bytes, vendor: int = 0) -> bytes:
    """One mandatory attribute in octets, padded."""
    length = (12 if vendor else 8) + len(value)
    flags = _MANDATORY | (_VENDOR if vendor else 0)
    head = code.to_bytes(4) + bytes((flags,)) + length.to_bytes(3) + (vendor.to_bytes(4) if vendor else b"")
    return head + value + bytes(-length % 4)
