"""What one Accounting-Request tells of a session: octets in, plain values out (RFC 2866, 2869, 3162, 4818, 6911).

Nothing in a packet is an error here. A value whose length is none of its type is taken as absent, a time that cannot
be is not believed, and a number that the store could not hold is the largest that it can: the record itself is kept
octet by octet, whatever this makes of it.
"""

import socket
from collections.abc import Mapping
from enum import IntEnum
from hashlib import blake2b
from typing import Final

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
from sallyport.store.model import Value


class Status(IntEnum):
    """Acct-Status-Type (RFC 2866 section 5.1), as far as it is about sessions."""

    START = 1
    STOP = 2
    INTERIM = 3
    ON = 7
    OFF = 8


# Names of their own: before Python 3.12, to look a member up in its enumeration takes half a microsecond.
START, STOP, INTERIM, ON, OFF = Status
OF_SESSION: Final = frozenset({START, STOP, INTERIM})
OF_DEVICE: Final = frozenset({ON, OFF})
LONGEST_DELAY_S: Final = 7 * 86_400
EARLIEST_US: Final = 86_400 * SECOND  # how far an Event-Timestamp may lie before the time that the packet shows
LATEST_US: Final = 300 * SECOND  # and how far after it: clocks differ
MOST: Final = 2**63 - 1
PASSING: Final = frozenset({ACCT_DELAY_TIME, EVENT_TIMESTAMP, PROXY_STATE, MESSAGE_AUTHENTICATOR})
"""What differs when the same record is sent again, or by another way."""

FACTS: Final = (
    "user_name", "station", "called_station", "class", "multi_session_id", "nas_port", "nas_port_id", "nas_port_type",
    "framed_ip", "framed_ipv6", "framed_ipv6_prefix", "delegated_ipv6_prefix",
)  # fmt: skip
"""What a session is and does not count, in the order of `Report.facts`."""
USER, STATION, MULTI_SESSION = (FACTS.index(name) for name in ("user_name", "station", "multi_session_id"))
COUNTS: Final = ("session_time", "input_octets", "output_octets", "input_packets", "output_packets")
"""What only grows, in the order of `Report.counts`; session_time in seconds."""


class Report:
    """One record.

    status: 0 where it is absent or malformed. at: when it happened, begun: when its session began at the latest, both
    in microseconds. session_id: empty where it belongs to no session. tells_time: it has an Acct-Session-Time.
    user, station: empty where they are not told. cause: of its end. digest: the same for a record that is sent again.
    """

    __slots__ = (
        "at", "begun", "cause", "counts", "digest", "facts", "session_id", "station", "status", "tells_time", "user",
    )  # fmt: skip

    def __init__(self, request: Request, received: int) -> None:
        """received: microseconds."""
        first = request.first
        integers = request.integers()
        integer = integers.get
        self.status = integer(ACCT_STATUS_TYPE, 0)
        self.session_id = first.get(ACCT_SESSION_ID, b"") if self.status in OF_SESSION else b""
        self.at = _happened(integers, received)
        time_s = integer(ACCT_SESSION_TIME)
        self.tells_time = time_s is not None
        self.begun = max(0, self.at - (time_s or 0) * SECOND)
        self.cause = integer(ACCT_TERMINATE_CAUSE)
        self.user = as_text(first.get(USER_NAME, b""))
        self.station = as_text(first.get(CALLING_STATION_ID, b""))
        self.facts = (self.user or None, self.station or None, *_facts(first, integers))
        self.counts = (
            time_s or 0,
            _octets(integer(ACCT_INPUT_OCTETS, 0), integer(ACCT_INPUT_GIGAWORDS, 0)),
            _octets(integer(ACCT_OUTPUT_OCTETS, 0), integer(ACCT_OUTPUT_GIGAWORDS, 0)),
            integer(ACCT_INPUT_PACKETS, 0),
            integer(ACCT_OUTPUT_PACKETS, 0),
        )
        self.digest = blake2b(request.without(PASSING), digest_size=8).digest() if self.session_id else b""


def _happened(integers: Mapping[int, int], received: int) -> int:
    """When a record's event was, in microseconds: Event-Timestamp (RFC 2869 section 5.3) where it can be true, else
    the time of its receipt less Acct-Delay-Time (RFC 2866 section 5.2)."""
    delay = integers.get(ACCT_DELAY_TIME, 0)
    sent = received - (delay * SECOND if delay <= LONGEST_DELAY_S else 0)
    stamp = integers.get(EVENT_TIMESTAMP)
    if stamp is not None and sent - EARLIEST_US <= stamp * SECOND <= sent + LATEST_US:
        return min(stamp * SECOND, received)
    return sent


def _facts(first: Mapping[int, bytes], integers: Mapping[int, int]) -> tuple[Value, ...]:
    """All but user and station."""
    get = first.get
    return (
        _text(get(CALLED_STATION_ID)),
        get(CLASS),
        get(ACCT_MULTI_SESSION_ID),
        integers.get(NAS_PORT),
        _text(get(NAS_PORT_ID)),
        integers.get(NAS_PORT_TYPE),
        _address(get(FRAMED_IP_ADDRESS)),
        _address_v6(get(FRAMED_IPV6_ADDRESS)),
        _prefix(get(FRAMED_IPV6_PREFIX)),
        _prefix(get(DELEGATED_IPV6_PREFIX)),
    )


def _text(value: bytes | None) -> str | None:
    return as_text(value) if value else None


def _octets(count: int, rounds: int) -> int:
    """A counter of octets with how often it went round 2^32 (RFC 2869 sections 5.1 and 5.2)."""
    return min(rounds << 32 | count, MOST)


def _address(value: bytes | None) -> str | None:
    return socket.inet_ntoa(value) if value is not None and len(value) == 4 else None


def _address_v6(value: bytes | None) -> str | None:
    return socket.inet_ntop(socket.AF_INET6, value) if value is not None and len(value) == 16 else None


def _prefix(value: bytes | None) -> str | None:
    """A prefix with its length (RFC 3162 section 2.3): a reserved octet, the length, as many octets as needed."""
    if value is None or not 2 <= len(value) <= 18 or value[1] > 128:
        return None
    return f"{socket.inet_ntop(socket.AF_INET6, value[2:].ljust(16, bytes(1)))}/{value[1]}"
