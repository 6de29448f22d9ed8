"""MikroTik RouterOS.

Mikrotik-Realm (14988/9) (D) and Mikrotik-Host-IP (14988/10) (P). Without them: WISPr-Logoff-URL (14122/3), which other
hotspots send too, together with a NAS-Port from 2^31 on (P), or the NAS-Identifier's default, MikroTik (P).
"""

from typing import Final

from sallyport.radius.attributes import NAS_IDENTIFIER, NAS_PORT
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_MIKROTIK: Final = 14988
_REALM: Final = 9
_HOST_IP: Final = 10
_WISPR: Final = 14122
_LOGOFF_URL: Final = 3
_IDENTITY: Final = frozenset((b"MikroTik",))


def _attributes(sight: Sight) -> tuple[str, ...]:
    return sight.has(_MIKROTIK, _REALM, _HOST_IP)


def _identity(sight: Sight) -> tuple[str, ...]:
    return sight.is_one_of(NAS_IDENTIFIER, "NAS-Identifier", _IDENTITY)


def _hotspot(sight: Sight) -> tuple[str, ...]:
    logoff = sight.has(_WISPR, _LOGOFF_URL)
    port = sight.integer(NAS_PORT)
    return (*logoff, "NAS-Port from 2^31") if logoff and port is not None and port >= 1 << 31 else ()


VENDOR: Final = Vendor(
    nas=(
        Clue("MikroTik RouterOS", Rank.VENDOR_ATTRIBUTE, _attributes),
        Clue("MikroTik RouterOS", Rank.NAS_IDENTIFIER, _identity),
        Clue("MikroTik RouterOS", Rank.FORMAT, _hotspot),
    ),
)
