"""Request and response bodies of the device operations."""

from typing import Annotated, Final, Self

from pydantic import AliasChoices, Field, JsonValue, model_validator

from sallyport.areas.devices.device import MAX_DELETED
from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.web.paging import IsMinimum, Paged, Search, ShortPaged, TotalCount
from sallyport.web.scope import AddressOrText, Body, Id, InDomain, Many, Text

FILTERS: Final = {
    "DEVICE_NAME": "device_name",
    "DEVICE_TYPE": "device_type",
    "IP_ADDRESS": "ip_address",
    "CLIENT_IP": "client_ip",
    "NAS_PORT_TYPE": "nas_port_type",
    "NAS_IDENTIFIER": "nas_identifier",
}
"""The column of the store for each value of filterBy."""

IpAddress = Annotated[str, Field(description="Source address of the device's requests.")]
ClientIp = Annotated[str, Field(description="NAS-IP-Address or NAS-IPv6-Address; if absent, the source address.")]
NasIdentifier = Annotated[str, Field(description="NAS-Identifier; empty if absent.")]
FirstSeen = Annotated[str, Field(description="First request, ISO 8601 UTC.")]
LastSeen = Annotated[str, Field(description="Last request, ISO 8601 UTC.")]
DeviceId = Annotated[int, Field(description="Id of the device.")]
OfDevice = Annotated[
    Id, Field(description="Id of a device, as ListDevices gives it. 0 selects all devices of the domain.")
]


class DeviceFilter(Body):
    """Body field `filter` of ListDevices."""

    filterBy: Text = Field(
        default="", description=f"Field to compare: {', '.join(FILTERS)}. Leave it empty to use no filter."
    )
    value: Text = Field(
        default="", description="Value of the field, in upper or lower case. Leave it empty to use no filter."
    )


class ListDevices(InDomain, ShortPaged):
    """Request body of the operation `ListDevices`."""

    search: AddressOrText = Field(
        default="", description="Part of a name, a product or an address. Leave it empty to list all devices."
    )
    filter: DeviceFilter | None = Field(default=None, description="Filter by the value of one field.")
    MachineType: Text = Field(default="", description="radius or empty. The inventory has no machines of another type.")


class DeviceEntry(Model):
    """A device in ListDevices. The fields after `nas_port_type` are not part of the required interface."""

    ip_address: IpAddress
    client_ip: ClientIp
    device_type: str = Field(description="Product of the device; Unknown if no request shows it.")
    nas_port_type: str = Field(
        description="Medium of the device's logins (NAS-Port-Type), such as Ethernet or Virtual."
    )
    device_id: DeviceId
    device_name: str = Field(description="NAS-Identifier of the device, or its product if it sends no NAS-Identifier.")
    nas_identifier: NasIdentifier
    device_type_certainty: str = Field(description="Confidence in device_type: certain, probable, or empty if unknown.")
    nas_device_type: str = Field(
        description="Product of the NAS that sends its requests through the device, or of the device itself."
    )
    first_seen: FirstSeen
    last_seen: LastSeen
    request_count: int = Field(description="Requests since the device was first seen.")
    registrations: int = Field(description="Number of registrations; the device registers again after each deletion.")
    signed_share: float | None = Field(
        description="Share of logins with Message-Authenticator, from 0 to 1. Null if there was no login."
    )
    unsigned_proxy_state: int = Field(description="Number of unsigned logins with Proxy-State.")
    last_unsigned: str = Field(description="Time of the last unsigned login, ISO 8601 UTC; empty if there was none.")
    safe_to_require: bool = Field(
        description="Whether Message-Authenticator can be required without dropping logins of the device."
    )
    retransmit_seconds: float | None = Field(
        description="Measured interval of retransmissions in seconds. Null if it was not measured."
    )
    give_up_seconds: float | None = Field(
        description="Measured time that the device waits for an answer, in seconds. Null if it was not measured."
    )
    challenge_support: str = Field(description="Whether the device shows challenges to users: yes, no or unknown.")


class DeviceList(Model):
    """Response body of the operation `ListDevices`."""

    network_devices: list[DeviceEntry] = Field(description="Devices of the page, ordered by device_id.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False


class GetDevice(InDomain):
    """Request body of the operation `GetDevice`."""

    deviceId: Id = Field(description="Id of the device, as ListDevices gives it.")


class DeviceDetail(DeviceEntry):
    """Response body of the operation `GetDevice`."""

    evidence: dict[str, JsonValue] = Field(
        description="Evidence for the product: `nas` and `forwarder` from requests, `registered` from its client."
    )
    station_count: int = Field(description="Stations behind the device.")
    timeouts_learned: str = Field(
        description="When retransmit_seconds or give_up_seconds last changed, ISO 8601 UTC; empty if never."
    )
    challenges: int = Field(description="Challenges that the device got.")
    challenge_answers: int = Field(description="Challenges that the device answered.")
    challenges_unanswered: int = Field(description="Challenges since the last answer to one.")
    last_challenge: str = Field(
        description="Time of the last challenge, answer to one, or reset, ISO 8601 UTC; empty if there was none."
    )


class ChosenDevices(InDomain):
    """The devices of a request. It selects them by id, or by ip_address and client_ip together."""

    deviceId: Many[Id] = Field(
        default_factory=list,
        max_length=MAX_DELETED,
        validation_alias=AliasChoices("deviceId", "device_id", "deviceIds"),
        description="Ids of the devices; required unless ip_address and client_ip are given.",
    )
    ip_address: AddressOrText = Field(default="", description="Source address of the devices; requires client_ip.")
    client_ip: AddressOrText = Field(default="", description="client_ip of the devices; requires ip_address.")

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not self.deviceId and not (self.ip_address and self.client_ip):
            raise unfit("deviceId is required, or ip_address together with client_ip", "deviceId")
        return self

    def addresses(self) -> tuple[str, str] | None:
        """Return ip_address and client_ip, or None if they are not given."""
        return (self.ip_address, self.client_ip) if self.ip_address and self.client_ip else None


class DeleteDevice(ChosenDevices):
    """Request body of the operation `DeleteDevice`."""


class ResetDevice(ChosenDevices):
    """Request body of the operation `ResetDevice`."""


class ListStations(InDomain, Paged):
    """Request body of the operation `ListStations`."""

    deviceId: OfDevice = 0
    search: Search = Field(default="", description="Part of a station or a user. Leave it empty to list all stations.")
    newest: Id = Field(
        default=0,
        description="Search only this number of stations, those with the latest first login. 0: search all of them.",
    )


class DeviceStation(Model):
    """A station behind a device."""

    station: str = Field(description="Calling-Station-Id.")
    device_id: DeviceId
    device_name: str = Field(description="Name of the device, as ListDevices gives it.")
    device_type: str = Field(description="Product of the device; Unknown if no request shows it.")
    user: str = Field(description="User of the station's last login.")
    first_seen: FirstSeen
    last_seen: LastSeen
    request_count: int = Field(description="Requests of the station since its first login.")


class DeviceStationList(Model):
    """Response body of the operation `ListStations`."""

    stations: list[DeviceStation] = Field(description="Stations of the page, in the order of their first login.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False


class DeviceHistory(InDomain, Paged):
    """Request body of the operation `DeviceHistory`."""

    deviceId: OfDevice = 0


class HistoryEntry(Model):
    """One line of a device's history."""

    device_id: DeviceId
    ip_address: IpAddress
    client_ip: ClientIp
    nas_identifier: NasIdentifier
    event: str = Field(description="registered or deleted.")
    time: str = Field(description="Time of the event, ISO 8601 UTC.")
    actor: str = Field(description="Name of the token or local user that deleted the device; empty for a registration.")


class HistoryList(Model):
    """Response body of the operation `DeviceHistory`."""

    history: list[HistoryEntry] = Field(description="Events of the page, newest first.")
    totalCount: TotalCount
