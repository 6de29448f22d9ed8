"""HP ProCurve switches (ArubaOS-Switch).

HP-Capability-Advert (11/255), many times; MS-RAS-Vendor (311/9) with HP's number, 11, as its value (P).
"""

from typing import Final

from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_HP: Final = 11
_CAPABILITY: Final = 255
_MICROSOFT: Final = 311
_RAS_VENDOR: Final = 9


def _capability(sight: Sight) -> tuple[str, ...]:
    return sight.has(_HP, _CAPABILITY)


def _ras_vendor(sight: Sight) -> tuple[str, ...]:
    return ("Vendor-Specific 311/9 = 11",) if sight.vendor_integer(_MICROSOFT, _RAS_VENDOR) == _HP else ()


VENDOR: Final = Vendor(
    nas=(
        Clue("HP ProCurve", Rank.VENDOR_ATTRIBUTE, _capability),
        Clue("HP ProCurve", Rank.MICROSOFT_VALUE, _ras_vendor),
    ),
)
