"""SQL for the stations of MAC authentication bypass. In this module, a station is given as 12 hex digits in lower case.

All stations of a request are written by one statement. The store's thread releases the interpreter lock at each
statement, so with other threads active, 1,000 statements took 0.6 s, in which the logins of all tenants waited for the
transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import fold
from sallyport.store.model import LISTED_TEXTS, Tx, listed

MAX_STATIONS: Final = 100_000
"""Maximum number of stations in a domain. It is limited because all stations are in memory."""
Lists = Mapping[int, frozenset[str]]
"""The stations on the list of each domain. A domain without stations is not in it."""


@dataclass(frozen=True, slots=True)
class StationRow:
    """A station on a domain's list. added_at: the time when it was added, in microseconds."""

    station: str
    name: str
    added_at: int


@dataclass(frozen=True, slots=True)
class _Extent:
    """The number of rows and the highest id. If both are unchanged, the rows are unchanged, because ids are not
    reused."""

    count: int
    last: int


@dataclass(frozen=True, slots=True)
class _Member:
    domain_id: int
    station: str


@dataclass(slots=True)
class Known:
    """A cache of the last load, so that an unrelated change does not read a hundred thousand rows again."""

    extent: _Extent | None = None
    lists: Lists = field(default_factory=dict)

    def forget(self) -> None:
        """Make the next load read all rows, because another node has changed them or the store was replaced."""
        self.extent = None


def load(tx: Tx, known: Known) -> Lists:
    """Return the lists of all domains."""
    extent = tx.one(_Extent, "select count(*) as count, coalesce(max(id), 0) as last from bypass_stations")
    if extent == known.extent:
        return known.lists
    lists: dict[int, set[str]] = {}
    for row in tx.all(_Member, "select domain_id, station from bypass_stations"):
        lists.setdefault(row.domain_id, set()).add(row.station)
    known.extent, known.lists = extent, {domain_id: frozenset(found) for domain_id, found in lists.items()}
    return known.lists


def add(tx: Tx, domain_id: int, stations: Sequence[str], name: str, at: int) -> None:
    """Add stations to a domain's list. at: microseconds. Raises Conflict if the domain would have too many stations.

    A station that is on the list gets the new name, unless that is empty.
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
            f"a domain has at most {MAX_STATIONS} stations that are admitted by their MAC address: remove some first"
        )


def delete(tx: Tx, domain_id: int, stations: Sequence[str]) -> None:
    """Remove stations from a domain's list. stations: must not contain duplicates. Raises NotFound if a station is not
    on the list."""
    sql = f"delete from bypass_stations where domain_id = :domain and station in {LISTED_TEXTS}"
    if tx.execute(sql, domain=domain_id, ids=listed(stations)) < len(stations):
        raise NotFound("station not found")


def page(tx: Tx, domain_id: int, search: str, key: str, *, offset: int, limit: int) -> tuple[list[StationRow], int]:
    """Return one page of a domain's list, ordered by id, and the number of all matches.

    search: a part of the name or of the address; it is case-insensitive. key: the hex digits of `search`, which are
    compared with addresses.
    """
    where = "from bypass_stations where domain_id = :domain"
    if search:
        where += " and (instr(fold(name), :search) > 0 or (:key <> '' and instr(station, :key) > 0))"
    given: dict[str, str | int] = {"domain": domain_id, "search": fold(search), "key": key}
    sql = f"select station, name, added_at {where} order by id limit :limit offset :offset"
    rows = tx.all(StationRow, sql, limit=limit, offset=offset, **given)
    return rows, tx.value(int, f"select count(*) {where}", **given) or 0


def _count(tx: Tx, domain_id: int) -> int:
    return tx.value(int, "select count(*) from bypass_stations where domain_id = :domain", domain=domain_id) or 0
