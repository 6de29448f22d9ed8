"""Fortinet FortiGate (and FortiProxy, which sends the same).

Fortinet-Vdom-Name (12356/3) (D, S); Connect-Info is vpn-ssl, vpn-ipsec, vpn-ikev2, admin-login or web-auth (D), or of
the older tunnels, vpn-l2tp and vpn-pptp (M). Its `test` is everybody's word and no evidence; the group's name (12356/1)
is for answers. The NAS-Identifier is the host's name.
"""

from typing import Final

from sallyport.radius.attributes import CONNECT_INFO
from sallyport.vendors.model import Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_FORTINET: Final = 12356
_VDOM: Final = 3
_LOGINS: Final = frozenset(
    (b"vpn-ssl", b"vpn-ipsec", b"vpn-ikev2", b"vpn-l2tp", b"vpn-pptp", b"admin-login", b"web-auth")
)


def _vdom(sight: Sight) -> tuple[str, ...]:
    vdom = sight.has(_FORTINET, _VDOM)
    return vdom + _login(sight) if vdom else ()


def _login(sight: Sight) -> tuple[str, ...]:
    return sight.is_one_of(CONNECT_INFO, "Connect-Info", _LOGINS)


VENDOR: Final = Vendor(
    nas=(
        Clue("Fortinet FortiGate", Rank.VENDOR_ATTRIBUTE, _vdom),
        Clue("Fortinet FortiGate", Rank.CONNECT_INFO, _login),
    ),
)
