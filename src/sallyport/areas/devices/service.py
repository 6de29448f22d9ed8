"""The service for devices and stations: it reads pages, deletes devices, and writes counts to the store."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import structlog
import trio

from sallyport.areas.devices import repo, station_repo, tag_repo, usage_repo, write_repo
from sallyport.areas.devices.comparison import MAX_DEVICES, Comparison, compare, read_list
from sallyport.areas.devices.rows import MAX_SELECTED, DeviceQuery, DeviceRow, Forwarder, Heard, HistoryRow, StationRow
from sallyport.areas.devices.sightings import Changes, LearnedElsewhere, Refused, Sighting, Sightings, write_counts
from sallyport.areas.devices.tagging import DeviceTags
from sallyport.areas.devices.usage import PortRow, SsidRow, UsageRow, with_uses
from sallyport.base.bounded import BoundedMap, ExpiringMap
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, NotFound, StoreError
from sallyport.base.fair import FairLimiter
from sallyport.base.tags import NO_TAGS, Tags, changed_tags, of_store
from sallyport.base.wire import JSON
from sallyport.metrics import InventoryMetrics
from sallyport.store import audit, counters
from sallyport.store.model import Store, Tx
from sallyport.store.slices import in_slices
from sallyport.store.snapshot import stamp
from sallyport.web.bodies import SHORT

FLUSH_S = 1.0
MAX_HEARD = 100_000  # maximum number of source addresses of a tenant whose times are read
HEARD_US = 60 * SECOND  # the lifetime of these times in memory; reading them takes 0.3 s for 100,000 devices
MAX_TENANTS = 20  # maximum number of tenants whose times are in memory
PORTS = 100
COMPARING = 1
"""Maximum number of comparisons at the same time. All threads share one interpreter lock."""
WARN_AGAIN_US = 3600 * SECOND
MAX_WARNED = 10_000
NOTHING: Final = Changes([], [])

T = TypeVar("T")

log = structlog.get_logger()


class Devices:
    """The devices and stations of all domains."""

    def __init__(
        self, store: Store, sightings: Sightings, metrics: InventoryMetrics, tags: DeviceTags, clock: Clock = now_us
    ) -> None:
        self._store = store
        self.sightings = sightings
        self.tags = tags
        self._metrics = metrics
        self._clock = clock
        self._changing = trio.Lock()
        self._comparing = FairLimiter[int](COMPARING)
        self._writing: Changes = NOTHING
        self._written = trio.Event()
        self._counts: dict[tuple[str, ...], float] = {}
        self._heard = BoundedMap[int, tuple[int, list[Heard]]](MAX_TENANTS)
        self._counted = -1  # the value of `store.changes` at the last count
        self._warned = ExpiringMap[tuple[int, str], bool](MAX_WARNED, WARN_AGAIN_US)
        metrics.watch(lambda: self._counts)

    async def page(self, query: DeviceQuery) -> tuple[list[DeviceRow], int, dict[int, list[UsageRow]]]:
        """Return one page of a domain's devices, the number of all matches, and the logins through these devices (see
        `usage`).

        The returned counts include the counts that are only in memory. A search or a filter compares values in the
        store. Therefore changes in memory are written before a search or a filter.
        """
        if query.is_selective:
            await self._flush_or_log()

        def work(tx: Tx) -> tuple[list[DeviceRow], int, dict[int, list[UsageRow]]]:
            rows, total = repo.page(tx, query, self.tags.select)
            return rows, total, repo.usage(tx, [row.id for row in rows])

        look = self._store.search if query.is_selective or query.limit > SHORT else self._store.read_now
        rows, total, usage = await self._beside_flushes(lambda: look(work), lambda found: found[0])
        self._add_unwritten(rows)
        self._add_unwritten_uses(rows, usage)
        return rows, total, usage

    async def one(self, domain_id: int, device_id: int) -> DeviceRow:
        """Return a domain's device. Raises NotFound."""
        row = await self._beside_flushes(
            lambda: self._store.read_now(lambda tx: repo.find(tx, domain_id, device_id)),
            lambda found: [found] if found else [],
        )
        if row is None:
            raise NotFound("device not found")
        self._add_unwritten([row])
        return row

    async def domain_of(self, device_id: int) -> int:
        """Return the domain of a device. Raises NotFound."""
        domain_id = await self._store.read(lambda tx: repo.domain_of(tx, device_id))
        if domain_id is None:
            raise NotFound("device not found")
        return domain_id

    async def _beside_flushes(self, look: Callable[[], Awaitable[T]], rows_of: Callable[[T], Sequence[DeviceRow]]) -> T:
        """Read rows. Read again if a flush is writing these rows, or if a flush has begun or ended meanwhile."""
        while True:
            writing, written = self._writing, self._written
            found = await look()
            if self._is_writing(rows_of(found)):
                await self._written.wait()
            elif self._writing is writing and self._written is written:
                return found

    def _is_writing(self, rows: Sequence[DeviceRow]) -> bool:
        """Return whether a flush is writing some of these rows at the moment. In this case the rows, as they were read,
        may or may not contain the counts that the flush writes."""
        ids = {device.id for device, _, _ in self._writing.devices}
        return bool(ids) and any(row.id in ids for row in rows)

    def _add_unwritten(self, rows: Sequence[DeviceRow]) -> None:
        for row in rows:
            identity = (row.domain_id, row.ip_address, row.client_ip, row.nas_identifier)
            for device in self.sightings.changed_devices.get(identity, ()):
                row.add(device)

    async def stations(
        self, domain_id: int, device_id: int, search: str, *, offset: int, limit: int, newest: int = 0
    ) -> tuple[list[StationRow], int]:
        """Return one page of stations, and the number of all matches.

        device_id: the id of the device, or 0 for all devices of the domain. newest: see `station_repo.page`.
        """
        await self._flush_or_log()
        is_short = device_id and not search and offset + limit <= SHORT
        read = self._store.read_now if is_short else self._store.search
        return await read(
            lambda tx: station_repo.page(tx, domain_id, device_id, search, offset=offset, limit=limit, newest=newest)
        )

    async def usage(self, rows: Sequence[DeviceRow]) -> dict[int, list[UsageRow]]:
        """Return the logins through devices by SSID, method and transport, the last one first, by the id of the device.
        They include the logins that are only in memory."""
        ids = [row.id for row in rows]
        stored = await self._beside_flushes(
            lambda: self._store.read_now(lambda tx: repo.usage(tx, ids)), lambda _found: rows
        )
        self._add_unwritten_uses(rows, stored)
        return stored

    def _add_unwritten_uses(self, rows: Sequence[DeviceRow], stored: dict[int, list[UsageRow]]) -> None:
        for row in rows:
            identity = (row.domain_id, row.ip_address, row.client_ip, row.nas_identifier)
            for device in self.sightings.changed_devices.get(identity, ()):
                if device.uses:
                    stored[row.id] = with_uses(row.id, stored.get(row.id, ()), device.uses, device.last_seen)

    async def ports(self, domain_id: int, device_id: int) -> list[PortRow]:
        """Return the ports of a device with stations, the last one first, at most PORTS."""
        return await self._store.search(lambda tx: usage_repo.ports(tx, domain_id, device_id, PORTS))

    async def ssids(self, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[SsidRow], int]:
        """Return one page of the SSIDs of a domain, and the number of all matches."""
        await self._flush_or_log()
        return await self._store.search(lambda tx: usage_repo.ssids(tx, domain_id, search, offset=offset, limit=limit))

    async def compare(self, tenant_id: int, domain_id: int, text: str, silent_us: int) -> Comparison:
        """Compare a domain's devices with a list as CSV. silent_us: the time without a request after which a line is
        silent, in microseconds. Raises Invalid, Conflict."""
        await self._flush_or_log()
        since = self._clock() - silent_us
        async with self._comparing.slot(tenant_id):  # a comparison takes up to 1 s
            lines = await trio.to_thread.run_sync(read_list, text)
            found = await self._store.search(lambda tx: repo.compared_devices(tx, domain_id, MAX_DEVICES + 1))
            if len(found) > MAX_DEVICES:
                raise Conflict(f"the domain has over {MAX_DEVICES} devices: it cannot be compared")
            return await trio.to_thread.run_sync(compare, lines, found, since)

    async def history(self, domain_id: int, device_id: int, *, offset: int, limit: int) -> tuple[list[HistoryRow], int]:
        """Return one page of the history, and the number of all entries.

        device_id: the id of the device, or 0 for all devices of the domain.
        """
        read = self._store.read_now if device_id and offset + limit <= SHORT else self._store.search
        return await read(lambda tx: repo.history(tx, domain_id, device_id, offset=offset, limit=limit))

    async def forwarders(self, limit: int) -> list[Forwarder]:
        """Return the source addresses from which devices of all domains send requests, with the products of the
        devices."""
        return await self._store.search(lambda tx: repo.forwarders(tx, limit))

    async def products(self, domain_id: int) -> list[str]:
        """Return the products of a domain's devices. Raises StoreError if the search reaches its time limit."""
        return await self._store.search(lambda tx: repo.products(tx, domain_id))

    async def heard_addresses(self, tenant_id: int) -> list[Heard]:
        """Return when each source address of a tenant's devices has sent requests. The times lag by up to a minute.
        Raises StoreError if the tenant has so many devices that the search reaches its time limit."""
        kept, now = self._heard.get(tenant_id), self._clock()
        if kept is None or not 0 <= now - kept[0] < HEARD_US:
            kept = now, await self._store.search(lambda tx: repo.heard_addresses(tx, tenant_id, MAX_HEARD))
            self._heard.put(tenant_id, kept)
        return kept[1]

    async def delete(
        self, domain_id: int, *, device_ids: list[int], addresses: tuple[str, str] | None, actor: str
    ) -> int:
        """Remove devices, and return their number. The next request of a removed device registers it again.

        If one of the devices does not exist, no device is removed and NotFound is raised. Raises Conflict if too many
        devices have the addresses.

        An interrupted call removes no device, but some devices may have lost their stations; see `in_slices`.
        """
        find = partial(_selected, domain_id=domain_id, device_ids=device_ids, addresses=addresses)

        def end(tx: Tx, rows: list[DeviceRow]) -> tuple[set[int], bool]:
            at = self._clock()
            for row in rows:
                write_repo.delete(tx, row, actor, at)
                identity = {
                    "ip_address": row.ip_address,
                    "client_ip": row.client_ip,
                    "nas_identifier": row.nas_identifier,
                }
                audit.record_in(
                    tx, "device.delete", domain_id, _target(row), at=at, changes=audit.changed(identity, {})
                )
            had_tags = any(row.own_tags or row.note for row in rows)
            if had_tags:
                stamp(tx)
            return {row.id for row in rows}, had_tags

        stations = (station_repo.delete,)
        await in_slices(self._store, find, stations, lambda _tx, _rows: None)  # flushes may run meanwhile
        async with self._changing:  # otherwise a flush between `in_slices` and `forget` would register the device again
            deleted, had_tags = await in_slices(self._store, find, stations, end)
            self.sightings.forget(domain_id, deleted)
        if had_tags:
            await self.tags.read_again()
        self._metrics.deleted.cell(str(domain_id)).count += len(deleted)
        return len(deleted)

    async def reset(self, domain_id: int, *, device_ids: list[int], addresses: tuple[str, str] | None) -> int:
        """Forget the learned values of devices, and return the number of devices. Raises the errors of `delete`."""

        def transaction(tx: Tx) -> tuple[set[int], int]:
            at = self._clock()
            rows = _selected(tx, domain_id=domain_id, device_ids=device_ids, addresses=addresses)
            for row in rows:
                write_repo.reset(tx, row, at)
                fresh: dict[str, JSON] = {"retransmit_ms": None, "give_up_ms": None, "challenge_support": "unknown"}
                known: dict[str, JSON] = {
                    "retransmit_ms": row.retransmit_ms,
                    "give_up_ms": row.give_up_ms,
                    "challenge_support": row.challenge_support(at),
                }
                changes = audit.changed(known, fresh)
                audit.record_in(tx, "device.reset", domain_id, _target(row), at=at, changes=changes)
            return {row.id for row in rows}, at

        await self._flush_or_log()  # the audit trail gets the values of now
        async with self._changing:  # a flush in between would write the old values again
            reset, at = await self._store.write(transaction)
            self.sightings.reset(domain_id, reset, at)
        return len(reset)

    async def update(
        self,
        domain_id: int,
        *,
        device_ids: list[int],
        addresses: tuple[str, str] | None,
        tags: Sequence[str] | None,
        note: str | None,
    ) -> int:
        """Change the own tags and the notes of devices, and return the number of devices. Raises the errors of
        `delete`, and Invalid.

        tags: the tags to change; see `changed_tags`. If it is empty, all own tags are removed. None keeps them. note:
        None keeps it.
        """

        def transaction(tx: Tx) -> int:
            rows = _selected(tx, domain_id=domain_id, device_ids=device_ids, addresses=addresses)
            changed, at = list[tuple[DeviceRow, Tags, str]](), self._clock()
            for row in rows:
                before = of_store(row.own_tags)
                after = before if tags is None else changed_tags(before, tags) if tags else NO_TAGS
                new: dict[str, JSON] = {"tags": list(after), "note": row.note if note is None else note}
                if changes := audit.changed({"tags": list(before), "note": row.note}, new):
                    changed.append((row, after, str(new["note"])))
                    audit.record_in(tx, "device.update", domain_id, _target(row), at=at, changes=changes)
            self.tags.check_room(domain_id, changed)
            tag_repo.write(tx, changed)
            return len(rows)

        return await self.tags.change(transaction)

    async def flush(self) -> None:
        """Write the counts since the last flush. A device that another node deleted is registered again. Raises
        StoreError."""
        async with self._changing:
            for changes in self.sightings.take_changes():
                self._writing, self._written = changes, trio.Event()
                try:
                    self.count_written(await self._store.write(partial(write_counts, changes=changes)))
                except BaseException:
                    self.sightings.put_back(changes)
                    raise
                finally:
                    self._writing = NOTHING
                    self._written.set()

    def count_written(self, sightings: list[Sighting]) -> None:
        """Count and log the devices that were registered, and also the devices and stations that got no row. Take over
        what other nodes have learned."""
        for each in sightings:
            if isinstance(each, Refused):
                self._refuse(each)
                continue
            if isinstance(each, LearnedElsewhere):
                each.device.posture.take_newer(each.row)
                continue
            counter = self._metrics.reregistered if each.again else self._metrics.registered
            counter.cell(str(each.device.domain_id)).count += 1
            log.info(
                "device_registered",
                device=each.device.device_name,
                ip_address=each.device.ip_address,
                client_ip=each.device.client_ip,
                product=each.device.device_type,
                again=each.again,
            )

    def _refuse(self, refused: Refused) -> None:
        """Count a device or station that got no row. Log that the tenant has reached its limit, at most once an
        hour."""
        self._metrics.refused.cell(refused.limit).count += 1
        if refused.device.id is None:
            self.sightings.set_aside(refused.device, refused.station)
        key, now = (refused.device.tenant_id, refused.limit), self._clock()
        if self._warned.get(key, now=now) is None:
            self._warned.put(key, True, now=now)
            log.warning("inventory_limit_reached", tenant=key[0], setting=f"limits.{refused.limit}")

    async def run(self) -> None:
        """Write the counts once a second until cancelled, and then once more."""
        try:
            while True:
                await trio.sleep(FLUSH_S)
                await self._flush_or_log()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
                await self._flush_or_log()

    async def _flush_or_log(self) -> None:
        try:
            await self.flush()
            changes = self._store.changes
            if changes != self._counted:
                totals = await self._store.read(lambda tx: counters.totals(tx, repo.COUNTER))
                self._counts = {(str(domain_id),): float(total) for domain_id, total in totals.items()}
                self._counted = changes
        except StoreError as error:
            log.warning("device_counts_not_written", error=str(error))


def _selected(tx: Tx, *, domain_id: int, device_ids: list[int], addresses: tuple[str, str] | None) -> list[DeviceRow]:
    """Return devices of a domain, by id or by their addresses. Raises NotFound, Conflict."""
    rows = repo.by_ids(tx, domain_id, device_ids)
    if len(rows) < len(set(device_ids)):
        raise NotFound("device not found")
    if addresses is not None:
        known = {row.id for row in rows}
        rows += [row for row in repo.by_addresses(tx, domain_id, *addresses) if row.id not in known]
    if not rows:
        raise NotFound("device not found")
    if len(rows) > MAX_SELECTED:
        raise Conflict(f"over {MAX_SELECTED} devices have these addresses: select them by deviceId")
    return rows


def _target(row: DeviceRow) -> str:
    """Return the description of a device in the audit trail."""
    return f"device {row.id} {row.device_name}"
