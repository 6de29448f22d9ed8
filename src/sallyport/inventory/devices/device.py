"""What the inventory knows of a device and of the stations behind it."""

from dataclasses import dataclass, field
from typing import Final

from sallyport.inventory.devices.posture import Judged, Posture

UNKNOWN: Final = "Unknown"
MAX_DELETED: Final = 200
"""Devices of one request: logins wait for its transaction, up to 0.1 ms for each."""


@dataclass(slots=True, eq=False)
class Device:
    """A device in memory. Times in microseconds.

    id: None until its row is written. requests: those that the store does not count yet. registered: the product is the
    one that its RADIUS client was registered with. gone: it was deleted. tenant_id: of its RADIUS client, `client`.
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
    """A station in memory: the host behind a device (Calling-Station-Id), with the user of its last login."""

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
class ListedDevice(Judged):
    """A device with its posture, as lists show it. Times in microseconds."""

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
        """Add the counts and findings of a device in memory that are not written yet."""
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


@dataclass(frozen=True, slots=True)
class DeviceQuery:
    """Selected devices of a domain: `column` equals `value` without case, `search` is part of a name or address."""

    domain_id: int
    search: str = ""
    column: str = ""
    value: str = ""
    offset: int = 0
    limit: int = 10
