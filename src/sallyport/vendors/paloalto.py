"""Palo Alto PAN-OS.

25461/7 to /10: the client's address, system, host name and GlobalProtect version (D). They are off by default, and
nothing else tells a firewall: its NAS-Identifier is the name of its server profile.
"""

from typing import Final

from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_PALO_ALTO: Final = 25461


def _attributes(sight: Sight) -> tuple[str, ...]:
    return sight.has(_PALO_ALTO, 7, 8, 9, 10)


VENDOR: Final = Vendor(nas=(Clue("Palo Alto PAN-OS", Rank.VENDOR_ATTRIBUTE, _attributes),))
