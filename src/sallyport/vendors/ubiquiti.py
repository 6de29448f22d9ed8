"""Ubiquiti UniFi access points, which are hostapd inside.

NAS-Identifier is the MAC of Called-Station-Id without separators, 12 hex digits, beside what hostapd says of the radio:
the WLAN suites of RFC 7268 (186 to 188), `CONNECT 0Mbps 802.11b` (P). A format, so never more than probable.
"""

import re
from typing import Final

from sallyport.radius.attributes import CALLED_STATION_ID, NAS_IDENTIFIER
from sallyport.vendors.hostapd import radio
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_BARE_MAC: Final = re.compile(rb"[0-9a-fA-F]{12}")


def _bare_mac(sight: Sight) -> tuple[str, ...]:
    name = sight.octets(NAS_IDENTIFIER)
    if not _BARE_MAC.fullmatch(name) or not _is_of_called_station(name, sight):
        return ()
    found = radio(sight)
    return ("NAS-Identifier is the called MAC", *found) if found else ()


def _is_of_called_station(name: bytes, sight: Sight) -> bool:
    station = sight.octets(CALLED_STATION_ID)[:17]
    return station.replace(b"-", b"").replace(b":", b"").lower() == name.lower()


VENDOR: Final = Vendor(nas=(Clue("Ubiquiti UniFi", Rank.FORMAT, _bare_mac),))
