"""SQL for live sessions with the records of their logins, and for re-authorizations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sallyport.areas.reauthorization.reauthorization import (
    MAX_KEPT,
    Reauthorization,
    RunState,
    SessionChange,
    SessionEffect,
)
from sallyport.areas.sessions.session import SessionState
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, NotFound
from sallyport.store.model import Tx, Value, columns_of

LOGIN_BEFORE_US: Final = 60 * SECOND
LOGIN_AFTER_US: Final = 5 * SECOND
"""The time around the start of a session in which its login is searched."""
DELETED: Final = 200


@dataclass(frozen=True, slots=True)
class Live:
    """A live session and the id of its device."""

    id: int
    domain_id: int
    device_id: int
    user_name: str | None
    station: str | None
    called_station: str | None
    nas_port: int | None
    nas_port_id: str | None
    nas_port_type: int | None
    started: int


@dataclass(frozen=True, slots=True)
class PastLogin:
    """The event of a login: its method and factors, its recorded facts, and the attributes of its answer as text."""

    method: str
    factor: str
    machine: int | None
    service_type: int | None
    ssid: str
    port: str
    realm: str | None
    claimed: int | None
    facts: str | None
    attributes: str | None


_PAST: Final = ", ".join(columns_of(PastLogin))
_LIVE: Final = ", ".join(columns_of(Live))
_CHANGE: Final = ", ".join(columns_of(SessionChange))
_COUNTS: Final = ("changed", "done", "waiting")
_RUN: Final = ", ".join(name for name in columns_of(Reauthorization) if name not in _COUNTS)


def live(tx: Tx, domain_id: int, after: int, limit: int) -> list[Live]:
    """Return live sessions at the devices of a domain, ordered by id. after: only sessions with a higher id."""
    return tx.all(
        Live,
        f"select {_LIVE} from sessions where domain_id = :domain_id and state = '{SessionState.LIVE}' and id > :after "
        "order by id limit :limit",
        domain_id=domain_id,
        after=after,
        limit=limit,
    )


def login_of(tx: Tx, domain_id: int, user_key: str, session: Live) -> PastLogin | None:
    """Return the event of the login from which a session comes, preferably of its station. Return None if there is none
    near its start.

    domain_id: the domain of the user. user_key: the user's name without its realm, case-folded.
    """
    return tx.one(
        PastLogin,
        f"select {_PAST} from events where domain_id = :domain "
        "and at >= :since and at <= :until and device_id = :device and applied_decision = 'accept' "
        "and fold(user_name) = :user order by case when lower(station) = lower(:station) then 0 else 1 end, at desc "
        "limit 1",
        domain=domain_id,
        since=session.started - LOGIN_BEFORE_US,
        until=session.started + LOGIN_AFTER_US,
        device=session.device_id,
        user=user_key,
        station=session.station or "",
    )


# --- runs -----------------------------------------------------------------------------------------------------------


def add(tx: Tx, domain_id: int, started_by: str, at: int, *, by_disconnect: bool) -> int:
    """Insert a run, and return its id. Raises Conflict if a run of the domain has not ended."""
    sql = f"select 1 from reauthorizations where domain_id = :domain and state = '{RunState.RUNNING}'"
    if tx.rows(sql, domain=domain_id):
        raise Conflict("a re-authorization of the domain is running: wait for its end, or stop it")
    run_id = tx.value(
        int,
        "insert into reauthorizations (domain_id, state, by_disconnect, started_by, started_at, place, after, "
        f"examined, undecided) values (:domain, '{RunState.RUNNING}', :by_disconnect, :started_by, :at, 0, 0, 0, 0) "
        "on conflict do nothing returning id",
        domain=domain_id,
        by_disconnect=int(by_disconnect),
        started_by=started_by,
        at=at,
    )
    if run_id is None:
        raise Conflict("a re-authorization of the domain is running: wait for its end, or stop it")
    return run_id


def running(tx: Tx) -> list[Reauthorization]:
    """Return the runs that have not ended, at most one of each domain."""
    sql = f"select {_RUN} from reauthorizations where state = '{RunState.RUNNING}' order by id"
    return tx.all(Reauthorization, sql)


def find(tx: Tx, domain_id: int, run_id: int) -> Reauthorization:
    """Return a run of a domain. Raises NotFound."""
    sql = f"select {_RUN} from reauthorizations where domain_id = :domain and id = :id"
    found = tx.one(Reauthorization, sql, domain=domain_id, id=run_id)
    if found is None:
        raise NotFound("re-authorization not found")
    return found


def is_running(tx: Tx, domain_id: int, run_id: int) -> bool:
    """Return whether a run has not ended. A run of a removed domain may not exist any more."""
    sql = f"select 1 from reauthorizations where domain_id = :domain and id = :id and state = '{RunState.RUNNING}'"
    return bool(tx.rows(sql, domain=domain_id, id=run_id))


def page(tx: Tx, domain_id: int) -> list[Reauthorization]:
    """Return the kept runs of a domain with the numbers of their sessions, newest first."""
    sql = f"select {_RUN} from reauthorizations where domain_id = :domain order by id desc limit {MAX_KEPT}"
    return [_counted(tx, each) for each in tx.all(Reauthorization, sql, domain=domain_id)]


def _counted(tx: Tx, run: Reauthorization) -> Reauthorization:
    rows = tx.rows(
        "select outcome, count(*) from reauthorized_sessions where domain_id = :domain and reauthorization_id = :run "
        f"and effect <> '{SessionEffect.UNDECIDED}' group by outcome",
        domain=run.domain_id,
        run=run.id,
    )
    counts = {str(outcome): int(str(number)) for outcome, number in rows}
    return replace(run, changed=sum(counts.values()), done=counts.get("ack", 0), waiting=counts.get("", 0))


def end(tx: Tx, run_id: int, state: RunState, at: int) -> None:
    """End a run."""
    tx.execute(
        f"update reauthorizations set state = :state, ended_at = :at where id = :id and state = '{RunState.RUNNING}'",
        state=state,
        at=at,
        id=run_id,
    )


def delete_old(tx: Tx, domain_id: int) -> int:
    """Delete some rows of runs that are no longer kept. Return the number of rows."""
    old = "select id from reauthorizations where domain_id = :domain order by id desc limit 1 offset :kept"
    run_id = tx.value(int, old, domain=domain_id, kept=MAX_KEPT)
    if run_id is None:
        return 0
    found = "select id from reauthorized_sessions where domain_id = :domain and reauthorization_id <= :run limit :most"
    count = tx.execute(
        f"delete from reauthorized_sessions where id in ({found})", domain=domain_id, run=run_id, most=DELETED
    )
    if count == 0:
        count = tx.execute(
            "delete from reauthorizations where domain_id = :domain and id <= :run", domain=domain_id, run=run_id
        )
    return count


# --- the sessions of a run ------------------------------------------------------------------------------------------


def keep(tx: Tx, run: Reauthorization, changes: Sequence[SessionChange]) -> None:
    """Store the changes of a slice of sessions, and the progress of the run."""
    same: dict[str, Value] = {"domain_id": run.domain_id, "reauthorization_id": run.id}
    rows = [tuple(getattr(each, name) for name in columns_of(SessionChange)) for each in changes]
    if rows:
        tx.insert("reauthorized_sessions", columns_of(SessionChange), rows, same=same)
    tx.execute(
        "update reauthorizations set place = :place, after = :after, examined = :examined, undecided = :undecided "
        "where id = :id",
        place=run.place,
        after=run.after,
        examined=run.examined,
        undecided=run.undecided,
        id=run.id,
    )


def waiting(tx: Tx, run: Reauthorization, limit: int) -> list[SessionChange]:
    """Return sessions of a run whose request was not sent yet, ordered by their id."""
    return tx.all(
        SessionChange,
        f"select {_CHANGE} from reauthorized_sessions where domain_id = :domain and reauthorization_id = :run "
        f"and outcome = '' and effect <> '{SessionEffect.UNDECIDED}' order by session_id limit :limit",
        domain=run.domain_id,
        run=run.id,
        limit=limit,
    )


def changes(tx: Tx, domain_id: int, run_id: int, *, offset: int, limit: int) -> tuple[list[SessionChange], int]:
    """Return one page of the sessions of a run, ordered by their id, and their number."""
    where = "from reauthorized_sessions where domain_id = :domain and reauthorization_id = :run"
    rows = tx.all(
        SessionChange,
        f"select {_CHANGE} {where} order by session_id limit :limit offset :offset",
        domain=domain_id,
        run=run_id,
        limit=limit,
        offset=offset,
    )
    return rows, tx.value(int, f"select count(*) {where}", domain=domain_id, run=run_id) or 0


def answered(tx: Tx, run: Reauthorization, session_id: int, outcome: str, error: str) -> None:
    """Store the answer of a device."""
    tx.execute(
        "update reauthorized_sessions set outcome = :outcome, error = :error where domain_id = :domain "
        "and reauthorization_id = :run and session_id = :session",
        outcome=outcome,
        error=error,
        domain=run.domain_id,
        run=run.id,
        session=session_id,
    )
