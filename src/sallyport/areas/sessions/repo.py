"""SQL for sessions.

A transaction reads the sessions of its records and writes them back, up to 64 sessions in one statement. When a
statement sets an indexed column, SQLite rewrites the index of the column. Therefore an update sets an indexed column
only if its value has changed. An update that changes only the counters of a live session then writes no index. Most
records repeat the descriptive values of their session. These values are then not passed to the statement.

The query for a page first selects the ids of the newest sessions. The indexes separate live, stopped and lost sessions,
so the query merges three lists.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress
from typing import Any, TypeVar, cast

from sallyport.areas.sessions.report import COUNTS, FACTS, USER
from sallyport.areas.sessions.session import (
    FOREVER,
    NAS_REBOOT,
    Session,
    SessionQuery,
    SessionRow,
    SessionState,
    Watched,
)
from sallyport.base.text import fold_name
from sallyport.store import counters
from sallyport.store.model import Tx, Value, columns_of, containing
from sallyport.store.search import bounded_total, from_end

T = TypeVar("T")

COUNTER = "sessions."
"""Prefix of the counter names. A state follows the prefix."""
Key = tuple[int, bytes]
"""The id of a device, and an Acct-Session-Id."""
DAY_US = 86_400_000_000
MAX_SIBLINGS = 100
MAX_SESSIONS = 64  # maximum sessions in a statement
AT_ONCE = 32  # maximum sessions that end in the transaction of an Accounting-On or -Off; the others end later

_KEY = ("domain_id", "device_id", "acct_session_id", "newest")
_PLAIN = ("started", "first_seen", "updated", "stopped", "state", "terminate_cause", "records", "recent", "follows")
_BRIEF = (*_KEY, *COUNTS, *_PLAIN)
"""The columns of a statement that leaves the descriptive values unchanged."""
_COLUMNS = (*_BRIEF, *FACTS)
_WRITTEN = (*_COLUMNS, "user_key")
"""The columns of a statement that writes the descriptive values too. user_key: the User-Name in the form for
comparison."""
_PLAIN_AT = len(_KEY) + len(COUNTS)
_COUNTS, _REST, _FACTS = slice(len(_KEY), _PLAIN_AT), slice(_PLAIN_AT, len(_BRIEF)), slice(len(_BRIEF), None)
_INDEXED = ("state", "user_key", "started", "stopped")
_FIXED = frozenset({*_KEY, *_INDEXED, "follows"})  # columns that `_update` sets only if they have changed, or never
_NAMES = [(f"v{number}", f"s{number}") for number in range(MAX_SESSIONS)]
_STATES = {each.value: each for each in SessionState}
_STATE_NAMES = {each: each.value for each in SessionState}


def newest(tx: Tx, keys: Collection[Key]) -> dict[Key, Session]:
    """Return the newest session for each key (device and Acct-Session-Id). Keys without a session have no entry."""
    found: dict[Key, Session] = {}
    for part in _blocks(list(keys)):
        parameters: dict[str, Value] = {}
        for (device, session), key in zip(_NAMES, part):  # noqa: B905  a part has at most MAX_SESSIONS keys
            parameters[device], parameters[session] = key
        for each in map(_session, tx.rows(_select(len(part)), **parameters)):
            found[each.device_id, each.acct_session_id] = each
    return found


_SIBLING = (
    "select other.id from devices own join devices other on other.domain_id = own.domain_id "
    "and other.ip_address = own.ip_address and other.client_ip = own.client_ip where own.id = :device "
)
_SIBLINGS = (
    f"{_SIBLING} and own.nas_identifier <> '' and other.nas_identifier = '' "
    f"union all {_SIBLING} and own.nas_identifier = '' and other.nas_identifier > '' limit :limit"
)


def siblings(tx: Tx, device_id: int) -> list[int]:
    """Return the devices that may be the same NAS as a device, because one of the two has no NAS-Identifier and their
    addresses are equal. Return no device if there are more than MAX_SIBLINGS.

    Some NAS send a NAS-Identifier only in some of their records.
    """
    found = tx.all(_id, _SIBLINGS, device=device_id, limit=MAX_SIBLINGS + 1)
    return found if len(found) <= MAX_SIBLINGS else []


def _blocks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split items into blocks, with only a few different block sizes.

    Each block size needs an SQL statement of its own. With few block sizes, all statements stay prepared. This saves
    time, because to prepare a statement takes as long as to run it.
    """
    at = 0
    while at < len(items):
        size = min(MAX_SESSIONS, 1 << (len(items) - at).bit_length() - 1)
        yield items[at : at + size]
        at += size


@cache
def _select(size: int) -> str:
    keys = ", ".join(f"(:v{number}, :s{number})" for number in range(size))
    return (  # a join, because SQLite scans the table for `in (values ...)`
        f"with named (device, session) as (values {keys}) select {', '.join(_COLUMNS)} from named cross join sessions "
        "where device_id = device and acct_session_id = session and newest = 1"
    )


def _session(row: tuple[Value, ...]) -> Session:
    """Return a session from a row of _COLUMNS.

    The function reads the columns by position for speed, because it runs for most accounting records.
    """
    values = cast(tuple[Any, ...], row)
    started, first_seen, updated, stopped, state, cause, records, recent, follows = values[_REST]
    session = Session(*values[:3], started=started, follows=bool(follows))
    session.facts, session.counts = values[_FACTS], values[_COUNTS]
    session.first_seen, session.updated, session.stopped = first_seen, updated, stopped
    session.state, session.cause = _STATES[state], cause
    session.records, session.recent = records, recent
    session.stored = session.watched
    return session


def _row(session: Session) -> tuple[Value, ...]:
    """Return the values of _BRIEF."""
    return (
        session.domain_id,
        session.device_id,
        session.acct_session_id,
        1,
        *session.counts,
        session.started,
        session.first_seen,
        session.updated,
        session.stopped,
        _STATE_NAMES[session.state],
        session.cause,
        session.records,
        session.recent,
        int(session.follows),
    )


def _user_key(session: Session) -> tuple[Value]:
    """Return the value of user_key: None if the session has no User-Name."""
    return (fold_name(str(session.facts[USER] or "")) or None,)


_Changes = tuple[bool, bool, bool, bool, bool]
"""Whether the descriptive values of a session have changed, and whether each column of _INDEXED has changed."""
_NEW: _Changes = (True, False, False, False, False)  # of a session that has no row yet
_NONE: _Changes = (False, False, False, False, False)


def _changes(before: Watched, now: Watched) -> _Changes:
    """Compare a session that has a row with the values in the row."""
    old, new = before.facts, now.facts
    return (
        old != new,
        before.state is not now.state,
        old[USER] != new[USER],
        before.started != now.started,
        before.stopped != now.stopped,
    )


@cache
def _update(changes: _Changes) -> str:
    """Return the `on conflict` clause that updates an existing row."""
    columns, moved = _WRITTEN if changes[0] else _BRIEF, {*compress(_INDEXED, changes[1:])}
    taken = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in _FIXED or name in moved)
    return f"on conflict (device_id, acct_session_id) where newest = 1 do update set {taken}"


def put(tx: Tx, sessions: Iterable[Session]) -> None:
    """Write sessions, and update the stored numbers of sessions in each state.

    A session must be the newest one of its device that has its Acct-Session-Id.
    """
    groups: dict[_Changes, list[tuple[Value, ...]]] = {}
    totals: Counter[tuple[int, str]] = Counter()
    for session in sessions:
        now, stored = session.watched, session.stored
        if stored is None or stored.state is not now.state:
            totals[session.domain_id, COUNTER + now.state] += 1
            if stored is not None:
                totals[session.domain_id, COUNTER + stored.state] -= 1
        changes = _NEW if stored is None else _NONE if stored == now else _changes(stored, now)
        row = _row(session)
        groups.setdefault(changes, []).append(row + session.facts + _user_key(session) if changes[0] else row)
        session.stored = now
    for changes, rows in groups.items():
        columns = _WRITTEN if changes[0] else _BRIEF
        for part in _blocks(rows):
            tx.insert("sessions", columns, part, on_conflict=_update(changes))
    counters.add_share(tx, totals)


def supersede(tx: Tx, session: Session) -> None:
    """Write a session, and mark it as not the newest, because a newer session has the same Acct-Session-Id."""
    put(tx, [session])
    tx.execute(
        "update sessions set newest = 0 where device_id = :device and acct_session_id = :session and newest = 1",
        device=session.device_id,
        session=session.acct_session_id,
    )


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart or shutdown of a device. It ends each session of the device, unless the session has a later record.

    at: the time of the restart in microseconds. after: the id of the last session that was examined.
    """

    device_id: int
    domain_id: int
    at: int
    after: int = 0


def restart(tx: Tx, begun: Restart) -> None:
    """End the first sessions of a restarted device at once. If sessions remain, store the restart, so that `end_more`
    continues."""
    after = end_some(tx, begun, AT_ONCE)
    if after:
        tx.execute(
            "insert into device_restarts (device_id, domain_id, at, after) values (:device, :d, :at, :after) "
            "on conflict (device_id) do update set after = 0, "
            "at = case when excluded.at > device_restarts.at then excluded.at else device_restarts.at end",
            device=begun.device_id,
            d=begun.domain_id,
            at=begun.at,
            after=after,
        )


def restarts(tx: Tx) -> list[Restart]:
    """Return the stored restarts. A restart stays in the store until all sessions of its device have been examined."""
    return tx.all(Restart, "select device_id, domain_id, at, after from device_restarts order by device_id limit 1000")


def end_more(tx: Tx, begun: Restart, limit: int) -> None:
    """End the next sessions of a stored restart, and store the progress. If a newer restart of the device has replaced
    the stored restart, do not store the progress."""
    after = end_some(tx, begun, limit)
    same = {"device": begun.device_id, "at": begun.at, "before": begun.after}
    where = "where device_id = :device and at = :at and after = :before"
    if after:
        tx.execute(f"update device_restarts set after = :after {where}", after=after, **same)
    else:
        tx.execute(f"delete from device_restarts {where}", **same)


def end_some(tx: Tx, begun: Restart, limit: int) -> int:
    """Examine the next `limit` live sessions of a restarted device. End the sessions without a record since the
    restart.

    Return the id of the last examined session, or 0 if none is left.
    """
    found: dict[str, Value] = {"d": begun.domain_id, "device": begun.device_id, "after": begun.after}
    where = "domain_id = :d and device_id = :device and state = 'live' and id > :after"
    ids = tx.all(_id, f"select id from sessions where {where} order by id limit :limit", limit=limit, **found)
    if ids:
        count = tx.execute(
            "update sessions set state = 'lost', stopped = :at, terminate_cause = :cause "
            f"where {where} and id <= :last and updated < :at",
            at=begun.at,
            cause=NAS_REBOOT,
            last=ids[-1],
            **found,
        )
        _lost(tx, begun.domain_id, count)
    return ids[-1] if len(ids) == limit else 0


_SILENT = (
    "state = 'live' and updated < :now - :day "
    "and updated < :now - 3 * (updated - first_seen) / (case when records > 2 then records - 1 else 1 end)"
)
"""SQL condition for silent sessions.

The last record is more than a day old, and older than three times the average interval between the session's records.
"""


def silent(tx: Tx, domain_id: int, now: int, limit: int) -> list[int]:
    """Return the ids of a domain's live sessions that have had no record for too long, at most `limit`."""
    return tx.all(
        _id,
        f"select id from sessions where domain_id = :d and {_SILENT} order by id limit :limit",
        d=domain_id,
        now=now,
        day=DAY_US,
        limit=limit,
    )


def end_silent(tx: Tx, domain_id: int, ids: list[int], now: int) -> int:
    """End the given sessions, except sessions that have got a new record. Return the number of ended sessions.

    A session's end is set to the time of its last record.
    """
    sql = f"update sessions set state = 'lost', stopped = updated where id = :id and {_SILENT}"
    count = sum(tx.execute(sql, id=each, now=now, day=DAY_US) for each in ids)
    _lost(tx, domain_id, count)
    return count


def end_unknown(tx: Tx, session_id: int, domain_id: int, now: int) -> None:
    """End a live session that its device does not know. If another record of the session arrives later, the session
    becomes live again."""
    sql = "update sessions set state = 'lost', stopped = :now where id = :id and state = 'live'"
    _lost(tx, domain_id, tx.execute(sql, id=session_id, now=now))


def _lost(tx: Tx, domain_id: int, count: int) -> None:
    if count:
        counters.add(tx, domain_id, COUNTER + SessionState.LIVE, -count)
        counters.add(tx, domain_id, COUNTER + SessionState.LOST, count)


def _id(*, id: int) -> int:
    return id


def live(tx: Tx) -> dict[int, int]:
    """Return the number of live sessions of each domain. The number is 0 after the last session of a domain has
    ended."""
    return counters.totals(tx, COUNTER + SessionState.LIVE)


_DEVICE = ("ip_address", "client_ip", "device_name")
_SHOWN = ", ".join(f"sessions.{name}" for name in columns_of(SessionRow) if name not in _DEVICE)
_SEARCHED = (
    "user_name", "station", "called_station", "framed_ip", "framed_ipv6", "framed_ipv6_prefix",
    "delegated_ipv6_prefix", "acct_session_id",
)  # fmt: skip


def domain_of(tx: Tx, session_id: int) -> int | None:
    """Return the domain of a session, or None if the session does not exist."""
    return tx.value(int, "select domain_id from sessions where id = :id", id=session_id)


def page(tx: Tx, query: SessionQuery) -> tuple[list[SessionRow], int]:
    """Return one page of sessions, newest first, and the number of all matches. In a search, at most MAX_COUNTED
    sessions are counted; the number is then a `Minimum`.

    If the device was deleted, its fields are taken from the device history.
    """
    ids, parameters = _ids(query)
    order = "{0}started desc, {0}id desc" if query.is_period else "{0}id desc"
    total = _stored_total(tx, query) if query.is_whole else None
    stretch = f"order by {order.format('')} limit :limit offset :offset"
    offset, limit = query.offset, query.limit
    if total is not None and (reverse := from_end(total, offset, limit)):
        stretch = "order by id limit :limit offset :offset"
        offset, limit = reverse
    past = "select {} from device_history where domain_id = sessions.domain_id and device_id = sessions.device_id"
    rows = tx.all(
        SessionRow,
        f"select {_SHOWN}, coalesce(devices.ip_address, ({past.format('ip_address')} limit 1)) as ip_address, "
        f"coalesce(devices.client_ip, ({past.format('client_ip')} limit 1)) as client_ip, "
        f"coalesce(devices.device_name, ({past.format('nas_identifier')} limit 1)) as device_name "
        "from sessions left join devices on devices.id = sessions.device_id "
        f"where sessions.id in ({ids} {stretch}) order by {order.format('sessions.')}",
        limit=limit,
        offset=offset,
        **parameters,
    )
    if total is None:
        total = bounded_total(tx, ids, len(rows), offset=query.offset, limit=query.limit, **parameters)
    return rows, total


def _stored_total(tx: Tx, query: SessionQuery) -> int:
    return sum(counters.total(tx, query.domain_id, COUNTER + state) for state in query.states)


def _ids(query: SessionQuery) -> tuple[str, dict[str, Value]]:
    parameters: dict[str, Value] = {"d": query.domain_id}
    where = "domain_id = :d"
    if query.session_id:
        where, parameters["session"] = f"{where} and id = :session", query.session_id
    if query.device_id:
        where, parameters["device"] = f"{where} and device_id = :device", query.device_id
    if query.search:
        found, more = containing(_SEARCHED, query.search)
        where, parameters = f"{where} and {found}", parameters | more
    narrow = query.user_name or query.since or query.until != FOREVER
    if query.user_name:
        where, parameters["user"] = f"{where} and user_key = :user", fold_name(query.user_name)
    if query.since or query.until != FOREVER:
        where = f"{where} and started >= :since and started < :until"
        parameters |= {"since": query.since, "until": query.until}
    if narrow:  # coalesce() prevents the use of the index on states, because the indexes on users and times are faster
        if query.live is not None:
            where = f"{where} and coalesce(state, '') {'=' if query.live else '<>'} '{SessionState.LIVE}'"
        return f"select id from sessions where {where}", parameters
    parts = [f"select id from sessions where {where} and state = '{state}'" for state in query.states]
    return " union all ".join(parts), parameters
