"""SQL for how stations log in through devices: SSID, method and transport."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.devices.device import Device
from sallyport.areas.devices.usage import MAX_OF_DEVICE, PortRow, SsidRow, Use, Uses
from sallyport.base.text import fold
from sallyport.store.model import LISTED, LISTED_TEXTS, Tx, Value, listed
from sallyport.store.search import MAX_COUNTED

MAX_OF_DOMAIN: Final = 20_000
"""Maximum number of combinations of device, SSID, method and transport of a domain, with an SSID."""
_KEY: Final = "device_id, ssid, method, transport"
_COLUMNS: Final = ("device_id", "domain_id", "ssid", "method", "transport", "logins", "first_seen", "last_seen")
_SEEN_AGAIN: Final = (
    f"on conflict ({_KEY}) do update set logins = device_usage.logins + excluded.logins, last_seen = "
    "case when excluded.last_seen > device_usage.last_seen then excluded.last_seen else device_usage.last_seen end"
)


@dataclass(frozen=True, slots=True)
class _Ssid:
    ssid: str
    logins: int
    devices: int
    first_seen: int
    last_seen: int


@dataclass(frozen=True, slots=True)
class _Known:
    device_id: int
    ssid: str
    method: str
    transport: str


def write(tx: Tx, used: Sequence[tuple[Device, Uses]]) -> None:
    """Add the counts of devices to the rows. The rows of these devices must exist."""
    if not used:
        return
    known = dict[int, set[Use]]()
    if ids := {device.id for device, uses in used if device.id is not None and any(use[0] for use in uses)}:
        sql = f"select {_KEY} from device_usage where device_id in {LISTED}"
        for each in tx.all(_Known, sql, ids=listed(ids)):
            known.setdefault(each.device_id, set()).add((each.ssid, each.method, each.transport))
    room = dict[int, int]()
    last = dict[int, tuple[int, int]]()
    added = dict[tuple[int, Use], int]()
    for device, uses in used:
        number = device.id or 0
        _, before = last.get(number, (0, 0))
        last[number] = device.domain_id, max(before, device.last_seen)
        of_device = known.setdefault(number, set())
        for use, logins in uses.items():
            if use[0] and use not in of_device and not _has_room(tx, of_device, device.domain_id, room):
                use = ("", *use[1:])  # noqa: PLW2901
            of_device.add(use)
            added[number, use] = added.get((number, use), 0) + logins
    rows = [
        (number, last[number][0], *use, logins, last[number][1], last[number][1])
        for (number, use), logins in sorted(added.items())
    ]
    tx.insert("device_usage", _COLUMNS, rows, on_conflict=_SEEN_AGAIN)


def _has_room(tx: Tx, of_device: set[Use], domain_id: int, room: dict[int, int]) -> bool:
    """Return whether a device and its domain may have one more use with an SSID. room: the known room of domains, of
    which a use that the device may not have takes nothing."""
    if sum(1 for each in of_device if each[0]) >= MAX_OF_DEVICE:
        return False
    if domain_id not in room:
        some = f"select 1 from device_usage where domain_id = :d and ssid <> '' limit {MAX_OF_DOMAIN}"
        room[domain_id] = MAX_OF_DOMAIN - (tx.value(int, f"select count(*) from ({some}) as found", d=domain_id) or 0)
    room[domain_id] -= 1
    return room[domain_id] >= 0


def forget(tx: Tx, device_id: int) -> None:
    """Delete the uses of a device."""
    tx.execute("delete from device_usage where device_id = :id", id=device_id)


def ports(tx: Tx, domain_id: int, device_id: int, limit: int) -> list[PortRow]:
    """Return the ports of a device with the number of their stations, the last one first. At most MAX_COUNTED stations
    of the device are read."""
    sql = (
        "select port, count(*) as stations, max(last_seen) as last_seen from (select port, last_seen from stations "
        f"where domain_id = :d and device_id = :device limit {MAX_COUNTED}) as found "
        "where port <> '' group by port order by max(last_seen) desc, port limit :limit"
    )
    return tx.all(PortRow, sql, d=domain_id, device=device_id, limit=limit)


def ssids(tx: Tx, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[SsidRow], int]:
    """Return one page of the SSIDs of a domain, ordered by name, and the number of all matches. search: a part of the
    name."""
    where, given = "domain_id = :d and ssid <> ''", dict[str, Value](d=domain_id)
    if search:
        where, given["search"] = f"{where} and instr(fold(ssid), :search) > 0", fold(search)
    rows = tx.all(
        _Ssid,
        "select ssid, cast(sum(logins) as bigint) as logins, count(distinct device_id) as devices, "
        f"min(first_seen) as first_seen, max(last_seen) as last_seen from device_usage where {where} "
        "group by ssid order by ssid limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **given,
    )
    total = tx.value(int, f"select count(distinct ssid) from device_usage where {where}", **given) or 0
    names = listed(row.ssid for row in rows)
    sql = (
        f"select distinct ssid, method from device_usage where domain_id = :d and ssid <> '' and ssid in {LISTED_TEXTS}"
    )
    methods = dict[str, list[str]]()
    for ssid, method in sorted((str(a), str(b)) for a, b in tx.rows(sql, d=domain_id, ids=names)):
        methods.setdefault(ssid, []).append(method)
    found = [
        SsidRow(row.ssid, row.logins, row.devices, methods.get(row.ssid, []), row.first_seen, row.last_seen)
        for row in rows
    ]
    return found, total
