"""HTTP operations of MAC authentication bypass: /ad/...BypassStation(s)."""

import trio

from sallyport.areas.policy.bypass.bodies import (
    AddBypassStation,
    DeleteBypassStation,
    ImportBypassStations,
    ListBypassStations,
    ListUnknownStations,
    NewKey,
    StationList,
    StationsAdded,
    UnknownList,
)
from sallyport.areas.policy.bypass.psk import new_psks
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.policy.bypass.vendors import Vendors
from sallyport.base.answer import answers
from sallyport.base.clock import Clock
from sallyport.base.mac import mac_text
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: Bypass, vendors: Vendors, gate: Gate, clock: Clock) -> Operations:
    """Declare the operations. Only an admin may change the list, because it decides about access."""
    bypass = Operations("Login rules", gate)

    @bypass.post("/ad/ListBypassStations", roles=READERS)
    async def list_bypass_stations(body: ListBypassStations, caller: Caller) -> Plain[StationList]:
        """List the stations of a domain that are admitted by their MAC address."""
        page = body.page()
        rows, total = await service.page(body.domainId, body.search, offset=page.offset, limit=page.size)
        await trio.to_thread.run_sync(vendors.load)
        return Plain({"stations": answers(rows, now=clock(), vendors=vendors), "totalCount": total})

    @bypass.post("/ad/ListUnknownStations", roles=READERS)
    async def list_unknown_stations(body: ListUnknownStations, caller: Caller) -> Plain[UnknownList]:
        """List the stations that have asked for admission by their MAC address and are not on the list of the domain.
        The station that was seen last comes first. Requests of the last seconds may be missing."""
        page = body.page()
        rows, total = await service.unknown.page(body.domainId, body.search, offset=page.offset, limit=page.size)
        await trio.to_thread.run_sync(vendors.load)
        return Plain({"stations": answers(rows, vendors=vendors), "totalCount": total})

    @bypass.post("/ad/AddBypassStation", roles=ADMINS)
    async def add_bypass_station(body: AddBypassStation, caller: Caller) -> StationsAdded:
        """Add stations to the list of a domain. From the next request on, they are admitted by their MAC address.

        A station that is already listed keeps each value that the request does not have.
        """
        new = dict[str, bytes]()
        if body.generatePsk:
            stations = dict.fromkeys(body.station)
            new = dict(zip(stations, await trio.to_thread.run_sync(new_psks, len(stations)), strict=True))
        added = await service.put(body.domainId, [body.change_of(each, new.get(each)) for each in body.station])
        keys = [NewKey(station=mac_text(station), psk=key.decode()) for station, key in new.items()]
        return StationsAdded(message=f"{counted(added, 'station')} added", keys=keys)

    @bypass.post("/ad/ImportBypassStations", roles=ADMINS)
    async def import_bypass_stations(body: ImportBypassStations, caller: Caller) -> Done:
        """Add stations to the list of a domain, or change those that are listed, each with values of its own. If one of
        them is not valid, none is added."""
        added = await service.put(body.domainId, [each.change_of(each.station) for each in body.stations])
        return Done(message=f"{counted(added, 'station')} imported")

    @bypass.post("/ad/DeleteBypassStation", roles=ADMINS)
    async def delete_bypass_station(body: DeleteBypassStation, caller: Caller) -> Done:
        """Remove stations from the list. If one of them is not listed, none is removed.

        If the domain's setting disconnectOnRevoke is true, the sessions of the stations end.
        """
        removed = await service.delete(body.domainId, body.station)
        return Done(message=f"{counted(removed, 'station')} deleted")

    return bypass
