"""SQL for the stations behind devices."""

from collections.abc import Sequence

from sallyport.areas.devices.device import Station
from sallyport.areas.devices.repo import of_device
from sallyport.areas.devices.rows import DeviceRow, StationRow
from sallyport.store.model import LISTED, Tx, columns_of, containing, listed
from sallyport.store.schema.limits import exceeds
from sallyport.store.search import bounded_total
from sallyport.store.slices import delete_slice

_STATION = (
    "domain_id",
    "device_id",
    "station",
    "user_name",
    "first_seen",
    "last_seen",
    "request_count",
    "ssid",
    "port",
)
_SEEN_AGAIN = (
    "on conflict (domain_id, device_id, station) do update set user_name = excluded.user_name, "
    "last_seen = excluded.last_seen, request_count = stations.request_count + excluded.request_count, "
    "ssid = excluded.ssid, port = excluded.port"
)


def note(tx: Tx, station: Station, requests: int) -> bool:
    """Write a station with its last user, and add its requests.

    Return False if the device was deleted, or if the station is new and the tenant has reached its limit.
    """
    changed = tx.execute(
        f"insert into stations ({', '.join(_STATION)}) "
        "select :d, :device, :station, :user, :first, :last, :requests, :ssid, :port "
        f"where exists (select 1 from devices where id = :device) and (not {exceeds('stations', ':d')} or exists "
        "(select 1 from stations where domain_id = :d and device_id = :device and station = :station)) "
        f"{_SEEN_AGAIN}",
        d=station.device.domain_id,
        device=station.device.id,
        station=station.name,
        user=station.user,
        first=station.first_seen,
        last=station.last_seen,
        requests=requests,
        ssid=station.ssid,
        port=station.port,
    )
    return changed > 0


def has_too_many(tx: Tx, domain_id: int) -> bool:
    """Return whether the tenant of the domain has reached its limit of stations."""
    return tx.value(int, f"select {exceeds('stations', ':d')}", d=domain_id) == 1


def note_all(tx: Tx, counted: Sequence[tuple[Station, int]]) -> list[Station]:
    """Write many stations with only two statements. Return the stations that got no row because of the tenant's limit.

    Two statements are faster than one statement for each station, because the thread waits for the interpreter lock at
    each statement. If a tenant is near its limit, each of its stations still gets its own statement. All nodes write
    the rows in the same order.
    """
    refused: list[Station] = []
    ids = {f"id{number}": each for number, each in enumerate({station.device.id for station, _ in counted})}
    marks = ", ".join(f":{name}" for name in ids)
    too_many = exceeds("stations", "devices.domain_id", ":new")
    found = tx.rows(f"select id, {too_many} from devices where id in ({marks})", new=len(counted), **ids)
    near_limit = {row[0]: bool(row[1]) for row in found}  # only devices that were not deleted meanwhile
    merged: dict[tuple[int, int | None, str], tuple[int, Station, int]] = {}
    for station, requests in sorted(counted, key=_station_order):
        key = (station.device.domain_id, station.device.id, station.name)
        if near_limit.get(station.device.id):
            if not note(tx, station, requests) and has_too_many(tx, station.device.domain_id):
                refused.append(station)
        elif station.device.id in near_limit:  # two stations in memory may share a row
            first_seen, _, before = merged.get(key, (station.first_seen, station, 0))
            merged[key] = first_seen, station, before + requests
    tx.insert(
        "stations",
        _STATION,
        [
            (*key, each.user, first, each.last_seen, requests, each.ssid, each.port)
            for key, (first, each, requests) in merged.items()
        ],
        on_conflict=_SEEN_AGAIN,
    )
    return refused


def _station_order(counted: tuple[Station, int]) -> tuple[int, int, int, str]:
    device = counted[0].device
    return device.tenant_id, device.domain_id, device.id or 0, counted[0].name


def delete(tx: Tx, rows: Sequence[DeviceRow]) -> int:
    """Delete up to SLICE stations of devices in one domain, and return the number of deleted stations."""
    condition = f"domain_id = :d and device_id in {LISTED}"
    ids = listed(row.id for row in rows)
    return delete_slice(tx, "stations", "id", condition, d=rows[0].domain_id, ids=ids)


_OF_DEVICE = "(select {0} from devices where devices.id = stations.device_id) as {0}"
_STATION_COLUMNS = ", ".join(
    _OF_DEVICE.format(name) if name in {"device_name", "device_type"} else name for name in columns_of(StationRow)
)


def page(
    tx: Tx, domain_id: int, device_id: int, search: str, *, offset: int, limit: int, newest: int = 0
) -> tuple[list[StationRow], int]:
    """Return one page of the stations behind a device, ordered by id, and the number of all matches. At most
    MAX_COUNTED stations are counted; the number is then a `Minimum`.

    device_id: the id of the device, or 0 for all devices of the domain. newest: the number of the domain's newest
    stations to which the page is limited, or 0 for all stations.
    """
    where, parameters = of_device(domain_id, device_id)
    if newest:
        oldest = "select id from stations where domain_id = :d order by id desc limit 1 offset :newest"
        where, parameters["newest"] = f"{where} and id > coalesce(({oldest}), 0)", newest
    if search:
        found, more = containing(("station", "user_name"), search)
        where, parameters = f"{where} and {found}", parameters | more
    order = "+id" if device_id else "id"  # the sign prevents that the domain's index is read from its start
    rows = tx.all(
        StationRow,
        f"select {_STATION_COLUMNS} from stations where {where} order by {order} limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    ids = f"select id from stations where {where}"
    return rows, bounded_total(tx, ids, len(rows), offset=offset, limit=limit, **parameters)
