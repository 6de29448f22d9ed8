"""pam_radius_auth, the PAM module.

Service-Type 8 (Authenticate-Only), Virtual, NAS-Port the process's id, NAS-Identifier the PAM service's name (S, P): a
format. It sends no vendor attribute, no session and no called station.
"""

from typing import Final

from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    CALLED_STATION_ID,
    NAS_IDENTIFIER,
    NAS_PORT,
    NAS_PORT_ID,
    NAS_PORT_TYPE,
    SERVICE_TYPE,
)
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_LARGEST_PROCESS_ID: Final = 1 << 22
_NEVER_SENT: Final = (ACCT_SESSION_ID, CALLED_STATION_ID, NAS_PORT_ID)


def _process(sight: Sight) -> tuple[str, ...]:
    if sight.integer(SERVICE_TYPE) != 8 or sight.integer(NAS_PORT_TYPE) != 5 or NAS_IDENTIFIER not in sight.first:
        return ()
    process_id = sight.integer(NAS_PORT) or 0
    if not 0 < process_id <= _LARGEST_PROCESS_ID or any(kind in sight.first for kind in _NEVER_SENT):
        return ()
    return ("Service-Type 8", "NAS-Port like a process id")


VENDOR: Final = Vendor(nas=(Clue("pam_radius", Rank.FORMAT, _process),))
