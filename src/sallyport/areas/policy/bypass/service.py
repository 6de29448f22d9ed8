"""The lists of stations that are admitted by their MAC address."""

from collections.abc import Sequence

from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.policy.bypass import repo
from sallyport.areas.policy.bypass.match import requested_station, requested_station_by_eap
from sallyport.areas.policy.bypass.repo import Listed, StationRow
from sallyport.areas.users.service import NoRevocations, Revocations
from sallyport.base.clock import Clock, now_us
from sallyport.base.mac import mac_text, spellings, station_key
from sallyport.base.text import counted
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration


class Bypass:
    """The bypass lists of all domains, in memory. A change is in effect when the call that makes it returns.

    revocations: the service that ends the sessions of removed stations. some: whether any station is listed. If no
    station is listed, the login path skips the checks of this class.
    """

    def __init__(
        self, configuration: Configuration, clock: Clock = now_us, *, revocations: Revocations | None = None
    ) -> None:
        self._configuration = configuration
        self._clock = clock
        self._revocations = revocations or NoRevocations()
        self.some = False
        self._listed = configuration.hold(self._load, Listed(), self._adopt)

    def _load(self, tx: Tx) -> Listed:
        return repo.load(tx, Listed() if self._configuration.is_outdated else self._listed.value)

    def _adopt(self, listed: Listed) -> None:
        self.some = bool(listed.lists)

    def admits(self, arrival: Arrival, method: str, domain_id: int) -> bool:
        """Return whether a login is a bypass request for a listed station. Raises PacketError if the password field is
        malformed."""
        stations = self._listed.value.lists.get(domain_id)
        return stations is not None and requested_station(arrival, method) in stations

    def admits_by_eap(self, arrival: Arrival, method: str, domain_id: int) -> str:
        """Return the station of a bypass request by EAP as 12 hex digits. Return an empty text if the station is not
        listed."""
        stations = self._listed.value.lists.get(domain_id)
        station = requested_station_by_eap(arrival, method) if stations else ""
        return station if stations and station in stations else ""

    def has(self, domain_id: int, station: str) -> bool:
        """Return whether a domain's list has a station."""
        return station in self._listed.value.lists.get(domain_id, ())

    async def add(self, domain_id: int, stations: Sequence[str], name: str = "") -> int:
        """Add stations to a domain's list, and return their number. Raises Conflict if the domain would have too many
        stations.

        stations: each station as 12 hex digits. name: the new name of all these stations. If it is empty, stations that
        are already listed keep their names.
        """
        wanted, at = list(dict.fromkeys(stations)), self._clock()

        def transaction(tx: Tx) -> int:
            repo.add(tx, domain_id, wanted, name, at)
            self._record(tx, "bypass.add", domain_id, wanted, name, at)
            return len(wanted)

        return await self._configuration.change(transaction)

    async def delete(self, domain_id: int, stations: Sequence[str]) -> int:
        """Remove stations from a domain's list, and return their number. Raises NotFound if one of them is not listed;
        then none is removed."""
        wanted, at = list(dict.fromkeys(stations)), self._clock()

        def transaction(tx: Tx) -> int:
            repo.delete(tx, domain_id, wanted)
            self._record(tx, "bypass.delete", domain_id, wanted, "", at)
            names = [name for station in wanted for name in spellings(station)]
            self._revocations.revoke(tx, domain_id, names, "the station is no longer admitted by its address")
            return len(wanted)

        return await self._configuration.change(transaction)

    async def page(self, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[StationRow], int]:
        """Return one page of a domain's list, and the number of all matches."""
        text, key = search.strip(), station_key(search).translate(_MARKS)
        return await self._configuration.store.search(
            lambda tx: repo.page(tx, domain_id, text, key, offset=offset, limit=limit)
        )

    def _record(self, tx: Tx, action: str, domain_id: int, stations: Sequence[str], name: str, at: int) -> None:
        changed: JSON = [mac_text(station) for station in stations]
        changes: dict[str, JSON] = {"stations": [None, changed], **({"name": [None, name]} if name else {})}
        audit.record_in(tx, action, domain_id, counted(len(stations), "station"), changes, at=at)


_MARKS = str.maketrans("", "", ":-. ")
