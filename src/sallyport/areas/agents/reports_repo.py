"""The SQL of agents' messages: reports, drift, and discovered accounts and groups."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final

from sallyport.agentwire.report import Drift, DriftKind
from sallyport.areas.users.accounts.account import DISCOVERED
from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.wire import JSON
from sallyport.store.inserts import insert_new
from sallyport.store.model import LISTED, Tx, Value, columns_of, listed
from sallyport.store.slices import SLICE, delete_slice

KEPT_REPORTS: Final = 20
"""Number of reports that are stored for each machine."""
MAX_OF_KIND: Final = 300
"""Maximum number of drift entries of one machine and one kind that have not ended."""
MAX_DRIFT: Final = 1000
"""Maximum number of stored drift entries of one machine, including ended drift."""
ALL: Final = 2**62
"""A limit so high that it has no effect."""
ACCOUNT, GROUP = "account", "group"
_OF_MACHINE: Final = (
    ("agent_grants", "instance_id, user_id, group_id"), ("agent_takeovers", "instance_id, account"),
    ("agent_passwords", "id"), ("agent_orders", "id"), ("agent_reports", "id"), ("agent_drift", "id"),
)  # fmt: skip
"""The tables that contain rows of machines, and the key columns of each table."""


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A stored report. number: the id of the report, chosen by the agent. outcome: `ok` or `errors`. told: the content
    of the report as JSON. Times are in microseconds."""

    id: int
    instance_id: int
    number: str
    at: int
    version: int
    outcome: str
    told: str


@dataclass(frozen=True, slots=True)
class StoredDrift:
    """A stored drift entry: a change that was made on a machine, but not by its agent."""

    id: Annotated[int, Wire("Id of the drift entry.", "driftId", title="Id")]
    instance_id: Annotated[int, Wire("Id of the instance.", "instanceId", look="none")]
    kind: Annotated[str, Wire("Kind of the drift: privilege, sudoers, key, password, account or clock.")]
    subject: Annotated[str, Wire("Account or file that was changed.", "name", title="Account or file", look="code")]
    detail: Annotated[str, Wire("Change in words.", title="Change")]
    put_back: Annotated[
        int, Wire("Whether the agent has undone the change.", "putBack", bool, kind=bool, title="Undone")
    ]
    first_at: Annotated[
        int, Wire("Time at which the drift was first found, ISO 8601 UTC.", "first", iso, title="First found")
    ]
    last_at: Annotated[
        int, Wire("Time at which the drift was last found, ISO 8601 UTC.", "last", iso, title="Last found", look="age")
    ]
    ended_at: Annotated[
        int | None, Wire("End of the drift, ISO 8601 UTC. Empty if the drift has not ended.", "ended", iso, empty=True)
    ]


@dataclass(frozen=True, slots=True)
class Discovered:
    """An account or a group that an agent discovered on its machine. user_id: the id of the endpoint user with the same
    name, or None. told: the fields of the account or group as JSON."""

    kind: str
    name: str
    user_id: int | None
    told: str
    at: int

    @property
    def fields(self) -> dict[str, JSON]:
        """The fields of the account or group, decoded from JSON."""
        found: dict[str, JSON] = json.loads(self.told)
        return found


_REPORT: Final = ", ".join(columns_of(StoredReport))
_DRIFT: Final = ", ".join(columns_of(StoredDrift))
_DISCOVERED: Final = ", ".join(columns_of(Discovered))


def add_report(tx: Tx, domain_id: int, report: StoredReport) -> bool:
    """Store a report. Delete all reports of the machine except the newest KEPT_REPORTS reports. Return False if the
    report is stored already."""
    columns = {name: value for name, value in asdict(report).items() if name != "id"}
    added = insert_new(tx, "agent_reports", "instance_id, number", domain_id=domain_id, **columns)
    if added is not None:
        tx.execute(
            "delete from agent_reports where instance_id = :i and id <= (select id from agent_reports "
            "where instance_id = :i order by id desc limit 1 offset :kept)",
            i=report.instance_id,
            kept=KEPT_REPORTS,
        )
    return added is not None


def reports(tx: Tx, instance_id: int, limit: int, offset: int = 0) -> list[StoredReport]:
    """Return one page of a machine's reports, the newest first."""
    sql = f"select {_REPORT} from agent_reports where instance_id = :i order by id desc limit :limit offset :offset"
    return tx.all(StoredReport, sql, i=instance_id, limit=limit, offset=offset)


def count_reports(tx: Tx, instance_id: int) -> int:
    """Return the number of reports of a machine."""
    return tx.value(int, "select count(*) from agent_reports where instance_id = :i", i=instance_id) or 0


def is_stored(tx: Tx, instance_id: int, number: str) -> bool:
    """Return whether a machine's report with this number is stored."""
    sql = "select 1 from agent_reports where instance_id = :i and number = :number"
    return tx.value(int, sql, i=instance_id, number=number) is not None


def drift_lasts(tx: Tx, instance_id: int, drift: Drift, at: int) -> bool:
    """Record that an agent found stored drift again. Return False if the drift is not stored or has ended."""
    sql = (
        "update agent_drift set last_at = :at, put_back = :back, ended_at = :ended where instance_id = :i and "
        "kind = :kind and subject = :name and detail = :detail and ended_at is null"
    )
    return tx.execute(sql, **_columns(instance_id, drift, at)) > 0


def end_drift(tx: Tx, instance_id: int, ending: Collection[DriftKind], at: int) -> None:
    """End all stored drift of the kinds in `ending` that was not found at time `at`."""
    for kind in ending:
        sql = (
            "update agent_drift set ended_at = :at where instance_id = :i and kind = :kind and last_at < :at "
            "and ended_at is null"
        )
        tx.execute(sql, at=at, i=instance_id, kind=kind.value)


def within_limits(tx: Tx, instance_id: int, new: Sequence[Drift]) -> list[Drift]:
    """Return the entries of `new` that can be stored within the limits. Each kind of drift has its own limit, so that
    many entries of one kind do not prevent the storing of another kind."""
    return [each for kind in DriftKind for each in _within_limit(tx, instance_id, kind, new)]


def add_drift(tx: Tx, domain_id: int, instance_id: int, new: Iterable[Drift], at: int) -> None:
    """Store new drift. Then delete drift of the machine if it has ended and is not among the machine's newest
    MAX_DRIFT entries."""
    for each in new:
        _add(tx, domain_id, instance_id, each, at)
    tx.execute(
        "delete from agent_drift where instance_id = :i and ended_at is not null and id <= (select id from "
        "agent_drift where instance_id = :i order by id desc limit 1 offset :most)",
        i=instance_id,
        most=MAX_DRIFT,
    )


def _within_limit(tx: Tx, instance_id: int, kind: DriftKind, new: Sequence[Drift]) -> list[Drift]:
    wanted = [each for each in new if each.kind is kind]
    if not wanted:
        return []
    sql = "select count(*) from agent_drift where instance_id = :i and kind = :kind and ended_at is null"
    lasting = tx.value(int, sql, i=instance_id, kind=kind.value) or 0
    return wanted[: max(0, MAX_OF_KIND - lasting)]


def _add(tx: Tx, domain_id: int, instance_id: int, drift: Drift, at: int) -> None:
    tx.execute(
        "insert into agent_drift (domain_id, instance_id, kind, subject, detail, put_back, first_at, last_at, "
        "ended_at) values (:d, :i, :kind, :name, :detail, :back, :at, :at, :ended) "
        "on conflict (instance_id, kind, subject, detail) do update set put_back = excluded.put_back, "
        "first_at = excluded.first_at, last_at = excluded.last_at, ended_at = excluded.ended_at",
        d=domain_id,
        **_columns(instance_id, drift, at),
    )


def _columns(instance_id: int, drift: Drift, at: int) -> dict[str, Value]:
    return {
        "i": instance_id,
        "kind": drift.kind.value,
        "name": drift.name,
        "detail": drift.detail,
        "back": int(drift.put_back),
        "at": at,
        "ended": at if drift.put_back else None,
    }


def drift(
    tx: Tx, domain_id: int, instance_id: int | None, *, lasting: bool, limit: int, offset: int
) -> tuple[list[StoredDrift], int]:
    """Return one page of the drift on a domain's machines or on one machine, and the total number of drift entries. The
    newest drift comes first. lasting: whether to return only drift that has not ended."""
    where = (
        "domain_id = :d"
        + (" and instance_id = :i" if instance_id else "")
        + (" and ended_at is null" if lasting else "")
    )
    parameters: dict[str, Value] = {"d": domain_id, **({"i": instance_id} if instance_id else {})}
    rows = tx.all(
        StoredDrift,
        f"select {_DRIFT} from agent_drift where {where} order by id desc limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **parameters,
    )
    return rows, tx.value(int, f"select count(*) from agent_drift where {where}", **parameters) or 0


def discovered(tx: Tx, instance_id: int, kind: str, limit: int, offset: int = 0) -> tuple[list[Discovered], int]:
    """Return one page of the accounts or groups discovered on a machine, ordered by name, and their total number."""
    where = "instance_id = :i and kind = :kind"
    rows = tx.all(
        Discovered,
        f"select {_DISCOVERED} from agent_discovered where {where} order by name limit :limit offset :offset",
        i=instance_id,
        kind=kind,
        limit=limit,
        offset=offset,
    )
    count = tx.value(int, f"select count(*) from agent_discovered where {where}", i=instance_id, kind=kind)
    return rows, count or 0


def find_discovered(tx: Tx, instance_id: int, name: str) -> Discovered | None:
    """Return the discovered account with this name on a machine, or None."""
    where = "instance_id = :i and kind = 'account' and name = :name"
    return tx.one(Discovered, f"select {_DISCOVERED} from agent_discovered where {where}", i=instance_id, name=name)


def discovered_users(tx: Tx, instance_id: int, most: int = ALL) -> dict[tuple[str, str], int | None]:
    """Return the accounts and groups that were discovered on a machine, each with the id of an endpoint user. The keys
    are (kind, name). The value is None if no endpoint user has the name of the account.

    most: the maximum number of accounts and groups to return.
    """
    sql = "select kind, name, user_id from agent_discovered where instance_id = :i limit :most"
    rows = tx.rows(sql, i=instance_id, most=most)
    return {(str(kind), str(name)): None if user_id is None else int(user_id) for kind, name, user_id in rows}


def store_discovered(tx: Tx, instance_id: int, found: Sequence[Discovered]) -> None:
    """Store discovered accounts and groups. A stored account or group with the same kind and name is replaced."""
    tx.insert(
        "agent_discovered",
        ("instance_id", "kind", "name", "user_id", "told", "at"),
        [(instance_id, each.kind, each.name, each.user_id, each.told, each.at) for each in found],
        on_conflict="on conflict (instance_id, kind, name) do update set user_id = excluded.user_id, "
        "told = excluded.told, at = excluded.at",
    )


def forget_discovered(tx: Tx, instance_id: int, kind: str, name: str) -> None:
    """Delete a discovered account or group."""
    sql = "delete from agent_discovered where instance_id = :i and kind = :kind and name = :name"
    tx.execute(sql, i=instance_id, kind=kind, name=name)


def forget_users(tx: Tx, user_ids: Sequence[int]) -> int:
    """Delete the stored grants of users, and unlink the users from discovered accounts. Call this before the users are
    deleted.

    One call changes at most SLICE rows and returns their number, so call it until it returns 0.
    """
    whose = f"user_id in {LISTED}"
    found = f"select instance_id, kind, name from agent_discovered where {whose} limit {SLICE}"
    lost = f"update agent_discovered set user_id = null where (instance_id, kind, name) in ({found})"
    ids = listed(user_ids)
    key = "instance_id, user_id, group_id"
    return delete_slice(tx, "agent_grants", key, whose, ids=ids) or tx.execute(lost, ids=ids)


def forget_machine(tx: Tx, instance_id: int) -> int:
    """Delete all data that agents stored for a machine, except the discovered accounts, before the machine is deleted.

    One call deletes up to SLICE rows and returns their number, so call it until it returns 0.
    """
    return next((rows for table, key in _OF_MACHINE if (rows := _of_machine(tx, table, key, instance_id))), 0)


def _of_machine(tx: Tx, table: str, key: str, instance_id: int) -> int:
    return delete_slice(tx, table, key, "instance_id = :i", i=instance_id)


def discovered_people(tx: Tx, instance_id: int) -> list[Discovered]:
    """Return the accounts on a machine whose endpoint users have the source `discovered`."""
    sql = (
        "select d.kind, d.name, d.user_id, d.told, d.at from agent_discovered d join endpoint_users u "
        "on u.id = d.user_id where d.instance_id = :i and u.source = :source"
    )
    return tx.all(Discovered, sql, i=instance_id, source=DISCOVERED)


def is_discovered(tx: Tx, user_id: int) -> bool:
    """Return whether any machine has a discovered account of this user."""
    return tx.value(int, "select 1 from agent_discovered where user_id = :u limit 1", u=user_id) is not None
