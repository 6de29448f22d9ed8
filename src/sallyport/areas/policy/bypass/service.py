"""The lists of stations that are admitted by their MAC address."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

import trio

from sallyport.areas.domains.domain import RULES, WEB, Domain
from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.policy.bypass import repo, unknown_repo
from sallyport.areas.policy.bypass.match import requested_station, requested_station_by_eap
from sallyport.areas.policy.bypass.psk import KeyAttributes, derived_pairwise_key, key_attributes, own_pairwise_key
from sallyport.areas.policy.bypass.repo import Listed
from sallyport.areas.policy.bypass.station import Entry, StationChange, StationRow
from sallyport.areas.policy.bypass.unknown_service import UnknownStations
from sallyport.areas.users.service import Revocations
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock, iso
from sallyport.base.fair import FairLimiter
from sallyport.base.mac import mac_key, mac_text, spellings, station_key
from sallyport.base.tags import changed_tags
from sallyport.base.text import counted, fold
from sallyport.base.wire import JSON
from sallyport.nodes.periodic import every
from sallyport.radius.salted import Hiding
from sallyport.radius.vendors import UNKNOWN, medium
from sallyport.radius.vendors.ssid import ssid
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault

IDENTITY: Final = "bypass_stations/{}/{}/psk"
"""The identity of a sealed pre-shared key, by domain and station."""
NO_KEY: Final = KeyAttributes(b"")
RUCKUS: Final = "Ruckus"
MAX_DERIVED: Final = 1024
"""Maximum number of pairwise keys in memory."""
DERIVING: Final = 1
"""Maximum number of pairwise keys that are derived at the same time."""
_WIRELESS: Final = frozenset({"Wireless", UNKNOWN})
SEEN_S: Final = 30.0
EXPIRY_S: Final = 30.0
EXPIRED_AT_ONCE: Final = 200
WRITTEN_AT_ONCE: Final = 1000


class Bypass:
    """The bypass lists of all domains, in memory. A change is in effect when the call that makes it returns.

    revocations: the service that ends the sessions of stations that are no longer admitted. vlan_attributes: returns
    the encoded attributes for a VLAN; raises Invalid if the VLAN is not valid. check_role: returns the name of a
    domain's role as it is stored, or raises Invalid. vault: seals the pre-shared keys. lists_stations:
    whether any station is listed. If no station is listed, the login path skips the checks of this class.
    """

    def __init__(
        self,
        configuration: Configuration,
        clock: Clock,
        *,
        revocations: Revocations,
        vlan_attributes: Callable[[str], bytes],
        check_role: Callable[[Tx, int, str], str],
        vault: Vault,
    ) -> None:
        self._configuration = configuration
        self._clock = clock
        self._revocations = revocations
        self._check_vlan = vlan_attributes
        self.vlan_attributes = lru_cache(4096)(vlan_attributes)
        self._check_role = check_role
        self._vault = vault
        self._derived = BoundedMap[tuple[bytes, str], bytes](MAX_DERIVED)
        self._deriving = FairLimiter[int](DERIVING)
        self.lists_stations = False
        self.unknown = UnknownStations(configuration.store)
        self._seen: dict[int, set[str]] = {}
        self._listed = configuration.hold(self._load, Listed(), self._adopt)

    def _load(self, tx: Tx) -> Listed:
        return repo.load(tx, Listed() if self._configuration.is_outdated else self._listed.value)

    def _adopt(self, listed: Listed) -> None:
        self.lists_stations = bool(listed.lists)

    # --- logins -----------------------------------------------------------------------------------------------

    def requested(self, arrival: Arrival, method: str, domain: Domain) -> str:
        """Return the station of a bypass request as 12 hex digits. Return an empty text if the login is no bypass
        request, or if the station is not listed and the domain does not let rules decide. Also return it if the
        domain's first factor is `web`, because no identity provider can confirm a station. Raises PacketError if the
        password field is malformed."""
        return self._decided_here(requested_station, arrival, method, domain)

    def requested_by_eap(self, arrival: Arrival, method: str, domain: Domain) -> str:
        """Return the station of a bypass request by EAP as `requested` does."""
        return self._decided_here(requested_station_by_eap, arrival, method, domain)

    def _decided_here(
        self, find_station: Callable[[Arrival, str], str], arrival: Arrival, method: str, domain: Domain
    ) -> str:
        by_rules = domain.unknown_stations is RULES
        if domain.first_factor is WEB or (not by_rules and domain.id not in self._listed.value.lists):
            return ""
        station = find_station(arrival, method)
        is_decided = station and (by_rules or self.entry(domain.id, station, arrival.at) is not None)
        return station if is_decided else ""

    def entry(self, domain_id: int, station: str, at: int) -> Entry | None:
        """Return the entry of a station. Return None if the domain does not list the station, or if the entry has
        ended. at: the time in microseconds."""
        entries = self._listed.value.lists.get(domain_id)
        entry = None if entries is None else entries.get(station)
        return None if entry is None or 0 < entry.until <= at else entry

    def has(self, domain_id: int, station: str) -> bool:
        """Return whether a domain's list has a station whose entry has not ended."""
        return self.entry(domain_id, station, self._clock()) is not None

    def is_unknown(self, domain: Domain, user: str, station: str, at: int) -> bool:
        """Return whether a session is that of an unknown station, about which login rules have decided. user: the
        User-Name. station: the Calling-Station-Id. at: the time in microseconds."""
        if domain.unknown_stations is not RULES:
            return False
        key = mac_key(station)
        return bool(key) and mac_key(user) == key and self.entry(domain.id, key, at) is None

    def see(self, domain_id: int, station: str) -> None:
        """Note that a listed station was seen. The time is stored within a minute."""
        self._seen.setdefault(domain_id, set()).add(station)

    def key_attributes(
        self, arrival: Arrival, domain_id: int, station: str, psk: bytes, product: str
    ) -> KeyAttributes | None:
        """Return the attributes that give a station's pre-shared key to a NAS. Return None if the caller must await
        `derived_attributes`. The result is empty if the request is not about a wireless network. Raises SecretError.

        psk: the sealed key. product: the product of the NAS.
        """
        if medium(arrival.request) not in _WIRELESS:
            return NO_KEY
        key, pmk = self._vault.open(psk, IDENTITY.format(domain_id, station)), b""
        if product == RUCKUS:
            name = ssid(arrival.request)
            if not name:
                return NO_KEY
            pmk = own_pairwise_key(key) or self._derived.get((psk, name)) or b""
            if not pmk:
                return None
        return key_attributes(key, product, Hiding(arrival.client.secret, arrival.request.authenticator), pmk)

    async def derived_attributes(
        self, arrival: Arrival, domain_id: int, station: str, psk: bytes, product: str
    ) -> KeyAttributes:
        """Return `key_attributes` after the key for the SSID is derived in a thread. Tenants take turns. Raises
        SecretError."""
        key, name = self._vault.open(psk, IDENTITY.format(domain_id, station)), ssid(arrival.request)
        tenant_id = arrival.client.tenant_id
        async with self._deriving.slot(tenant_id):
            pmk = self._derived.get((psk, name)) or b""
            pmk = pmk or await trio.to_thread.run_sync(derived_pairwise_key, key, name)
        self._derived.put((psk, name), pmk, tenant_id)
        return key_attributes(key, product, Hiding(arrival.client.secret, arrival.request.authenticator), pmk)

    def _sealed(self, domain_id: int, change: StationChange) -> StationChange:
        """Return a change with its pre-shared key sealed. Raises SecretError."""
        if not change.psk:
            return change
        return replace(change, psk=self._vault.seal(change.psk, IDENTITY.format(domain_id, change.station)))

    # --- changes ----------------------------------------------------------------------------------------------

    async def add(self, domain_id: int, stations: Sequence[str], name: str = "") -> int:
        """Add stations to a domain's list, and return their number. name: the new name of all these stations. If it is
        empty, stations that are already listed keep their names. Raises Conflict as `put` does."""
        return await self.put(domain_id, [StationChange(station, name) for station in stations])

    async def put(self, domain_id: int, changes: Sequence[StationChange]) -> int:
        """Add stations to a domain's list, and change the entries of those that are listed. Return their number. Of two
        changes of one station, the last counts. Raises Invalid, Conflict if the domain would have too many stations."""
        wanted, at = list({each.station: each for each in changes}.values()), self._clock()
        for vlan in {each.vlan for each in wanted if each.vlan}:
            self._check_vlan(vlan)
        sealed = await trio.to_thread.run_sync(lambda: [self._sealed(domain_id, each) for each in wanted])

        def transaction(tx: Tx) -> int:
            named = {fold(each.role): each.role for each in wanted if each.role}  # each look-up parses a whole role
            roles = {key: self._check_role(tx, domain_id, role) for key, role in named.items()}
            tagged = [each.station for each in wanted if each.tags is not None]
            tags = repo.tags_of(tx, domain_id, tagged) if tagged else {}
            rows = [
                replace(
                    each,
                    role=each.role and roles[fold(each.role)],
                    tags=each.tags and changed_tags(tags.get(each.station, ()), each.tags),
                )
                for each in sealed
            ]
            self._put(tx, domain_id, rows, at, wanted)
            return len(wanted)

        return await self._configuration.change(transaction)

    def _put(
        self, tx: Tx, domain_id: int, rows: Sequence[StationChange], at: int, shown: Sequence[StationChange]
    ) -> None:
        """Write rows, which are complete. shown: the changes for the audit trail."""
        stations = [each.station for each in rows]
        repo.put(tx, domain_id, rows, at)
        unknown_repo.delete(tx, domain_id, stations)
        self._record(tx, "bypass.add", domain_id, stations, at, _changed(shown))

    # --- in the transaction of a caller -----------------------------------------------------------------------

    def read(self, tx: Tx, domain_id: int) -> list[StationChange]:
        """Return the entries of a domain, with their keys in clear. Raises SecretError."""
        return [
            replace(each, psk=each.psk and self._vault.open(each.psk, IDENTITY.format(domain_id, each.station)))
            for each in repo.entries(tx, domain_id)
        ]

    def write(
        self, tx: Tx, domain_id: int, changes: Sequence[StationChange], nameless: Sequence[str], removed: Sequence[str]
    ) -> None:
        """Remove stations, and add or change others. changes: their tags are complete. nameless: the stations that lose
        their names. Raises NotFound, Conflict, Invalid."""
        at = self._clock()
        if removed:
            self._remove(tx, domain_id, removed, at)
        named = {fold(each.role): each.role for each in changes if each.role}
        roles = {key: self._check_role(tx, domain_id, role) for key, role in named.items()}
        rows = [replace(self._sealed(domain_id, each), role=each.role and roles[fold(each.role)]) for each in changes]
        if rows:
            self._put(tx, domain_id, rows, at, changes)
        if nameless:
            repo.clear_names(tx, domain_id, nameless)

    def check_vlan(self, vlan: str) -> None:
        """Raise Invalid if a VLAN is not valid."""
        self._check_vlan(vlan)

    def _remove(self, tx: Tx, domain_id: int, stations: Sequence[str], at: int) -> None:
        repo.delete(tx, domain_id, stations)
        self._record(tx, "bypass.delete", domain_id, stations, at, {})
        self._revoke(tx, domain_id, stations)

    async def delete(self, domain_id: int, stations: Sequence[str]) -> int:
        """Remove stations from a domain's list, and return their number. Raises NotFound if one of them is not listed;
        then none is removed."""
        wanted, at = list(dict.fromkeys(stations)), self._clock()

        def transaction(tx: Tx) -> int:
            self._remove(tx, domain_id, wanted, at)
            return len(wanted)

        return await self._configuration.change(transaction)

    async def page(self, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[StationRow], int]:
        """Return one page of a domain's list, and the number of all matches."""
        text, key = search.strip(), station_key(search).translate(_MARKS)
        return await self._configuration.store.search(
            lambda tx: repo.page(tx, domain_id, text, key, offset=offset, limit=limit)
        )

    def _record(
        self, tx: Tx, action: str, domain_id: int, stations: Sequence[str], at: int, fields: Mapping[str, JSON]
    ) -> None:
        changed: JSON = [mac_text(station) for station in stations]
        changes: dict[str, JSON] = {"stations": [None, changed], **fields}
        audit.record_in(tx, action, domain_id, counted(len(stations), "station"), changes, at=at)

    def _revoke(self, tx: Tx, domain_id: int, stations: Sequence[str]) -> None:
        names = [name for station in stations for name in spellings(station)]
        self._revocations.revoke(tx, domain_id, names, "the station is no longer admitted by its address")

    # --- periodic work ----------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Store when stations were seen. Raises StoreError."""
        seen, self._seen, at = self._seen, {}, self._clock()
        for domain_id, stations in seen.items():
            every_one = sorted(stations)
            for start in range(0, len(every_one), WRITTEN_AT_ONCE):
                part = {domain_id: every_one[start : start + WRITTEN_AT_ONCE]}
                await self._configuration.store.write(partial(repo.see, seen=part, at=at))

    async def run(self) -> None:
        """Store twice a minute when stations were seen, until cancelled."""
        await every(SEEN_S, self.flush, failure="bypass_stations_not_written")

    async def watch(self, store: Store) -> None:
        """Record twice a minute which entries have ended, until cancelled."""
        await every(EXPIRY_S, partial(self.expire, store), failure="bypass_expiry_not_recorded")

    async def expire(self, store: Store) -> None:
        """Record the entries that have ended, each in the audit trail, and end the sessions of their stations as if
        they were removed. store: the store of the node with the lease. Raises StoreError."""
        at = self._clock()

        def transaction(tx: Tx) -> int:
            found = repo.expire(tx, at, EXPIRED_AT_ONCE)
            for each in found:
                named: dict[str, JSON] = {"name": [each.name, each.name]} if each.name else {}
                self._record(tx, "bypass.expire", each.domain_id, [each.station], at, named)
                self._revoke(tx, each.domain_id, [each.station])
            return len(found)

        while await store.write(transaction) == EXPIRED_AT_ONCE:
            pass


def _changed(changes: Sequence[StationChange]) -> dict[str, JSON]:
    """Return the fields that a change sets, for the audit trail. A field with different values for the stations has the
    text `several values`."""
    fields: dict[str, JSON] = {}
    for name, values in (
        ("name", {each.name for each in changes} - {""}),
        ("vlan", {each.vlan for each in changes} - {None}),
        ("role", {each.role for each in changes} - {None}),
        ("tags", {", ".join(each.tags) for each in changes if each.tags is not None}),
        ("psk", {audit.HIDDEN if each.psk else "" for each in changes if each.psk is not None}),
        ("until", {iso(each.until) if each.until else "" for each in changes if each.until is not None}),
    ):
        if values:
            fields[name] = [None, values.pop() if len(values) == 1 else "several values"]
    return fields


_MARKS = str.maketrans("", "", ":-. ")
