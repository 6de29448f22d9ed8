"""The SQL of what agents are told to do now."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.base.agentwire.state import Trigger, TriggerKind
from sallyport.store.model import Tx

MOST_OPEN: Final = 50
"""Orders of a machine that wait: its state carries them all."""
KEPT: Final = 50
"""Ended orders of a machine that can still be asked about."""
_COLUMNS: Final = "id, instance_id, kind, accounts, ordered_at, ended_at, error"


@dataclass(frozen=True, slots=True)
class Order:
    """What an agent is told to do. accounts: whom to rotate. ended_at: microseconds; None while it waits. error: why it
    was not done; empty where it was, or while it waits."""

    id: int
    instance_id: int
    kind: TriggerKind
    accounts: tuple[str, ...]
    ordered_at: int
    ended_at: int | None
    error: str

    @property
    def outcome(self) -> str:
        """`waiting`, `done` or `failed`."""
        if self.ended_at is None:
            return "waiting"
        return "failed" if self.error else "done"


def open_triggers(tx: Tx, instance_id: int) -> tuple[Trigger, ...]:
    """The orders of a machine that wait, as its state carries them."""
    return tuple(Trigger(each.id, each.kind, each.accounts) for each in open_orders(tx, instance_id))


def open_orders(tx: Tx, instance_id: int) -> list[Order]:
    """The orders of a machine that wait, by id in order."""
    sql = f"select {_COLUMNS} from agent_orders where instance_id = :i and ended_at is null order by id limit :most"
    return tx.all(_order, sql, i=instance_id, most=MOST_OPEN)


def get(tx: Tx, order_id: int) -> Order | None:
    """An order, or None."""
    return tx.one(_order, f"select {_COLUMNS} from agent_orders where id = :id", id=order_id)


def newest(tx: Tx, instance_id: int, limit: int) -> list[Order]:
    """The newest orders of a machine, the newest first."""
    sql = f"select {_COLUMNS} from agent_orders where instance_id = :i order by id desc limit :limit"
    return tx.all(_order, sql, i=instance_id, limit=limit)


def add(tx: Tx, instance_id: int, kind: TriggerKind, accounts: Sequence[str], at: int) -> int:
    """The id of the order: of one that waits and says the same, else of a new one; 0: too many wait."""
    waiting, text = open_orders(tx, instance_id), json.dumps(sorted(set(accounts)))
    for each in waiting:
        if each.kind is kind and json.dumps(list(each.accounts)) == text:
            return each.id
    if len(waiting) >= MOST_OPEN:
        return 0
    sql = (
        "insert into agent_orders (instance_id, kind, accounts, ordered_at) values (:i, :kind, :accounts, :at) "
        "returning id"
    )
    return tx.value(int, sql, i=instance_id, kind=kind.value, accounts=text, at=at) or 0


def end(tx: Tx, instance_id: int, order_id: int, error: str, at: int) -> bool:
    """An order has been carried out, or could not be; whether it was waiting. Old ones are forgotten."""
    which = "id = :id and instance_id = :i and ended_at is null"
    sql = f"update agent_orders set ended_at = :at, error = :error where {which}"
    ended = tx.execute(sql, at=at, error=error, id=order_id, i=instance_id) > 0
    if ended:
        tx.execute(
            "delete from agent_orders where instance_id = :i and ended_at is not null and id <= (select id from "
            "agent_orders where instance_id = :i and ended_at is not null order by id desc limit 1 offset :kept)",
            i=instance_id,
            kept=KEPT,
        )
    return ended


def overdue(tx: Tx, before: int) -> list[Order]:
    """Orders that have waited since before a time."""
    return tx.all(_order, f"select {_COLUMNS} from agent_orders where ended_at is null and ordered_at < :t", t=before)


def _order(*, kind: str, accounts: str, **columns: int) -> Order:
    return Order(kind=TriggerKind(kind), accounts=tuple(json.loads(accounts)), **columns)  # type: ignore[arg-type]
