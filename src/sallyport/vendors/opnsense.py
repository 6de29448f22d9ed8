"""OPNsense.

Service-Type 1 (Login) and NAS-Port 0 (S), which many admin logins have in common, with a Framed-Protocol of 15: there
OPNsense puts the number that means Ethernet as a NAS-Port-Type, and 15 is no Framed-Protocol at all (S).
"""

from typing import Final

from sallyport.radius.attributes import FRAMED_PROTOCOL, NAS_PORT, NAS_PORT_TYPE, SERVICE_TYPE
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_LOGIN: Final = {SERVICE_TYPE: 1, FRAMED_PROTOCOL: 15, NAS_PORT: 0, NAS_PORT_TYPE: 15}


def _login(sight: Sight) -> tuple[str, ...]:
    if any(sight.integer(kind) != number for kind, number in _LOGIN.items()):
        return ()
    return ("Service-Type 1", "Framed-Protocol 15", "NAS-Port 0")


VENDOR: Final = Vendor(nas=(Clue("OPNsense", Rank.FORMAT, _login),))
