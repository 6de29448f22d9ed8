"""Juniper EX switches.

Attributes of 2636 and NAS-Port-Id as Junos writes its interfaces, ge-0/0/6.0 (S). Either alone is probable: other Junos
devices send the vendor's attributes too, and a port's name is a format.
"""

import re
from typing import Final

from sallyport.radius.attributes import NAS_PORT_ID
from sallyport.vendors.model import Certainty, Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_JUNIPER: Final = 2636
_INTERFACE: Final = re.compile(rb"(?:fe|ge|mge|xe|et)-\d{1,3}/\d{1,3}/\d{1,3}(?:\.\d{1,5})?")


def _both(sight: Sight) -> tuple[str, ...]:
    port, attributes = _port(sight), _attributes(sight)
    return attributes + port if attributes and port else ()


def _attributes(sight: Sight) -> tuple[str, ...]:
    return tuple(f"Vendor-Specific {vendor}/{kind}" for vendor, kind in sight.vendor if vendor == _JUNIPER)


def _port(sight: Sight) -> tuple[str, ...]:
    return sight.matches(NAS_PORT_ID, "NAS-Port-Id", _INTERFACE)


VENDOR: Final = Vendor(
    nas=(
        Clue("Juniper EX", Rank.VENDOR_ATTRIBUTE, _both),
        Clue("Juniper EX", Rank.VENDOR_ATTRIBUTE, _attributes, Certainty.PROBABLE),
        Clue("Juniper EX", Rank.FORMAT, _port),
    ),
)
