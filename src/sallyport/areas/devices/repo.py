"""SQL that reads devices, their posture, usage and history.

The `..._key` columns hold case-folded text for comparisons. Addresses are stored in canonical form. The name of a
device is its NAS-Identifier, or its product if it has no NAS-Identifier. Therefore a search for a name compares both
columns.
"""

from collections.abc import Callable, Sequence

from sallyport.areas.clients.client import CHECK
from sallyport.areas.devices.comparison import ComparedDevice
from sallyport.areas.devices.rows import DeviceQuery, DeviceRow, Forwarder, Heard, HistoryRow, TagSelection
from sallyport.areas.devices.usage import UsageRow
from sallyport.base.text import fold
from sallyport.store.counters import whole_page
from sallyport.store.model import LISTED, ListQuery, Tx, Value, columns_of, listed
from sallyport.store.search import MAX_COUNTED, SearchIndex
from sallyport.store.search import page as page_of

COUNTER = "devices"
INDEX = SearchIndex("devices_search")
IDENTITY = "domain_id = :d and ip_address = :ip and client_ip = :client and nas_identifier = :nas"
COUNTS = ("signed", "unsigned", "unsigned_proxied", "challenges", "challenge_answers")
CHALLENGES = ("unanswered", "answered_at", "challenged_at")
_NUMBERS = {*COUNTS, "measured_at", "gave_up_at", *CHALLENGES}
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
SELECT = (
    f"select {_COLUMNS} from devices left join device_posture on device_id = id left join {_MARKS} on tagged_id = id"
)
_COMPARED = {
    "device_name": ("nas_identifier_key", "device_type_key"),
    "device_type": ("device_type_key",),
    "ip_address": ("ip_address",),
    "client_ip": ("client_ip",),
    "nas_port_type": ("nas_port_type_key",),
    "nas_identifier": ("nas_identifier_key",),
}


def by_ids(tx: Tx, domain_id: int, device_ids: list[int]) -> list[DeviceRow]:
    """Return the devices of a domain with these ids. Ids without a device are ignored."""
    found = (find(tx, domain_id, each) for each in dict.fromkeys(device_ids))
    return [row for row in found if row is not None]


def by_addresses(tx: Tx, domain_id: int, ip_address: str, client_ip: str) -> list[DeviceRow]:
    """Return the devices of a domain with these addresses."""
    return tx.all(
        DeviceRow,
        f"{SELECT} where domain_id = :d and ip_address = :ip and client_ip = :client order by id",
        d=domain_id,
        ip=ip_address,
        client=client_ip,
    )


def find(tx: Tx, domain_id: int, device_id: int) -> DeviceRow | None:
    """Return a domain's device, or None if it does not exist."""
    return tx.one(DeviceRow, f"{SELECT} where domain_id = :d and id = :id", d=domain_id, id=device_id)


def several(tx: Tx, domain_id: int, device_ids: Sequence[int]) -> list[DeviceRow]:
    """Return the devices of a domain with these ids, in any order. Ids without a device are ignored."""
    return tx.all(DeviceRow, f"{SELECT} where domain_id = :d and id in {LISTED}", d=domain_id, ids=listed(device_ids))


def domain_of(tx: Tx, device_id: int) -> int | None:
    """Return the domain of a device, or None if the device does not exist."""
    return tx.value(int, "select domain_id from devices where id = :id", id=device_id)


def find_again(tx: Tx, domain_id: int, ip_address: str, client_ip: str, name: str) -> DeviceRow | None:
    """Return the latest device with these addresses and this name, or None.

    Several devices may match, because a device gets a new id when it registers again.
    """
    where = "domain_id = :d and ip_address = :ip and client_ip = :client and device_name = :name"
    sql = f"{SELECT} where {where} order by id desc limit 1"
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
            return INDEX.page(tx, DeviceRow, SELECT, stretch, query.search)
        return whole_page(tx, DeviceRow, SELECT, "devices", stretch, counter=COUNTER)
    conditions, given = _conditions(query, tagged)
    parts = [f"select id from devices where domain_id = :d and {each}" for each in conditions]
    parameters: dict[str, Value] = {"d": query.domain_id, **given}
    if query.search and any(_is_long(tx, part, parameters) for part in parts):
        either = " or ".join(f"({each})" for each in conditions)
        only = f"exists (select 1 from devices where devices.id = {{id}} and ({either}))"
        return INDEX.page(tx, DeviceRow, SELECT, stretch, query.search, only, **given)
    if query.search:
        found, match = INDEX.find(tx, query.domain_id, query.search)
        parts, parameters = [f"{part} and +id in ({found})" for part in parts], parameters | match
    ids, searched = " union ".join(parts), bool(query.search)
    return page_of(tx, DeviceRow, SELECT, ids, stretch, counter=None, searched=searched, **parameters)


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
    """Return whether SQL selects more than MAX_COUNTED ids."""
    sql = f"select 1 from ({ids} limit 1 offset :most) as found"
    return tx.value(int, sql, most=MAX_COUNTED, **parameters) is not None


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


def products(tx: Tx, domain_id: int) -> list[str]:
    """Return the products of a domain's devices: that of the NAS, if a forwarder sends its requests."""
    sql = (
        "select distinct case when nas_device_type in ('', 'Unknown') then device_type else nas_device_type end "
        "from devices where domain_id = :d"
    )
    return [str(row[0]) for row in tx.rows(sql, d=domain_id)]


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


_USAGE = (
    f"select {', '.join(columns_of(UsageRow))} from device_usage where device_id in {LISTED} "
    "order by last_seen desc, device_id, ssid, method, transport"
)


def usage(tx: Tx, device_ids: Sequence[int]) -> dict[int, list[UsageRow]]:
    """Return the uses of devices by the id of the device, the last one first."""
    found = dict[int, list[UsageRow]]()
    for row in tx.all(UsageRow, _USAGE, ids=listed(device_ids)):
        found.setdefault(row.device_id, []).append(row)
    return found


def compared_devices(tx: Tx, domain_id: int, most: int) -> list[ComparedDevice]:
    """Return the devices of a domain for a comparison, ordered by id."""
    columns = ", ".join(columns_of(ComparedDevice))
    sql = f"select {columns} from devices where domain_id = :d order by id limit :most"
    return tx.all(ComparedDevice, sql, d=domain_id, most=most)
