"""The SQL of what agents tell: reports, drift, and what they discovered."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.base.agentwire.report import Drift, DriftKind
from sallyport.base.command import JSON
from sallyport.store.model import Tx, Value

KEPT_REPORTS: Final = 20
"""Of each machine."""
MOST_DRIFT: Final = 1000
"""Of each machine, with what is over."""
ACCOUNT, GROUP = "account", "group"
_REPORT: Final = "id, instance_id, number, at, version, outcome, told"
_DRIFT: Final = "id, instance_id, kind, subject, detail, put_back, first_at, last_at, ended_at"


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report. number: the agent's own. outcome: ok or errors. told: JSON. Times in microseconds."""

    id: int
    instance_id: int
    number: str
    at: int
    version: int
    outcome: str
    told: str


@dataclass(frozen=True, slots=True)
class StoredDrift:
    """What someone else changed on a machine. put_back: 0 or 1. ended_at: None while it lasts."""

    id: int
    instance_id: int
    kind: str
    subject: str
    detail: str
    put_back: int
    first_at: int
    last_at: int
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class Discovered:
    """An account or a group that was there. user_id: of the endpoint user that has the name. told: JSON."""

    kind: str
    name: str
    user_id: int | None
    told: str
    at: int

    @property
    def fields(self) -> dict[str, JSON]:
        """What was told of it."""
        found: dict[str, JSON] = json.loads(self.told)
        return found


def add_report(tx: Tx, domain_id: int, report: StoredReport) -> bool:
    """Keep a report; False: it was kept before. The oldest go."""
    kept = tx.execute(
        "insert into agent_reports (domain_id, instance_id, number, at, version, outcome, told) "
        "values (:d, :i, :number, :at, :version, :outcome, :told) on conflict (instance_id, number) do nothing",
        d=domain_id,
        i=report.instance_id,
        number=report.number,
        at=report.at,
        version=report.version,
        outcome=report.outcome,
        told=report.told,
    )
    if kept:
        tx.execute(
            "delete from agent_reports where instance_id = :i and id <= (select id from agent_reports "
            "where instance_id = :i order by id desc limit 1 offset :kept)",
            i=report.instance_id,
            kept=KEPT_REPORTS,
        )
    return kept > 0


def reports(tx: Tx, instance_id: int, limit: int, offset: int = 0) -> list[StoredReport]:
    """The newest reports of a machine, the newest first."""
    sql = f"select {_REPORT} from agent_reports where instance_id = :i order by id desc limit :limit offset :offset"
    return tx.all(StoredReport, sql, i=instance_id, limit=limit, offset=offset)


def count_reports(tx: Tx, instance_id: int) -> int:
    """How many are kept of a machine."""
    return tx.value(int, "select count(*) from agent_reports where instance_id = :i", i=instance_id) or 0


def note_drift(
    tx: Tx, domain_id: int, instance_id: int, found: Sequence[Drift], ending: Collection[DriftKind], at: int
) -> list[Drift]:
    """Keep what an agent has found; what is of the kinds `ending` and was not found again is over. What is new."""
    room = MOST_DRIFT - (
        tx.value(int, "select count(*) from agent_drift where instance_id = :i and ended_at is null", i=instance_id)
        or 0
    )
    new = [each for each in dict.fromkeys(found) if _note(tx, domain_id, instance_id, each, at, may_add=room > 0)]
    for kind in ending:
        sql = (
            "update agent_drift set ended_at = :at where instance_id = :i and kind = :kind and last_at < :at "
            "and ended_at is null"
        )
        tx.execute(sql, at=at, i=instance_id, kind=kind.value)
    tx.execute(
        "delete from agent_drift where instance_id = :i and ended_at is not null and id <= (select id from "
        "agent_drift where instance_id = :i order by id desc limit 1 offset :most)",
        i=instance_id,
        most=MOST_DRIFT,
    )
    return new


def _note(tx: Tx, domain_id: int, instance_id: int, drift: Drift, at: int, *, may_add: bool) -> bool:
    """Whether it is not known to last."""
    values: dict[str, Value] = {"i": instance_id, "kind": drift.kind.value, "name": drift.name, "detail": drift.detail}
    same = "instance_id = :i and kind = :kind and subject = :name and detail = :detail"
    lasting = tx.value(int, f"select 1 from agent_drift where {same} and ended_at is null", **values)
    if lasting is None and not may_add:
        return False
    tx.execute(
        "insert into agent_drift (domain_id, instance_id, kind, subject, detail, put_back, first_at, last_at, "
        "ended_at) values (:d, :i, :kind, :name, :detail, :back, :at, :at, :ended) "
        "on conflict (instance_id, kind, subject, detail) do update set put_back = excluded.put_back, "
        "last_at = excluded.last_at, ended_at = excluded.ended_at, "
        "first_at = case when agent_drift.ended_at is null then agent_drift.first_at else excluded.first_at end",
        d=domain_id,
        back=int(drift.put_back),
        at=at,
        ended=at if drift.put_back else None,
        **values,
    )
    return lasting is None


def drift(
    tx: Tx, domain_id: int, instance_id: int | None, *, lasting: bool, limit: int, offset: int
) -> tuple[list[StoredDrift], int]:
    """One page of a domain's drift, or of a machine's, the newest first, and how many there are. lasting: only what is
    not over."""
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
    """One page of what was found on a machine, by name in order, and how many there are."""
    where = "instance_id = :i and kind = :kind"
    rows = tx.all(
        Discovered,
        f"select kind, name, user_id, told, at from agent_discovered where {where} order by name "
        "limit :limit offset :offset",
        i=instance_id,
        kind=kind,
        limit=limit,
        offset=offset,
    )
    count = tx.value(int, f"select count(*) from agent_discovered where {where}", i=instance_id, kind=kind)
    return rows, count or 0


def find_discovered(tx: Tx, instance_id: int, name: str) -> Discovered | None:
    """An account that was found on a machine, or None."""
    sql = (
        "select kind, name, user_id, told, at from agent_discovered "
        "where instance_id = :i and kind = 'account' and name = :name"
    )
    return tx.one(Discovered, sql, i=instance_id, name=name)


def replace_discovered(tx: Tx, instance_id: int, found: Sequence[Discovered]) -> list[int]:
    """Keep what was found in place of what was; the users of accounts that are gone."""
    sql = "select distinct user_id from agent_discovered where instance_id = :i and user_id is not null"
    before = {int(each[0] or 0) for each in tx.rows(sql, i=instance_id)}
    tx.execute("delete from agent_discovered where instance_id = :i", i=instance_id)
    tx.insert(
        "agent_discovered",
        ("instance_id", "kind", "name", "user_id", "told", "at"),
        [(instance_id, each.kind, each.name, each.user_id, each.told, each.at) for each in found],
    )
    return sorted(before - {each.user_id for each in found})


def is_discovered(tx: Tx, user_id: int) -> bool:
    """Whether a user was found on any machine."""
    return tx.value(int, "select 1 from agent_discovered where user_id = :u limit 1", u=user_id) is not None
