"""pfSense.

NAS-Identifier openVPN, xauthIPsec, webConfigurator- with the host's name, CaptivePortal- with the zone's (S). Case
counts: OpenVPN's own plug-in writes OpenVpn. What follows the dash is the admin's and not repeated as evidence.
"""

from typing import Final

from sallyport.radius.attributes import NAS_IDENTIFIER
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_SERVICES: Final = frozenset((b"openVPN", b"xauthIPsec"))
_PAGES: Final = ("webConfigurator-", "CaptivePortal-")


def _service(sight: Sight) -> tuple[str, ...]:
    return sight.is_one_of(NAS_IDENTIFIER, "NAS-Identifier", _SERVICES)


def _page(sight: Sight) -> tuple[str, ...]:
    name = sight.octets(NAS_IDENTIFIER)
    return tuple(f"NAS-Identifier {page}" for page in _PAGES if name.startswith(page.encode()))


VENDOR: Final = Vendor(
    nas=(
        Clue("pfSense", Rank.NAS_IDENTIFIER, _service),
        Clue("pfSense", Rank.NAS_IDENTIFIER, _page),
    ),
)
