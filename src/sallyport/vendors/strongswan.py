"""strongSwan with its eap-radius plug-in.

NAS-Identifier strongSwan, unless set otherwise; Called-Station-Id and Calling-Station-Id are an address with a port in
brackets, 192.0.2.1[4500], on a Virtual port (S).
"""

import re
from typing import Final

from sallyport.radius.attributes import CALLED_STATION_ID, CALLING_STATION_ID, NAS_IDENTIFIER, NAS_PORT_TYPE
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_NAME: Final = frozenset((b"strongSwan",))
_ENDPOINT: Final = re.compile(rb"[0-9A-Fa-f.:]{2,45}\[\d{1,5}\]")


def _named(sight: Sight) -> tuple[str, ...]:
    name = sight.is_one_of(NAS_IDENTIFIER, "NAS-Identifier", _NAME)
    return name + _endpoints(sight) if name else ()


def _endpoints(sight: Sight) -> tuple[str, ...]:
    called, calling = sight.octets(CALLED_STATION_ID), sight.octets(CALLING_STATION_ID)
    if sight.integer(NAS_PORT_TYPE) != 5 or not _ENDPOINT.fullmatch(called) or not _ENDPOINT.fullmatch(calling):
        return ()
    return ("stations IP[port]",)


VENDOR: Final = Vendor(
    nas=(
        Clue("strongSwan", Rank.NAS_IDENTIFIER, _named),
        Clue("strongSwan", Rank.FORMAT, _endpoints),
    ),
)
