"""Huawei switches, routers and Wi-Fi controllers.

2011/26 connection, /59 start-up stamp, /60 the user's addresses, /254 version, /255 product (P).
"""

from typing import Final

from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_HUAWEI: Final = 2011


def _attributes(sight: Sight) -> tuple[str, ...]:
    return sight.has(_HUAWEI, 26, 59, 60, 254, 255)


VENDOR: Final = Vendor(nas=(Clue("Huawei", Rank.VENDOR_ATTRIBUTE, _attributes),))
