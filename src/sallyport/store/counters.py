"""Kept totals of whole lists, so that no page of a million rows has to count them; and of parts of them, so that none
has to walk through all that come before it.

A part is the rows whose ids have all but the last PART_BITS bits in common: `NAME#` and these bits, in hexadecimal
digits that sort as the numbers do.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from sallyport.store.model import Tx

PART_BITS: Final = 12
NO_ROW: Final = 2**62


def add(tx: Tx, domain_id: int, name: str, change: int) -> None:
    """Change a domain's total in the transaction that changes its list."""
    tx.execute(
        "insert into counters (domain_id, name, value) values (:d, :name, :change) "
        "on conflict (domain_id, name) do update set value = counters.value + excluded.value",
        d=domain_id,
        name=name,
        change=change,
    )


def add_row(tx: Tx, domain_id: int, name: str, row_id: int, change: int) -> None:
    """`add` for a list that is counted in parts too: 1 where the row has come, -1 where it has gone."""
    add_rows(tx, domain_id, name, [row_id], change)


def add_rows(tx: Tx, domain_id: int, name: str, row_ids: Sequence[int], change: int) -> None:
    """`add_row` for many rows."""
    add(tx, domain_id, name, change * len(row_ids))
    for part, rows in Counter(row_id >> PART_BITS for row_id in row_ids).items():
        add(tx, domain_id, f"{name}#{part:013x}", change * rows)


def total(tx: Tx, domain_id: int, name: str) -> int:
    """A domain's total."""
    sql = "select value from counters where domain_id = :d and name = :name"
    return tx.value(int, sql, d=domain_id, name=name) or 0


def totals(tx: Tx, name: str) -> dict[int, int]:
    """Return the totals of all domains, by the domain's id; a list that was emptied has 0."""
    sql = "select domain_id, value from counters where name = :name"
    return {int(str(domain_id)): int(str(value)) for domain_id, value in tx.rows(sql, name=name)}


def seek(tx: Tx, domain_id: int, name: str, offset: int) -> tuple[int, int]:
    """Where in a list that is counted in parts a place is: the first id of its part, and the rows from there to it."""
    if offset < 1 << PART_BITS:
        return 0, offset
    sql = "select name, value from counters where domain_id = :d and name > :low and name < :high order by name"
    for part, rows in tx.rows(sql, d=domain_id, low=f"{name}#", high=f"{name}$"):
        count = int(str(rows))
        if offset < count:
            return int(str(part).rpartition("#")[2], 16) << PART_BITS, offset
        offset -= count
    return NO_ROW, 0
