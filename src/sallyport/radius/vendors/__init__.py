"""Detection of the product that sent a RADIUS request, and of the medium of the user's connection.

A request can come from a NAS directly, or through a forwarder such as a proxy. The forwarder and the NAS are two
devices, and each is identified by its own evidence. Vendor attributes, NAS-* and Connect-Info describe the NAS, even if
several proxies forward the request. Each proxy appends a Proxy-State, so the last Proxy-State belongs to the host that
sent the packet (RFC 2865 section 5.33). The host at the packet's source address is the forwarder if there is a
Proxy-State, and otherwise the NAS. radsecproxy adds no Proxy-State, so it cannot be detected.

The tables are in `products` and `forwarders`. Further rules:

- If a request has attributes that are specific to two different vendors, the evidence is contradictory. The first of
  these products in the table is then probable.
- A name or format counts only if no attribute of another vendor is present.
- An admin can edit names and formats, so a finding based only on them is probable, not certain.
- A user can type the User-Name, so it is never evidence.

Without evidence, the product that is configured for the RADIUS client is used. These functions do no I/O. They raise no
errors, whatever octets arrive from the network.

evidence    the attributes of a request, the ranks of evidence, and functions for the tables
products    the table of NAS products
forwarders  the table of proxies
ssid        the SSID of a request
stepups     what each product can do for a second factor on a page
versions    the attributes with the model and the firmware of a NAS
"""

from dataclasses import dataclass
from typing import Final

from sallyport.radius.attributes import NAS_PORT_TYPE
from sallyport.radius.packet import Request
from sallyport.radius.vendors.evidence import Attributes, Certainty, Fingerprint, Rank
from sallyport.radius.vendors.forwarders import FORWARDERS, OWN_PROXY_STATE
from sallyport.radius.vendors.products import NAS, PRODUCTS
from sallyport.radius.vendors.versions import FIRMWARE, MODELS, told

__all__ = ["MEDIA", "PRODUCTS", "UNKNOWN", "Certainty", "Finding", "Identity", "identify", "medium", "medium_of"]

UNKNOWN: Final = "Unknown"

MEDIA: Final = {
    0: "Async",
    1: "Sync",
    2: "ISDN",
    3: "ISDN V.120",
    4: "ISDN V.110",
    5: "Virtual",
    6: "PIAFS",
    7: "HDLC Clear Channel",
    8: "X.25",
    9: "X.75",
    10: "G.3 Fax",
    11: "SDSL",
    12: "ADSL-CAP",
    13: "ADSL-DMT",
    14: "IDSL",
    15: "Ethernet",
    16: "xDSL",
    17: "Cable",
    18: "Wireless",
    19: "Wireless",
    20: "Token Ring",
    21: "FDDI",
    22: "Wireless CDMA2000",
    23: "Wireless UMTS",
    24: "Wireless 1X-EV",
    25: "IAPP",
    26: "FTTP",
    27: "Wireless 802.16",
    28: "Wireless 802.20",
    29: "Wireless 802.22",
    30: "PPPoA",
    31: "PPPoEoA",
    32: "PPPoEoE",
    33: "PPPoEoVLAN",
    34: "PPPoEoQinQ",
    35: "xPON",
    36: "Wireless XGP",
    37: "WiMAX Pre-Release 8 IWK",
    38: "WiMAX Wi-Fi IWK",
    39: "WiMAX SFF",
    40: "WiMAX HA-LMA",
    41: "WiMAX DHCP",
    42: "WiMAX LBS",
    43: "WiMAX WVS",
}
"""The medium of each NAS-Port-Type (RFC 2865 section 5.41, RFC 3580, RFC 4603, and IANA's registry for 22 to 29 and
from 35 on).

18 (Wireless - Other) and 19 (Wireless - IEEE 802.11) both have the medium Wireless, because people do not distinguish
them.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """A product and its evidence, such as "Vendor-Specific 12356/3". The evidence never contains a user's data."""

    product: str
    certainty: Certainty
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """The products of the forwarder and of the NAS of a request.

    forwarded: whether a forwarder sent the packet to the service. forwarder: the product of the forwarder; None if it
    is unknown. model, firmware: what the request tells about the NAS; empty if it tells nothing.
    """

    forwarder: Finding | None
    nas: Finding | None
    forwarded: bool
    model: str = ""
    firmware: str = ""

    @property
    def product(self) -> Finding | None:
        """Return the finding about the host at the packet's source address."""
        return self.forwarder if self.forwarded else self.nas


def _select(rows: tuple[Fingerprint, ...], *ranks: Rank) -> tuple[Fingerprint, ...]:
    return tuple(row for rank in ranks for row in rows if row.rank is rank)


_OF_ONE_VENDOR: Final = _select(NAS, Rank.VENDOR_ATTRIBUTE)
_OF_MANY_VENDORS: Final = _select(
    NAS, Rank.SHARED_ATTRIBUTE, Rank.MICROSOFT_VALUE, Rank.CONNECT_INFO, Rank.NAS_IDENTIFIER
)
_FORMATS: Final = _select(NAS, Rank.FORMAT)
_FORWARDERS: Final = _select(FORWARDERS, *Rank)


def identify(request: Request, *, source: str) -> Identity:
    """Identify the host that sent a request, and the NAS that the request is about. This function raises no errors.

    source: the packet's source address as text. A call takes 5 to 35 µs. So the service calls it for new devices, and
    only occasionally for known devices.
    """
    attributes = Attributes(request, source)
    forwarder, nas, forwarded = _identify(attributes)
    if not attributes.vendor:
        return Identity(forwarder, nas, forwarded)
    return Identity(forwarder, nas, forwarded, told(attributes, MODELS), told(attributes, FIRMWARE))


def _identify(attributes: Attributes) -> tuple[Finding | None, Finding | None, bool]:
    """Return the forwarder, the NAS, and whether a forwarder sent the packet."""
    nas = _name_nas(attributes)
    if not attributes.proxy_states:
        return None, nas, False
    if nas is not None and nas.product in OWN_PROXY_STATE and OWN_PROXY_STATE[nas.product](attributes):
        return None, _without_forwarder(nas, attributes), False
    return _first(_FORWARDERS, attributes), nas, True


def _name_nas(attributes: Attributes) -> Finding | None:
    found = _of_one_vendor(attributes) if attributes.vendor else None
    found = found or _first(_OF_MANY_VENDORS, attributes)
    if found is None and not attributes.has_vendor_of_its_own:
        found = _first(_FORMATS, attributes)
    return found


def _of_one_vendor(attributes: Attributes) -> Finding | None:
    """Return the first product in the table that matches an attribute of its own vendor. If attributes of other vendors
    match too, the finding is only probable."""
    found = [_finding(row, evidence) for row in _OF_ONE_VENDOR if (evidence := row.match(attributes))]
    others = [other for other in found if other.product != found[0].product]
    if not others:
        return found[0] if found else None
    evidence = (*found[0].evidence, *(line for other in others for line in other.evidence))
    return Finding(found[0].product, Certainty.PROBABLE, tuple(dict.fromkeys(evidence)))


def _without_forwarder(nas: Finding, attributes: Attributes) -> Finding:
    """Return the finding about a NAS that adds a Proxy-State to its own requests.

    A proxy may send a Proxy-State of the same form. So the finding is certain only if the packet comes from the NAS's
    own address.
    """
    if attributes.is_sent_by_nas:
        return nas
    return Finding(nas.product, Certainty.PROBABLE, (*nas.evidence, "Proxy-State of its own"))


def _first(rows: tuple[Fingerprint, ...], attributes: Attributes) -> Finding | None:
    for row in rows:
        evidence = row.match(attributes)
        if evidence:
            return _finding(row, evidence)
    return None


def _finding(row: Fingerprint, evidence: tuple[str, ...]) -> Finding:
    by_rank = Certainty.PROBABLE if row.rank >= Rank.NAS_IDENTIFIER else Certainty.CERTAIN
    return Finding(row.product, row.certainty or by_rank, evidence)


def medium(request: Request) -> str:
    """Return the medium of the user's connection. Return "Unknown" if NAS-Port-Type is absent or malformed."""
    value = request.first.get(NAS_PORT_TYPE)
    return medium_of(int.from_bytes(value)) if value is not None and len(value) == 4 else UNKNOWN


def medium_of(number: int) -> str:
    """Return the medium for a value of NAS-Port-Type. Return "Unknown" if the value is not registered."""
    return MEDIA.get(number, UNKNOWN)
