"""Devices as the login path uses them: requests are recorded, and written with the next transaction."""

from dataclasses import dataclass

import pytest

from sallyport.areas.clients.client import Client
from sallyport.areas.devices.device import Device, Station
from sallyport.areas.devices.rows import DeviceQuery, DeviceRow
from sallyport.areas.devices.sightings import Registered, Sighting, write_first_sightings
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.packets import access_request, attributes, opened


@dataclass
class Seen:
    """Records requests as the listeners do, and writes new devices as the journal does."""

    areas: Areas
    client: Client

    def note(self, source: str = "192.0.2.1", client: Client | None = None, domain: int = 0, **values: bytes) -> Device:
        """Record a request from `source` with these attributes."""
        request = opened(access_request(attributes(**values)))
        areas = self.areas
        domain = domain or areas.domain
        return areas.devices.sightings.device(request, source, client or self.client, domain, areas.clock())

    def station(self, device: Device, name: str, user: str = "ann") -> Station:
        """Return the station behind a device."""
        return self.areas.devices.sightings.station(device, name, user, self.areas.clock())

    async def write(self, *devices: Device, station: Station | None = None) -> list[Registered]:
        """Write the missing rows and count them in the inventory. Return the registrations."""

        def work(tx: Tx) -> list[Sighting]:
            return [each for device in devices for each in write_first_sightings(tx, [(device, station)])]

        sightings = await self.areas.store.write(work)
        self.areas.devices.count_written(sightings)
        return [each for each in sightings if isinstance(each, Registered)]

    async def device(self, name: str, source: str = "192.0.2.1", **values: bytes) -> Device:
        """Return a device with that NAS-Identifier, with its row."""
        device = self.note(source, NAS_IDENTIFIER=name.encode(), **values)
        await self.write(device)
        return device

    async def rows(self, search: str = "", column: str = "", value: str = "", domain: int = 0) -> list[DeviceRow]:
        """Return the matching devices of the domain, at most 1000."""
        query = DeviceQuery(domain or self.areas.domain, search=search, column=column, value=value, limit=1000)
        found, total, _ = await self.areas.devices.page(query)
        assert total == len(found)
        return found

    async def names(self, search: str = "", column: str = "", value: str = "") -> list[str]:
        """Return the names of the matching devices."""
        return [row.device_name for row in await self.rows(search, column, value)]


@pytest.fixture
async def seen(areas: Areas) -> Seen:
    """Recorded requests of the RADIUS client 192.0.2.0/24."""
    return Seen(areas, await areas.client("192.0.2.0/24"))
