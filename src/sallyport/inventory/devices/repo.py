"""The SQL of devices, their stations and their history.

The `..._key` columns are what is compared, without case; addresses are stored as they are compared. A device's name is
its NAS-Identifier, else its product: who looks for a name means these two.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sallyport.base.text import fold
from sallyport.inventory.devices import posture
from sallyport.inventory.devices.device import UNKNOWN, Device, DeviceQuery, ListedDevice, Station
from sallyport.store import counters
from sallyport.store.model import Tx, Value, without_case
from sallyport.store.schema.limits import exceeds
from sallyport.store.search import SearchIndex, Stretch, whole_page
from sallyport.store.search import page as page_of
from sallyport.store.turns import delete_slice

COUNTER = "devices"
_SEARCH = SearchIndex("devices_search")
_TOO_MANY = exceeds("devices", ":d")
_IDENTITY = "domain_id = :d and ip_address = :ip and client_ip = :client and nas_identifier = :nas"


@dataclass(frozen=True, slots=True)
class Forwarder:
    """An address that devices were seen from. devices: how many."""

    domain_id: int
    ip_address: str
    device_type: str
    devices: int


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A row of the inventory. Times in microseconds; `..._key`: without case."""

    id: int
    domain_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    nas_identifier_key: str
    device_name: str
    device_type: str
    device_type_key: str
    device_type_certainty: str
    nas_device_type: str
    evidence: str
    nas_port_type: str
    first_seen: int
    last_seen: int
    request_count: int
    registrations: int


@dataclass(frozen=True, slots=True)
class StationRow:
    """A station behind a device. Times in microseconds."""

    station: str
    device_id: int
    user_name: str
    first_seen: int
    last_seen: int
    request_count: int


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One line of a device's history."""

    device_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    event: str
    at: int
    actor: str


_COLUMNS = ", ".join(DeviceRow.__dataclass_fields__)
_COUNTS = ("signed", "unsigned", "unsigned_proxied", "challenges", "challenge_answers")
_LISTED = ", ".join(
    f"coalesce({name}, 0) as {name}" if name in _COUNTS else name for name in ListedDevice.__dataclass_fields__
)
_LIST = f"select {_LISTED} from devices left join device_posture on device_id = id"
_COMPARED = {
    "device_name": ("nas_identifier_key", "device_type_key"),
    "device_type": ("device_type_key",),
    "ip_address": ("ip_address",),
    "client_ip": ("client_ip",),
    "nas_port_type": ("nas_port_type_key",),
    "nas_identifier": ("nas_identifier_key",),
}


def _identity(device: Device | DeviceRow) -> dict[str, Value]:
    return {
        "d": device.domain_id,
        "ip": device.ip_address,
        "client": device.client_ip,
        "nas": device.nas_identifier,
    }


def register(tx: Tx, device: Device) -> bool:
    """Give a device its row where it has none; whether it was new. Sets `device.id`: to None if the tenant has reached
    its limit.

    One that was deleted comes back as a new row with `registrations` one higher.
    """
    device_id = tx.value(
        int,
        "insert into devices (domain_id, ip_address, client_ip, nas_identifier, nas_identifier_key, device_name, "
        "device_type, device_type_key, device_type_certainty, nas_device_type, evidence, nas_port_type, "
        "nas_port_type_key, first_seen, last_seen, request_count, registrations) select :d, :ip, :client, :nas, "
        ":nas_key, :name, :type, :type_key, :certainty, :nas_type, :evidence, :medium, :medium_key, :first, :last, 0, "
        f"1 + (select count(*) from device_history where {_IDENTITY} and event = 'deleted') where not {_TOO_MANY} "
        "on conflict (domain_id, ip_address, client_ip, nas_identifier) do nothing returning id",
        **_identity(device),
        **_description(device),
        nas_key=fold(device.nas_identifier),
        first=device.first_seen,
        last=device.last_seen,
    )
    if device_id is None:
        row = tx.one(DeviceRow, f"select {_COLUMNS} from devices where {_IDENTITY}", **_identity(device))
        device.id = None
        if row is not None:
            _recall(tx, device, row)
        return False
    device.id = device_id
    _SEARCH.add(tx, device.domain_id, device_id, _texts(device, fold(device.nas_identifier), fold(device.device_type)))
    counters.add_row(tx, device.domain_id, COUNTER, device_id, 1)
    _remember(tx, device, device_id, "registered", device.first_seen, "")
    return True


def _recall(tx: Tx, device: Device, row: DeviceRow) -> None:
    """Take over what is known of a device and its last request did not show. A product that its client was
    registered with is not known any more once the client says otherwise."""
    device.id = row.id
    known = posture.find(tx, row.id)
    device.posture.retransmit_ms = device.posture.retransmit_ms or known.retransmit_ms
    device.posture.give_up_ms = device.posture.give_up_ms or known.give_up_ms
    device.posture.takes_challenges = device.posture.takes_challenges or known.challenge_answers > 0
    if device.port_type is None:
        device.nas_port_type = row.nas_port_type
    if device.device_type == UNKNOWN and "registered" not in json.loads(row.evidence):
        device.device_type, device.certainty = row.device_type, row.device_type_certainty
        device.nas_device_type, device.evidence = row.nas_device_type, row.evidence
        device.device_name = row.device_name


def registrations(tx: Tx, device_id: int) -> int:
    """How often a device has registered."""
    return tx.value(int, "select registrations from devices where id = :id", id=device_id) or 0


def flush(tx: Tx, device: Device, requests: int) -> bool:
    """Add what was counted since the last flush; False where the row is gone: another node deleted it."""
    row = tx.one(DeviceRow, f"select {_COLUMNS} from devices where id = :id", id=device.id)
    if row is None:
        return False
    if _description(row) != _description(device):
        _describe(tx, row, device)
    tx.execute(
        "update devices set last_seen = case when last_seen < :last then :last else last_seen end, "
        "request_count = request_count + :requests "
        "where id = :id",
        id=row.id,
        last=device.last_seen,
        requests=requests,
    )
    return True


def _describe(tx: Tx, row: DeviceRow, device: Device) -> None:
    """Keep what is known of a device now. Not with the counts: they change all the time, and no index has them."""
    if row.device_type != device.device_type:
        _SEARCH.remove(tx, row.domain_id, [row.id])
        _SEARCH.add(tx, row.domain_id, row.id, _texts(row, row.nas_identifier_key, fold(device.device_type)))
    tx.execute(
        "update devices set device_name = :name, device_type = :type, device_type_key = :type_key, "
        "device_type_certainty = :certainty, nas_device_type = :nas_type, evidence = :evidence, "
        "nas_port_type = :medium, nas_port_type_key = :medium_key where id = :id",
        id=row.id,
        **_description(device),
    )


def _description(device: Device | DeviceRow) -> dict[str, Value]:
    """What is known of a device and may change, as it is stored."""
    return {
        "name": device.device_name,
        "type": device.device_type,
        "type_key": fold(device.device_type),
        "certainty": device.certainty if isinstance(device, Device) else device.device_type_certainty,
        "nas_type": device.nas_device_type,
        "evidence": device.evidence,
        "medium": device.nas_port_type,
        "medium_key": fold(device.nas_port_type),
    }


_STATION = ("domain_id", "device_id", "station", "user_name", "first_seen", "last_seen", "request_count")
_SEEN_AGAIN = (
    "on conflict (domain_id, device_id, station) do update set user_name = excluded.user_name, "
    "last_seen = excluded.last_seen, request_count = stations.request_count + excluded.request_count"
)


def note_station(tx: Tx, station: Station, requests: int) -> bool:
    """Keep a station with its last user, adding what was counted. False: its device was deleted meanwhile, or the
    station is new and the tenant has reached its limit."""
    changed = tx.execute(
        f"insert into stations ({', '.join(_STATION)}) "
        "select :d, :device, :station, :user, :first, :last, :requests "
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
    )
    return changed > 0


def has_too_many_stations(tx: Tx, domain_id: int) -> bool:
    """Whether another station would exceed the limit of a domain's tenant."""
    return tx.value(int, f"select {exceeds('stations', ':d')}", d=domain_id) == 1


def note_stations(tx: Tx, counted: Sequence[tuple[Station, int]]) -> None:
    """`note_station` of one or many in two statements, for each of which a thread has to wait for the interpreter.
    Near the limit of their tenant, in a statement each."""
    ids = {f"id{number}": each for number, each in enumerate({station.device.id for station, _ in counted})}
    marks = ", ".join(f":{name}" for name in ids)
    too_many = exceeds("stations", "devices.domain_id", ":new")
    found = tx.rows(f"select id, {too_many} from devices where id in ({marks})", new=len(counted), **ids)
    near_limit = {row[0]: bool(row[1]) for row in found}  # of the devices that were not deleted meanwhile
    merged: dict[tuple[int, int | None, str], tuple[int, Station, int]] = {}
    for station, requests in counted:
        key = (station.device.domain_id, station.device.id, station.name)
        if near_limit.get(station.device.id):
            note_station(tx, station, requests)
        elif station.device.id in near_limit:  # two in memory may be one row
            first_seen, _, before = merged.get(key, (station.first_seen, station, 0))
            merged[key] = first_seen, station, before + requests
    tx.insert(
        "stations",
        _STATION,
        [(*key, each.user, first, each.last_seen, requests) for key, (first, each, requests) in merged.items()],
        on_conflict=_SEEN_AGAIN,
    )


def delete_stations(tx: Tx, rows: Sequence[DeviceRow]) -> int:
    """Delete up to SLICE stations of devices of a domain; how many."""
    condition = "domain_id = :d and device_id in (select value from json_each(:ids))"
    ids = json.dumps([row.id for row in rows])
    return delete_slice(tx, "stations", "id", condition, d=rows[0].domain_id, ids=ids)


def delete(tx: Tx, row: DeviceRow, actor: str, at: int) -> None:
    """Remove a device without stations; its history stays."""
    _SEARCH.remove(tx, row.domain_id, [row.id])
    tx.execute("delete from devices where id = :id", id=row.id)
    counters.add_row(tx, row.domain_id, COUNTER, row.id, -1)
    _remember(tx, row, row.id, "deleted", at, actor)


def by_ids(tx: Tx, domain_id: int, device_ids: list[int]) -> list[DeviceRow]:
    """The devices of a domain with these ids, those that exist."""
    sql = f"select {_COLUMNS} from devices where domain_id = :d and id = :id"
    found = (tx.one(DeviceRow, sql, d=domain_id, id=each) for each in dict.fromkeys(device_ids))
    return [row for row in found if row is not None]


def by_addresses(tx: Tx, domain_id: int, ip_address: str, client_ip: str) -> list[DeviceRow]:
    """The devices of a domain with these addresses."""
    return tx.all(
        DeviceRow,
        f"select {_COLUMNS} from devices where domain_id = :d and ip_address = :ip and client_ip = :client order by id",
        d=domain_id,
        ip=ip_address,
        client=client_ip,
    )


def listed(tx: Tx, domain_id: int, device_id: int) -> ListedDevice | None:
    """Return a domain's device."""
    return tx.one(ListedDevice, f"{_LIST} where domain_id = :d and id = :id", d=domain_id, id=device_id)


def page(tx: Tx, query: DeviceQuery) -> tuple[list[ListedDevice], int]:
    """One page of a domain's devices, ordered by id, and how many match in all."""
    stretch = Stretch(query.domain_id, query.offset, query.limit)
    if not query.column:
        if query.search:
            return _SEARCH.page(tx, ListedDevice, _LIST, stretch, query.search)
        return whole_page(tx, ListedDevice, _LIST, "devices", stretch, counter=COUNTER)
    parts = [f"select id from devices where domain_id = :d and {each} = :value" for each in _COMPARED[query.column]]
    parameters: dict[str, Value] = {"d": query.domain_id, "value": fold(query.value)}
    if query.search:
        found, match = _SEARCH.find(query.domain_id, query.search)
        parts, parameters = [f"{part} and +id in ({found})" for part in parts], parameters | match
    ids, searched = " union ".join(parts), bool(query.search)
    return page_of(tx, ListedDevice, _LIST, ids, stretch, counter=None, searched=searched, **parameters)


def _texts(device: Device | DeviceRow, *keys: str) -> tuple[str, ...]:
    """What a device is found by. keys: its NAS-Identifier and its product, folded."""
    return *keys, fold(device.ip_address), fold(device.client_ip)


def _remember(tx: Tx, device: Device | DeviceRow, device_id: int, event: str, at: int, actor: str) -> None:
    tx.execute(
        "insert into device_history (domain_id, ip_address, client_ip, nas_identifier, device_id, event, at, actor) "
        "values (:d, :ip, :client, :nas, :id, :event, :at, :actor)",
        **_identity(device),
        id=device_id,
        event=event,
        at=at,
        actor=actor,
    )


def stations(
    tx: Tx, domain_id: int, device_id: int, search: str, *, offset: int, limit: int
) -> tuple[list[StationRow], int]:
    """One page of the stations behind a domain's devices (device_id 0: of all), ordered by id, and their number."""
    where, parameters = _of(domain_id, device_id)
    if search:
        text, parameters["search"] = without_case("{}", search)
        where += (
            f" and (instr({text.format('station')}, :search) > 0 or instr({text.format('user_name')}, :search) > 0)"
        )
    columns = ", ".join(StationRow.__dataclass_fields__)
    rows = tx.all(
        StationRow,
        f"select {columns} from stations where {where} order by id limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    return rows, tx.value(int, f"select count(*) from stations where {where}", **parameters) or 0


def _of(domain_id: int, device_id: int) -> tuple[str, dict[str, Value]]:
    """What belongs to a device, or for device_id 0 to any of the domain."""
    where = "domain_id = :d and device_id = :device" if device_id else "domain_id = :d"
    return where, {"d": domain_id, "device": device_id}


def history(tx: Tx, domain_id: int, device_id: int, *, offset: int, limit: int) -> tuple[list[HistoryRow], int]:
    """One page of what happened to a domain's devices (device_id 0: to all), newest first, and how much there is."""
    where, parameters = _of(domain_id, device_id)
    columns = ", ".join(HistoryRow.__dataclass_fields__)
    rows = tx.all(
        HistoryRow,
        f"select {columns} from device_history where {where} order by id desc limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    return rows, tx.value(int, f"select count(*) from device_history where {where}", **parameters) or 0


def forwarders(tx: Tx, limit: int) -> list[Forwarder]:
    """The addresses that devices were seen from, with their products."""
    sql = (
        "select domain_id, ip_address, device_type, count(*) as devices from devices "
        "group by domain_id, ip_address, device_type order by domain_id, ip_address limit :limit"
    )
    return tx.all(Forwarder, sql, limit=limit)
