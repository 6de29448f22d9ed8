"""NAS-Port-Type in words (RFC 2865 section 5.41, RFC 3580, RFC 4603, and IANA's registry for 22 to 29 and 35 on).

The two kinds of Wi-Fi are one medium to people: 18 (other) and 19 (802.11) are both Wireless.
"""

from typing import Final

from sallyport.radius.attributes import NAS_PORT_TYPE
from sallyport.radius.packet import Request

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


def medium(request: Request) -> str:
    """The medium that the user is on; Unknown where the NAS sends none, or not as an integer of 4 octets."""
    value = request.first.get(NAS_PORT_TYPE)
    return medium_of(int.from_bytes(value)) if value is not None and len(value) == 4 else UNKNOWN


def medium_of(number: int) -> str:
    """The medium of a NAS-Port-Type's number; Unknown for numbers that are not registered."""
    return MEDIA.get(number, UNKNOWN)
