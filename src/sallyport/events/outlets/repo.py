"""Events in the order in which they were written, and how far each outlet is."""

from dataclasses import dataclass

from sallyport.store.model import Tx


@dataclass(frozen=True, slots=True)
class Decided:
    """One event of any domain. Times in microseconds."""

    id: int
    at: int
    domain_id: int
    user_name: str
    ip_address: str
    client_ip: str
    device_name: str
    station: str
    method: str
    factor: str
    decision: str
    applied_decision: str
    would_have_been: str
    reason: str
    latency_us: int


_COLUMNS = ", ".join(Decided.__dataclass_fields__)


def after(tx: Tx, event_id: int, limit: int) -> list[Decided]:
    """The events that were written next."""
    return tx.all(
        Decided, f"select {_COLUMNS} from events where id > :id order by id limit :limit", id=event_id, limit=limit
    )


def last(tx: Tx) -> int:
    """The newest event's id; 0 where there is none."""
    return tx.value(int, "select max(id) from events") or 0


def place(tx: Tx, outlet: str, kind: str) -> int | None:
    """The last event, or entry of the audit trail, that an outlet delivered; None for a new one."""
    return tx.value(
        int, "select last_id from outlet_places where name = :name and type = :type", name=outlet, type=kind
    )


def remember(tx: Tx, outlet: str, kind: str, last_id: int) -> None:
    """An outlet has delivered everything up to that one."""
    tx.execute(
        "insert into outlet_places (name, type, last_id) values (:name, :type, :id) "
        "on conflict (name, type) do update set last_id = excluded.last_id",
        name=outlet,
        type=kind,
        id=last_id,
    )
