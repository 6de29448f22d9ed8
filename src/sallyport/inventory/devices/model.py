"""What a device is, in the service and in the interface."""

from dataclasses import dataclass
from typing import Final

from pydantic import AliasChoices, Field, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.inventory.devices.posture import Judged, Posture
from sallyport.web.paging import IsMinimum, Paged, ShortPaged
from sallyport.web.scope import AddressOrText, Body, Id, InDomain, Many, Text

UNKNOWN = "Unknown"


class Device:
    """A device in memory. id is None until its row is written; `requests` counts those not yet in the store.

    registered: its product is the one that its RADIUS client was registered with. gone: no longer in memory.
    tenant_id: of its RADIUS client.
    """

    __slots__ = (
        "certainty",
        "client",
        "client_ip",
        "device_name",
        "device_type",
        "domain_id",
        "evidence",
        "first_seen",
        "gone",
        "id",
        "ip_address",
        "last_seen",
        "look_again_at",
        "nas_device_type",
        "nas_identifier",
        "nas_port_type",
        "port_type",
        "posture",
        "registered",
        "requests",
        "tenant_id",
    )

    def __init__(self, domain_id: int, ip_address: str, client_ip: str, nas_identifier: str, *, at: int) -> None:
        self.id: int | None = None
        self.domain_id = domain_id
        self.ip_address = ip_address
        self.client_ip = client_ip
        self.nas_identifier = nas_identifier
        self.device_name = nas_identifier or UNKNOWN
        self.device_type = UNKNOWN
        self.certainty = ""
        self.nas_device_type = UNKNOWN
        self.evidence = "{}"
        self.nas_port_type = UNKNOWN
        self.port_type: bytes | None = None
        self.first_seen = at
        self.last_seen = at
        self.requests = 0
        self.tenant_id = 0
        self.look_again_at = 0
        self.client: object = None
        self.registered = False
        self.posture = Posture()
        self.gone = False


class Station:
    """A station in memory: what stands behind a device (Calling-Station-Id)."""

    __slots__ = ("device", "first_seen", "last_seen", "name", "requests", "stored", "user")

    def __init__(self, device: Device, name: str, user: str, at: int) -> None:
        self.device = device
        self.name = name
        self.user = user
        self.first_seen = at
        self.last_seen = at
        self.requests = 0
        self.stored = False


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
        """Add what is counted and known in memory and is not written yet."""
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


class Filter(Body):
    """filter of ListDevices; an empty filterBy or value is no filter."""

    filterBy: Text = ""
    value: Text = ""


class ListDevices(InDomain, ShortPaged):
    """Body of ListDevices."""

    search: AddressOrText = ""
    filter: Filter | None = None
    MachineType: Text = ""


class DeviceEntry(Model):
    """A device in the list; the fields after `nas_port_type` are additions to the interface. Times: ISO 8601 UTC.

    signed_share: of its logins, 0 to 1. unsigned_proxy_state: how many unsigned logins it proxied. safe_to_require:
    Message-Authenticator can be required of it. retransmit_seconds, give_up_seconds: as measured while it waited.
    challenge_support: yes, no or unknown.
    """

    ip_address: str
    client_ip: str
    device_type: str
    nas_port_type: str
    device_id: int
    device_name: str
    nas_identifier: str
    device_type_certainty: str
    nas_device_type: str
    first_seen: str
    last_seen: str
    request_count: int
    registrations: int
    signed_share: float | None
    unsigned_proxy_state: int
    last_unsigned: str
    safe_to_require: bool
    retransmit_seconds: float | None
    give_up_seconds: float | None
    challenge_support: str


class DeviceList(Model):
    """Answer of ListDevices."""

    network_devices: list[DeviceEntry]
    totalCount: int
    totalIsMinimum: IsMinimum = False


MAX_DELETED: Final = 200
"""Devices of one request: logins wait for its transaction, up to 0.1 ms for each."""


class DeleteDevice(InDomain):
    """Body of DeleteDevice: ids, or ip_address with client_ip, which may name several."""

    deviceId: Many[Id] = Field(
        default_factory=list,
        max_length=MAX_DELETED,
        validation_alias=AliasChoices("deviceId", "device_id", "deviceIds"),
    )
    ip_address: AddressOrText = ""
    client_ip: AddressOrText = ""

    @model_validator(mode="after")
    def _names_something(self) -> "DeleteDevice":
        if not self.deviceId and not (self.ip_address and self.client_ip):
            raise unfit("missing deviceId, or ip_address with client_ip", "deviceId")
        return self


class ListStations(InDomain, Paged):
    """Body of ListStations; deviceId 0 means every device of the domain."""

    deviceId: Id = 0
    search: Text = ""


class StationEntry(Model):
    """A station behind a device."""

    station: str
    device_id: int
    user: str
    first_seen: str
    last_seen: str
    request_count: int


class StationList(Model):
    """Answer of ListStations."""

    stations: list[StationEntry]
    totalCount: int


class DeviceHistory(InDomain, Paged):
    """Body of DeviceHistory; deviceId 0 means every device of the domain."""

    deviceId: Id = 0


class HistoryEntry(Model):
    """One line of a device's history. event: registered or deleted; actor: who deleted it, empty for the device."""

    device_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    event: str
    time: str
    actor: str


class HistoryList(Model):
    """Answer of DeviceHistory."""

    history: list[HistoryEntry]
    totalCount: int


@dataclass(frozen=True, slots=True)
class DeviceQuery:
    """Which devices of a domain: `column` equals `value` without case, `search` is part of a name or address."""

    domain_id: int
    search: str = ""
    column: str = ""
    value: str = ""
    offset: int = 0
    limit: int = 10
