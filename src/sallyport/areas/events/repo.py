"""SQL for events, and for the retention of events, accounting records and sessions."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import get_type_hints

from sallyport.areas.events.event import FOREVER, DomainEvent, EventQuery, EventRow, ExportQuery
from sallyport.areas.sessions import repo as sessions
from sallyport.areas.sessions.report import FACTS, NUMBERS
from sallyport.areas.sessions.session import SessionState
from sallyport.metrics import LoginPlace
from sallyport.store import counters
from sallyport.store.model import Tx, Value, columns_of, containing, same_station, without_case

COUNTER = "events"
ACCOUNTING_COUNTER = "accounting"
SHORT = 101
"""Maximum number of rows of a page that is read on the event loop: 100 entries, and one to know whether more follow."""


_COLUMNS = ", ".join(columns_of(EventRow))
_SEARCHED = ("user_name", "device_name", "station", "ip_address", "client_ip")


def page(tx: Tx, query: EventQuery) -> tuple[list[EventRow], int]:
    """Return one page of events, newest first, and the number of all matches."""
    return newest(tx, query), matching(tx, query)


def has_login(tx: Tx, domain_id: int) -> bool:
    """Return whether a domain has a login."""
    return tx.value(int, "select 1 from events where domain_id = :d limit 1", d=domain_id) is not None


def newest(tx: Tx, query: EventQuery) -> list[EventRow]:
    """Return one page of events, newest first.

    Each later page also excludes events that are newer than the last event of the previous page. Otherwise SQLite would
    walk through all of these events, which takes 30 ms for half a million rows.
    """
    where, parameters = _filter(query)
    if query.before is not None:
        before_at, parameters["before_id"] = query.before
        where += " and (at < :before_at or id < :before_id)"
        parameters["before_at"], parameters["until"] = before_at, min(query.until, before_at + 1)
    return tx.all(
        EventRow,
        f"select {_COLUMNS} from events where {where} order by at desc, id desc limit :limit offset :offset",
        limit=query.limit,
        offset=query.offset,
        **parameters,
    )


def matching(tx: Tx, query: EventQuery) -> int:
    """Return the number of all matches. If the query selects all events of a domain, the number comes from the stored
    counter."""
    if _is_whole(query):
        return counters.total(tx, query.domain_id, COUNTER)
    where, parameters = _filter(query)
    return tx.value(int, f"select count(*) from events where {where}", **parameters) or 0


def is_short(query: EventQuery) -> bool:
    """Return whether `page` reads only a few rows for a query: the newest events of a domain, or those after a
    cursor."""
    return query.offset + query.limit <= SHORT and _is_whole(query)


def _is_whole(query: EventQuery) -> bool:
    """Return whether a query selects all events of a domain."""
    return query == replace(EventQuery(query.domain_id), before=query.before, offset=query.offset, limit=query.limit)


def _filter(query: EventQuery) -> tuple[str, dict[str, Value]]:
    where = "domain_id = :d and at >= :since and at < :until"
    parameters: dict[str, Value] = {"d": query.domain_id, "since": query.since, "until": query.until}
    if query.device_id:
        where += " and device_id = :device"
        parameters["device"] = query.device_id
    if query.event_id:
        where += " and id = :event"
        parameters["event"] = query.event_id
    for column, wanted in (("user_name", query.user), ("station", query.station), ("device_name", query.device_name)):
        same, of_station = same_station(wanted) if column == "station" else ("", {})
        if of_station:
            where, parameters = f"{where} and {same}", parameters | of_station
        elif wanted:
            text, parameters[column] = without_case(column, wanted)
            where += f" and {text} = :{column}"
    same_values = {"applied_decision": query.applied_decision, "reason": query.reason, "trace_id": query.trace_id}
    for column, wanted in same_values.items():
        if wanted:
            where += f" and {column} = :{column}"
            parameters[column] = wanted
    if query.search:
        found, more = containing(_SEARCHED, query.search)
        where, parameters = f"{where} and {found}", parameters | more
    return where, parameters


def ids_of(tx: Tx, places: Iterable[LoginPlace]) -> dict[LoginPlace, int]:
    """Return the ids of the events of logins. A login without an event is left out."""
    sql = "select id from events where domain_id = :domain and at = :at limit 1"
    found = ((place, tx.value(int, sql, domain=place.domain_id, at=place.at)) for place in places)
    return {place: event_id for place, event_id in found if event_id is not None}


def after(tx: Tx, last_id: int, until_id: int, limit: int) -> list[DomainEvent]:
    """Return events of all domains whose ids are greater than `last_id` and at most `until_id`, oldest first. If there
    are more than `limit` events, only the newest are returned."""
    return tx.all(
        DomainEvent,
        f"select {_COLUMNS}, domain_id from events where id > :last and id <= :until order by id desc limit :limit",
        last=last_id,
        until=until_id,
        limit=limit,
    )[::-1]


def oldest(tx: Tx, stretch: ExportQuery) -> list[EventRow]:
    """Return one page of events, oldest first."""
    after_at, after_id = stretch.after or (stretch.since - 1, 0)
    return tx.all(
        EventRow,
        f"select {_COLUMNS} from events where domain_id = :d and at >= :since and at < :until "
        "and (at > :after_at or id > :after_id) and id <= :last_id order by at, id limit :limit",
        d=stretch.domain_id,
        since=max(stretch.since, after_at),
        until=stretch.until,
        after_at=after_at,
        after_id=after_id,
        last_id=stretch.last_id,
        limit=stretch.limit,
    )


@dataclass(frozen=True, slots=True)
class RetainedTable:
    """A table whose rows are deleted when they are too old or take too much space.

    counters: the names of the table's stored counters. total: SQL for the name of the counter that counts a row.
    varying: the columns whose length varies. fixed: the total size in octets of the other columns, the row's header and
    the row's entry in the index (measured on a million rows). began: the indexed column that orders a domain's rows.
    ended: the column from which the age of a row is counted. The column is null if the row must stay.
    """

    name: str
    counters: tuple[str, ...]
    total: str
    varying: tuple[str, ...]
    fixed: int
    ended: str = "at"
    began: str = "at"


EVENTS = RetainedTable(
    "events",
    (COUNTER,),
    f"'{COUNTER}'",
    (
        *(n for n, kind in get_type_hints(EventRow).items() if kind is str),
        "coalesce(attributes, '')",
        "coalesce(detail, '')",
        "coalesce(realm, '')",
        "coalesce(facts, '')",
        "coalesce(role, '')",
    ),
    62,
)
ACCOUNTING = RetainedTable(
    "accounting_records",
    (ACCOUNTING_COUNTER,),
    f"'{ACCOUNTING_COUNTER}'",
    ("session_id", "user_name", "station", "attributes"),
    55,
)
SESSIONS = RetainedTable(
    "sessions",
    tuple(sessions.COUNTER + state for state in SessionState),
    f"'{sessions.COUNTER}' || state",
    ("acct_session_id", "recent", *(f"coalesce({name}, '')" for name in FACTS if name not in NUMBERS)),
    250,
    ended="stopped",
    began="started",
)
TABLES = (EVENTS, ACCOUNTING, SESSIONS)
_SAMPLE = 20


@dataclass(slots=True)
class TableUsage:
    """The estimated size of a domain's rows in a table.

    organization, tenant: the ids of the organization and the tenant. They are 0 for domain 0, which has no tenant.
    row_octets: the mean size of the newest rows. first_at: the time of the oldest row.
    """

    table: RetainedTable
    organization: int
    tenant: int
    domain_id: int
    rows: int
    row_octets: float
    first_at: int

    @property
    def octets(self) -> float:
        """The space that the rows and their index need, in octets."""
        return self.rows * self.row_octets


@dataclass(frozen=True, slots=True)
class _Total:
    organization: int
    tenant: int
    domain_id: int
    total: int


def table_usage(tx: Tx) -> list[TableUsage]:
    """Return the size of each domain's rows in each table. The sizes are estimated from counters and a few rows."""
    return [part for table in TABLES for part in _usage(tx, table)]


def _usage(tx: Tx, table: RetainedTable) -> Iterator[TableUsage]:
    lengths = " + ".join(f"length({column})" for column in table.varying)
    newest = f"select {lengths} as octets from {table.name} where domain_id = :d order by {table.began} desc"
    names = ", ".join(f"'{name}'" for name in table.counters)
    named = "substr(counters.name, 1, cast(instr(counters.name || '@', '@') - 1 as integer))"  # without the share
    totals = (
        "select coalesce(max(organization_id), 0) as organization, coalesce(max(number), 0) as tenant, "
        "counters.domain_id as domain_id, sum(value) as total from counters "
        "left join domains on domains.id = counters.domain_id left join tenants on tenants.id = domains.tenant_id "
        f"where {named} in ({names}) group by counters.domain_id having sum(value) > 0"
    )
    for each in tx.all(_Total, totals):
        domain = each.domain_id
        octets = tx.value(float, f"select avg(octets) from ({newest} limit {_SAMPLE}) as newest", d=domain) or 0.0
        first = first_at(tx, table, domain)
        yield TableUsage(table, each.organization, each.tenant, domain, each.total, table.fixed + octets, first)


def first_at(tx: Tx, table: RetainedTable, domain_id: int) -> int:
    """Return the time of a domain's oldest row, or FOREVER if the domain has no rows."""
    oldest = f"select {table.began} from {table.name} where domain_id = :d order by {table.began} limit 1"
    at = tx.value(int, oldest, d=domain_id)
    return FOREVER if at is None else at


def domains_with_older(tx: Tx, table: RetainedTable, at: int) -> list[int]:
    """Return the domains that have rows older than a time. The function finds the domains by an index, so that it need
    not read all rows."""
    each = f"select min(domain_id) from {table.name}"
    return tx.all(
        _id,
        f"with recursive domain (id) as ({each} union all select ({each} where domain_id > domain.id) from domain "
        f"where domain.id is not null) select id from domain where exists "
        f"(select 1 from {table.name} where domain_id = domain.id and {table.ended} < :at)",
        at=at,
    )


def _id(*, id: int) -> int:
    return id


@dataclass(frozen=True, slots=True)
class _DeletedRow:
    """The domain of a deleted row, and the name of the counter that counts the row."""

    domain_id: int
    total: str


def delete_older(tx: Tx, table: RetainedTable, domain_id: int, at: int, limit: int) -> int:
    """Delete rows of a domain that are older than a time, the oldest first, at most `limit` rows. Return the number of
    deleted rows."""
    oldest = f"select id from {table.name} where domain_id = :d and {table.ended} < :at order by {table.ended}, id"
    return _delete(tx, table, f"id in ({oldest} limit :limit)", d=domain_id, at=at, limit=limit)


def delete_first(tx: Tx, table: RetainedTable, domain_id: int, limit: int) -> int:
    """Delete the oldest rows of a domain, at most `limit` rows. Return the number of deleted rows."""
    oldest = f"select id from {table.name} where domain_id = :d order by {table.began}, id limit :limit"
    return _delete(tx, table, f"id in ({oldest})", d=domain_id, limit=limit)


def _delete(tx: Tx, table: RetainedTable, where: str, **parameters: Value) -> int:
    sql = f"delete from {table.name} where {where} returning domain_id, {table.total} as total"
    gone = Counter(tx.all(_DeletedRow, sql, **parameters))
    for each, count in gone.items():
        counters.add(tx, each.domain_id, each.total, -count)
    return gone.total()
