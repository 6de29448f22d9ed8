"""What the vendors' files look at: a request's attributes, prepared once for all of them.

Values stay octets and are compared as octets: names from the network are not text before they have matched.
"""

import re
from ipaddress import IPv6Address, ip_address
from typing import Final

from sallyport.radius.attributes import NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, PROXY_STATE
from sallyport.radius.packet import Request

_SENT_BY_ANYONE: Final = frozenset((0, 9, 311, 14122, 29464))
"""No vendor, Cisco's AV pairs, Microsoft's MS-CHAP, WISPr, and PacketFence's own: these name no NAS by being there."""


class Sight:
    """A request as the vendors' files see it.

    first: the first value of each attribute type. vendor: the values of each (vendor, type) in Vendor-Specific.
    proxy_states: all of them, in order. source: the packet's source address as text.
    """

    __slots__ = ("first", "proxy_states", "source", "vendor")

    def __init__(self, request: Request, source: str) -> None:
        self.first = request.first
        self.vendor = request.vendor_values()
        self.proxy_states = request.values(PROXY_STATE)
        self.source = source

    def octets(self, kind: int) -> bytes:
        """The first value of an attribute type; empty where there is none."""
        return self.first.get(kind, b"")

    def integer(self, kind: int) -> int | None:
        """The first value of an attribute type as an integer; None where there is none of 4 octets."""
        value = self.first.get(kind)
        return int.from_bytes(value) if value is not None and len(value) == 4 else None

    def vendor_octets(self, vendor: int, kind: int) -> bytes:
        """The first value of a vendor's attribute; empty where there is none."""
        values = self.vendor.get((vendor, kind))
        return values[0] if values else b""

    def vendor_integer(self, vendor: int, kind: int) -> int | None:
        """The first value of a vendor's attribute as an integer; None where there is none of 4 octets."""
        values = self.vendor.get((vendor, kind))
        return int.from_bytes(values[0]) if values and len(values[0]) == 4 else None

    def has(self, vendor: int, *kinds: int) -> tuple[str, ...]:
        """Evidence: those of a vendor's attributes that are there."""
        if not self.vendor:
            return ()
        return tuple(f"Vendor-Specific {vendor}/{kind}" for kind in kinds if (vendor, kind) in self.vendor)

    def begins(self, vendor: int, kind: int, *prefixes: bytes) -> tuple[str, ...]:
        """Evidence: the prefixes that values of a vendor's attribute begin with. prefixes: ASCII."""
        values = self.vendor.get((vendor, kind), ())
        return tuple(
            f"Vendor-Specific {vendor}/{kind} {prefix.decode()}"
            for prefix in prefixes
            if any(value.startswith(prefix) for value in values)
        )

    def is_one_of(self, kind: int, name: str, literals: frozenset[bytes]) -> tuple[str, ...]:
        """Evidence: an attribute that is word for word one of the literals. name: the attribute's; literals: ASCII."""
        value = self.octets(kind)
        return (f"{name} {value.decode()}",) if value in literals else ()

    def matches(self, kind: int, name: str, pattern: re.Pattern[bytes]) -> tuple[str, ...]:
        """Evidence: an attribute that is wholly of a pattern, which must match printable ASCII alone."""
        value = self.octets(kind)
        return (f"{name} {value.decode()}",) if pattern.fullmatch(value) else ()

    def speaks_for_a_vendor(self) -> bool:
        """An attribute is there of a vendor whose attributes others do not send, known here or not."""
        return any(vendor not in _SENT_BY_ANYONE for vendor, _ in self.vendor)

    def tells_nas_address(self) -> bool:
        """NAS-IP-Address or NAS-IPv6-Address is there."""
        return NAS_IP_ADDRESS in self.first or NAS_IPV6_ADDRESS in self.first

    def sent_by_nas(self) -> bool:
        """The source address is the one that the NAS calls its own. Another one proves nothing: proxy, NAT, setting."""
        try:
            source = ip_address(self.source)
        except ValueError:
            return False
        if isinstance(source, IPv6Address) and source.ipv4_mapped is not None:
            source = source.ipv4_mapped
        return source.packed in (self.first.get(NAS_IP_ADDRESS), self.first.get(NAS_IPV6_ADDRESS))
