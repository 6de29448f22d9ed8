"""Kept totals of whole lists, so that no page of a million rows has to count them."""

from sallyport.store.model import Tx


def add(tx: Tx, domain_id: int, name: str, change: int) -> None:
    """Change a domain's total in the transaction that changes its list."""
    tx.execute(
        "insert into counters (domain_id, name, value) values (:d, :name, :change) "
        "on conflict (domain_id, name) do update set value = counters.value + excluded.value",
        d=domain_id,
        name=name,
        change=change,
    )


def total(tx: Tx, domain_id: int, name: str) -> int:
    """A domain's total."""
    sql = "select value from counters where domain_id = :d and name = :name"
    return tx.value(int, sql, d=domain_id, name=name) or 0
