"""Comparison of the address of a browser with the address of a station.

Two addresses are compared only if both are global and of the same family. A private address means another host in each
network. A host with IPv4 and IPv6 may use one for the VPN and the other for the page. In both cases the
result is CANNOT_TELL, which never counts as equal.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sallyport.base.addresses import Address, Network, parse_address


class Sameness(StrEnum):
    """The results of a comparison of two addresses."""

    EQUAL = "equal"
    DIFFERENT = "different"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class GlobalNetworks:
    """The networks whose addresses name one host everywhere. extra: further networks, for tests. By default these are
    the networks that IANA lists as globally reachable."""

    extra: Sequence[Network] = ()

    def has(self, address: Address) -> bool:
        """Return whether an address is global."""
        if any(address.version == each.version and address in each for each in self.extra):
            return True
        return address.is_global and not address.is_multicast and not _is_translated(address)

    def compare(self, station: str, browser: str) -> Sameness:
        """Compare two addresses. A text that is not an address is like an address that is not global."""
        one, other = self._read(station), self._read(browser)
        if one is None or other is None or one.version != other.version:
            return Sameness.CANNOT_TELL
        return Sameness.EQUAL if one == other else Sameness.DIFFERENT

    def is_known(self, station: str) -> bool:
        """Return whether a text is a global address, so that it can be compared."""
        return self._read(station) is not None

    def _read(self, text: str) -> Address | None:
        try:
            address = parse_address(text)
        except ValueError:
            return None
        return address if self.has(address) else None


def _is_translated(address: Address) -> bool:
    """Return whether an IPv6 address contains an IPv4 address (6to4, Teredo, NAT64), and may be that of a gateway."""
    if isinstance(address, ipaddress.IPv4Address):
        return False
    return bool(address.sixtofour or address.teredo) or address in _NAT64


_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
GLOBAL: Final = GlobalNetworks()
