"""The table of proxies. A proxy is recognized by the last Proxy-State of a request.

The rows have the same form as in `products`. OWN_PROXY_STATE lists the NAS products that send a Proxy-State although
they are not proxies.
"""

import re
from typing import Final

from sallyport.radius.attributes import NAS_IP_ADDRESS, NAS_IPV6_ADDRESS
from sallyport.radius.vendors.evidence import Attributes, Certainty, Condition, Fingerprint, Rank, says, vendor, when


def _is_packet_identifier(proxy_state: bytes) -> bool:
    """Return whether a Proxy-State is the identifier of a packet in decimal digits. FreeRADIUS 3 sends this."""
    return re.fullmatch(rb"[0-9]{1,3}", proxy_state) is not None and int(proxy_state) <= 255


def _is_of_nps(proxy_state: bytes) -> bool:
    """Return whether a Proxy-State is a link-local IPv6 address and a counter of 4 octets. Microsoft NPS sends this."""
    return len(proxy_state) == 20 and proxy_state.startswith(b"\xfe\x80")


def _is_of_freeradius_3(request: Attributes) -> bool:
    return _is_packet_identifier(request.last_proxy_state)


def _is_of_freeradius_4(request: Attributes) -> bool:
    return len(request.last_proxy_state) == 8 and not re.fullmatch(rb"[ -~]+", request.last_proxy_state)


FORWARDERS: Final = (
    Fingerprint(
        "PacketFence",
        Rank.VENDOR_ATTRIBUTE,
        when(_is_of_freeradius_3, vendor(29464, 32, 33)),
        "P: KeyBalanced and Radius-Ip. S: PacketFence removes its other attributes, and sends FreeRADIUS's Proxy-State",
    ),
    Fingerprint(
        "Microsoft NPS",
        Rank.FORMAT,
        says(lambda request: _is_of_nps(request.last_proxy_state), "Proxy-State fe80:: and a counter"),
        "P: no admin can set this Proxy-State",
        Certainty.CERTAIN,
    ),
    Fingerprint(
        "FreeRADIUS",
        Rank.FORMAT,
        says(_is_of_freeradius_3, "Proxy-State of digits"),
        "S, P: version 3 and older, and appliances that run it",
    ),
    Fingerprint(
        "FreeRADIUS",
        Rank.FORMAT,
        says(_is_of_freeradius_4, "Proxy-State of 8 octets"),
        "S: version 4, the same octets in all requests",
    ),
)


def _is_of_rras(request: Attributes) -> bool:
    """Return whether the Proxy-State may come from Microsoft RRAS itself. Captured packets show that RRAS contains the
    engine of NPS and sends the same Proxy-State, often without a NAS address."""
    if len(request.proxy_states) != 1 or not _is_of_nps(request.last_proxy_state):
        return False
    return request.is_sent_by_nas or not (NAS_IP_ADDRESS in request.first or NAS_IPV6_ADDRESS in request.first)


def _is_of_ruckus(request: Attributes) -> bool:
    """Return whether the Proxy-State may come from a Ruckus controller itself. Captured packets show that a controller
    forwards the requests of its access points, with a Proxy-State like that of FreeRADIUS 3."""
    return len(request.proxy_states) == 1 and _is_packet_identifier(request.last_proxy_state)


OWN_PROXY_STATE: Final[dict[str, Condition]] = {"Microsoft RRAS": _is_of_rras, "Ruckus": _is_of_ruckus}
"""NAS products that send a Proxy-State although they are not proxies, each with the condition for its Proxy-State."""
