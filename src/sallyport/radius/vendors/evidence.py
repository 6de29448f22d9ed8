"""Functions that find evidence for a product in a request, for the tables of fingerprints.

Each function returns a `Match`: a function that takes a request and returns its evidence as printable texts, such as
"Vendor-Specific 12356/3" or "Connect-Info vpn-ssl". A `Match` returns an empty tuple if the request does not match.
Evidence never contains a user's data. Values are compared as octets, and are converted to text only after they have
matched.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from ipaddress import IPv6Address, ip_address
from typing import Final

from sallyport.radius.attributes import NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, PROXY_STATE
from sallyport.radius.packet import Request

_SENT_BY_MANY: Final = frozenset((0, 9, 311, 14122, 29464))
"""Vendor numbers that do not identify a NAS. Many products send attributes of 0, Cisco (AV pairs), Microsoft (MS-CHAP)
and WISPr. PacketFence is a proxy."""


class Attributes:
    """The attributes of one request, prepared once for all fingerprints.

    first: the first value of each attribute type. vendor: the values of each (vendor, type) in Vendor-Specific
    attributes. proxy_states: all values of Proxy-State, in order. source: the packet's source address as text.
    """

    def __init__(self, request: Request, source: str) -> None:
        self.first = request.first
        self.vendor = request.vendor_values()
        self.proxy_states = request.values(PROXY_STATE)
        self.source = source

    def octets(self, kind: int) -> bytes:
        """Return the first value of an attribute type. Return b"" if the attribute is absent."""
        return self.first.get(kind, b"")

    def integer(self, kind: int) -> int | None:
        """Return the first value of an attribute type as an integer. Return None if the attribute is absent or does not
        have four octets."""
        value = self.first.get(kind)
        return int.from_bytes(value) if value is not None and len(value) == 4 else None

    @property
    def last_proxy_state(self) -> bytes:
        """Return the Proxy-State of the host that sent the packet (RFC 2865 section 5.33). Return b"" without a
        Proxy-State."""
        return self.proxy_states[-1] if self.proxy_states else b""

    @cached_property
    def has_vendor_of_its_own(self) -> bool:
        """Return whether the request has an attribute that only the products of one vendor send. The vendor need not be
        in the tables."""
        return any(vendor not in _SENT_BY_MANY for vendor, _ in self.vendor)

    @cached_property
    def is_sent_by_nas(self) -> bool:
        """Return whether the source address is the NAS's own address. If the addresses differ, there may be a proxy or
        NAT between NAS and service, or the NAS may have a wrong setting."""
        try:
            source = ip_address(self.source)
        except ValueError:
            return False
        if isinstance(source, IPv6Address) and source.ipv4_mapped is not None:
            source = source.ipv4_mapped
        return source.packed in (self.first.get(NAS_IP_ADDRESS), self.first.get(NAS_IPV6_ADDRESS))


Match = Callable[[Attributes], tuple[str, ...]]
Condition = Callable[[Attributes], bool]


class Certainty(StrEnum):
    """How reliable a finding is."""

    CERTAIN = "certain"
    PROBABLE = "probable"
    """The finding is based only on a name or a format that an admin could have set, or on evidence that contradicts
    itself."""


class Rank(IntEnum):
    """The kinds of evidence, the strongest first."""

    VENDOR_ATTRIBUTE = 1
    """An attribute that only one vendor's products send."""
    SHARED_ATTRIBUTE = 2
    """A vendor's attribute that other vendors send as well."""
    MICROSOFT_VALUE = 3
    """The value of a Microsoft attribute. Many products send the attribute itself."""
    CONNECT_INFO = 4
    """The exact text of a Connect-Info."""
    NAS_IDENTIFIER = 5
    """The exact text of a NAS-Identifier."""
    FORMAT = 6
    """The format of a name or number."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A way to recognize a product.

    source: how this evidence became known (see `products`). certainty: the certainty of the finding; None for the
    default of the rank.
    """

    product: str
    rank: Rank
    match: Match
    source: str
    certainty: Certainty | None = None


def vendor(number: int, *kinds: int) -> Match:
    """Match if one of these attributes of a vendor is present. Without `kinds`, match any attribute of the vendor."""

    def match(request: Attributes) -> tuple[str, ...]:
        if not kinds:
            return tuple(f"Vendor-Specific {number}/{kind}" for one, kind in request.vendor if one == number)
        return tuple(f"Vendor-Specific {number}/{kind}" for kind in kinds if (number, kind) in request.vendor)

    return match


def vendor_prefix(number: int, kind: int, *prefixes: bytes) -> Match:
    """Match if a value of a vendor attribute begins with one of these ASCII prefixes."""

    def match(request: Attributes) -> tuple[str, ...]:
        values = request.vendor.get((number, kind), ())
        return tuple(
            f"Vendor-Specific {number}/{kind} {prefix.decode()}"
            for prefix in prefixes
            if any(value.startswith(prefix) for value in values)
        )

    return match


def vendor_integer(number: int, kind: int, value: int) -> Match:
    """Match if the first value of a vendor attribute is this 4-octet integer."""
    octets = value.to_bytes(4)
    return says(
        lambda request: request.vendor.get((number, kind), (b"",))[0] == octets,
        f"Vendor-Specific {number}/{kind} = {value}",
    )


def text(kind: int, name: str, *values: bytes) -> Match:
    """Match if the value of an attribute is one of these ASCII texts. name: the attribute's name, for the evidence."""

    def match(request: Attributes) -> tuple[str, ...]:
        value = request.octets(kind)
        return (f"{name} {value.decode()}",) if value in values else ()

    return match


def prefix(kind: int, name: str, *prefixes: bytes) -> Match:
    """Match if the value of an attribute begins with one of these ASCII prefixes. The evidence contains only the
    prefix. name: the attribute's name, for the evidence."""

    def match(request: Attributes) -> tuple[str, ...]:
        value = request.octets(kind)
        return tuple(f"{name} {prefix.decode()}" for prefix in prefixes if value.startswith(prefix))

    return match


def pattern(kind: int, expression: bytes, *, name: str = "", evidence: str = "") -> Match:
    """Match if the whole value of an attribute matches a regular expression.

    evidence: the text of the evidence. If it is empty, the evidence is the attribute's name and value; the expression
    must then match only printable ASCII.
    """
    compiled = re.compile(expression)

    def match(request: Attributes) -> tuple[str, ...]:
        value = request.octets(kind)
        if not compiled.fullmatch(value):
            return ()
        return (evidence or f"{name} {value.decode()}",)

    return match


def says(condition: Condition, *evidence: str) -> Match:
    """Return a match with the given evidence, for requests that meet a condition."""
    return lambda request: evidence if condition(request) else ()


def integers(values: dict[int, int]) -> Condition:
    """Return a condition on a request. The condition is true if each of these attributes is present and has the given
    integer value. values: the integer by attribute type."""
    return lambda request: all(request.integer(kind) == value for kind, value in values.items())


def present(*kinds: int) -> Condition:
    """Return a condition on a request. The condition is true if all of these attributes are present."""
    return lambda request: all(kind in request.first for kind in kinds)


def when(condition: Condition, match: Match) -> Match:
    """Match like `match`, but only if the condition is true."""
    return lambda request: match(request) if condition(request) else ()


def unless(exception: Match, match: Match) -> Match:
    """Match like `match`, except if `exception` matches."""
    return lambda request: () if exception(request) else match(request)


def any_of(*matches: Match) -> Match:
    """Return a match that succeeds if at least one of the given matches succeeds. Its evidence is the evidence of all
    matches that succeed."""
    return lambda request: tuple(line for match in matches for line in match(request))


def all_of(*matches: Match) -> Match:
    """Return a match that succeeds if all of the given matches succeed. Its evidence is the evidence of all of them."""

    def match(request: Attributes) -> tuple[str, ...]:
        found = [match(request) for match in matches]
        return tuple(line for lines in found for line in lines) if all(found) else ()

    return match


def supported(match: Match, *further: Match) -> Match:
    """Match like `match`. Add the evidence of the `further` matches, if they match too."""
    more = any_of(*further)
    return lambda request: found + more(request) if (found := match(request)) else ()


def first_of(*matches: Match) -> Match:
    """Return a match that succeeds if at least one of the given matches succeeds. Its evidence is the evidence of the
    first match that succeeds."""

    def match(request: Attributes) -> tuple[str, ...]:
        return next((found for match in matches if (found := match(request))), ())

    return match
