"""Values of the inventory: devices, the stations behind them, and their rows in the store.

The posture of a device tells an admin whether signatures can be required, and whether a second factor can be enforced.
The posture counts signed logins, unsigned logins, unsigned logins with Proxy-State, challenges, and answers to
challenges. It also has two times that the service measures while a login waits for its answer. They are the device's
retransmission interval, and the time after which the device gives up.
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


@dataclass(slots=True)
class Posture:
    """The posture of a device. It contains the counts that are not in the store yet, and the latest measurements.

    Times are in microseconds. Fields whose names end with `_ms` are in milliseconds.
    """

    signed: int = 0
    unsigned: int = 0
    unsigned_proxied: int = 0
    last_unsigned: int | None = None
    challenges: int = 0
    challenge_answers: int = 0
    retransmit_ms: int | None = None
    give_up_ms: int | None = None
    takes_challenges: bool = False

    def count(self, request: Request, at: int) -> None:
        """Count a login of the device."""
        if request.signed:
            self.signed += 1
        else:
            self.unsigned += 1
            self.last_unsigned = at
            if PROXY_STATE in request.first:
                self.unsigned_proxied += 1

    def measure(self, known: Entry, now: float) -> None:
        """Update the measurements with a login that has waited. now: seconds of the monotonic clock.

        A device has given up if much more time than its retransmission interval has passed since its last
        retransmission. Of all times after which the device gave up, only the longest is kept, because a user may cancel
        a login earlier.
        """
        if known.gap <= 0:
            return
        self.retransmit_ms = int(known.gap * 1000)
        if now - known.last > 1.5 * known.gap + 0.5:
            self.give_up_ms = max(self.give_up_ms or 0, int((known.last - known.first + known.gap) * 1000))

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
        """Add the counts of a later posture of the same row, and take its measurements."""
        self.put_back(later)
        self.last_unsigned = self.last_unsigned if later.last_unsigned is None else later.last_unsigned
        self.retransmit_ms = self.retransmit_ms if later.retransmit_ms is None else later.retransmit_ms
        self.give_up_ms = self.give_up_ms if later.give_up_ms is None else later.give_up_ms


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
class DeviceRow:
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
    retransmit_ms: int | None
    give_up_ms: int | None

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
        self.retransmit_ms = self.retransmit_ms if posture.retransmit_ms is None else posture.retransmit_ms
        self.give_up_ms = self.give_up_ms if posture.give_up_ms is None else posture.give_up_ms

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

    @property
    def challenge_support(self) -> str:
        """Whether the device shows challenges to its users: yes, no or unknown."""
        if self.challenge_answers:
            return "yes"
        return "no" if self.challenges >= UNANSWERED else "unknown"


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
