"""OpenVPN with its RADIUS plug-in (radiusplugin, openvpn-auth-radius).

NAS-Identifier OpenVpn, Service-Type 5, Framed-Protocol 1, as its example configuration has them (S). Debian's guide
spells OpenVPN (D): that name says little, so there the other two must agree.
"""

from typing import Final

from sallyport.radius.attributes import FRAMED_PROTOCOL, NAS_IDENTIFIER, SERVICE_TYPE
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_EXAMPLE: Final = frozenset((b"OpenVpn",))
_GUIDE: Final = frozenset((b"OpenVPN",))


def _example(sight: Sight) -> tuple[str, ...]:
    name = sight.is_one_of(NAS_IDENTIFIER, "NAS-Identifier", _EXAMPLE)
    return name + _outbound(sight) if name else ()


def _guide(sight: Sight) -> tuple[str, ...]:
    name, outbound = sight.is_one_of(NAS_IDENTIFIER, "NAS-Identifier", _GUIDE), _outbound(sight)
    return name + outbound if name and outbound else ()


def _outbound(sight: Sight) -> tuple[str, ...]:
    outbound = sight.integer(SERVICE_TYPE) == 5 and sight.integer(FRAMED_PROTOCOL) == 1
    return ("Service-Type 5", "Framed-Protocol 1") if outbound else ()


VENDOR: Final = Vendor(
    nas=(
        Clue("OpenVPN", Rank.NAS_IDENTIFIER, _example),
        Clue("OpenVPN", Rank.NAS_IDENTIFIER, _guide),
    ),
)
