"""The SQL of devices, their stations and their history.

The search index is an FTS5 trigram table without content of its own: its rows are written and taken out here, with
the columns they are made of, and each begins with the domain as one token, so that a search never walks through
another domain's rows.
"""

import json
from dataclasses import dataclass

from sallyport.inventory.devices.model import UNKNOWN, Device, DeviceQuery, Station
from sallyport.store import counters
from sallyport.store.model import Tx, Value, without_case

COUNTER = "devices"
_IDENTITY = "domain_id = :d and ip_address = :ip and client_ip = :client and nas_identifier = :nas"


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A row of the inventory. Times in microseconds."""

    id: int
    domain_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    device_name: str
    device_type: str
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


_COLUMNS = ", ".join(f"devices.{name}" for name in DeviceRow.__dataclass_fields__)


def domain_token(domain_id: int) -> str:
    """A domain as three letters, one trigram: base 1000, in letters that no name of a device has."""
    return "".join(chr(0x4E00 + domain_id // 1000**place % 1000) for place in (2, 1, 0))


def _identity(device: Device | DeviceRow) -> dict[str, Value]:
    return {
        "d": device.domain_id,
        "ip": device.ip_address,
        "client": device.client_ip,
        "nas": device.nas_identifier,
    }


def register(tx: Tx, device: Device) -> bool:
    """Give a device its row where it has none; whether it was new. Sets `device.id`.

    One that was deleted comes back as a new row with `registrations` one higher.
    """
    device_id = tx.value(
        int,
        "insert into devices (domain_id, ip_address, client_ip, nas_identifier, device_name, device_type, "
        "device_type_certainty, nas_device_type, evidence, nas_port_type, first_seen, last_seen, request_count, "
        "registrations) values (:d, :ip, :client, :nas, :name, :type, :certainty, :nas_type, :evidence, :medium, "
        ":first, :last, 0, 1 + (select count(*) from device_history where "
        f"{_IDENTITY} and event = 'registered')) on conflict (domain_id, ip_address, client_ip, nas_identifier) "
        "do nothing returning id",
        **_identity(device),
        name=device.device_name,
        type=device.device_type,
        certainty=device.certainty,
        nas_type=device.nas_device_type,
        evidence=device.evidence,
        medium=device.nas_port_type,
        first=device.first_seen,
        last=device.last_seen,
    )
    if device_id is None:
        row = tx.one(DeviceRow, f"select {_COLUMNS} from devices where {_IDENTITY}", **_identity(device))
        if row is not None:
            _recall(device, row)
        return False
    device.id = device_id
    _index(tx, device_id, device)
    counters.add(tx, device.domain_id, COUNTER, 1)
    _remember(tx, device, device_id, "registered", device.first_seen, "")
    return True


def _recall(device: Device, row: DeviceRow) -> None:
    """Take over what is known of a device and its last request did not show. A product that its client was
    registered with is not known any more once the client says otherwise."""
    device.id = row.id
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
    if (row.device_name, row.device_type) != (device.device_name, device.device_type):
        _unindex(tx, row)
        _index(tx, row.id, device)
    tx.execute(
        "update devices set device_name = :name, device_type = :type, device_type_certainty = :certainty, "
        "nas_device_type = :nas_type, evidence = :evidence, nas_port_type = :medium, "
        "last_seen = max(last_seen, :last), request_count = request_count + :requests where id = :id",
        id=row.id,
        name=device.device_name,
        type=device.device_type,
        certainty=device.certainty,
        nas_type=device.nas_device_type,
        evidence=device.evidence,
        medium=device.nas_port_type,
        last=device.last_seen,
        requests=requests,
    )
    return True


def note_station(tx: Tx, station: Station, requests: int) -> None:
    """Keep a station with its last user, adding what was counted; not where its device was deleted meanwhile."""
    tx.execute(
        "insert into stations (domain_id, device_id, station, user_name, first_seen, last_seen, request_count) "
        "select :d, :device, :station, :user, :first, :last, :requests where exists "
        "(select 1 from devices where id = :device) "
        "on conflict (domain_id, device_id, station) do update set user_name = excluded.user_name, "
        "last_seen = excluded.last_seen, request_count = stations.request_count + excluded.request_count",
        d=station.device.domain_id,
        device=station.device.id,
        station=station.name,
        user=station.user,
        first=station.first_seen,
        last=station.last_seen,
        requests=requests,
    )


def delete(tx: Tx, row: DeviceRow, actor: str, at: int) -> None:
    """Remove a device and its stations; its history stays."""
    tx.execute("delete from devices where id = :id", id=row.id)
    tx.execute("delete from stations where domain_id = :d and device_id = :id", d=row.domain_id, id=row.id)
    _unindex(tx, row)
    counters.add(tx, row.domain_id, COUNTER, -1)
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


def page(tx: Tx, query: DeviceQuery) -> tuple[list[DeviceRow], int]:
    """One page of a domain's devices, ordered by id, and how many match in all."""
    source, where, parameters = _conditions(query)
    rows = tx.all(
        DeviceRow,
        f"select {_COLUMNS} from {source} where {where} order by devices.id limit :limit offset :offset",
        limit=query.limit,
        offset=query.offset,
        **parameters,
    )
    return rows, _matches(tx, query, source, where, parameters)


def _matches(tx: Tx, query: DeviceQuery, source: str, where: str, parameters: dict[str, Value]) -> int:
    if not query.search and not query.column:
        return counters.total(tx, query.domain_id, COUNTER)
    if len(query.search) >= 3 and not query.column:
        sql = "select count(*) from devices_search where devices_search match :match"
        return tx.value(int, sql, match=parameters["match"]) or 0
    return tx.value(int, f"select count(*) from {source} where {where}", **parameters) or 0


def _conditions(query: DeviceQuery) -> tuple[str, str, dict[str, Value]]:
    """What to select from, the conditions, and their parameters."""
    source, where = "devices", ["devices.domain_id = :d"]
    parameters: dict[str, Value] = {"d": query.domain_id}
    if len(query.search) >= 3:
        source = "devices_search join devices on devices.id = devices_search.rowid"
        where.append("devices_search match :match")
        parameters["match"] = _match(query.domain_id, query.search)
    elif query.search:
        text, parameters["search"] = without_case("devices.{}", query.search)
        searched = ("device_name", "device_type", "ip_address", "client_ip")
        where.append("(" + " or ".join(f"instr({text.format(each)}, :search) > 0" for each in searched) + ")")
    if query.column:
        text, parameters["value"] = without_case("devices.{}", query.value)
        columns = ["device_name", "device_type"] if query.column == "device_name" else [query.column]
        where.append("(" + " or ".join(f"{text.format(each)} = :value" for each in columns) + ")")
    return source, " and ".join(where), parameters


def _match(domain_id: int, search: str) -> str:
    """An FTS5 query: the domain's token, and the text as a phrase in any other column."""
    phrase = search.replace('"', '""')
    return f'domain : "{domain_token(domain_id)}" AND - domain : "{phrase}"'


def _index(tx: Tx, device_id: int, device: Device) -> None:
    tx.execute(
        "insert into devices_search (rowid, domain, device_name, device_type, ip_address, client_ip) "
        "values (:id, :token, :name, :type, :ip, :client)",
        id=device_id,
        token=domain_token(device.domain_id),
        name=device.device_name,
        type=device.device_type,
        ip=device.ip_address,
        client=device.client_ip,
    )


def _unindex(tx: Tx, row: DeviceRow) -> None:
    tx.execute(
        "insert into devices_search (devices_search, rowid, domain, device_name, device_type, ip_address, client_ip) "
        "values ('delete', :id, :token, :name, :type, :ip, :client)",
        id=row.id,
        token=domain_token(row.domain_id),
        name=row.device_name,
        type=row.device_type,
        ip=row.ip_address,
        client=row.client_ip,
    )


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
    text, needle = without_case("{}", search)
    where = (
        "domain_id = :d and (:device = 0 or device_id = :device) and (:search = '' or "
        f"instr({text.format('station')}, :search) > 0 or instr({text.format('user_name')}, :search) > 0)"
    )
    parameters: dict[str, Value] = {"d": domain_id, "device": device_id, "search": needle}
    columns = ", ".join(StationRow.__dataclass_fields__)
    rows = tx.all(
        StationRow,
        f"select {columns} from stations where {where} order by id limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    return rows, tx.value(int, f"select count(*) from stations where {where}", **parameters) or 0


def history(tx: Tx, domain_id: int, device_id: int, *, offset: int, limit: int) -> tuple[list[HistoryRow], int]:
    """One page of what happened to a domain's devices (device_id 0: to all), newest first, and how much there is."""
    where = "domain_id = :d and (:device = 0 or device_id = :device)"
    parameters: dict[str, Value] = {"d": domain_id, "device": device_id}
    columns = ", ".join(HistoryRow.__dataclass_fields__)
    rows = tx.all(
        HistoryRow,
        f"select {columns} from device_history where {where} order by id desc limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    return rows, tx.value(int, f"select count(*) from device_history where {where}", **parameters) or 0
