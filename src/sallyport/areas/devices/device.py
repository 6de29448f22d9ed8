"""Values of the inventory: devices, the stations behind them, and their rows in the store.

The posture of a device tells an admin whether signatures can be required, and whether a second factor can be enforced.
The posture counts signed logins, unsigned logins, unsigned logins with Proxy-State, challenges, and answers to
challenges. It also has what the service has learned while logins waited (`Learned`): the device's retransmission
interval, the time after which it gives up, and whether it shows challenges. Each of these has an age. It is forgotten
when a login contradicts it, when it was not confirmed for LEARNED_US, and when an admin resets the device.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from sallyport.base.clock import SECOND
from sallyport.radius.attributes import PROXY_STATE
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import Request

UNKNOWN: Final = "Unknown"
MAX_DELETED: Final = 200
"""Maximum number of devices in one delete request. Logins wait for the transaction of the request, which takes up to
0.1 ms for each device."""
QUIET_US: Final = 7 * 86_400 * SECOND
"""If a device has sent no unsigned login for this time, it is considered to sign all logins."""
UNANSWERED: Final = 3
"""A device that has answered none of this many challenges is considered unable to show challenges."""
LAPSED: Final = 10
"""The same number for a device that has answered challenges before. It is higher, because users ignore challenges."""
LEARNED_US: Final = 30 * 86_400 * SECOND
"""Time after which a learned value that was not confirmed is forgotten."""
ABOUT: Final = 0.8
"""A timeout of at least this share of the learned timeout confirms the learned timeout."""


@dataclass(slots=True, kw_only=True)
class Learned:
    """What the service has learned from the logins of a device. Times are in microseconds, or 0 if there was none.

    retransmit_ms, give_up_ms: the retransmission interval, and the time after which the device gives up. measured_at:
    when these values last changed. gave_up_at: when the device last gave up after about `give_up_ms`. unanswered: the
    number of challenges since the last answer to a challenge. answered_at, challenged_at: the times of the last answer
    and of the last challenge or answer.
    """

    retransmit_ms: int | None = None
    give_up_ms: int | None = None
    measured_at: int = 0
    gave_up_at: int = 0
    unanswered: int = 0
    answered_at: int = 0
    challenged_at: int = 0

    def timeout_ms(self, now: int) -> int | None:
        """Return the time after which the device gives up, in milliseconds. Return None if it is unknown, or if the
        device has not given up for LEARNED_US. now: the time in microseconds."""
        return self.give_up_ms if now - self.gave_up_at <= LEARNED_US else None

    def challenge_support(self, now: int) -> str:
        """Return whether the device shows challenges to its users: yes, no or unknown. now: the time in
        microseconds."""
        if now - self.challenged_at > LEARNED_US:
            return "unknown"
        if self.answered_at and now - self.answered_at <= LEARNED_US:
            return "yes" if self.unanswered < LAPSED else "no"
        return "no" if self.unanswered >= UNANSWERED else "unknown"

    def take_newer(self, other: "Learned") -> None:
        """Take the values of `other` that are at least as new as the own ones."""
        if other.measured_at >= self.measured_at:
            self.retransmit_ms, self.give_up_ms = other.retransmit_ms, other.give_up_ms
            self.measured_at, self.gave_up_at = other.measured_at, other.gave_up_at
        if other.challenged_at >= self.challenged_at:
            self.unanswered, self.answered_at = other.unanswered, other.answered_at
            self.challenged_at = other.challenged_at

    def is_newer(self, other: "Learned") -> bool:
        """Return whether a value is newer than that of `other`."""
        return self.measured_at > other.measured_at or self.challenged_at > other.challenged_at


@dataclass(slots=True)
class Posture(Learned):
    """The posture of a device: the counts that are not in the store yet, and what the service has learned.

    Times are in microseconds. Fields whose names end with `_ms` are in milliseconds.
    """

    signed: int = 0
    unsigned: int = 0
    unsigned_proxied: int = 0
    last_unsigned: int | None = None
    challenges: int = 0
    challenge_answers: int = 0

    def count(self, request: Request, at: int) -> None:
        """Count a login of the device."""
        if request.signed:
            self.signed += 1
        else:
            self.unsigned += 1
            self.last_unsigned = at
            if PROXY_STATE in request.first:
                self.unsigned_proxied += 1

    def count_challenge(self, at: int) -> None:
        """Count a challenge to the device. at: the time in microseconds."""
        self.challenges += 1
        self.unanswered = self.unanswered + 1 if at - self.challenged_at <= LEARNED_US else 1
        self.challenged_at = at

    def count_answer(self, at: int) -> None:
        """Count an answer of the device to a challenge. at: the time in microseconds."""
        self.challenge_answers += 1
        self.unanswered = 0
        self.answered_at = self.challenged_at = at

    def measure(self, known: Entry, now: float, at: int) -> None:
        """Update the learned times with a login that waits or has waited. now: seconds of the monotonic clock. at: the
        time in microseconds.

        A device has given up if much more time than its retransmission interval has passed since its last
        retransmission. Of several times after which the device gave up, the longest is kept, because a user may cancel
        a login earlier. Two things show that the device now waits longer, so that the known times are forgotten: it
        did not retransmit when it should have, or it still retransmits after it should have given up.
        """
        if known.gap <= 0:
            if self.retransmit_ms is not None and (now - known.first) * 1000 > 1.25 * self.retransmit_ms + 250:
                self.forget_times(at)
            return
        give_up_ms = self.timeout_ms(at)
        if give_up_ms is not None and (known.last - known.first) * 1000 >= give_up_ms:
            give_up_ms = None
        if now - known.last > 1.5 * known.gap + 0.5:
            measured_ms = int((known.last - known.first + known.gap) * 1000)
            if measured_ms >= (give_up_ms or 0) * ABOUT:
                self.gave_up_at = at
            give_up_ms = max(give_up_ms or 0, measured_ms)
        self.retransmit_ms, self.give_up_ms, self.measured_at = int(known.gap * 1000), give_up_ms, at

    def forget_times(self, at: int) -> None:
        """Forget the retransmission interval and the timeout of the device. at: the time in microseconds."""
        self.retransmit_ms = self.give_up_ms = None
        self.measured_at, self.gave_up_at = at, 0

    def take(self) -> "Posture":
        """Return a copy for the store, and reset the counts to 0. The measurements stay."""
        taken = replace(self)
        self.signed = self.unsigned = self.unsigned_proxied = self.challenges = self.challenge_answers = 0
        return taken

    def put_back(self, taken: "Posture") -> None:
        """Add counts that `take` returned, after the store has failed to write them."""
        self.signed += taken.signed
        self.unsigned += taken.unsigned
        self.unsigned_proxied += taken.unsigned_proxied
        self.challenges += taken.challenges
        self.challenge_answers += taken.challenge_answers

    def merge(self, later: "Posture") -> None:
        """Add the counts of a later posture of the same row, and take its newer values."""
        self.put_back(later)
        self.last_unsigned = self.last_unsigned if later.last_unsigned is None else later.last_unsigned
        self.take_newer(later)


@dataclass(slots=True, eq=False)
class Device:
    """A device in memory. Times are in microseconds.

    id: None until the device has a row. requests: the number of requests that are not in the store yet. client: the
    device's RADIUS client. tenant_id: the tenant of this client. registered: whether the product comes from the
    configuration of the RADIUS client. gone: whether the device was deleted.
    """

    domain_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    first_seen: int
    id: int | None = None
    device_name: str = field(init=False)
    device_type: str = UNKNOWN
    certainty: str = ""
    nas_device_type: str = UNKNOWN
    evidence: str = "{}"
    nas_port_type: str = UNKNOWN
    port_type: bytes | None = None
    last_seen: int = field(init=False)
    requests: int = 0
    tenant_id: int = 0
    look_again_at: int = 0
    client: object = None
    registered: bool = False
    posture: Posture = field(default_factory=Posture)
    gone: bool = False

    def __post_init__(self) -> None:
        self.device_name = self.nas_identifier or UNKNOWN
        self.last_seen = self.first_seen


@dataclass(slots=True, eq=False)
class Station:
    """A station in memory: a host behind a device (Calling-Station-Id), with the user of its last login."""

    device: Device
    name: str
    user: str
    first_seen: int
    last_seen: int = field(init=False)
    requests: int = 0
    stored: bool = False

    def __post_init__(self) -> None:
        self.last_seen = self.first_seen


@dataclass(slots=True)
class DeviceRow(Learned):
    """A device in the store, with its posture. Times are in microseconds, fields named `..._ms` in milliseconds."""

    id: int
    domain_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    device_name: str
    device_type: str
    device_type_certainty: str
    nas_device_type: str
    evidence: str
    nas_port_type: str
    first_seen: int
    last_seen: int
    request_count: int
    registrations: int
    signed: int
    unsigned: int
    unsigned_proxied: int
    last_unsigned: int | None
    challenges: int
    challenge_answers: int

    def add(self, device: Device) -> None:
        """Add the counts and the product of the device in memory, because they are not in the store yet."""
        self.device_name, self.device_type = device.device_name, device.device_type
        self.device_type_certainty, self.nas_device_type = device.certainty, device.nas_device_type
        self.evidence, self.nas_port_type = device.evidence, device.nas_port_type
        self.last_seen = max(self.last_seen, device.last_seen)
        self.request_count += device.requests
        posture = device.posture
        self.signed += posture.signed
        self.unsigned += posture.unsigned
        self.unsigned_proxied += posture.unsigned_proxied
        self.challenges += posture.challenges
        self.challenge_answers += posture.challenge_answers
        self.last_unsigned = self.last_unsigned if posture.last_unsigned is None else posture.last_unsigned
        self.take_newer(posture)

    @property
    def signed_share(self) -> float | None:
        """The share of logins with Message-Authenticator, from 0 to 1. None if there was no login."""
        seen = self.signed + self.unsigned
        return round(self.signed / seen, 4) if seen else None

    def safe_to_require(self, now: int) -> bool:
        """Return whether Message-Authenticator can be required without dropping logins of the device.

        now: the time in microseconds.
        """
        return self.signed > 0 and (self.last_unsigned is None or now - self.last_unsigned > QUIET_US)


@dataclass(frozen=True, slots=True)
class StationRow:
    """A station in the store, with its device. Times are in microseconds."""

    station: str
    device_id: int
    device_name: str
    device_type: str
    user_name: str
    first_seen: int
    last_seen: int
    request_count: int


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One entry of a device's history."""

    device_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    event: str
    at: int
    actor: str


@dataclass(frozen=True, slots=True)
class Forwarder:
    """A source address that sends the requests of devices of one product. devices: the number of devices of this
    product behind the address."""

    domain_id: int
    ip_address: str
    device_type: str
    devices: int


@dataclass(frozen=True, slots=True)
class Heard:
    """When a source address has sent requests, in microseconds. last_unsigned: the time of the last Access-Request
    without Message-Authenticator, or None."""

    ip_address: str
    last_seen: int
    last_unsigned: int | None


@dataclass(frozen=True, slots=True)
class DeviceQuery:
    """A query for one page of a domain's devices.

    column, value: the column must be equal to the value, ignoring case. If `column` is empty, all values match. search:
    a part of a name or an address.
    """

    domain_id: int
    search: str = ""
    column: str = ""
    value: str = ""
    offset: int = 0
    limit: int = 10
