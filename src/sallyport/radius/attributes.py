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
FRAMED_MTU: Final = 12
REPLY_MESSAGE: Final = 18
STATE: Final = 24
CLASS: Final = 25
VENDOR_SPECIFIC: Final = 26
SESSION_TIMEOUT: Final = 27
CALLED_STATION_ID: Final = 30
CALLING_STATION_ID: Final = 31
NAS_IDENTIFIER: Final = 32
PROXY_STATE: Final = 33
CHAP_CHALLENGE: Final = 60
NAS_PORT_TYPE: Final = 61
# RFC 2866 section 5
ACCT_STATUS_TYPE: Final = 40
ACCT_DELAY_TIME: Final = 41
ACCT_INPUT_OCTETS: Final = 42
ACCT_OUTPUT_OCTETS: Final = 43
ACCT_SESSION_ID: Final = 44
ACCT_SESSION_TIME: Final = 46
ACCT_INPUT_PACKETS: Final = 47
ACCT_OUTPUT_PACKETS: Final = 48
ACCT_TERMINATE_CAUSE: Final = 49
ACCT_MULTI_SESSION_ID: Final = 50
# RFC 2869 section 5
ACCT_INPUT_GIGAWORDS: Final = 52
ACCT_OUTPUT_GIGAWORDS: Final = 53
EVENT_TIMESTAMP: Final = 55
# RFC 2865 section 5.8, RFC 3162 section 2.3, RFC 4818 section 3, RFC 6911 section 3.1
FRAMED_IP_ADDRESS: Final = 8
FRAMED_INTERFACE_ID: Final = 96
FRAMED_IPV6_PREFIX: Final = 97
DELEGATED_IPV6_PREFIX: Final = 123
FRAMED_IPV6_ADDRESS: Final = 168
# RFC 2868 and 2869
TUNNEL_CLIENT_ENDPOINT: Final = 66
CONNECT_INFO: Final = 77
EAP_MESSAGE: Final = 79
MESSAGE_AUTHENTICATOR: Final = 80
NAS_PORT_ID: Final = 87
# RFC 3162, 4372, 5580, 7268
NAS_IPV6_ADDRESS: Final = 95
CHARGEABLE_USER_IDENTITY: Final = 89
# RFC 5176 section 3.5
ERROR_CAUSE: Final = 101

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


def combine(found: bytes, chosen: bytes) -> bytes:
    """Return attributes in octets with the chosen values in place of all former ones of the same type, or of the same
    (vendor, type)."""
    taken = {_key(kind, value) for kind, value in pull_attributes(chosen)}
    kept = (pair for pair in pull_attributes(found) if _key(*pair) not in taken)
    return b"".join(push_attribute(kind, value) for kind, value in kept) + chosen


def _key(kind: int, value: bytes) -> tuple[int, int, int]:
    return (kind, 0, 0) if kind != VENDOR_SPECIFIC else (kind, int.from_bytes(value[:4]), int.from_bytes(value[4:5]))


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
