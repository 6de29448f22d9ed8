"""Events in the order in which they were written, and the position of each outlet."""

from dataclasses import dataclass

from sallyport.events.repo import EventRow
from sallyport.store.model import Tx


@dataclass(frozen=True, slots=True)
class DomainEvent(EventRow):
    """An event with its domain."""

    domain_id: int


_COLUMNS = ", ".join(DomainEvent.__dataclass_fields__)


def after(tx: Tx, event_id: int, limit: int) -> list[DomainEvent]:
    """Return the events of all domains that were written after an event."""
    return tx.all(
        DomainEvent, f"select {_COLUMNS} from events where id > :id order by id limit :limit", id=event_id, limit=limit
    )


def position(tx: Tx, outlet: str, kind: str) -> int | None:
    """Return the id of the last event or audit entry that an outlet delivered; None for a new outlet."""
    return tx.value(
        int, "select last_id from outlet_places where name = :name and type = :type", name=outlet, type=kind
    )


def remember(tx: Tx, outlet: str, kind: str, last_id: int) -> None:
    """Store the position of an outlet: it has delivered all entries up to this id."""
    tx.execute(
        "insert into outlet_places (name, type, last_id) values (:name, :type, :id) "
        "on conflict (name, type) do update set last_id = excluded.last_id",
        name=outlet,
        type=kind,
        id=last_id,
    )
