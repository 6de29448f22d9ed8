"""Request and response bodies of the device operations."""

from typing import Annotated, Final, Self

from pydantic import AliasChoices, Field, model_validator

from sallyport.areas.devices.comparison import MAX_FILE, MAX_SHOWN, ComparedDevice, Line
from sallyport.areas.devices.rows import MAX_SELECTED, DeviceRow, HistoryRow, StationRow
from sallyport.areas.devices.usage import SsidRow
from sallyport.base.model import Model, answer_of
from sallyport.base.validation import Between, unfit
from sallyport.web.bodies import (
    AddressOrText,
    Body,
    Id,
    InDomain,
    IsMinimum,
    Many,
    Paged,
    Search,
    ShortPaged,
    Text,
    TotalCount,
)
from sallyport.web.tags import NewTags, Note, TagFilter

FILTERS: Final = {
    "DEVICE_NAME": "device_name",
    "DEVICE_TYPE": "device_type",
    "IP_ADDRESS": "ip_address",
    "CLIENT_IP": "client_ip",
    "NAS_PORT_TYPE": "nas_port_type",
    "NAS_IDENTIFIER": "nas_identifier",
}
"""The column of the store for each value of filterBy."""

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
    tag: TagFilter = ""
    MachineType: Text = Field(default="", description="radius or empty. The inventory has no machines of another type.")


@answer_of(DeviceRow)
class DeviceEntry(Model):
    """A device in ListDevices. The fields after `nas_port_type` are not part of the required interface."""


class DeviceList(Model):
    """Response body of the operation `ListDevices`."""

    network_devices: list[DeviceEntry] = Field(description="Devices of the page, ordered by device_id.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False


class GetDevice(InDomain):
    """Request body of the operation `GetDevice`."""

    deviceId: Id = Field(description="Id of the device, as ListDevices gives it.")


@answer_of(DeviceRow, detail=True)
class DeviceDetail(Model):
    """Response body of the operation `GetDevice`."""


class ChosenDevices(InDomain):
    """The devices of a request. It selects them by id, or by ip_address and client_ip together."""

    deviceId: Many[Id] = Field(
        default_factory=list,
        max_length=MAX_SELECTED,
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


class UpdateDevice(ChosenDevices):
    """Request body of the operation `UpdateDevice`."""

    tags: NewTags | None = None
    note: Note | None = Field(default=None, description="New note about the devices. An empty text removes it.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.tags is None and self.note is None:
            raise unfit("tags or note is required", "tags")
        return self


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


@answer_of(StationRow)
class DeviceStation(Model):
    """A station behind a device."""


class DeviceStationList(Model):
    """Response body of the operation `ListStations`."""

    stations: list[DeviceStation] = Field(description="Stations of the page, in the order of their first login.")
    totalCount: TotalCount
    totalIsMinimum: IsMinimum = False


class ListSsids(InDomain, Paged):
    """Request body of the operation `ListSsids`."""

    search: Search = Field(default="", description="Part of an SSID. Leave it empty to list all SSIDs.")


@answer_of(SsidRow)
class SsidEntry(Model):
    """An SSID of a domain."""


class SsidList(Model):
    """Response body of the operation `ListSsids`."""

    ssids: list[SsidEntry] = Field(description="SSIDs of the page, ordered by name.")
    totalCount: TotalCount


class CompareDevices(InDomain):
    """Request body of the operation `CompareDevices`."""

    file: str = Field(
        max_length=MAX_FILE,
        description="List of devices as CSV, such as an export of NetBox: a line with titles, then a line for each "
        "device. Each cell with an IP address counts, and the column name, hostname, host, device or nas_identifier.",
    )
    silentDays: Annotated[int, Between(1, 3650)] = Field(
        default=30, description="Days without a request after which a device of the list is silent."
    )


@answer_of(Line)
class SilentLine(Model):
    """A device of the list that is silent."""


@answer_of(ComparedDevice)
class UnknownDevice(Model):
    """A device of the inventory that the list does not have."""


class DevicesCompared(Model):
    """Response body of the operation `CompareDevices`."""

    listCount: int = Field(description="Devices in the list.")
    silentCount: int = Field(description="Devices of the list without a request for silentDays, or without any.")
    silent: list[SilentLine] = Field(description=f"The first {MAX_SHOWN:,} of them.")
    unknownCount: int = Field(description="Devices of the inventory that the list does not have.")
    unknown: list[UnknownDevice] = Field(description=f"The first {MAX_SHOWN:,} of them.")


class DeviceHistory(InDomain, Paged):
    """Request body of the operation `DeviceHistory`."""

    deviceId: OfDevice = 0


@answer_of(HistoryRow)
class HistoryEntry(Model):
    """One line of a device's history."""


class HistoryList(Model):
    """Response body of the operation `DeviceHistory`."""

    history: list[HistoryEntry] = Field(description="Events of the page, newest first.")
    totalCount: TotalCount
