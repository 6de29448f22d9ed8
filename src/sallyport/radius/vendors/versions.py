"""Model and firmware of a NAS, where its vendor sends them.

Few vendors do. Each attribute has a source, which begins with a letter as in `products`. All of these attributes
describe the NAS that the request is about, even if proxies forward the request. Their values are claims of the sender,
and are only shown.

Attributes that describe something else are left out: the client of a VPN (Palo Alto 25461/10, Microsoft 311/35, Cisco
`mdm-tlv=`), the station of a wireless network (Aruba 14823/12 and 14823/20, Ruckus 25053/139), the release of Hotspot
2.0 (40808/2), and names that an admin has chosen (NAS-Identifier, Meraki 29671/1).
"""

from dataclasses import dataclass
from typing import Final

from sallyport.radius.packet import as_text
from sallyport.radius.vendors.evidence import Attributes

MAX_CHARACTERS: Final = 64
"""Maximum number of characters of a model or firmware. Longer texts are cut."""


@dataclass(frozen=True, slots=True)
class Told:
    """A vendor attribute with the model or the firmware of a NAS. kind: its vendor and type. source: see `products`."""

    product: str
    kind: tuple[int, int]
    source: str


MODELS: Final = (
    Told("Huawei", (2011, 255), "P, D: Huawei-Product-ID"),
    Told("H3C, HPE Comware", (25506, 255), "D: Product_ID, the product name"),
    Told("3Com", (43, 255), "S: 3Com-Product-ID of FreeRADIUS's dictionary"),
    Told("Infoblox", (7779, 8), "S: Infoblox-Product-Name of FreeRADIUS's dictionary"),
)
FIRMWARE: Final = (
    Told("Huawei", (2011, 254), "P, D: Huawei-Version, the software version"),
    Told("Microsoft RRAS", (311, 18), "P: MS-RAS-Version (RFC 2548), also of SoftEther"),
    Told("CoovaChilli", (14559, 8), "S: ChilliSpot-Version, with each request"),
    Told("Oracle (Acme Packet)", (9148, 56), "S: Acme-Firmware-Version of FreeRADIUS's dictionary, in accounting"),
    Told("Ericsson (Redback) SmartEdge", (2352, 112), "S: OS-Version of FreeRADIUS's dictionary"),
    Told("Infoblox", (7779, 7), "S: Infoblox-Version of FreeRADIUS's dictionary"),
)


def told(attributes: Attributes, rows: tuple[Told, ...]) -> str:
    """Return the first value that a request has for one of the rows. Return "" if it has none."""
    for row in rows:
        for value in attributes.vendor.get(row.kind, ()):
            if text := _shown(value):
                return text
    return ""


def _shown(value: bytes) -> str:
    """Return a value as one line of printable text."""
    text = "".join(each if each.isprintable() else " " for each in as_text(value.rstrip(b"\0")))
    return text.strip()[:MAX_CHARACTERS]
