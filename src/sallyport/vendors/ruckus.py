"""Ruckus Wi-Fi controllers and access points.

25053/3 SSID, /134 and /135 (P). A controller asks for its access points, whose address it gives as the NAS's, and sends
a Proxy-State of its own, in the form of FreeRADIUS 3 (P): a single one of digits is taken for the controller's. A
FreeRADIUS in front of an access point that asks by itself looks the same, hence probable, unless the source is the
NAS's own address.
"""

from typing import Final

from sallyport.vendors.freeradius import is_identifier
from sallyport.vendors.model import Clue, OwnProxyState, Rank, Vendor
from sallyport.vendors.sight import Sight

_RUCKUS: Final = 25053
_SSID: Final = 3


def _attributes(sight: Sight) -> tuple[str, ...]:
    return sight.has(_RUCKUS, _SSID, 134, 135)


def _is_of_controller(sight: Sight) -> bool:
    return len(sight.proxy_states) == 1 and is_identifier(sight.proxy_states[0])


VENDOR: Final = Vendor(
    nas=(Clue("Ruckus", Rank.VENDOR_ATTRIBUTE, _attributes),),
    own_proxy_state=(OwnProxyState("Ruckus", _is_of_controller),),
)
