"""The unknown stations of all domains: their sightings in memory, and their list."""

from functools import partial
from typing import Final

from sallyport.areas.devices.device import Device
from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.policy.bypass import unknown_repo as repo
from sallyport.areas.policy.bypass.unknown import Sighting, UnknownRow, domain_of, port_of
from sallyport.base.bounded import BoundedMap
from sallyport.nodes.periodic import every
from sallyport.radius.vendors.ssid import ssid
from sallyport.store.model import Store

WAITING: Final = 2_048
AT_ONCE: Final = 256
FLUSH_S: Final = 5.0


class UnknownStations:
    """The unknown stations of all domains."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting = BoundedMap[tuple[int, str], Sighting](WAITING)

    def note(self, arrival: Arrival, device: Device, domain_id: int, station: str, outcome: str) -> None:
        """Count a request of an unknown station. The sender must be proven. station: the address as 12 hex digits."""
        key, request = (domain_id, station), arrival.request
        known = self._waiting.get(key)
        if known is None:
            known = Sighting(domain_id, station, arrival.at, device, "", "", outcome)
            self._waiting.put(key, known, arrival.client.tenant_id)
        known.device, known.ssid, known.port, known.outcome = device, ssid(request), port_of(request), outcome
        known.requests += 1
        known.last_seen = arrival.at

    async def flush(self) -> None:
        """Store the sightings since the last flush. Raises StoreError."""
        waiting = sorted(self._waiting.values(), key=domain_of)
        self._waiting.clear()
        for at in range(0, len(waiting), AT_ONCE):
            await self._store.write(partial(repo.write, sightings=waiting[at : at + AT_ONCE]))

    async def run(self) -> None:
        """Store the sightings every few seconds, until cancelled."""
        await every(FLUSH_S, self.flush, failure="unknown_stations_not_written")

    def forget(self) -> None:
        """Drop the sightings in memory."""
        self._waiting.clear()

    async def page(self, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[UnknownRow], int]:
        """Return one page of a domain's unknown stations, the last seen first, and the number of all matches."""
        return await self._store.search(lambda tx: repo.page(tx, domain_id, search, offset=offset, limit=limit))
