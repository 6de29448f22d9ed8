"""SQL for events in the order in which they were written, and for the position of each outlet."""

from sallyport.areas.events.event import DomainEvent
from sallyport.store.model import Tx, columns_of

_COLUMNS = ", ".join(columns_of(DomainEvent))
_BETWEEN = "from events where id > :a and id <= :l"


def between(tx: Tx, after: int, last: int, limit: int) -> list[DomainEvent]:
    """Return events of all domains, at most `limit` events. Their ids are greater than `after`, and at most `last`."""
    return tx.all(DomainEvent, f"select {_COLUMNS} {_BETWEEN} order by id limit :limit", a=after, l=last, limit=limit)


def of_node(tx: Tx, after: int, last: int, node_id: int, limit: int) -> list[DomainEvent]:
    """Return events of one node, at most `limit` events. Their ids are greater than `after`, and at most `last`."""
    sql = f"select {_COLUMNS} {_BETWEEN} and node_id = :node order by id limit :limit"
    return tx.all(DomainEvent, sql, a=after, l=last, node=node_id, limit=limit)


def count_of_node(tx: Tx, after: int, last: int, node_id: int) -> int:
    """Return the number of events of one node whose ids are greater than `after`, and at most `last`."""
    return tx.value(int, f"select count(*) {_BETWEEN} and node_id = :node", a=after, l=last, node=node_id) or 0


def has_up_to(tx: Tx, table: str, last: int) -> bool:
    """Return whether a table still has a row whose id is `last` or smaller."""
    return bool(tx.rows(f"select 1 from {table} where id <= :id limit 1", id=last))


def position(tx: Tx, outlet: str, kind: str) -> int | None:
    """Return the id of the last entry that an outlet has delivered, or None for a new outlet.

    kind: the kind of entry, such as logins or the audit trail.
    """
    return tx.value(
        int, "select last_id from outlet_places where name = :name and type = :type", name=outlet, type=kind
    )


def remember(tx: Tx, outlet: str, kind: str, last_id: int) -> None:
    """Store the position of an outlet. last_id: the id of the last entry that the outlet has delivered."""
    tx.execute(
        "insert into outlet_places (name, type, last_id) values (:name, :type, :id) "
        "on conflict (name, type) do update set last_id = excluded.last_id",
        name=outlet,
        type=kind,
        id=last_id,
    )
