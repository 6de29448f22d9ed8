"""Attribute numbers and the walk over a packet's attributes (RFC 2865 section 5)."""

from collections.abc import Iterator
from typing import Final

from sallyport.base.errors import PacketError

# RFC 2865 section 5
USER_NAME: Final = 1
USER_PASSWORD: Final = 2
CHAP_PASSWORD: Final = 3
NAS_IP_ADDRESS: Final = 4
NAS_PORT: Final = 5
SERVICE_TYPE: Final = 6
FRAMED_PROTOCOL: Final = 7
REPLY_MESSAGE: Final = 18
STATE: Final = 24
CLASS: Final = 25
VENDOR_SPECIFIC: Final = 26
CALLED_STATION_ID: Final = 30
CALLING_STATION_ID: Final = 31
NAS_IDENTIFIER: Final = 32
PROXY_STATE: Final = 33
CHAP_CHALLENGE: Final = 60
NAS_PORT_TYPE: Final = 61
# RFC 2866 section 5
ACCT_STATUS_TYPE: Final = 40
ACCT_SESSION_ID: Final = 44
# RFC 2868 and 2869
TUNNEL_CLIENT_ENDPOINT: Final = 66
CONNECT_INFO: Final = 77
EAP_MESSAGE: Final = 79
MESSAGE_AUTHENTICATOR: Final = 80
NAS_PORT_ID: Final = 87
# RFC 3162, 4372, 5580, 7268
NAS_IPV6_ADDRESS: Final = 95
CHARGEABLE_USER_IDENTITY: Final = 89
OPERATOR_NAME: Final = 126

MAX_ATTRIBUTES: Final = 200
"""More attributes than this in a packet are refused, as FreeRADIUS does."""


def pull_attributes(body: bytes, at: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (type, value) for each attribute (RFC 2865 section 5).

    body: octets that hold attributes from `at` on. value: 0..253 octets, as sent.
    Raises PacketError when a length octet is below 2 or runs past the end.
    """
    end = len(body)
    while at < end:
        size = body[at + 1] if at + 1 < end else 0
        if size < 2 or at + size > end:
            raise PacketError(f"attribute at octet {at}: length {size}")
        yield body[at], body[at + 2 : at + size]
        at += size


def push_attribute(kind: int, value: bytes) -> bytes:
    """One attribute in octets. ValueError when the value is over 253 octets."""
    if len(value) > 253:
        raise ValueError(f"attribute {kind}: {len(value)} octets")
    return bytes((kind, len(value) + 2)) + value


def push_vendor_attribute(vendor: int, kind: int, value: bytes) -> bytes:
    """One vendor attribute in a Vendor-Specific of its own (RFC 2865 section 5.26)."""
    return push_attribute(VENDOR_SPECIFIC, vendor.to_bytes(4) + push_attribute(kind, value))


def pull_vendor_attributes(value: bytes) -> tuple[int, list[tuple[int, bytes]]]:
    """The vendor's number and its (type, value) pairs in one Vendor-Specific value (RFC 2865 section 5.26).

    A vendor whose inside is not in the RFC's suggested format gives no pairs; that is no error of the packet.
    """
    if len(value) < 4:
        return 0, []
    try:
        return int.from_bytes(value[:4]), list(pull_attributes(value, 4))
    except PacketError:
        return int.from_bytes(value[:4]), []
