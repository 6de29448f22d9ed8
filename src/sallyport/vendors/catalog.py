"""The list of vendors, and the search for a request's product in it.

Within a rank of evidence the order of the list decides. What must stand where: products that imitate or include
another's attributes stand before it (Meraki, Ruckus and Aruba before Cisco, whose AV pairs they send too), and hostapd
stands last, since many access points are hostapd inside.
"""

from typing import Final

from sallyport.vendors import (
    aruba,
    cisco,
    f5,
    fortinet,
    freeradius,
    hostapd,
    hp,
    huawei,
    juniper,
    meraki,
    microsoft,
    mikrotik,
    openvpn,
    opnsense,
    packetfence,
    paloalto,
    pam_radius,
    pfsense,
    ruckus,
    strongswan,
    ubiquiti,
)
from sallyport.vendors.model import Certainty, Clue, Finding, Rank, Vendor
from sallyport.vendors.sight import Sight

VENDORS: Final[tuple[Vendor, ...]] = (
    microsoft.VENDOR,
    fortinet.VENDOR,
    paloalto.VENDOR,
    meraki.VENDOR,
    ruckus.VENDOR,
    aruba.VENDOR,
    hp.VENDOR,
    huawei.VENDOR,
    juniper.VENDOR,
    mikrotik.VENDOR,
    cisco.VENDOR,
    pfsense.VENDOR,
    openvpn.VENDOR,
    strongswan.VENDOR,
    f5.VENDOR,
    opnsense.VENDOR,
    pam_radius.VENDOR,
    packetfence.VENDOR,
    freeradius.VENDOR,
    ubiquiti.VENDOR,
    hostapd.VENDOR,
)

NAMED_BY_REGISTRATION: Final = (
    "Aruba ClearPass",
    "Check Point",
    "Cisco ISE",
    "Citrix NetScaler",
    "Omnissa Horizon",
    "OpenVPN Access Server",
    "SonicWall",
    "Sophos",
    "WatchGuard",
)
"""Products that are common and of which no trace in a request is known."""


def _sorted(clues: tuple[Clue, ...]) -> tuple[Clue, ...]:
    return tuple(sorted(clues, key=lambda clue: clue.rank))


NAS_CLUES: Final = _sorted(tuple(clue for vendor in VENDORS for clue in vendor.nas))
FORWARDER_CLUES: Final = _sorted(tuple(clue for vendor in VENDORS for clue in vendor.forwarder))

PRODUCTS: Final = tuple(sorted({*NAMED_BY_REGISTRATION, *(clue.product for clue in NAS_CLUES + FORWARDER_CLUES)}))
"""Every product name, for a RADIUS client's registration to choose from."""

_OF_ONE_VENDOR: Final = tuple(clue for clue in NAS_CLUES if clue.rank is Rank.VENDOR_ATTRIBUTE)
_WEAKER: Final = tuple(clue for clue in NAS_CLUES if clue.rank is not Rank.VENDOR_ATTRIBUTE)
_WEAKER_BUT_FORMATS: Final = tuple(clue for clue in _WEAKER if clue.rank is not Rank.FORMAT)
_OWN_PROXY_STATE: Final = {own.product: own.sends for vendor in VENDORS for own in vendor.own_proxy_state}


def name_nas(sight: Sight) -> Finding | None:
    """The NAS product that a request is about, or None."""
    if not sight.vendor:
        return _first(_WEAKER, sight)
    found = _of_one_vendor(sight)
    if found is not None:
        return found
    return _first(_WEAKER_BUT_FORMATS if sight.speaks_for_a_vendor() else _WEAKER, sight)


def name_forwarder(sight: Sight) -> Finding | None:
    """The proxy whose Proxy-State is the last one, or None."""
    return _first(FORWARDER_CLUES, sight)


def sends_own_proxy_state(product: str, sight: Sight) -> bool:
    """Whether the Proxy-State in sight may be the NAS's own, because that product sends one without being a proxy."""
    sends = _OWN_PROXY_STATE.get(product)
    return sends is not None and sends(sight)


def _first(clues: tuple[Clue, ...], sight: Sight) -> Finding | None:
    for clue in clues:
        evidence = clue.look(sight)
        if evidence:
            return clue.finding(evidence)
    return None


def _of_one_vendor(sight: Sight) -> Finding | None:
    """The product by one vendor's own attributes; with the evidence of all and probable where vendors contradict."""
    found = [clue.finding(evidence) for clue in _OF_ONE_VENDOR if (evidence := clue.look(sight))]
    if not found:
        return None
    others = [other for other in found if other.product != found[0].product]
    if not others:
        return found[0]
    evidence = found[0].evidence + tuple(line for other in others for line in other.evidence)
    return Finding(found[0].product, Certainty.PROBABLE, tuple(dict.fromkeys(evidence)))
