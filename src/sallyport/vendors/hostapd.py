"""hostapd, inside many access points: the last resort.

Acct-Session-Id of 16 hex digits together with the WLAN suites of RFC 7268 (186 to 188) or Connect-Info such as
`CONNECT 54Mbps 802.11a` (P).
"""

import re
from typing import Final

from sallyport.radius.attributes import ACCT_SESSION_ID, CONNECT_INFO
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_SESSION: Final = re.compile(rb"[0-9A-F]{16}")
_CONNECT: Final = re.compile(rb"CONNECT \d{1,5}Mbps 802\.11[a-z]{1,3}")
_SUITES: Final = (186, 187, 188)


def radio(sight: Sight) -> tuple[str, ...]:
    """What hostapd says of the radio."""
    suites = ("WLAN suites",) if all(kind in sight.first for kind in _SUITES) else ()
    return suites + (("Connect-Info CONNECT 802.11",) if _CONNECT.fullmatch(sight.octets(CONNECT_INFO)) else ())


def _session(sight: Sight) -> tuple[str, ...]:
    if not _SESSION.fullmatch(sight.octets(ACCT_SESSION_ID)):
        return ()
    found = radio(sight)
    return ("Acct-Session-Id of 16 hex digits", *found) if found else ()


VENDOR: Final = Vendor(nas=(Clue("hostapd", Rank.FORMAT, _session),))
