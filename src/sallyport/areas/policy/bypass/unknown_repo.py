"""SQL for unknown stations. In this module, a station is 12 hex digits in lower case."""

from collections.abc import Sequence
from itertools import groupby

from sallyport.areas.policy.bypass.unknown import MAX_REQUESTS, MAX_UNKNOWN, Sighting, UnknownRow, domain_of
from sallyport.store.model import LISTED_TEXTS, Tx, listed, without_case


def write(tx: Tx, sightings: Sequence[Sighting]) -> None:
    """Add sightings to the table, and delete the oldest rows of a tenant that has too many. Domains that were removed,
    and stations that were added to the list meanwhile, are left out. sightings: ordered by domain."""
    for domain_id, several in groupby(sightings, key=domain_of):
        by_station = {each.station: each for each in several}
        tenant = tx.value(int, "select tenant_id from domains where id = :d and removed_at is null", d=domain_id)
        if tenant is not None:
            now = max(each.last_seen for each in by_station.values())
            known = tx.rows(
                f"select station from bypass_stations where domain_id = :d and station in {LISTED_TEXTS} "
                "and (until_at = 0 or until_at > :now)",
                d=domain_id,
                ids=listed(by_station),
                now=now,
            )
            for (station,) in known:
                del by_station[str(station)]
            _add(tx, domain_id, list(by_station.values()))
            _trim(tx, tenant)


def _add(tx: Tx, domain_id: int, sightings: Sequence[Sighting]) -> None:
    tx.insert(
        "unknown_stations",
        ("station", "first_seen", "last_seen", "request_count", "device_id", "ssid", "port", "outcome"),
        [
            (
                *(each.station, each.first_seen, each.last_seen, min(each.requests, MAX_REQUESTS)),
                *(each.device.id or 0, each.ssid, each.port, each.outcome),
            )
            for each in sightings
        ],
        same={"domain_id": domain_id},
        on_conflict="on conflict (domain_id, station) do update set last_seen = excluded.last_seen, "
        "request_count = case when unknown_stations.request_count + excluded.request_count > "
        f"{MAX_REQUESTS} then {MAX_REQUESTS} else unknown_stations.request_count + excluded.request_count end, "
        "device_id = excluded.device_id, ssid = excluded.ssid, port = excluded.port, outcome = excluded.outcome",
    )


def _trim(tx: Tx, tenant_id: int) -> None:
    """Delete the rows of a tenant beyond MAX_UNKNOWN, first those that were not seen for the longest time."""
    own = "from unknown_stations where domain_id in (select id from domains where tenant_id = :t)"
    excess = (tx.value(int, f"select count(*) {own}", t=tenant_id) or 0) - MAX_UNKNOWN
    if excess > 0:
        oldest = f"select id {own} order by last_seen, id limit :excess"
        tx.execute(f"delete from unknown_stations where id in ({oldest})", t=tenant_id, excess=excess)


def delete(tx: Tx, domain_id: int, stations: Sequence[str]) -> None:
    """Delete stations that are on the list now. Each is 12 hex digits."""
    sql = f"delete from unknown_stations where domain_id = :d and station in {LISTED_TEXTS}"
    tx.execute(sql, d=domain_id, ids=listed(stations))


def page(tx: Tx, domain_id: int, search: str, *, offset: int, limit: int) -> tuple[list[UnknownRow], int]:
    """Return one page of a domain's unknown stations, the last seen first, and the number of all matches. search: a
    part of the address in any notation, of the SSID, or of the port."""
    where = "from unknown_stations where domain_id = :d"
    given: dict[str, str | int] = {"d": domain_id}
    if search.strip():
        column, text = without_case("ssid || ' ' || port", search.strip())
        key = search.strip().casefold().translate(str.maketrans("", "", ":-. "))
        given |= {"search": text, "key": key}
        where += f" and (instr({column}, :search) > 0 or (:key <> '' and instr(station, :key) > 0))"
    columns = "station, ssid, port, device_id, outcome, request_count, first_seen, last_seen"
    name = "coalesce((select device_name from devices where devices.id = device_id), '') as device_name"
    rows = tx.all(
        UnknownRow,
        f"select {columns}, {name} {where} order by last_seen desc, id desc limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **given,
    )
    return rows, tx.value(int, f"select count(*) {where}", **given) or 0
