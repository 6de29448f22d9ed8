"""SQL for lock-outs. Times are in microseconds."""

from dataclasses import dataclass
from typing import Annotated

from sallyport.areas.policy.lockouts.failures import WINDOW_US, LockoutKind
from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.store.model import Tx, Value, columns_of, without_case


@dataclass(frozen=True, slots=True)
class LockoutRow:
    """A stored lock-out. name: the name as it was in the request. name_key: the name in the form that is used for
    comparisons. For a station, this form is the octets of the name in hex."""

    domain_id: int
    kind: Annotated[str, Wire("Kind of the name: a user, or a station.", kind=LockoutKind)]
    name_key: str
    name: Annotated[str, Wire("Name of the user, or Calling-Station-Id, as it was sent.")]
    since: Annotated[int, Wire("Time of the failure that caused the lock-out, ISO 8601 in UTC.", convert=iso)]
    until: Annotated[
        int,
        Wire(
            "End of the lock-out, ISO 8601 in UTC. The year 9999 means until an operator unlocks the user.", convert=iso
        ),
    ]
    failures: Annotated[
        int, Wire("Number of failures that led to the lock-out; 0 if the user has said that a login is not theirs.")
    ]


@dataclass(frozen=True, slots=True)
class OwnedRow(LockoutRow):
    """A stored lock-out, and the tenant of its domain."""

    tenant_id: int


_COLUMNS = ", ".join(columns_of(LockoutRow))


def write(tx: Tx, row: LockoutRow) -> None:
    """Store a lock. It replaces a lock of the same name that ends earlier."""
    tx.execute(
        f"insert into lockouts ({_COLUMNS}) values (:d, :kind, :key, :name, :since, :until, :failures) "
        "on conflict (domain_id, kind, name_key) do update set name = excluded.name, since = excluded.since, "
        "until = excluded.until, failures = excluded.failures where lockouts.until < excluded.until",
        d=row.domain_id,
        kind=row.kind,
        key=row.name_key,
        name=row.name,
        since=row.since,
        until=row.until,
        failures=row.failures,
    )


def is_held(tx: Tx, row: LockoutRow) -> bool:
    """Return whether the name of a lock has a stored lock that ends at the same time."""
    sql = "select 1 from lockouts where domain_id = :d and kind = :kind and name_key = :key and until = :until"
    return tx.value(int, sql, d=row.domain_id, kind=row.kind, key=row.name_key, until=row.until) is not None


def of_kind(tx: Tx, domain_id: int, kind: LockoutKind, now: int) -> list[LockoutRow]:
    """Return the locked users or the locked stations of a domain. now: the time in microseconds."""
    return tx.all(
        LockoutRow,
        f"select {_COLUMNS} from lockouts where domain_id = :d and kind = :kind and until > :now",
        d=domain_id,
        kind=kind.value,
        now=now,
    )


def stations_of(tx: Tx, domain_id: int, user: str, now: int) -> frozenset[str]:
    """Return the names of a domain's locked stations from which a user has failed to log in since shortly before the
    lock. user: the case-folded name. now: the time in microseconds."""
    locked = of_kind(tx, domain_id, LockoutKind.STATION, now)
    if not locked:
        return frozenset()
    found = tx.all(
        _station,
        "select distinct station from events where domain_id = :d and at >= :since and decision = 'reject' "
        "and fold(user_name) = :user",
        d=domain_id,
        since=min(row.since for row in locked) - WINDOW_US,
        user=user,
    )
    return frozenset(found) & {row.name for row in locked}


def _station(*, station: str) -> str:
    return station


def delete(tx: Tx, row: LockoutRow) -> None:
    """Delete a lock-out."""
    tx.execute(
        "delete from lockouts where domain_id = :d and kind = :kind and name_key = :key",
        d=row.domain_id,
        kind=row.kind,
        key=row.name_key,
    )


def set_back(tx: Tx, now: int, end: int) -> None:
    """Move locks of the future that end before `end` to the present time, because the clock was set back."""
    tx.execute(
        "update lockouts set until = :now + until - since, since = :now where since > :now and until < :end",
        now=now,
        end=end,
    )


def purge(tx: Tx, now: int) -> int:
    """Delete expired locks."""
    return tx.execute("delete from lockouts where until <= :now", now=now)


def load(tx: Tx, now: int) -> list[OwnedRow]:
    """Return all locks that have not expired, ordered by their end."""
    owners = "(select id as domain_id, tenant_id from domains) as owners using (domain_id)"
    return tx.all(
        OwnedRow,
        f"select {_COLUMNS}, tenant_id from lockouts join {owners} where until > :now order by until, id",
        now=now,
    )


def page(tx: Tx, domain_id: int, now: int, search: str, *, offset: int, limit: int) -> tuple[list[LockoutRow], int]:
    """Return one page of a domain's current locks, ordered by id, and the number of all matches. search: a part of the
    name, or empty for all locks."""
    where, given = "from lockouts where domain_id = :d and until > :now", dict[str, Value](d=domain_id, now=now)
    if search:
        column, given["search"] = without_case("name", search)
        where += f" and instr({column}, :search) > 0"
    sql = f"select {_COLUMNS} {where} order by id limit :limit offset :offset"
    rows = tx.all(LockoutRow, sql, limit=limit, offset=offset, **given)
    return rows, tx.value(int, f"select count(*) {where}", **given) or 0


def has_other_station(tx: Tx, domain_id: int, device_id: int, station: str) -> bool:
    """Return whether the inventory has another station behind this device. station: the Calling-Station-Id as it was
    sent."""
    found = tx.value(
        int,
        "select 1 from stations where domain_id = :d and device_id = :device and station <> :station limit 1",
        d=domain_id,
        device=device_id,
        station=station,
    )
    return found is not None
