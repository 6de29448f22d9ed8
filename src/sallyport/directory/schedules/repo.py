"""The SQL of schedules."""

from dataclasses import dataclass
from typing import Final

from sallyport.store.model import Tx

_SELECT: Final = (
    "select s.directory_id, s.domain_id, d.name as directory_name, s.every_minutes, s.times, s.zone, s.full_every, "
    "s.runs, s.next_at from directory_schedules s join directories d on d.id = s.directory_id"
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it is stored. times: minutes after midnight, with commas between them."""

    directory_id: int
    domain_id: int
    directory_name: str
    every_minutes: int
    times: str
    zone: str
    full_every: int
    runs: int
    next_at: int


def get(tx: Tx, directory_id: int) -> Schedule | None:
    """The schedule of a directory, or None."""
    return tx.one(Schedule, f"{_SELECT} where s.directory_id = :id", id=directory_id)


def of_domain(tx: Tx, domain_id: int) -> list[Schedule]:
    """The schedules of a domain, by directory."""
    return tx.all(Schedule, f"{_SELECT} where s.domain_id = :d order by s.directory_id", d=domain_id)


def put(tx: Tx, schedule: Schedule, at: int) -> None:
    """Set a directory's schedule."""
    tx.execute(
        "insert into directory_schedules (directory_id, domain_id, every_minutes, times, zone, full_every, next_at, "
        "updated_at) values (:id, :d, :every, :times, :zone, :full, :next, :at) on conflict (directory_id) do update "
        "set every_minutes = excluded.every_minutes, times = excluded.times, zone = excluded.zone, "
        "full_every = excluded.full_every, next_at = excluded.next_at, updated_at = excluded.updated_at",
        id=schedule.directory_id,
        d=schedule.domain_id,
        every=schedule.every_minutes,
        times=schedule.times,
        zone=schedule.zone,
        full=schedule.full_every,
        next=schedule.next_at,
        at=at,
    )


def delete(tx: Tx, directory_id: int) -> None:
    """Forget a directory's schedule."""
    tx.execute("delete from directory_schedules where directory_id = :id", id=directory_id)


def due(tx: Tx, now: int, limit: int) -> list[Schedule]:
    """The schedules whose time has come, the longest due first."""
    return tx.all(Schedule, f"{_SELECT} where s.next_at <= :now order by s.next_at limit :limit", now=now, limit=limit)


def first(tx: Tx) -> int | None:
    """When the next one is due."""
    return tx.value(int, "select min(next_at) from directory_schedules")


def advance(tx: Tx, schedule: Schedule, next_at: int, runs: int) -> bool:
    """Set when it is due again; False where another node has done so."""
    sql = "update directory_schedules set next_at = :next, runs = :runs where directory_id = :id and next_at = :seen"
    return tx.execute(sql, id=schedule.directory_id, next=next_at, runs=runs, seen=schedule.next_at) > 0
