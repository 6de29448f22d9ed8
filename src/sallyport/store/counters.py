"""Stored counters: the number of rows of each list of a domain, and the pages of a list that has such a counter.

Each page of a list shows the total number of rows. With a stored total, a page does not have to count the rows. A long
list is divided into parts, and the total of each part is stored too. With these totals, a page is found without reading
the rows before the page. The ids of the rows in a part differ only in the last PART_BITS bits. The other bits of the
ids are the number of the part. The name of a part's total is `NAME#` and the number of the part, in hexadecimal digits
that sort like the numbers.

If several nodes changed the same row at each login, they would wait for each other's commits. Therefore a total that
changes at each login has several rows, named `NAME@SHARE`. Each node changes only its own row (`Tx.share`). The total
is the sum of the rows.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from sallyport.store.model import ListQuery, NewRows, Tx

T = TypeVar("T")

PART_BITS: Final = 12
NO_ROW: Final = 2**62
SHARES: Final = "(name = :name or (name > :name || '@' and name < :name || 'A'))"
"""SQL condition for the rows of `counters` whose sum is the total `:name`."""
_ADDED: Final = "on conflict (domain_id, name) do update set value = counters.value + excluded.value"


def add(tx: Tx, domain_id: int, name: str, change: int) -> None:
    """Add `change` to the stored total of a domain's list. Call this function in the transaction that changes the list.

    name: the name of the total.
    """
    tx.execute(
        f"insert into counters (domain_id, name, value) values (:d, :name, :change) {_ADDED}",  # noqa: S608
        d=domain_id,
        name=name,
        change=change,
    )


def add_share(tx: Tx, changes: Mapping[tuple[int, str], int]) -> None:
    """Add to the stored totals of several domains. Call this function at the end of a transaction (see `shared`)."""
    tx.insert_all([shared(tx, changes)])


def shared(tx: Tx, changes: Mapping[tuple[int, str], int]) -> NewRows:
    """Return the rows that add to the stored totals of several domains.

    changes: the change of each total, by domain id and name. If a total has a row for each node, only the row of this
    node is changed.
    """
    rows = [(domain_id, name + tx.share, change) for (domain_id, name), change in sorted(changes.items()) if change]
    return NewRows("counters", ("domain_id", "name", "value"), rows, on_conflict=_ADDED)


def add_row(tx: Tx, domain_id: int, name: str, row_id: int, change: int) -> None:
    """Count an added or deleted row in two totals: the total of the list, and the total of the part of the list that
    contains the row. change: 1 for an added row, -1 for a deleted row. name: the name of the list's total."""
    add_rows(tx, domain_id, name, [row_id], change)


def add_rows(tx: Tx, domain_id: int, name: str, row_ids: Sequence[int], change: int) -> None:
    """Count several added rows, or several deleted rows, in the totals of a list and of its parts (see `add_row`)."""
    add(tx, domain_id, name, change * len(row_ids))
    for part, rows in Counter(row_id >> PART_BITS for row_id in row_ids).items():
        add(tx, domain_id, f"{name}#{part:013x}", change * rows)


def total(tx: Tx, domain_id: int, name: str) -> int:
    """Return the stored total of a domain's list. name: the name of the total."""
    sql = f"select sum(value) from counters where domain_id = :d and {SHARES}"  # noqa: S608
    return tx.value(int, sql, d=domain_id, name=name) or 0


def totals(tx: Tx, name: str) -> dict[int, int]:
    """Return the stored total of the same list in each domain, by domain id. A domain whose list became empty has the
    total 0."""
    sql = f"select domain_id, sum(value) from counters where {SHARES} group by domain_id"  # noqa: S608
    return {int(str(domain_id)): int(str(value)) for domain_id, value in tx.rows(sql, name=name)}


def seek(tx: Tx, domain_id: int, name: str, offset: int) -> tuple[int, int]:
    """Find the part of a list that contains the row at `offset`. Return the lowest id that the part can contain, and
    the position of the row within the part."""
    if offset < 1 << PART_BITS:
        return 0, offset
    sql = "select name, value from counters where domain_id = :d and name > :low and name < :high order by name"
    for part, rows in tx.rows(sql, d=domain_id, low=f"{name}#", high=f"{name}$"):
        count = int(str(rows))
        if offset < count:
            return int(str(part).rpartition("#")[2], 16) << PART_BITS, offset
        offset -= count
    return NO_ROW, 0


def whole_page(
    tx: Tx, shape: Callable[..., T], select: str, table: str, list_query: ListQuery, *, counter: str, only: str = "true"
) -> tuple[list[T], int]:
    """Return a page of all rows of a domain, and the total.

    The last page is as fast as the first, because the parts of the table are counted. So each change of the table must
    call `add_row`. table: the table of the list; its rows have the columns `id` and `domain_id`. counter: the
    name of the total. only: SQL condition for the rows of the list.
    """
    start, offset = seek(tx, list_query.domain_id, counter, list_query.offset)
    ids = f"select id from {table} where domain_id = :d and {only} and id >= :start order by id"  # noqa: S608
    rows = tx.all(
        shape,
        f"{select} where id in ({ids} limit :limit offset :offset) order by id",
        d=list_query.domain_id,
        start=start,
        limit=list_query.limit,
        offset=offset,
    )
    return rows, total(tx, list_query.domain_id, counter)
