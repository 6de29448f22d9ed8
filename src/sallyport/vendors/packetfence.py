"""PacketFence, a FreeRADIUS that balances and enriches requests before it forwards them.

PacketFence-KeyBalanced (29464/32) and PacketFence-Radius-Ip (29464/33) are in what it forwards (P); the others of its
attributes are taken out (S). Its Proxy-State is FreeRADIUS's, so where the last one is of another form, another host
stands between. Without any Proxy-State its attributes are all there is to go by.
"""

from typing import Final

from sallyport.vendors.freeradius import is_identifier
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_INVERSE: Final = 29464
_KEY_BALANCED: Final = 32
_RADIUS_IP: Final = 33


def _forwarder(sight: Sight) -> tuple[str, ...]:
    if not sight.proxy_states or not is_identifier(sight.proxy_states[-1]):
        return ()
    return sight.has(_INVERSE, _KEY_BALANCED, _RADIUS_IP)


def _itself(sight: Sight) -> tuple[str, ...]:
    return () if sight.proxy_states else sight.has(_INVERSE, _KEY_BALANCED, _RADIUS_IP)


VENDOR: Final = Vendor(
    nas=(Clue("PacketFence", Rank.SHARED_ATTRIBUTE, _itself),),
    forwarder=(Clue("PacketFence", Rank.VENDOR_ATTRIBUTE, _forwarder),),
)
