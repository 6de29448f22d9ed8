"""Operations of devices and stations: /network_device/...Device(s), ListStations; local: device.domain,
device.forwarders."""

from sallyport.areas.devices.bodies import (
    FILTERS,
    CompareDevices,
    DeleteDevice,
    DeviceDetail,
    DeviceHistory,
    DeviceList,
    DevicesCompared,
    DeviceStationList,
    GetDevice,
    HistoryList,
    ListDevices,
    ListSsids,
    ListStations,
    ResetDevice,
    SsidList,
    UpdateDevice,
)
from sallyport.areas.devices.comparison import MAX_SHOWN
from sallyport.areas.devices.rows import AttributeName, DeviceQuery
from sallyport.areas.devices.service import Devices
from sallyport.base.addresses import canonical
from sallyport.base.answer import answer, answers
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import FieldError, Invalid
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.web.bodies import Plain, totals
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate, not_allowed

RADIUS = "radius"
DAY_US = 86_400 * SECOND
ADDRESSES = ("ip_address", "client_ip")


def operations(service: Devices, attribute_name: AttributeName, gate: Gate, clock: Clock) -> Operations:
    """Return the HTTP operations of devices and stations."""
    devices = Operations("Network devices", gate)

    @devices.post("/network_device/ListDevices", roles=READERS)
    async def list_devices(body: ListDevices, caller: Caller) -> Plain[DeviceList]:
        """List the network devices of a domain, ordered by id. The first request of a device registers it."""
        query = _query(body)
        if body.MachineType.lower() not in {"", RADIUS}:  # only RADIUS devices register themselves
            return Plain({"network_devices": [], "totalCount": 0})
        rows, total, usage = await service.page(query)
        listed = answers(rows, now=clock(), client_tags=service.tags.clients.tags_of, usage=usage)
        return Plain({"network_devices": listed, **totals(total)})

    @devices.post("/network_device/GetDevice", roles=READERS)
    async def get_device(body: GetDevice, caller: Caller) -> Plain[DeviceDetail]:
        """Read a network device as ListDevices lists it, with the evidence for its product."""
        row = await service.one(body.domainId, body.deviceId)
        _, behind = await service.stations(body.domainId, row.id, "", offset=0, limit=1)
        usage = await service.usage([row])
        values = {
            "now": clock(),
            "attribute_name": attribute_name,
            "client_tags": service.tags.clients.tags_of,
            "usage": usage,
            "station_count": behind,
            "uses": answers(usage.get(row.id, ())),
            "ports": answers(await service.ports(body.domainId, row.id)),
        }
        return Plain(answer(row, detail=True, **values))

    @devices.post("/network_device/DeleteDevice", roles=OPERATORS)
    async def delete_device(body: DeleteDevice, caller: Caller) -> Done:
        """Remove devices from the inventory. The next request of a removed device registers it again."""
        deleted = await service.delete(
            body.domainId, device_ids=body.deviceId, addresses=body.addresses(), actor=caller.name
        )
        return Done(message=f"{counted(deleted, 'device')} deleted")

    @devices.post("/network_device/UpdateDevice", roles=OPERATORS)
    async def update_device(body: UpdateDevice, caller: Caller) -> Done:
        """Change the tags and the notes of devices. A device takes over the tags of its RADIUS client with other keys.
        The change applies to the next login. A deletion of a device deletes its tags and its note.

        A change of tags requires the role admin, because login rules may name tags.
        """
        if body.tags is not None and caller.role not in ADMINS:
            raise not_allowed(caller.role, ADMINS)
        updated = await service.update(
            body.domainId, device_ids=body.deviceId, addresses=body.addresses(), tags=body.tags, note=body.note
        )
        return Done(message=f"{counted(updated, 'device')} updated")

    @devices.post("/network_device/ResetDevice", roles=OPERATORS)
    async def reset_device(body: ResetDevice, caller: Caller) -> Done:
        """Forget the values that the logins of devices have taught: timeouts, challenge_support and signatures. The
        next logins teach them again. Use it after the settings of a device have changed."""
        reset = await service.reset(body.domainId, device_ids=body.deviceId, addresses=body.addresses())
        return Done(message=f"{counted(reset, 'device')} reset")

    @devices.post("/network_device/ListStations", roles=READERS)
    async def list_stations(body: ListStations, caller: Caller) -> Plain[DeviceStationList]:
        """List the stations behind a domain's devices, with Calling-Station-Id, last user, first and last request."""
        page = body.page()
        rows, total = await service.stations(
            body.domainId, body.deviceId, body.search, offset=page.offset, limit=page.size, newest=body.newest
        )
        return Plain({"stations": answers(rows), **totals(total)})

    @devices.post("/network_device/ListSsids", roles=READERS)
    async def list_ssids(body: ListSsids, caller: Caller) -> Plain[SsidList]:
        """List the SSIDs that logins of a domain have named, ordered by name. A device has at most 32 combinations of
        SSID, method and transport; further logins count without an SSID."""
        page = body.page()
        rows, total = await service.ssids(body.domainId, body.search, offset=page.offset, limit=page.size)
        return Plain({"ssids": answers(rows), "totalCount": total})

    @devices.post("/network_device/CompareDevices", roles=READERS)
    async def compare_devices(body: CompareDevices, caller: Caller) -> Plain[DevicesCompared]:
        """Compare the devices of a domain with a list from another source, such as NetBox. The answer has the devices
        of the list that are silent here, and the devices that are seen here and that the list does not have.

        A line matches a device with its device address or its NAS-Identifier. Behind a proxy, the source address shows
        only that the proxy is heard. Nothing is changed.
        """
        found = await service.compare(caller.tenant_id, body.domainId, body.file, body.silentDays * DAY_US)
        return Plain(
            {
                "listCount": found.lines,
                "silentCount": len(found.silent),
                "silent": answers(found.silent[:MAX_SHOWN]),
                "unknownCount": len(found.unknown),
                "unknown": answers(found.unknown[:MAX_SHOWN]),
            }
        )

    @devices.post("/network_device/DeviceHistory", roles=READERS)
    async def device_history(body: DeviceHistory, caller: Caller) -> Plain[HistoryList]:
        """List the registrations and deletions of devices, newest first."""
        page = body.page()
        rows, total = await service.history(body.domainId, body.deviceId, offset=page.offset, limit=page.size)
        return Plain({"history": answers(rows), "totalCount": total})

    return devices


def _query(body: ListDevices) -> DeviceQuery:
    """Return the query that a request describes. Raises Invalid if filterBy is unknown."""
    page = body.page()
    filter_by, value = (body.filter.filterBy, body.filter.value) if body.filter else ("", "")
    column = filter_column(filter_by)
    return DeviceQuery(
        domain_id=body.domainId,
        search=body.search,
        column=column if value else "",
        value=canonical(value) if column in ADDRESSES else value,
        tag=body.tag,
        offset=page.offset,
        limit=page.size,
    )


def filter_column(filter_by: str) -> str:
    """Return the column for a value of filterBy, ignoring case. Return an empty string if filterBy is empty. Raises
    Invalid if filterBy is unknown."""
    if not filter_by:
        return ""
    column = FILTERS.get(filter_by.upper())
    if column is None:
        raise Invalid(
            "invalid filterBy", (FieldError("filter.filterBy", f"must be one of {', '.join(FILTERS)}, or empty"),)
        )
    return column


MAX_EXAMINED = 10_000  # maximum number of addresses that `sallyport doctor` examines


class DomainOf(Arguments):
    """Arguments of device.domain. device: the id of a device."""

    device: int


def local_operations(service: Devices) -> LocalOperations:
    """Return the local operations of devices by name."""
    local = LocalOperations()

    @local("device.domain")
    async def domain(wanted: DomainOf) -> JSON:
        """Return the domain of a device. The command line accepts a device id without a domain, but the HTTP operations
        need the domain."""
        return await service.domain_of(wanted.device)

    @local("device.forwarders")
    async def forwarders() -> JSON:
        return [
            {
                "domain_id": each.domain_id,
                "ip_address": each.ip_address,
                "product": each.device_type,
                "devices": each.devices,
            }
            for each in await service.forwarders(MAX_EXAMINED)
        ]

    return local
