"""The SQL of events."""

from dataclasses import dataclass

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
    where = "domain_id = :d and at >= :since and at < :until"
    parameters: dict[str, Value] = {"d": query.domain_id, "since": query.since, "until": query.until}
    if query.search:
        text, parameters["search"] = without_case("{}", query.search)
        where += " and (" + " or ".join(f"instr({text.format(column)}, :search) > 0" for column in _SEARCHED) + ")"
    if query.search or query.since or query.until != FOREVER:
        total = tx.value(int, f"select count(*) from events where {where}", **parameters) or 0
    else:
        total = counters.total(tx, query.domain_id, COUNTER)
    if query.before is not None:
        where += " and (at, id) < (:before_at, :before_id)"
        parameters["before_at"], parameters["before_id"] = query.before
    rows = tx.all(
        EventRow,
        f"select {_COLUMNS} from events where {where} order by at desc, id desc limit :limit offset :offset",
        limit=query.limit,
        offset=query.offset,
        **parameters,
    )
    return rows, total


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
