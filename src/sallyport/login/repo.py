"""The SQL of events, and of what becomes of them and of accounting records when their time is over."""

from collections import Counter
from dataclasses import dataclass

from sallyport.inventory.sessions import repo as sessions
from sallyport.inventory.sessions.report import FACTS
from sallyport.store import counters
from sallyport.store.model import Tx, Value, without_case

COUNTER = "events"
FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event. Times in microseconds."""

    id: int
    at: int
    user_name: str
    ip_address: str
    client_ip: str
    device_id: int
    device_name: str
    station: str
    method: str
    factor: str
    decision: str
    applied_decision: str
    would_have_been: str
    reason: str
    latency_us: int


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events of a domain: from `since` up to `until`, with `search` in user, device, station or address.

    before: (at, id) of the last event of the page before.
    """

    domain_id: int
    search: str = ""
    since: int = 0
    until: int = FOREVER
    before: tuple[int, int] | None = None
    offset: int = 0
    limit: int = 10


_COLUMNS = ", ".join(EventRow.__dataclass_fields__)
_SEARCHED = ("user_name", "device_name", "station", "ip_address", "client_ip")


def page(tx: Tx, query: EventQuery) -> tuple[list[EventRow], int]:
    """One page of events, newest first, and how many match in all."""
    return newest(tx, query), matching(tx, query)


def newest(tx: Tx, query: EventQuery) -> list[EventRow]:
    """One page of events, newest first.

    The place where the page before ended bounds `at` itself: SQLite walks through all that a comparison of pairs
    passes over, half a million rows in 30 ms.
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
    """How many events match on all pages: counted, or the kept total where a domain's all are asked for."""
    if not query.search and not query.since and query.until == FOREVER:
        return counters.total(tx, query.domain_id, COUNTER)
    where, parameters = _filter(query)
    return tx.value(int, f"select count(*) from events where {where}", **parameters) or 0


def _filter(query: EventQuery) -> tuple[str, dict[str, Value]]:
    where = "domain_id = :d and at >= :since and at < :until"
    parameters: dict[str, Value] = {"d": query.domain_id, "since": query.since, "until": query.until}
    if query.search:
        text, parameters["search"] = without_case("{}", query.search)
        where += " and (" + " or ".join(f"instr({text.format(column)}, :search) > 0" for column in _SEARCHED) + ")"
    return where, parameters


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events of a domain from `since` up to `until` that were there when the export began: up to the id `last_id`.

    after: (at, id) of the last event of the page before.
    """

    domain_id: int
    last_id: int
    since: int = 0
    until: int = FOREVER
    after: tuple[int, int] | None = None
    limit: int = 200


def oldest(tx: Tx, stretch: Stretch) -> list[EventRow]:
    """One page of events, oldest first."""
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


def last_id(tx: Tx) -> int:
    """The id of the event that was written last; 0 without one."""
    return tx.value(int, "select max(id) from events") or 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many logins of a user ended in one way."""

    user_name: str
    method: str
    decision: str
    applied_decision: str
    would_have_been: str
    reason: str
    logins: int
    last_at: int


def outcomes(tx: Tx, domain_id: int, since: int) -> list[Outcome]:
    """The monitoring report: logins by user and outcome since a time, most first."""
    return tx.all(
        Outcome,
        "select user_name, method, decision, applied_decision, would_have_been, reason, count(*) as logins, "
        "max(at) as last_at from events where domain_id = :d and at >= :since group by user_name, method, decision, "
        "applied_decision, would_have_been, reason order by logins desc, user_name limit 1000",
        d=domain_id,
        since=since,
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """A table of what is kept for a time. Rows are never changed, and their ids ascend as they are written.

    counter: the name of its kept total; empty where it has none. varying: the columns whose length differs from row
    to row. fixed: octets of the other columns, the row's head and its entry in the index (measured on a million rows).
    split: the column whose value follows in the name of its kept total. ended: the column that its time is counted
    from, null where it has not come; began: the one that says how old the first row is.
    """

    name: str
    counter: str
    varying: tuple[str, ...]
    fixed: int
    split: str = "''"
    ended: str = "at"
    began: str = "at"


EVENTS = Kept("events", COUNTER, tuple(n for n, kind in EventRow.__annotations__.items() if kind is str), 60)
ACCOUNTING = Kept("accounting_records", "", ("session_id", "user_name", "station", "attributes"), 55)
SESSIONS = Kept(
    "sessions",
    sessions.COUNTER,
    ("acct_session_id", "recent", *(f"coalesce({name}, '')" for name in FACTS)),
    250,
    split="state",
    ended="stopped",
    began="first_seen",
)
_SAMPLE = 200


@dataclass(frozen=True, slots=True)
class Held:
    """What a table holds, about. row_octets: of one of its newest rows. first_at: of the row that was written first."""

    rows: int
    row_octets: int
    first_at: int

    @property
    def octets(self) -> int:
        """What all rows take, with their index."""
        return self.rows * self.row_octets


@dataclass(frozen=True, slots=True)
class _Ends:
    first: int | None
    last: int | None


def held(tx: Tx, table: Kept) -> Held:
    """How much a table holds, without counting: what lies between its first and its last id, times a row's size.

    Ids that are missing in between make it too much, until the rows before them are gone. They are few: rows are
    written in the order of their time, and deleted in it, but where a clock was wrong.
    """
    ends = tx.one(
        _Ends, f"select (select min(id) from {table.name}) as first, (select max(id) from {table.name}) as last"
    )
    if ends is None or ends.first is None or ends.last is None:
        return Held(0, table.fixed, FOREVER)
    lengths = " + ".join(f"length({column})" for column in table.varying)
    newest = f"select {lengths} as octets from {table.name} order by id desc limit {_SAMPLE}"
    row_octets = table.fixed + (tx.value(int, f"select avg(octets) from ({newest}) as newest") or 0)
    first_at = tx.value(int, f"select {table.began} from {table.name} where id = :id", id=ends.first)
    return Held(ends.last - ends.first + 1, row_octets, FOREVER if first_at is None else first_at)


def domains_with_older(tx: Tx, table: Kept, at: int) -> list[int]:
    """The domains that have rows from before a time; from the index, without walking through it."""
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
class _Gone:
    """Where a row that was deleted was counted."""

    domain_id: int
    part: str


def delete_older(tx: Tx, table: Kept, domain_id: int, at: int, limit: int) -> int:
    """Delete a domain's oldest rows from before a time, at most `limit`; how many there were."""
    oldest = f"select id from {table.name} where domain_id = :d and {table.ended} < :at order by {table.ended}, id"
    return _delete(tx, table, f"id in ({oldest} limit :limit)", d=domain_id, at=at, limit=limit)


def delete_first(tx: Tx, table: Kept, ids: int) -> int:
    """Delete the rows that were written first, whosever they are: so many ids from the first one on, as `held` counts
    them. How many rows there were."""
    first = tx.value(int, f"select min(id) from {table.name}")
    return 0 if first is None else _delete(tx, table, "id < :end", end=min(first + ids, FOREVER))


def _delete(tx: Tx, table: Kept, where: str, **parameters: Value) -> int:
    if not table.counter:
        return tx.execute(f"delete from {table.name} where {where}", **parameters)
    sql = f"delete from {table.name} where {where} returning domain_id, {table.split} as part"
    gone = Counter(tx.all(_Gone, sql, **parameters))
    for each, count in gone.items():
        counters.add(tx, each.domain_id, table.counter + each.part, -count)
    return gone.total()
