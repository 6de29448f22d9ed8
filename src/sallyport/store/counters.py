"""Stored totals. The total of a whole list saves the count of its rows for each page. Totals of parts of a list save
reading all rows before a page.

A part of a list consists of the rows whose ids are equal except in the last PART_BITS bits. Its key is `NAME#` and the
other bits, in hexadecimal digits that sort like the numbers.
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
    """Change the total of a list that is counted in parts: 1 for an added row, -1 for a deleted one."""
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
    """Return the totals of all domains, by domain id. A list that has become empty has the total 0."""
    sql = "select domain_id, value from counters where name = :name"
    return {int(str(domain_id)): int(str(value)) for domain_id, value in tx.rows(sql, name=name)}


def seek(tx: Tx, domain_id: int, name: str, offset: int) -> tuple[int, int]:
    """Find the part of a list that contains a position. Return the first id of the part, and the number of rows from
    there to the position."""
    if offset < 1 << PART_BITS:
        return 0, offset
    sql = "select name, value from counters where domain_id = :d and name > :low and name < :high order by name"
    for part, rows in tx.rows(sql, d=domain_id, low=f"{name}#", high=f"{name}$"):
        count = int(str(rows))
        if offset < count:
            return int(str(part).rpartition("#")[2], 16) << PART_BITS, offset
        offset -= count
    return NO_ROW, 0
