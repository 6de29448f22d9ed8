"""Aruba's Wi-Fi: mobility controllers, Instant and Instant On access points, which send the same attributes.

14823/5 SSID, /6 location, /10 group of access points (P). Others of 14823 are for answers, or are put into a request by
a ClearPass on the way (/23 its role): no evidence. ClearPass itself leaves no published trace as a proxy.
"""

from typing import Final

from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_ARUBA: Final = 14823
_SSID: Final = 5
_LOCATION: Final = 6
_AP_GROUP: Final = 10


def _attributes(sight: Sight) -> tuple[str, ...]:
    return sight.has(_ARUBA, _SSID, _LOCATION, _AP_GROUP)


VENDOR: Final = Vendor(nas=(Clue("Aruba Wireless", Rank.VENDOR_ATTRIBUTE, _attributes),))
