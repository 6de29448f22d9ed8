"""Stored totals. Because the total of a whole list is stored, its rows need not be counted for each page. Because
totals of parts of a list are stored, the rows before a page need not be read. The rows of a part have ids that are
equal except in the last PART_BITS bits. Its key is `NAME#` and the other bits, in hexadecimal digits that sort like the
numbers.

If the journals of several nodes changed the same row, they would wait for each other's commits. So a total that
journals count has several rows, `NAME@SHARE`, one for each share (`Tx.share`). The total is the sum of these rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from sallyport.store.model import Tx

PART_BITS: Final = 12
NO_ROW: Final = 2**62
SHARES: Final = "(name = :name or (name > :name || '@' and name < :name || 'A'))"
"""SQL for the rows that belong to a total."""
_ADDED: Final = "on conflict (domain_id, name) do update set value = counters.value + excluded.value"


def add(tx: Tx, domain_id: int, name: str, change: int) -> None:
    """Change a domain's total in the transaction that changes its list."""
    tx.execute(
        f"insert into counters (domain_id, name, value) values (:d, :name, :change) {_ADDED}",  # noqa: S608
        d=domain_id,
        name=name,
        change=change,
    )


def add_share(tx: Tx, changes: Mapping[tuple[int, str], int]) -> None:
    """Change the totals of several domains, by domain and name, in the rows of this transaction's share. Call it at
    the end of a transaction."""
    rows = [(domain_id, name + tx.share, change) for (domain_id, name), change in sorted(changes.items()) if change]
    tx.insert("counters", ("domain_id", "name", "value"), rows, on_conflict=_ADDED)


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
    sql = f"select sum(value) from counters where domain_id = :d and {SHARES}"  # noqa: S608
    return tx.value(int, sql, d=domain_id, name=name) or 0


def totals(tx: Tx, name: str) -> dict[int, int]:
    """Return the totals of all domains, by the domain's id. The total of an emptied list is 0."""
    sql = f"select domain_id, sum(value) from counters where {SHARES} group by domain_id"  # noqa: S608
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
