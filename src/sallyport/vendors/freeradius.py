"""FreeRADIUS as a proxy.

3 and before   its Proxy-State is the received packet's identifier in decimal: 1 to 3 ASCII digits, at most 255 (S, P)
4              8 octets, the same in all requests (S)

Neither can be set by an admin, but appliances that are FreeRADIUS inside send the same, and any proxy may send 8
octets: probable.
"""

import re
from typing import Final

from sallyport.vendors.model import Certainty, Clue, Rank, Vendor
from sallyport.vendors.sight import Sight

_DIGITS: Final = re.compile(rb"[0-9]{1,3}")
_PRINTABLE: Final = re.compile(rb"[ -~]+")


def is_identifier(proxy_state: bytes) -> bool:
    """Whether a Proxy-State is a packet's identifier in decimal, as FreeRADIUS 3 sends it."""
    return _DIGITS.fullmatch(proxy_state) is not None and int(proxy_state) <= 255


def _version_3(sight: Sight) -> tuple[str, ...]:
    if not sight.proxy_states or not is_identifier(sight.proxy_states[-1]):
        return ()
    return ("Proxy-State of digits",)


def _version_4(sight: Sight) -> tuple[str, ...]:
    last = sight.proxy_states[-1] if sight.proxy_states else b""
    if len(last) != 8 or _PRINTABLE.fullmatch(last):
        return ()
    return ("Proxy-State of 8 octets",)


VENDOR: Final = Vendor(
    forwarder=(
        Clue("FreeRADIUS", Rank.FORMAT, _version_3, Certainty.PROBABLE),
        Clue("FreeRADIUS", Rank.FORMAT, _version_4, Certainty.PROBABLE),
    ),
)
