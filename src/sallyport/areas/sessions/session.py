"""A session, and the function that applies an accounting record to it. The result does not depend on the order of the
records."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from sallyport.areas.sessions.report import COUNTS, FACTS, MAX_NUMBER, MULTI_SESSION, START, STATION, STOP, USER, Report
from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso
from sallyport.base.mac import station_key
from sallyport.radius.packet import as_text

if TYPE_CHECKING:
    from sallyport.store.model import Value

NAS_REBOOT: Final = 11  # Acct-Terminate-Cause, RFC 2866 section 5.10
DIGEST: Final = 8
REMEMBERED: Final = 16  # number of records whose retransmission a session recognizes
# If a record is sent again without Acct-Delay-Time, its time is later than the original time. Up to this time after the
# end of a session, such a record is assigned to this session and not to a later one with the same Acct-Session-Id.
REPEATS_US: Final = 300 * SECOND
FOREVER: Final = 2**63 - 1
ValueName = Callable[[str, int], str | None]
"""A function that returns the name of an attribute's value, such as "Ethernet" for ("NAS-Port-Type", 15)."""


class SessionState(StrEnum):
    """State of a session. The session is `stopped` if the device reported the end. It is `lost` if the device
    restarted, or if the device sent no more records."""

    LIVE = "live"
    STOPPED = "stopped"
    LOST = "lost"


LIVE, STOPPED, LOST = SessionState


class Watched(NamedTuple):
    """The values of a session that most records do not change."""

    state: SessionState
    facts: "tuple[Value, ...]"
    started: int
    stopped: int | None


_NO_FACTS: Final = (None,) * len(FACTS)
_NO_COUNTS: Final = (0,) * len(COUNTS)


class Session:
    """A session in memory, while a transaction updates its row. Times are in microseconds.

    facts: the descriptive values, in the order of report.FACTS. counts: the counters, in the order of report.COUNTS.
    started: the earliest begin according to any record. first_seen: the time of the first event. updated: the time of
    the last event. records: the number of different records. recent: the digests of the last records. follows: whether
    an earlier session had the same Acct-Session-Id. stored: the values in the store that most records do not change, or
    None if the session has no row yet.
    """

    __slots__ = (
        "acct_session_id", "cause", "counts", "device_id", "domain_id", "facts", "first_seen", "follows", "recent",
        "records", "started", "state", "stopped", "stored", "updated",
    )  # fmt: skip

    def __init__(
        self, domain_id: int, device_id: int, acct_session_id: bytes, *, started: int, follows: bool = False
    ) -> None:
        """Create a session that has no records yet."""
        self.domain_id = domain_id
        self.device_id = device_id
        self.acct_session_id = acct_session_id
        self.facts: tuple[Value, ...] = _NO_FACTS
        self.counts: tuple[int, ...] = _NO_COUNTS
        self.started = started
        self.first_seen = MAX_NUMBER
        self.updated = 0
        self.stopped: int | None = None
        self.cause: int | None = None
        self.state = LIVE
        self.stored: Watched | None = None
        self.records = 0
        self.recent = b""
        self.follows = follows

    @property
    def watched(self) -> Watched:
        """The values that most records do not change."""
        return Watched(self.state, self.facts, self.started, self.stopped)

    def is_over_for(self, report: Report) -> bool:
        """Return whether this session had already ended before the record. The record then belongs to a later session
        with the same Acct-Session-Id."""
        if report.status == START and not self._is_repeated(report):
            if self._differs(report, MULTI_SESSION):
                return True
            if self.stopped is None:
                return report.at > self.updated and (self._differs(report, USER) or self._differs(report, STATION))
            return report.begun > self.stopped
        if self.stopped is None:
            return False
        if self._is_of_others(report):
            return True
        return (report.status == START or report.tells_time) and report.begun > self.stopped + REPEATS_US

    def is_foreign(self, report: Report) -> bool:
        """Return whether a record belongs to another session with the same Acct-Session-Id, although this session is
        live. Some NAS use an id for several sessions at a time. The record must not change or end this session."""
        return self.state is LIVE and not self._is_repeated(report) and self._is_of_others(report)

    def is_continued_by(self, report: Report) -> bool:
        """Return whether a record of a device that may be the same NAS continues this session: the session is not over,
        and user and station are the same."""
        return self._is_at(report) and not self._differs(report, USER) and not self.is_over_for(report)

    def take_in(self, report: Report) -> bool:
        """Apply a record. Return False if the record was already applied."""
        if self._is_repeated(report):
            if self.state is LIVE:  # consecutive records of an idle session may be equal
                self.updated = max(self.updated, report.at)
            return False
        if self.follows and report.at < self.started - SECOND:
            return True  # a late record of the former session with this id
        self.recent = self.recent[-DIGEST * (REMEMBERED - 1) :] + report.digest
        self.records += 1
        newer, older = (report.facts, self.facts) if report.at >= self.updated else (self.facts, report.facts)
        if newer != older:
            self.facts = tuple([b if a is None else a for a, b in zip(newer, older, strict=True)])
        if report.counts != self.counts:
            self.counts = tuple([a if a > b else b for a, b in zip(report.counts, self.counts, strict=True)])
        at, begun = report.at, report.begun  # before Python 3.12, a call of min or max takes half a microsecond
        self.started = begun if begun < self.started else self.started
        self.first_seen = at if at < self.first_seen else self.first_seen
        self.updated = at if at > self.updated else self.updated
        if report.status == STOP:
            self._stop(report)
        elif self.state is LOST and self.stopped is not None and report.at > self.stopped:
            self.state, self.stopped, self.cause = LIVE, None, None
        return True

    def give_up(self) -> None:
        """End a live session because a later session has the same Acct-Session-Id."""
        if self.state is LIVE:
            self.state, self.stopped = LOST, self.updated

    def _stop(self, report: Report) -> None:
        """Apply a record that reports the end of the session. If several records report an end, the latest end is kept.

        If the session is lost, the reported end replaces the end that the service has assumed.
        """
        if self.state is not STOPPED or self.stopped is None or report.at >= self.stopped:
            self.state, self.stopped, self.cause = STOPPED, report.at, report.cause

    def _is_repeated(self, report: Report) -> bool:
        recent, digest = self.recent, report.digest
        at = recent.find(digest)
        while at > 0 and at % DIGEST:
            at = recent.find(digest, at + 1)
        return at >= 0

    def _is_of_others(self, report: Report) -> bool:
        """Return whether a record is of another user at another station. Either of the two may change within a session:
        the user when a computer's user signs in, and the station when it has a new address."""
        return self._differs(report, USER) and not self._is_at(report)

    def _is_at(self, report: Report) -> bool:
        """Return whether a record can be of this session's station. MAC addresses may have different notations."""
        station, reported = self.facts[STATION], report.facts[STATION]
        return station is None or reported is None or station_key(str(station)) == station_key(str(reported))

    def _differs(self, report: Report, fact: int) -> bool:
        """Return whether the session and the report have different values of a fact. If one of the values is missing,
        return False."""
        known, reported = self.facts[fact], report.facts[fact]
        return known is not None and reported is not None and known != reported


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session with its device, as an entry of ListSessions. Times are in microseconds."""

    id: Annotated[int, Wire("Id of the session; newer sessions have higher ids.", "sessionId", look="none")]
    acct_session_id: Annotated[
        bytes,
        Wire(
            "Acct-Session-Id; octets that are not UTF-8 are read as Latin-1.",
            "acctSessionId",
            as_text,
            title="Acct-Session-Id",
            look="code",
        ),
    ]
    user_name: Annotated[
        str | None, Wire("User-Name; empty if no record has it.", "userName", empty=True, title="User")
    ]
    ip_address: Annotated[
        str | None, Wire("Source address of the device's requests.", empty=True, title="Source address", look="code")
    ]
    client_ip: Annotated[
        str | None,
        Wire("NAS-IP-Address or NAS-IPv6-Address of the device.", empty=True, title="Device address", look="code"),
    ]
    device_id: Annotated[int, Wire("Id of the device.")]
    device_name: Annotated[str | None, Wire("Name of the device.", empty=True, title="Device")]
    station: Annotated[str | None, Wire("Calling-Station-Id; empty if no record has it.", empty=True, look="mac")]
    called_station: Annotated[
        str | None, Wire("Called-Station-Id; empty if no record has it.", "calledStation", empty=True, look="mac")
    ]
    framed_ip: Annotated[
        str | None,
        Wire("Framed-IP-Address; empty if no record has it.", "framedIp", empty=True, title="Address", look="code"),
    ]
    framed_ipv6: Annotated[
        str | None,
        Wire(
            "Framed-IPv6-Address; empty if no record has it.",
            "framedIpv6",
            empty=True,
            title="IPv6 address",
            look="code",
        ),
    ]
    framed_ipv6_prefix: Annotated[
        str | None,
        Wire(
            "Framed-IPv6-Prefix; empty if no record has it.",
            "framedIpv6Prefix",
            empty=True,
            title="IPv6 prefix",
            look="code",
        ),
    ]
    delegated_ipv6_prefix: Annotated[
        str | None,
        Wire(
            "Delegated-IPv6-Prefix; empty if no record has it.",
            "delegatedIpv6Prefix",
            empty=True,
            title="Delegated IPv6 prefix",
            look="code",
        ),
    ]
    nas_port: Annotated[int | None, Wire("NAS-Port; null if no record has it.", "nasPort", title="NAS-Port")]
    nas_port_id: Annotated[
        str | None, Wire("NAS-Port-Id; empty if no record has it.", "nasPortId", empty=True, title="Port")
    ]
    nas_port_type: int | None
    state: Annotated[
        str,
        Wire(
            "live, stopped if the device has reported the end, or lost if the device restarted or sent no more "
            "records.",
            kind=SessionState,
        ),
    ]
    started: Annotated[int, Wire("Begin, ISO 8601 UTC.", "startedAt", iso, title="Began")]
    updated: Annotated[
        int, Wire("Time of the last record, ISO 8601 UTC.", "updatedAt", iso, title="Last record", look="age")
    ]
    stopped: Annotated[
        int | None,
        Wire("End, ISO 8601 UTC; empty while the session is live.", "stoppedAt", iso, empty=True, title="Ended"),
    ]
    session_time: Annotated[
        int, Wire("Duration in seconds, as the device counts it.", "sessionTime", title="Duration", look="duration")
    ]
    input_octets: Annotated[int, Wire("Octets received from the user.", "inputOctets", title="Octets received")]
    output_octets: Annotated[int, Wire("Octets sent to the user.", "outputOctets", title="Octets sent")]
    input_packets: Annotated[int, Wire("Packets received from the user.", "inputPackets", title="Packets received")]
    output_packets: Annotated[int, Wire("Packets sent to the user.", "outputPackets", title="Packets sent")]
    terminate_cause: int | None

    @Wire(
        "Name or number of NAS-Port-Type; empty if no record has it.", "nasPortType", after="nasPortId", title="Medium"
    )
    def medium(self, value_name: ValueName) -> str:
        """Return the name of the NAS-Port-Type."""
        return _named(value_name, "NAS-Port-Type", self.nas_port_type)

    @Wire(
        "Name or number of Acct-Terminate-Cause; empty if no record has it.", "terminateCause", title="Cause of the end"
    )
    def cause_of_end(self, value_name: ValueName) -> str:
        """Return the name of the Acct-Terminate-Cause."""
        return _named(value_name, "Acct-Terminate-Cause", self.terminate_cause)


def _named(value_name: ValueName, attribute: str, number: int | None) -> str:
    return "" if number is None else value_name(attribute, number) or str(number)


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """A query for one page of a domain's sessions.

    live: True selects live sessions, False selects past sessions, None selects both. session_id: the id of the only
    session, or 0 for all sessions. device_id: the id of a device, or 0 for all devices. since, until: the range of
    times, in microseconds, in which the session began; `until` is exclusive. search: a part of a user, station, address
    or Acct-Session-Id.
    """

    domain_id: int
    live: bool | None = None
    session_id: int = 0
    device_id: int = 0
    user_name: str = ""
    since: int = 0
    until: int = FOREVER
    search: str = ""
    offset: int = 0
    limit: int = 10

    @property
    def is_whole(self) -> bool:
        """Whether the query selects only by state. Then the stored counters give the number of matches."""
        return not any(
            (self.session_id, self.device_id, self.user_name, self.since, self.until != FOREVER, self.search)
        )

    @property
    def is_period(self) -> bool:
        """Whether the query selects by time, and not by user. Then the sessions are ordered by their start, as in the
        index."""
        return not self.user_name and bool(self.since or self.until != FOREVER)

    @property
    def states(self) -> tuple[SessionState, ...]:
        """The states that the query selects."""
        return tuple(each for each in SessionState if self.live is None or self.live is (each is SessionState.LIVE))
