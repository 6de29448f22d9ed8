"""Dynamic authorization (RFC 5176): requests to a NAS about one of its sessions, and the answers.

The Request Authenticator is that of accounting. The Message-Authenticator is computed before it, over zeros (section
3.4). Attributes identify the session and the NAS. A NAS refuses unknown attributes (Error-Cause 401) and a session that
does not match all of them (503), so few attributes are better than many.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import ERROR_CAUSE, EVENT_TIMESTAMP, MESSAGE_AUTHENTICATOR, push_attribute
from sallyport.radius.packet import MAX_LENGTH, MIN_LENGTH, ZERO, SharedSecret, decode_reply, response_authenticator

PORT: Final = 3799
"""Where a NAS listens (RFC 5176 section 2.1)."""
ROOM: Final = MAX_LENGTH - MIN_LENGTH - 18 - 6
"""Octets of attributes beside the Message-Authenticator and the Event-Timestamp."""


class Kind(IntEnum):
    """The kind of a request, by its code; its ACK is one more, its NAK two more (RFC 5176 section 2.3)."""

    DISCONNECT = 40
    CHANGE = 43


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a NAS. error_cause: RFC 5176 section 3.5; an ACK may have one too. None: it has none."""

    acknowledged: bool
    error_cause: int | None


def encode(kind: Kind, identifier: int, secret: SharedSecret, attributes: bytes, *, at: int) -> bytes:
    """Return a Disconnect-Request or CoA-Request, signed, with Event-Timestamp against replay (RFC 5176 section 6.3).

    attributes: up to ROOM octets. at: seconds since 1970.
    """
    attributes = push_attribute(EVENT_TIMESTAMP, at.to_bytes(4)) + attributes
    head = bytes((kind, identifier)) + (MIN_LENGTH + 18 + len(attributes)).to_bytes(2)
    signature = secret.hmac_md5(head + ZERO + push_attribute(MESSAGE_AUTHENTICATOR, ZERO) + attributes)
    body = push_attribute(MESSAGE_AUTHENTICATOR, signature) + attributes
    return head + response_authenticator(head, ZERO, body, secret) + body


def decode(datagram: bytes, request: bytes, secret: SharedSecret) -> Reply:
    """Return the answer to a request of `encode`.

    PacketError: wrong lengths, identifier, Response Authenticator or Message-Authenticator, or the code answers another
    kind of request.
    """
    code, first = decode_reply(datagram, request, secret)
    if code - request[0] not in (1, 2):
        raise PacketError(f"code {code}", "unknown_type")
    cause = first.get(ERROR_CAUSE, b"")
    return Reply(code - request[0] == 1, int.from_bytes(cause) if len(cause) == 4 else None)
