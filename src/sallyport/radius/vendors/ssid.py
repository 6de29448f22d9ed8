"""The SSID of the wireless network that a request is about.

Some vendors have an attribute for it. All others append it to Called-Station-Id, behind the MAC address or the name of
the access point (RFC 3580 section 3.20). An SSID has at most 32 octets (IEEE 802.11-2020 section 9.4.2.2), and may
contain colons.

The forms of Called-Station-Id, with their sources as in `products`:

    aa-bb-cc-dd-ee-ff:SSID   hostapd, Cisco, Meraki, UniFi, Ruckus (P); with other separators of the MAC address (D)
    AP name:SSID             Cisco and Meraki, as a setting (D)
    aa-bb-cc-dd-ee-ff        Aruba, and every switch (P): no SSID
    aa:bb:cc:dd:ee:ff:name   a firewall, with the NAS-Port-Type Ethernet or Virtual (P): no SSID
    address, or address[port]   VPN gateways (P): no SSID
"""

import re
from functools import lru_cache
from typing import Final

from sallyport.base.addresses import endpoint_address
from sallyport.radius.attributes import CALLED_STATION_ID, NAS_PORT_TYPE, VENDOR_SPECIFIC
from sallyport.radius.packet import Request, as_text

MAX_OCTETS: Final = 32
_OF_VENDORS: Final = ((14823, 5), (25053, 3), (14525, 5), (12356, 7), (29464, 14))
"""The (vendor, type) of attributes that contain only the SSID: Aruba, Ruckus, Trapeze, Fortinet and PacketFence."""
_CISCO_PAIR: Final = (9, 1)
_CISCO_KEY: Final = b"cisco-wlan-ssid="
_NAMES_OF_AP: Final = ((29671, 3), (29671, 1))
"""Attributes of Meraki with the name of the access point. Meraki sends the SSID only in Called-Station-Id."""
_NAMING: Final = frozenset((*_OF_VENDORS, _CISCO_PAIR, *_NAMES_OF_AP))
_MAYBE_WIRELESS: Final = frozenset({None, b"", (18).to_bytes(4), (19).to_bytes(4)})
"""Values of NAS-Port-Type with which Called-Station-Id may name an SSID. None: the attribute is absent."""
_PAIR: Final = rb"[0-9a-f]{2}"
_MAC: Final = re.compile(
    rb"(?:%(p)s([-:. ]?)%(p)s(?:\1%(p)s){4}|%(p)s%(p)s([-:.])%(p)s%(p)s\2%(p)s%(p)s|(?:%(p)s){3}[-:.](?:%(p)s){3})"
    rb"(?![0-9a-z])" % {b"p": _PAIR},
    re.IGNORECASE,
)


def ssid(request: Request) -> str:
    """Return the SSID that a request names. Return "" if it names none. This function raises no errors."""
    first = request.first
    names: tuple[bytes, ...] = ()
    if VENDOR_SPECIFIC in first and not _NAMING.isdisjoint(request.vendor_values()):
        if found := _of_vendor(request):
            return found
        names = _names_of_ap(request)
    return ssid_of_called_station(first.get(CALLED_STATION_ID), first.get(NAS_PORT_TYPE), names)


def _of_vendor(request: Request) -> str:
    own = request.vendor_values()
    for key in _OF_VENDORS:
        if key in own and (found := _shown(own[key][0])):
            return found
    for pair in own.get(_CISCO_PAIR, ()):
        if pair[: len(_CISCO_KEY)].lower() == _CISCO_KEY:
            return _shown(pair[len(_CISCO_KEY) :])
    return ""


def _names_of_ap(request: Request) -> tuple[bytes, ...]:
    own = request.vendor_values()
    return tuple(own[key][0] for key in _NAMES_OF_AP if key in own)


@lru_cache(4096)
def ssid_of_called_station(called: bytes | None, port_type: bytes | None, names: tuple[bytes, ...] = ()) -> str:
    """Return the SSID in a Called-Station-Id. Return "" if it has none.

    called, port_type: the values of Called-Station-Id and NAS-Port-Type, or None. names: possible names of the access
    point, which may contain colons.
    """
    if not called or port_type not in _MAYBE_WIRELESS:
        return ""
    mac = _MAC.match(called)
    if mac is not None and (called[mac.end() : mac.end() + 1] == b":" or b":" not in called[mac.end() :]):
        return _shown(called[mac.end() + 1 :])
    for name in names:
        if name and called.startswith(name + b":"):
            return _shown(called[len(name) + 1 :])
    if endpoint_address(as_text(called)):
        return ""
    return _shown(called[mac.end() if mac else 0 :].partition(b":")[2])


def _shown(octets: bytes) -> str:
    """Return an SSID as text. Return "" if the octets are longer than any SSID."""
    octets = octets.rstrip(b"\0")
    return as_text(octets) if len(octets) <= MAX_OCTETS else ""
