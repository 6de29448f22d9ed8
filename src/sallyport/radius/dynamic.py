"""Dynamic authorization (RFC 5176): requests to a NAS to disconnect or change a session, and the answers.

The Request Authenticator is computed as for accounting. Before that, the Message-Authenticator is computed with an
authenticator of zeros (section 3.4). Attributes identify the session and the NAS. A NAS rejects a request if it does
not support one of the attributes (Error-Cause 401), or if no session matches all attributes (503). So a request should
have few attributes.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import ERROR_CAUSE, EVENT_TIMESTAMP, MESSAGE_AUTHENTICATOR, push_attribute
from sallyport.radius.packet import MAX_LENGTH, MIN_LENGTH, ZERO, SharedSecret, decode_reply, response_authenticator

PORT: Final = 3799
"""The UDP port on which a NAS listens (RFC 5176 section 2.1)."""
NOT_FOUND: Final = 503
"""The Error-Cause of a NAK if the NAS has no such session (Session-Context-Not-Found, RFC 5176 section 3.5)."""
ROOM: Final = MAX_LENGTH - MIN_LENGTH - 18 - 6
"""Maximum length of the attributes in octets, without Message-Authenticator and Event-Timestamp."""


class RequestKind(IntEnum):
    """The kind of a request. The value is the packet code. The code of the ACK is higher by one, and the code of the
    NAK is higher by two (RFC 5176 section 2.3)."""

    DISCONNECT = 40
    CHANGE = 43


@dataclass(frozen=True, slots=True)
class DynamicReply:
    """The answer of a NAS. error_cause: the Error-Cause (RFC 5176 section 3.5); None if the answer has none. Even an
    ACK may contain an Error-Cause."""

    acknowledged: bool
    error_cause: int | None


def encode(kind: RequestKind, identifier: int, secret: SharedSecret, attributes: bytes, *, at: int) -> bytes:
    """Return a signed Disconnect-Request or CoA-Request in octets. It contains an Event-Timestamp, as protection
    against replay (RFC 5176 section 6.3).

    attributes: encoded attributes, up to ROOM octets. at: the time in seconds since 1970.
    """
    attributes = push_attribute(EVENT_TIMESTAMP, at.to_bytes(4)) + attributes
    head = bytes((kind, identifier)) + (MIN_LENGTH + 18 + len(attributes)).to_bytes(2)
    signature = secret.hmac_md5(head + ZERO + push_attribute(MESSAGE_AUTHENTICATOR, ZERO) + attributes)
    body = push_attribute(MESSAGE_AUTHENTICATOR, signature) + attributes
    return head + response_authenticator(head, ZERO, body, secret) + body


def decode(datagram: bytes, request: bytes, secret: SharedSecret) -> DynamicReply:
    """Decode and verify the answer to a request that `encode` has returned.

    request: the octets of the request. Raises PacketError if a length, the identifier, the code, the Response
    Authenticator or the Message-Authenticator is wrong.
    """
    code, first = decode_reply(datagram, request, secret)
    if code - request[0] not in (1, 2):
        raise PacketError(f"the answer has the unexpected code {code}", "unknown_type")
    cause = first.get(ERROR_CAUSE, b"")
    return DynamicReply(code - request[0] == 1, int.from_bytes(cause) if len(cause) == 4 else None)
