"""The values of one Accounting-Request (RFC 2866, 2869, 3162, 4818, 6911).

Whatever a packet contains, no error is raised. A value with a wrong length is treated as absent. An implausible time is
ignored. If a number is too large for the store, the largest possible number is used instead. The record itself is
stored as received.
"""

import socket
from collections.abc import Mapping
from enum import IntEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from sallyport.base.clock import SECOND
from sallyport.radius.attributes import (
    ACCT_DELAY_TIME,
    ACCT_INPUT_GIGAWORDS,
    ACCT_INPUT_OCTETS,
    ACCT_INPUT_PACKETS,
    ACCT_MULTI_SESSION_ID,
    ACCT_OUTPUT_GIGAWORDS,
    ACCT_OUTPUT_OCTETS,
    ACCT_OUTPUT_PACKETS,
    ACCT_SESSION_ID,
    ACCT_SESSION_TIME,
    ACCT_STATUS_TYPE,
    ACCT_TERMINATE_CAUSE,
    CALLED_STATION_ID,
    CALLING_STATION_ID,
    CLASS,
    DELEGATED_IPV6_PREFIX,
    EVENT_TIMESTAMP,
    FRAMED_IP_ADDRESS,
    FRAMED_IPV6_ADDRESS,
    FRAMED_IPV6_PREFIX,
    MESSAGE_AUTHENTICATOR,
    NAS_PORT,
    NAS_PORT_ID,
    NAS_PORT_TYPE,
    PROXY_STATE,
    USER_NAME,
)
from sallyport.radius.packet import Request, as_text

if TYPE_CHECKING:
    from sallyport.store.model import Value


class Status(IntEnum):
    """The values of Acct-Status-Type that begin, update or end sessions (RFC 2866 section 5.1)."""

    START = 1
    STOP = 2
    INTERIM = 3
    ON = 7
    OFF = 8


# These are module constants because, before Python 3.12, the look-up of an enumeration member takes half a microsecond.
START, STOP, INTERIM, ON, OFF = Status
OF_SESSION: Final = frozenset({START, STOP, INTERIM})
OF_DEVICE: Final = frozenset({ON, OFF})
MAX_DELAY_S: Final = 7 * 86_400
EARLIEST_US: Final = 86_400 * SECOND  # maximum time by which an Event-Timestamp may precede the sending
LATEST_US: Final = 300 * SECOND  # maximum time by which it may follow the sending, because clocks differ
MAX_NUMBER: Final = 2**63 - 1
PASSING: Final = frozenset({ACCT_DELAY_TIME, EVENT_TIMESTAMP, PROXY_STATE, MESSAGE_AUTHENTICATOR})
"""Attributes that may change when a record is sent again or through another proxy; the digest ignores them."""
INTEGERS: Final = (
    ACCT_STATUS_TYPE, ACCT_DELAY_TIME, EVENT_TIMESTAMP, ACCT_SESSION_TIME, ACCT_TERMINATE_CAUSE,
    ACCT_INPUT_OCTETS, ACCT_INPUT_GIGAWORDS, ACCT_OUTPUT_OCTETS, ACCT_OUTPUT_GIGAWORDS,
    ACCT_INPUT_PACKETS, ACCT_OUTPUT_PACKETS, NAS_PORT, NAS_PORT_TYPE,
)  # fmt: skip

FACTS: Final = (
    "user_name", "station", "called_station", "class", "multi_session_id", "nas_port", "nas_port_id", "nas_port_type",
    "framed_ip", "framed_ipv6", "framed_ipv6_prefix", "delegated_ipv6_prefix",
)  # fmt: skip
"""Descriptive columns of a session, in the order of `Report.facts`."""
NUMBERS: Final = frozenset({"nas_port", "nas_port_type"})
"""The descriptive columns that are numbers."""
USER, STATION, MULTI_SESSION = (FACTS.index(name) for name in ("user_name", "station", "multi_session_id"))
COUNTS: Final = ("session_time", "input_octets", "output_octets", "input_packets", "output_packets")
"""Columns that only grow, in the order of `Report.counts`; session_time in seconds."""


class Report:
    """The values of one accounting record. Times are in microseconds.

    status: the Acct-Status-Type, or 0 if it is absent or malformed. at: the time of the event. begun: the latest
    possible begin of the session. session_id: the Acct-Session-Id; empty if the record belongs to no session.
    tells_time: whether the record has an Acct-Session-Time. user: the User-Name, or empty. station: the
    Calling-Station-Id, or empty. cause: the Acct-Terminate-Cause. digest: a hash that is equal for all retransmissions
    of the record.
    """

    __slots__ = (
        "at", "begun", "cause", "counts", "digest", "facts", "session_id", "station", "status", "tells_time", "user",
    )  # fmt: skip

    def __init__(self, request: Request, received: int) -> None:
        """Read the values of a request. received: the time of receipt in microseconds."""
        first = request.first
        (
            status, delay_s, stamp_s, time_s, self.cause, octets_in, rounds_in, octets_out, rounds_out, packets_in,
            packets_out, port, port_type,
        ) = request.integers(INTEGERS)  # fmt: skip
        self.status = status or 0
        self.session_id = first.get(ACCT_SESSION_ID, b"") if status in OF_SESSION else b""
        self.at = _happened(delay_s or 0, stamp_s, received)
        self.tells_time = time_s is not None
        begun = self.at - (time_s or 0) * SECOND
        self.begun = begun if begun > 0 else 0
        self.user = as_text(first.get(USER_NAME, b""))
        self.station = as_text(first.get(CALLING_STATION_ID, b""))
        self.facts = (self.user or None, self.station or None, *_facts(first, port, port_type))
        self.counts = (
            time_s or 0,
            _octets(octets_in or 0, rounds_in or 0),
            _octets(octets_out or 0, rounds_out or 0),
            packets_in or 0,
            packets_out or 0,
        )
        self.digest = blake2b(request.without(PASSING), digest_size=8).digest() if self.session_id else b""


def _happened(delay_s: int, stamp_s: int | None, received: int) -> int:
    """Return the time of a record's event in microseconds.

    If the record has a plausible Event-Timestamp (RFC 2869 section 5.3), this is the time. Otherwise the time is the
    time of receipt, minus Acct-Delay-Time (RFC 2866 section 5.2).
    """
    sent = received - (delay_s * SECOND if delay_s <= MAX_DELAY_S else 0)
    if stamp_s is not None and sent - EARLIEST_US <= stamp_s * SECOND <= sent + LATEST_US:
        return min(stamp_s * SECOND, received)
    return sent


def _facts(first: Mapping[int, bytes], port: int | None, port_type: int | None) -> "tuple[Value, ...]":
    """Return the descriptive values of a record in the order of FACTS, without user and station."""
    get = first.get
    return (
        _text(get(CALLED_STATION_ID)),
        get(CLASS),
        get(ACCT_MULTI_SESSION_ID),
        port,
        _text(get(NAS_PORT_ID)),
        port_type,
        _address(get(FRAMED_IP_ADDRESS)),
        _address_v6(get(FRAMED_IPV6_ADDRESS)),
        _prefix(get(FRAMED_IPV6_PREFIX)),
        _prefix(get(DELEGATED_IPV6_PREFIX)),
    )


def _text(value: bytes | None) -> str | None:
    return as_text(value) if value else None


def _octets(count: int, rounds: int) -> int:
    """Return a counter of octets. rounds: how often the 32-bit counter has overflowed (RFC 2869 sections 5.1, 5.2)."""
    octets = rounds << 32 | count
    return octets if octets < MAX_NUMBER else MAX_NUMBER


_NO_ADDRESSES: Final = frozenset({bytes(4), b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"})
"""Values of Framed-IP-Address that are no address. With the last two, the user or the NAS chooses the address (RFC 2865
section 5.8)."""


def _address(value: bytes | None) -> str | None:
    """Return an IPv4 address as text. Return None if the station has no address. The session then keeps the address of
    an earlier record."""
    return socket.inet_ntoa(value) if value is not None and len(value) == 4 and value not in _NO_ADDRESSES else None


def _address_v6(value: bytes | None) -> str | None:
    return socket.inet_ntop(socket.AF_INET6, value) if value is not None and len(value) == 16 and any(value) else None


def _prefix(value: bytes | None) -> str | None:
    """Return an IPv6 prefix as text, such as 2001:db8::/32. Return None if the attribute is malformed.

    The attribute contains a reserved octet, the prefix length, and the octets of the prefix (RFC 3162 section 2.3).
    """
    if value is None or not 2 <= len(value) <= 18 or value[1] > 128:
        return None
    return f"{socket.inet_ntop(socket.AF_INET6, value[2:].ljust(16, bytes(1)))}/{value[1]}"
