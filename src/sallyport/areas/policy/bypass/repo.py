"""SQL for the stations of MAC authentication bypass. In this module, a station is 12 hex digits in lower case.

One statement writes all stations of a request. With a statement for each of 1,000 stations, the transaction took 0.6 s,
because the store's thread gives up the interpreter lock at each statement. Meanwhile the logins of all tenants had to
wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.mac import mac_text
from sallyport.store.model import LISTED_TEXTS, Tx, listed, without_case

MAX_STATIONS: Final = 100_000
"""Maximum number of stations in a domain. The limit exists because all stations are in memory."""
Lists = Mapping[int, frozenset[str]]
"""The listed stations by domain id. Domains without stations are absent."""


@dataclass(frozen=True, slots=True)
class StationRow:
    """A station on a domain's list."""

    station: Annotated[str, Wire("MAC address as aa:bb:cc:dd:ee:ff.", convert=mac_text)]
    name: Annotated[str, Wire("Name of the station; empty if it has none.")]
    added_at: Annotated[int, Wire("Time when the station was added, ISO 8601 in UTC.", "addedAt", iso)]


@dataclass(frozen=True, slots=True)
class _Extent:
    """The number of rows in the table, and the highest id. If neither has changed, the rows have not changed, because
    ids are not reused."""

    count: int
    last: int


@dataclass(frozen=True, slots=True)
class _Member:
    domain_id: int
    station: str


@dataclass(frozen=True, slots=True)
class Listed:
    """The stations on the lists of all domains, and the extent of the table from which they were read."""

    lists: Lists = field(default_factory=dict)
    extent: _Extent | None = None


def load(tx: Tx, before: Listed) -> Listed:
    """Return the lists of all domains.

    before: an earlier result from the same table, or an empty one. If no station was added or removed since, `before`
    itself is returned: this saves reading a hundred thousand rows after each change of another table. Pass an empty
    one if the table may have been replaced.
    """
    extent = tx.one(_Extent, "select count(*) as count, coalesce(max(id), 0) as last from bypass_stations")
    if extent == before.extent:
        return before
    lists: dict[int, set[str]] = {}
    for row in tx.all(_Member, "select domain_id, station from bypass_stations"):
        lists.setdefault(row.domain_id, set()).add(row.station)
    return Listed({domain_id: frozenset(found) for domain_id, found in lists.items()}, extent)


def add(tx: Tx, domain_id: int, stations: Sequence[str], name: str, at: int) -> None:
    """Add stations to a domain's list. Raises Conflict if the domain would have too many stations.

    A station that is already listed gets the new name, unless `name` is empty. at: the time in microseconds.
    """
    tx.execute(
        "insert into bypass_stations (domain_id, station, name, added_at) "
        "select :domain, value, :name, :at from json_each(:stations) where true "
        "on conflict (domain_id, station) do update set name = excluded.name where excluded.name <> ''",
        domain=domain_id,
        stations=listed(stations),
        name=name,
        at=at,
    )
    if _count(tx, domain_id) > MAX_STATIONS:
        raise Conflict(
            f"a domain can list at most {MAX_STATIONS} stations for MAC authentication bypass: remove some first"
        )


def delete(tx: Tx, domain_id: int, stations: Sequence[str]) -> None:
    """Remove stations from a domain's list. Raises NotFound if one of them is not listed. stations: keys without
    duplicates."""
    sql = f"delete from bypass_stations where domain_id = :domain and station in {LISTED_TEXTS}"
    if tx.execute(sql, domain=domain_id, ids=listed(stations)) < len(stations):
        raise NotFound("station not found")


def page(tx: Tx, domain_id: int, search: str, key: str, *, offset: int, limit: int) -> tuple[list[StationRow], int]:
    """Return one page of a domain's list, ordered by id, and the number of all matches.

    search: a part of the name; case is ignored. key: a part of the address as hex digits. A row matches if its name or
    its address matches.
    """
    where, text = "from bypass_stations where domain_id = :domain", ""
    if search:
        column, text = without_case("name", search)
        where += f" and (instr({column}, :search) > 0 or (:key <> '' and instr(station, :key) > 0))"
    given: dict[str, str | int] = {"domain": domain_id, "search": text, "key": key}
    sql = f"select station, name, added_at {where} order by id limit :limit offset :offset"
    rows = tx.all(StationRow, sql, limit=limit, offset=offset, **given)
    return rows, tx.value(int, f"select count(*) {where}", **given) or 0


def _count(tx: Tx, domain_id: int) -> int:
    return tx.value(int, "select count(*) from bypass_stations where domain_id = :domain", domain=domain_id) or 0
