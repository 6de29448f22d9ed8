"""SQL for the stations of MAC authentication bypass. In this module, a station is 12 hex digits in lower case.

Few statements write all stations of a request. With a statement for each of 1,000 stations, the transaction took 0.6 s,
because the store's thread gives up the interpreter lock at each statement. Meanwhile the logins of all tenants had to
wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, cast

from sallyport.areas.policy.bypass.station import MAX_STATIONS, Entry, StationChange, StationRow
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.tags import Tags, as_stored, of_store
from sallyport.base.text import counted, fold
from sallyport.store.erasure import PRESENT
from sallyport.store.model import LISTED_TEXTS, Tx, Value, columns_of, listed, without_case

_SHOWN: Final = columns_of(StationRow)
Entries = Mapping[str, Entry]
"""The entries of a domain by station."""
_COLUMNS: Final = {"vlan": "vlan", "until": "until_at", "role": "role", "psk": "psk", "tags": "tags"}
"""The column of each field of `StationChange`, besides the name."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """The number of rows of a domain, the highest id, and the sum of the revisions. If none has changed, what the login
    path reads has not changed, because ids are not reused and revisions only grow."""

    count: int
    last: int
    revisions: int


@dataclass(frozen=True, slots=True)
class _DomainExtent(_Extent):
    domain_id: int


@dataclass(frozen=True, slots=True)
class Listed:
    """The entries of all domains, and the extents of the rows from which they were read. Domains without stations are
    absent."""

    lists: Mapping[int, Entries] = field(default_factory=dict)
    extents: Mapping[int, _Extent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expired:
    """An entry that has ended."""

    id: int
    domain_id: int
    station: str
    name: str


def load(tx: Tx, before: Listed) -> Listed:
    """Return the entries of all domains.

    before: an earlier result from the same table, or an empty one. Only the lists that have changed since are read, and
    if there are none, `before` itself is returned: this saves reading a hundred thousand rows after each change of
    another table. Pass an empty one if the table may have been replaced.
    """
    found = tx.all(
        _DomainExtent,
        "select domain_id, count(*) as count, max(id) as last, cast(sum(revision) as bigint) as revisions "
        "from bypass_stations group by domain_id",
    )
    extents = {each.domain_id: _Extent(each.count, each.last, each.revisions) for each in found}
    if extents == before.extents:
        return before
    lists = {
        domain_id: before.lists[domain_id] if before.extents.get(domain_id) == extent else _entries(tx, domain_id)
        for domain_id, extent in extents.items()
    }
    return Listed(lists, extents)


def _entries(tx: Tx, domain_id: int) -> Entries:
    """Return the entries of a domain. Tuples are read, because rows of a class take twice as long."""
    same: dict[tuple[Value, ...], Entry] = {}
    entries: dict[str, Entry] = {}
    sql = "select station, vlan, until_at, role, psk from bypass_stations where domain_id = :d"
    for station, *values in tx.rows(sql, d=domain_id):
        key = tuple(values)
        entry = same.get(key)
        if entry is None:
            vlan, until, role, psk = values
            entry = same[key] = Entry(str(vlan), int(str(until)), fold(str(role)), cast(bytes | None, psk))
        entries[str(station)] = entry
    return entries


def put(tx: Tx, domain_id: int, changes: Sequence[StationChange], at: int) -> None:
    """Add stations to a domain's list, and change those that are listed. Raises Conflict if the domain would have too
    many stations.

    changes: not two of one station; the pre-shared keys are sealed, and the tags are complete. at: the time in
    microseconds.
    """
    for given, alike in groupby(sorted(changes, key=_given), key=_given):
        fields = [name for name, is_given in zip(_COLUMNS, given[1:], strict=True) if is_given]
        columns = [_COLUMNS[name] for name in fields]
        updates = [*(f"{each} = excluded.{each}" for each in columns)]
        updates += ["name = excluded.name"] if given[0] else []
        updates += ["revision = bypass_stations.revision + 1"] if columns not in ([], ["tags"]) else []
        updates += ["expired = 0"] if "until" in fields else []
        tx.insert(
            "bypass_stations",
            ("station", "name", *columns),
            [(each.station, each.name, *(_value(each, name) for name in fields)) for each in alike],
            same={"domain_id": domain_id, "added_at": at},
            on_conflict="on conflict (domain_id, station) do "
            + (f"update set {', '.join(updates)}" if updates else "nothing"),
        )
    if _count(tx, domain_id) > MAX_STATIONS:
        raise Conflict(
            f"a domain can list at most {MAX_STATIONS} stations for MAC authentication bypass: remove some first"
        )


def _given(change: StationChange) -> tuple[bool, ...]:
    return bool(change.name), *(getattr(change, name) is not None for name in _COLUMNS)


def _value(change: StationChange, name: str) -> Value:
    value: Value = getattr(change, name)
    if name == "tags":
        return as_stored(change.tags or ())
    return None if name == "psk" and not value else value


def tags_of(tx: Tx, domain_id: int, stations: Sequence[str]) -> dict[str, Tags]:
    """Return the tags of listed stations, by station."""
    sql = f"select station, tags from bypass_stations where domain_id = :d and station in {LISTED_TEXTS} and tags <> ''"
    return {str(station): of_store(str(tags)) for station, tags in tx.rows(sql, d=domain_id, ids=listed(stations))}


def entries(tx: Tx, domain_id: int) -> list[StationChange]:
    """Return all entries of a domain, in the order in which they were added. The pre-shared keys are sealed; None if
    there is none."""
    sql = "select station, name, vlan, until_at, role, psk, tags from bypass_stations where domain_id = :d order by id"
    return [
        StationChange(
            str(station),
            str(name),
            str(vlan),
            int(str(until)),
            str(role),
            cast(bytes | None, psk),
            of_store(str(tags)),
        )
        for station, name, vlan, until, role, psk, tags in tx.rows(sql, d=domain_id)
    ]


def clear_names(tx: Tx, domain_id: int, stations: Sequence[str]) -> None:
    """Remove the names of stations."""
    sql = f"update bypass_stations set name = '' where domain_id = :d and station in {LISTED_TEXTS}"
    tx.execute(sql, d=domain_id, ids=listed(stations))


def roles_in_use(tx: Tx, domain_id: int) -> dict[str, list[str]]:
    """Return the roles that stations of a domain have, by case-folded name, each with the number of stations."""
    sql = "select role, count(*) from bypass_stations where domain_id = :d and role <> '' group by role"
    return {
        fold(str(role)): [f"{counted(int(str(count)), 'station')} of MAC bypass"]
        for role, count in tx.rows(sql, d=domain_id)
    }


def delete(tx: Tx, domain_id: int, stations: Sequence[str]) -> None:
    """Remove stations from a domain's list. Raises NotFound if one of them is not listed. stations: keys without
    duplicates."""
    sql = f"delete from bypass_stations where domain_id = :domain and station in {LISTED_TEXTS}"
    if tx.execute(sql, domain=domain_id, ids=listed(stations)) < len(stations):
        raise NotFound("station not found")


def see(tx: Tx, seen: Mapping[int, Sequence[str]], at: int) -> None:
    """Store the time at which stations were seen. seen: the stations by domain. at: the time in microseconds."""
    for domain_id, stations in sorted(seen.items()):
        tx.execute(
            "update bypass_stations set last_seen = :at "
            f"where domain_id = :domain and station in {LISTED_TEXTS} and last_seen < :at",
            at=at,
            domain=domain_id,
            ids=listed(stations),
        )


def expire(tx: Tx, at: int, most: int) -> list[Expired]:
    """Record that entries have ended, at most `most` of them, and return these entries. at: the time in
    microseconds."""
    sql = (
        "select id, domain_id, station, name from bypass_stations where until_at > 0 and expired = 0 "
        f"and until_at <= :at and {PRESENT} order by until_at limit :most"
    )
    found = tx.all(Expired, sql, at=at, most=most)
    for each in found:
        tx.execute("update bypass_stations set expired = 1 where id = :id", id=each.id)
    return found


def page(tx: Tx, domain_id: int, search: str, key: str, *, offset: int, limit: int) -> tuple[list[StationRow], int]:
    """Return one page of a domain's list, ordered by id, and the number of all matches.

    search: a part of the name or of a tag; case is ignored. key: a part of the address as hex digits. A row matches if
    its name, a tag or its address matches.
    """
    where, text = "from bypass_stations where domain_id = :domain", ""
    if search:
        column, text = without_case("name || ' ' || tags", search)
        where += f" and (instr({column}, :search) > 0 or (:key <> '' and instr(station, :key) > 0))"
    given: dict[str, str | int] = {"domain": domain_id, "search": text, "key": key}
    columns = ("case when psk is null then 0 else 1 end as has_psk" if name == "has_psk" else name for name in _SHOWN)
    sql = f"select {', '.join(columns)} {where} order by id limit :limit offset :offset"
    rows = tx.all(StationRow, sql, limit=limit, offset=offset, **given)
    return rows, tx.value(int, f"select count(*) {where}", **given) or 0


def _count(tx: Tx, domain_id: int) -> int:
    return tx.value(int, "select count(*) from bypass_stations where domain_id = :domain", domain=domain_id) or 0
