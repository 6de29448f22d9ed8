"""Substring search, and pages of lists.

Each searched table has a search index: a second table with the case-folded texts of the rows (`base.text.fold`). The
rowid of an entry is the domain's id, shifted by ROW_BITS, plus the row's id. So the entries of a domain are a range of
rowids, and no search reads the entries of another domain. Each engine implements `TextSearch` in its own way.

A search counts at most MAX_COUNTED matches. The totals of whole lists are stored; `counters` has these totals and the
pages of whole lists.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from sallyport.base.text import fold
from sallyport.base.wire import Minimum
from sallyport.store import counters
from sallyport.store.model import ListQuery, Tx, Value

T = TypeVar("T")

MAX_COUNTED: Final = 10_000
FAR: Final = 100_000
"""Offset from which a page may be read from the end of its list."""
ROW_BITS: Final = 40
_SEPARATOR: Final = "\x1f"
_NOT_INDEXED: Final = {0: "\ufffd", ord(_SEPARATOR): "\ufffd"}  # a NUL is replaced, because neither engine accepts it


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A row for the search index. texts: the case-folded texts of the row."""

    domain_id: int
    row_id: int
    texts: Sequence[str]


class SearchIndex:
    """The search index of one table. name: the table of the index, such as `devices_search`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def add(self, tx: Tx, domain_id: int, row_id: int, texts: Sequence[str]) -> None:
        """Add a row with its case-folded texts."""
        self.add_all(tx, [IndexEntry(domain_id, row_id, texts)])

    def add_all(self, tx: Tx, entries: Sequence[IndexEntry]) -> None:
        """Add many rows. Call this method at the end of a transaction. FTS5 writes its buffer to the table when a
        statement on another table follows, and this should happen only once."""
        rows = [(_first(each.domain_id) + each.row_id, _joined(each.texts)) for each in entries]
        tx.insert(self._name, ("rowid", "texts"), rows)

    def remove(self, tx: Tx, domain_id: int, row_ids: Sequence[int]) -> None:
        """Remove rows of a domain from the index."""
        sql = f"delete from {self._name} where rowid in (select cast(value as bigint) + :first from json_each(:ids))"  # noqa: S608
        tx.execute(sql, first=_first(domain_id), ids=json.dumps(row_ids))

    def merge(self, tx: Tx) -> None:
        """Merge a small part of the index, if the engine needs merges. Call this method in each transaction that
        changes the index."""
        tx.search.merge(tx, self._name)

    def find(self, tx: Tx, domain_id: int, text: str, only: str = "true") -> tuple[str, dict[str, Value]]:
        """Return SQL that selects the ids of the rows of a domain in which a text contains `text`. Also return the
        parameters of the SQL. The search is case-insensitive. text: must not be empty. only: SQL condition for the
        rows, with `{id}` for the id of a row."""
        found, parameters = tx.search.find(self._name, fold(text).translate(_NOT_INDEXED))
        within: dict[str, Value] = {"first": _first(domain_id), "last": _first(domain_id + 1) - 1}
        condition = only.format(id=f"({found.partition(' ')[0]}.rowid - :first)")
        sql = f"select rowid - :first as id from {found} and rowid between :first and :last and {condition}"  # noqa: S608
        return sql, {**within, **parameters}

    def page(
        self,
        tx: Tx,
        shape: Callable[..., T],
        select: str,
        list_query: ListQuery,
        text: str,
        only: str = "true",
        **more: Value,
    ) -> tuple[list[T], int]:
        """Return a page of the rows of the domain in which a text contains `text`, and the total. The total is a
        `Minimum` if more than MAX_COUNTED rows match.

        only: a condition as in `find`. The rows are read in order until the page and the count are complete, so the
        condition should hold for many rows. more: the parameters of the condition.
        """
        ids, parameters = self.find(tx, list_query.domain_id, text, only)
        parameters |= more
        rows = _rows(tx, shape, select, f"{ids} order by rowid", list_query, parameters)
        return rows, _searched_total(tx, rows, list_query, ids, parameters)


def _first(domain_id: int) -> int:
    return domain_id << ROW_BITS


def _joined(texts: Sequence[str]) -> str:
    return _SEPARATOR.join(text.translate(_NOT_INDEXED) for text in dict.fromkeys(texts) if text)


def page(
    tx: Tx,
    shape: Callable[..., T],
    select: str,
    ids: str,
    list_query: ListQuery,
    *,
    counter: str | None,
    searched: bool = False,
    **parameters: Value,
) -> tuple[list[T], int]:
    """Return one page of a list, ordered by id, and the total of the list.

    select: `select ... from ...` for the rows, without a condition; the rows have an `id`. ids: SQL that selects the
    ids of the list. counter: the name of the stored total; None to count the rows. searched: whether the list is the
    result of a search. In a search, at most MAX_COUNTED rows are counted.
    """
    rows = _rows(tx, shape, select, f"{ids} order by id", list_query, parameters)
    if counter is not None:
        return rows, counters.total(tx, list_query.domain_id, counter)
    if searched:
        return rows, _searched_total(tx, rows, list_query, ids, parameters)
    total = _total_in_sight(len(rows), list_query.offset, list_query.limit)
    return rows, _count(tx, ids, parameters) if total is None else total


def _rows(
    tx: Tx, shape: Callable[..., T], select: str, ids: str, list_query: ListQuery, parameters: Mapping[str, Value]
) -> list[T]:
    return tx.all(
        shape,
        f"{select} where id in ({ids} limit :limit offset :offset) order by id",
        limit=list_query.limit,
        offset=list_query.offset,
        **parameters,
    )


def _searched_total(
    tx: Tx, rows: Sequence[object], list_query: ListQuery, ids: str, parameters: Mapping[str, Value]
) -> int:
    return bounded_total(tx, ids, len(rows), offset=list_query.offset, limit=list_query.limit, **parameters)


def bounded_total(tx: Tx, ids: str, found: int, *, offset: int, limit: int, **parameters: Value) -> int:
    """Return the total of a list without a stored total. It is a `Minimum` if it is more than MAX_COUNTED.

    ids: SQL that selects the ids of the list. found: the number of rows on the page at this offset. limit: the maximum
    number of rows on a page. parameters: the parameters of `ids`.
    """
    total = _total_in_sight(found, offset, limit)
    if total is None:
        total = _count(tx, f"{ids} limit :most", {**parameters, "most": MAX_COUNTED + 1})
    return total if total <= MAX_COUNTED else Minimum(MAX_COUNTED)


def from_end(total: int, offset: int, limit: int) -> tuple[int, int] | None:
    """Return (offset, limit) of the same page in the reversed list, if the page is far from the start of the list and
    nearer to its end. Otherwise return None. total: the number of rows in the list."""
    if offset <= FAR or offset <= total // 2:
        return None
    return max(0, total - offset - limit), max(0, min(limit, total - offset))


def _total_in_sight(found: int, offset: int, limit: int) -> int | None:
    """Return the total of a list if it can be computed from the page, because the page contains the last row. Otherwise
    return None; the caller must then count the rows."""
    if found < limit and (found or not offset):
        return offset + found
    return None


def _count(tx: Tx, ids: str, parameters: Mapping[str, Value]) -> int:
    return tx.value(int, f"select count(*) from ({ids}) as found", **parameters) or 0  # noqa: S608
