"""EAP packets, and how RADIUS carries them (RFC 3748 section 4, RFC 3579 section 3.1)."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import EAP_MESSAGE, push_attribute
from sallyport.radius.packet import Request

# RFC 3748 section 4
REQUEST: Final = 1
RESPONSE: Final = 2
SUCCESS: Final = 3
FAILURE: Final = 4

# RFC 3748 section 5, RFC 5216, RFC 5281, MS-PEAP, draft-kamath-pppext-eap-mschapv2
IDENTITY: Final = 1
NAK: Final = 3
MD5: Final = 4
GTC: Final = 6
TLS: Final = 13
TTLS: Final = 21
PEAP: Final = 25
MSCHAPV2: Final = 26
EXTENSIONS: Final = 33

TYPE_NAMES: Final = {MD5: "md5", GTC: "gtc", TLS: "tls", TTLS: "ttls", PEAP: "peap", MSCHAPV2: "mschapv2"}
HEADER: Final = 5
_CARRIED: Final = 253  # octets in an attribute


@dataclass(frozen=True, slots=True)
class Packet:
    """A request or a response. kind: its Type. data: its Type-Data."""

    code: int
    identifier: int
    kind: int
    data: bytes


def decode(octets: bytes) -> Packet:
    """Open a request or a response (RFC 3748 section 4.1). Octets past its Length are padding. PacketError."""
    length = int.from_bytes(octets[2:4])
    if len(octets) < HEADER or not HEADER <= length <= len(octets):
        raise PacketError(f"an EAP packet of {len(octets)} octets with length {length}")
    if octets[0] not in (REQUEST, RESPONSE):
        raise PacketError(f"an EAP packet of code {octets[0]}")
    return Packet(octets[0], octets[1], octets[4], octets[HEADER:length])


def encode(packet: Packet) -> bytes:
    """A request or a response in octets."""
    length = HEADER + len(packet.data)
    return bytes((packet.code, packet.identifier)) + length.to_bytes(2) + bytes((packet.kind,)) + packet.data


def end(code: int, identifier: int) -> bytes:
    """EAP-Success or EAP-Failure in octets (RFC 3748 section 4.2). identifier: of the response that it answers."""
    return bytes((code, identifier, 0, 4))


def pull_eap_message(request: Request) -> bytes:
    """The EAP packet that a request carries: all its EAP-Message attributes, in order."""
    return b"".join(request.values(EAP_MESSAGE))


def push_eap_message(octets: bytes) -> bytes:
    """An EAP packet in as many EAP-Message attributes as it needs."""
    if len(octets) <= _CARRIED:
        return push_attribute(EAP_MESSAGE, octets)
    return b"".join([push_attribute(EAP_MESSAGE, octets[at : at + _CARRIED]) for at in range(0, len(octets), _CARRIED)])
