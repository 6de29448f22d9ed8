"""SQL for devices, their posture, stations and history.

The `..._key` columns hold case-folded text for comparisons. Addresses are stored in canonical form. The name of a
device is its NAS-Identifier, or its product if it has no NAS-Identifier. Therefore a search for a name compares both
columns.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sallyport.areas.clients.client import CHECK
from sallyport.areas.devices.device import (
    UNKNOWN,
    Device,
    DeviceQuery,
    DeviceRow,
    Forwarder,
    Heard,
    HistoryRow,
    Learned,
    Posture,
    TagSelection,
)
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.counters import whole_page
from sallyport.store.model import LISTED, ListQuery, Tx, Value, columns_of, listed
from sallyport.store.schema.limits import exceeds
from sallyport.store.search import MOST_COUNTED, IndexEntry, SearchIndex
from sallyport.store.search import page as page_of

COUNTER = "devices"
_SEARCH = SearchIndex("devices_search")
_TOO_MANY = exceeds("devices", ":d")
_IDENTITY = "domain_id = :d and ip_address = :ip and client_ip = :client and nas_identifier = :nas"
_COUNTS = ("signed", "unsigned", "unsigned_proxied", "challenges", "challenge_answers")
_TIMES = ("retransmit_ms", "give_up_ms", "measured_at", "gave_up_at")
_CHALLENGES = ("unanswered", "answered_at", "challenged_at")
_NUMBERS = {*_COUNTS, "measured_at", "gave_up_at", *_CHALLENGES}
_TEXTS = {"own_tags", "note"}
_COLUMNS = ", ".join(
    f"coalesce({name}, 0) as {name}"
    if name in _NUMBERS
    else f"coalesce({name}, '') as {name}"
    if name in _TEXTS
    else name
    for name in columns_of(DeviceRow)
)
_MARKS = "(select tagged_id, own_tags, note from device_tags) as marks"
_SELECT = (
    f"select {_COLUMNS} from devices left join device_posture on device_id = id left join {_MARKS} on tagged_id = id"
)
_POSTURE = (*_COUNTS, "last_unsigned", *_TIMES, *_CHALLENGES)


def _newer(name: str, stamp: str) -> str:
    """Return SQL that takes the new value of a column, unless the row has a newer one. stamp: the column with the time
    of the value."""
    is_new = f"excluded.{stamp} >= device_posture.{stamp}"
    return f"{name} = case when {is_new} then excluded.{name} else device_posture.{name} end"


_ADD_POSTURE = "on conflict (device_id) do update set " + ", ".join(
    [f"{name} = device_posture.{name} + excluded.{name}" for name in _COUNTS]
    + ["last_unsigned = coalesce(excluded.last_unsigned, device_posture.last_unsigned)"]
    + [_newer(name, "measured_at") for name in _TIMES]
    + [_newer(name, "challenged_at") for name in _CHALLENGES]
)
_COMPARED = {
    "device_name": ("nas_identifier_key", "device_type_key"),
    "device_type": ("device_type_key",),
    "ip_address": ("ip_address",),
    "client_ip": ("client_ip",),
    "nas_port_type": ("nas_port_type_key",),
    "nas_identifier": ("nas_identifier_key",),
}


def _identity(device: Device | DeviceRow) -> dict[str, Value]:
    return {"d": device.domain_id, "ip": device.ip_address, "client": device.client_ip, "nas": device.nas_identifier}


@dataclass(frozen=True, slots=True)
class Inserted:
    """An inserted row of a device."""

    id: int
    registrations: int


def register(tx: Tx, device: Device) -> bool:
    """Insert the row of a device. Return False if no row was inserted; see `register_all`."""
    return bool(register_all(tx, [device]))


def register_all(tx: Tx, devices: Sequence[Device]) -> list[tuple[Device, int]]:
    """Insert the rows of devices. Return each inserted device together with the number of its registrations.

    If a row was inserted or exists already, `device.id` is set. If the tenant has reached its limit, `device.id` stays
    None. A device that was deleted gets a new row, whose `registrations` is increased by one.

    The rows are inserted in the order of their identities. All nodes use this order. Therefore two nodes that register
    the same devices cannot deadlock.
    """
    inserted: list[tuple[Device, int]] = []
    for device in sorted(devices, key=_order):
        row = _insert(tx, device)
        if row is not None:
            device.id = row.id
            inserted.append((device, row.registrations))
    if not inserted:
        return inserted
    entries, parts = [], dict[int, list[int]]()
    for device, _ in inserted:
        assert device.id is not None  # noqa: S101
        texts = _texts(device, fold(device.nas_identifier), fold(device.device_type))
        entries.append(IndexEntry(device.domain_id, device.id, texts))
        parts.setdefault(device.domain_id, []).append(device.id)
    _SEARCH.add_all(tx, entries)
    for domain_id, ids in parts.items():
        counters.add_rows(tx, domain_id, COUNTER, ids, 1)
    _remember(tx, [(each, each.id or 0, "registered", each.first_seen, "") for each, _ in inserted])
    return inserted


def _order(device: Device) -> tuple[int, int, str, str, str]:
    """Return the sort key for the order in which all nodes lock rows. They lock the tenant's counters first, then the
    device's row."""
    return device.tenant_id, device.domain_id, device.ip_address, device.client_ip, device.nas_identifier


def _insert(tx: Tx, device: Device) -> Inserted | None:
    """Insert the row of a device. Return None if the row exists already, or if the tenant has reached its limit.

    If the row exists, `device.id` is set.
    """
    row = tx.one(
        Inserted,
        "insert into devices (domain_id, ip_address, client_ip, nas_identifier, nas_identifier_key, device_name, "
        "device_type, device_type_key, device_type_certainty, nas_device_type, evidence, nas_port_type, "
        "nas_port_type_key, client_id, first_seen, last_seen, request_count, registrations) select :d, :ip, :client, "
        ":nas, :nas_key, :name, :type, :type_key, :certainty, :nas_type, :evidence, :medium, :medium_key, :by, :first, "
        ":last, 0, "
        f"1 + (select count(*) from device_history where {_IDENTITY} and event = 'deleted') where not {_TOO_MANY} "
        "on conflict (domain_id, ip_address, client_ip, nas_identifier) do nothing returning id, registrations",
        **_identity(device),
        **_description(device),
        nas_key=fold(device.nas_identifier),
        first=device.first_seen,
        last=device.last_seen,
    )
    if row is None:
        known = tx.one(DeviceRow, f"{_SELECT} where {_IDENTITY}", **_identity(device))
        device.id = None
        if known is not None:
            _recall(device, known)
    return row


def _recall(device: Device, row: DeviceRow) -> None:
    """Copy values of the row to the device in memory, where the device has no value yet.

    A product in the row is not copied if it came from the configuration of the RADIUS client, because the configuration
    may have changed.
    """
    device.id = row.id
    if row.is_newer(device.posture):
        device.posture.take_newer(row)
    if device.port_type is None:
        device.nas_port_type = row.nas_port_type
    if device.device_type == UNKNOWN and "registered" not in json.loads(row.evidence):
        device.device_type, device.certainty = row.device_type, row.device_type_certainty
        device.nas_device_type, device.evidence = row.nas_device_type, row.evidence
        device.device_name = row.device_name


@dataclass(frozen=True, slots=True)
class Flushed:
    """The result of a flush. deleted: the changes of the devices that another node has deleted. learned: the devices
    about which another node has learned something newer, each with its row."""

    deleted: list[tuple[Device, int, Posture]]
    learned: list[tuple[Device, Learned]]


def flush(tx: Tx, changes: Sequence[tuple[Device, int, Posture]]) -> Flushed:
    """Add the counts since the last flush to the rows of devices, and write the descriptions that have changed.

    changes: each device with its number of requests and its posture. The number of statements does not depend on the
    number of devices, unless descriptions have changed. Two devices in memory may share a row.
    """
    ids = listed({device.id for device, _, _ in changes if device.id is not None})
    rows = {
        row.id: row
        for row in tx.all(DeviceRow, f"{_SELECT} where id in {LISTED} order by id{tx.lock('devices')}", ids=ids)
    }
    counts: dict[int, _Counts] = {}
    flushed = Flushed([], [])
    for device, requests, taken in changes:
        row = rows.get(device.id or 0)
        if row is None:
            flushed.deleted.append((device, requests, taken))
            continue
        if row.is_newer(taken):
            flushed.learned.append((device, row))
        if _description(row) != _description(device):
            _describe(tx, row, device)
            row.add(device)
        counts.setdefault(row.id, _Counts()).add(device.last_seen, requests, taken)
    if counts:
        _add(tx, counts)
    return flushed


@dataclass(slots=True)
class _Counts:
    """The changes of one row. last: the time of the last request."""

    last: int = 0
    requests: int = 0
    posture: Posture = field(default_factory=Posture)

    def add(self, last: int, requests: int, taken: Posture) -> None:
        self.last = max(self.last, last)
        self.requests += requests
        self.posture.merge(taken)


def _add(tx: Tx, counts: dict[int, _Counts]) -> None:
    """Add counts to rows. counts: by the id of the row."""
    given, parameters = tx.table(
        {
            "id": [*counts],
            "last": [each.last for each in counts.values()],
            "requests": [each.requests for each in counts.values()],
        }
    )
    tx.execute(
        "update devices set last_seen = case when last_seen < given.last then given.last else last_seen end, "
        f"request_count = request_count + given.requests from {given} where devices.id = given.id",
        **parameters,
    )
    tx.insert(
        "device_posture",
        ("device_id", *_POSTURE),
        [(id, *(getattr(each.posture, name) for name in _POSTURE)) for id, each in sorted(counts.items())],
        on_conflict=_ADD_POSTURE,
    )


def _describe(tx: Tx, row: DeviceRow, device: Device) -> None:
    """Write the descriptive columns of a device.

    `flush` writes the counts separately, because the counts have no index and change more often.
    """
    if row.device_type != device.device_type:
        _SEARCH.remove(tx, row.domain_id, [row.id])
        _SEARCH.add(tx, row.domain_id, row.id, _texts(row, fold(row.nas_identifier), fold(device.device_type)))
    tx.execute(
        "update devices set device_name = :name, device_type = :type, device_type_key = :type_key, "
        "device_type_certainty = :certainty, nas_device_type = :nas_type, evidence = :evidence, "
        "nas_port_type = :medium, nas_port_type_key = :medium_key, client_id = :by where id = :id",
        id=row.id,
        **_description(device),
    )


def _description(device: Device | DeviceRow) -> dict[str, Value]:
    return {
        "name": device.device_name,
        "type": device.device_type,
        "type_key": fold(device.device_type),
        "certainty": device.certainty if isinstance(device, Device) else device.device_type_certainty,
        "nas_type": device.nas_device_type,
        "evidence": device.evidence,
        "medium": device.nas_port_type,
        "medium_key": fold(device.nas_port_type),
        "by": device.client_id,
    }


def delete(tx: Tx, row: DeviceRow, actor: str, at: int) -> None:
    """Delete a device. Its stations must be deleted already. Its history stays."""
    _SEARCH.remove(tx, row.domain_id, [row.id])
    tx.execute("delete from devices where id = :id", id=row.id)
    counters.add_row(tx, row.domain_id, COUNTER, row.id, -1)
    _remember(tx, [(row, row.id, "deleted", at, actor)])


def reset(tx: Tx, row: DeviceRow, at: int) -> None:
    """Forget the learned values of a device, and its counts of signed logins and of challenges. at: the time in
    microseconds."""
    tx.execute("delete from device_posture where device_id = :id", id=row.id)
    tx.execute("delete from device_usage where device_id = :id", id=row.id)
    fresh = Posture(measured_at=at, challenged_at=at)
    tx.insert("device_posture", ("device_id", *_POSTURE), [(row.id, *(getattr(fresh, name) for name in _POSTURE))])


def by_ids(tx: Tx, domain_id: int, device_ids: list[int]) -> list[DeviceRow]:
    """Return the devices of a domain with these ids. Ids without a device are ignored."""
    found = (find(tx, domain_id, each) for each in dict.fromkeys(device_ids))
    return [row for row in found if row is not None]


def by_addresses(tx: Tx, domain_id: int, ip_address: str, client_ip: str) -> list[DeviceRow]:
    """Return the devices of a domain with these addresses."""
    return tx.all(
        DeviceRow,
        f"{_SELECT} where domain_id = :d and ip_address = :ip and client_ip = :client order by id",
        d=domain_id,
        ip=ip_address,
        client=client_ip,
    )


def find(tx: Tx, domain_id: int, device_id: int) -> DeviceRow | None:
    """Return a domain's device, or None if it does not exist."""
    return tx.one(DeviceRow, f"{_SELECT} where domain_id = :d and id = :id", d=domain_id, id=device_id)


def several(tx: Tx, domain_id: int, device_ids: Sequence[int]) -> list[DeviceRow]:
    """Return the devices of a domain with these ids, in any order. Ids without a device are ignored."""
    return tx.all(DeviceRow, f"{_SELECT} where domain_id = :d and id in {LISTED}", d=domain_id, ids=listed(device_ids))


def domain_of(tx: Tx, device_id: int) -> int | None:
    """Return the domain of a device, or None if the device does not exist."""
    return tx.value(int, "select domain_id from devices where id = :id", id=device_id)


def find_again(tx: Tx, domain_id: int, ip_address: str, client_ip: str, name: str) -> DeviceRow | None:
    """Return the latest device with these addresses and this name, or None.

    Several devices may match, because a device gets a new id when it registers again.
    """
    where = "domain_id = :d and ip_address = :ip and client_ip = :client and device_name = :name"
    sql = f"{_SELECT} where {where} order by id desc limit 1"
    return tx.one(DeviceRow, sql, d=domain_id, ip=ip_address, client=client_ip, name=name)


_TAGGED = "id in (select cast(value as bigint) from json_each(:own))"
_TAKES_OVER = (
    "client_id in (select cast(value as bigint) from json_each(:clients)) "
    "and id not in (select cast(value as bigint) from json_each(:others))"
)


def _no_tags(_domain_id: int, _tag: str) -> TagSelection:
    return TagSelection((), (), ())


def page(
    tx: Tx, query: DeviceQuery, tagged: Callable[[int, str], TagSelection] = _no_tags
) -> tuple[list[DeviceRow], int]:
    """Return one page of a domain's devices, ordered by id, and the number of all matches. tagged: returns the devices
    of a domain that a tag selects.

    A search in a filter with many devices examines the matches of the search, and stops when it has counted enough of
    them. A search in a filter with few devices examines these devices.
    """
    stretch = ListQuery(query.domain_id, query.offset, query.limit)
    if not query.column and not query.tag:
        if query.search:
            return _SEARCH.page(tx, DeviceRow, _SELECT, stretch, query.search)
        return whole_page(tx, DeviceRow, _SELECT, "devices", stretch, counter=COUNTER)
    conditions, given = _conditions(query, tagged)
    parts = [f"select id from devices where domain_id = :d and {each}" for each in conditions]
    parameters: dict[str, Value] = {"d": query.domain_id, **given}
    if query.search and any(_is_long(tx, part, parameters) for part in parts):
        either = " or ".join(f"({each})" for each in conditions)
        only = f"exists (select 1 from devices where devices.id = {{id}} and ({either}))"
        return _SEARCH.page(tx, DeviceRow, _SELECT, stretch, query.search, only, **given)
    if query.search:
        found, match = _SEARCH.find(tx, query.domain_id, query.search)
        parts, parameters = [f"{part} and +id in ({found})" for part in parts], parameters | match
    ids, searched = " union ".join(parts), bool(query.search)
    return page_of(tx, DeviceRow, _SELECT, ids, stretch, counter=None, searched=searched, **parameters)


def _conditions(query: DeviceQuery, tagged: Callable[[int, str], TagSelection]) -> tuple[list[str], dict[str, Value]]:
    """Return SQL conditions, and their parameters. The query selects a device if one of the conditions is true. Each
    condition has an index."""
    columns = [f"{each} = :value" for each in _COMPARED[query.column]] if query.column else []
    given: dict[str, Value] = {"value": fold(query.value)} if query.column else {}
    if not query.tag:
        return columns, given
    found = tagged(query.domain_id, query.tag)
    given |= {"own": listed(found.own), "clients": listed(found.clients), "others": listed(found.others)}
    if not columns:
        return [_TAGGED, _TAKES_OVER], given
    return [f"{each} and (+{_TAGGED} or (+{_TAKES_OVER}))" for each in columns], given


def _is_long(tx: Tx, ids: str, parameters: dict[str, Value]) -> bool:
    """Return whether SQL selects more than MOST_COUNTED ids."""
    sql = f"select 1 from ({ids} limit 1 offset :most) as found"
    return tx.value(int, sql, most=MOST_COUNTED, **parameters) is not None


def _texts(device: Device | DeviceRow, *keys: str) -> tuple[str, ...]:
    """Return the texts of a device for the search index. keys: the case-folded NAS-Identifier and product."""
    return *keys, fold(device.ip_address), fold(device.client_ip)


_HISTORY = ("domain_id", "ip_address", "client_ip", "nas_identifier", "device_id", "event", "at", "actor")


def _remember(tx: Tx, entries: Sequence[tuple[Device | DeviceRow, int, str, int, str]]) -> None:
    tx.insert("device_history", _HISTORY, [(*_identity(entry[0]).values(), *entry[1:]) for entry in entries])


def of_device(domain_id: int, device_id: int) -> tuple[str, dict[str, Value]]:
    """Return the SQL condition for rows of a device, and its parameters. device_id: the id of the device, or 0 for
    all devices of the domain."""
    where = "domain_id = :d and device_id = :device" if device_id else "domain_id = :d"
    return where, {"d": domain_id, "device": device_id}


def history(tx: Tx, domain_id: int, device_id: int, *, offset: int, limit: int) -> tuple[list[HistoryRow], int]:
    """Return one page of a device's history, newest first, and the number of all entries.

    device_id: the id of the device, or 0 for all devices of the domain.
    """
    where, parameters = of_device(domain_id, device_id)
    columns = ", ".join(columns_of(HistoryRow))
    rows = tx.all(
        HistoryRow,
        f"select {columns} from device_history where {where} order by id desc limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    return rows, tx.value(int, f"select count(*) from device_history where {where}", **parameters) or 0


def forwarders(tx: Tx, limit: int) -> list[Forwarder]:
    """Return the source addresses that send requests for devices, in all domains, and the products of these devices."""
    sql = (
        "select domain_id, ip_address, device_type, count(*) as devices from devices "
        "group by domain_id, ip_address, device_type order by domain_id, ip_address limit :limit"
    )
    return tx.all(Forwarder, sql, limit=limit)


def heard_addresses(tx: Tx, tenant_id: int, limit: int) -> list[Heard]:
    """Return when each source address of a tenant's devices has sent requests, at most `limit` addresses. Requests of
    `sallyport check` do not count, because they do not come from the device."""
    sql = (
        "select ip_address, max(last_seen) as last_seen, max(last_unsigned) as last_unsigned from devices "
        "left join device_posture on device_id = devices.id "
        "where domain_id in (select id from domains where tenant_id = :t and removed_at is null) "
        "and nas_identifier <> :check group by ip_address order by ip_address limit :limit"
    )
    return tx.all(Heard, sql, t=tenant_id, check=CHECK.decode(), limit=limit)
