"""Cisco Meraki access points, and its cloud for splash pages.

29671/1 to /4: device, network, access point and its tags (P). The cloud's NAS-Identifier is `Cisco Meraki cloud RADIUS
client` (P); an access point's is its MAC with the number of the virtual one: `2C-3F-...:vap1` (P). Access points probe
as meraki_8021x_test, but a user name is no evidence.
"""

import re
from typing import Final

from sallyport.radius.attributes import NAS_IDENTIFIER
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_MERAKI: Final = 29671
_CLOUD: Final = frozenset((b"Cisco Meraki cloud RADIUS client",))
_VIRTUAL_AP: Final = re.compile(rb"(?:[0-9A-F]{2}-){5}[0-9A-F]{2}:vap\d{1,2}")


def _attributes(sight: Sight) -> tuple[str, ...]:
    return sight.has(_MERAKI, 1, 2, 3, 4)


def _cloud(sight: Sight) -> tuple[str, ...]:
    return sight.is_one_of(NAS_IDENTIFIER, "NAS-Identifier", _CLOUD)


def _virtual_ap(sight: Sight) -> tuple[str, ...]:
    return ("NAS-Identifier MAC:vap",) if _VIRTUAL_AP.fullmatch(sight.octets(NAS_IDENTIFIER)) else ()


VENDOR: Final = Vendor(
    nas=(
        Clue("Cisco Meraki", Rank.VENDOR_ATTRIBUTE, _attributes),
        Clue("Cisco Meraki", Rank.NAS_IDENTIFIER, _cloud),
        Clue("Cisco Meraki", Rank.FORMAT, _virtual_ap),
    ),
)
