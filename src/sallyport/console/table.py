"""Lists: filters, sorting, paging, chosen columns and CSV. All choices are in the address, so that a list can be
bookmarked and shared.

A list of a paged operation is read page by page, in the order of the operation (`listed`). A list that is complete in
memory can also be sorted and searched (`complete`). A page returns the result as the variable `table`, and its template
draws it with the macro of the same name.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final

from sallyport.base.text import fold, write_csv
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, text_of
from sallyport.console.visit import Visit
from sallyport.shell.command import entries

SIZE: Final = 50
SIZES: Final = (25, SIZE, 100)
"""Numbers of rows that a page of a list can have."""
LOGINS: Final = "/ad/GetAuthLog"
SEARCHED: Final = 20_000
"""Number of the newest entries of a log that a filter without an index searches at first."""
MAX_EXPORTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter. name: the parameter in the address. choices: (value, text) of each choice; empty for free text."""

    name: str
    title: str
    choices: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class RowSelection:
    """A deletion of rows that the person chooses by checkboxes. path: the page that lists the chosen rows and confirms
    the deletion. name: the parameter in the address of this page. key: the field of the rows with its value. title: the
    field that names a row. button: the text of the button."""

    path: str
    name: str
    key: str
    title: str
    button: str


@dataclass(frozen=True, slots=True)
class RowAction:
    """A button in each row, which submits a form. path: the page that the form is sent to. name: its field. key: the
    field of the rows with its value. title: the title of the column. button: the text of the button."""

    path: str
    name: str
    key: str
    title: str
    button: str


@dataclass
class Table:
    """A list as its page shows it.

    total: the number of all matching rows; None if it is not known. is_minimum: whether more rows match.
    searched_since: the time of the oldest entry that was searched; empty if all entries were. searched: the searched
    entries, as a text for a list without times. empty: a text for a list without rows, which says what to do next.
    can_sort: whether the person can sort the list. next_url: the address of the next page, for lists whose total is not
    known, or of the next part of an export. next_text: the text of the link to it. no_match: where else to look if no
    row matches the filters; empty for nothing. no_match_url: the address of this place; empty if the person may not
    open it.
    """

    visit: Visit
    columns: Sequence[Column]
    rows: Sequence[Row]
    total: int | None
    page: int = 1
    size: int = SIZE
    filters: Sequence[Filter] = ()
    empty: str = "There is nothing here yet."
    can_sort: bool = False
    next_url: str = ""
    next_text: str = "Older"
    is_minimum: bool = False
    searched_since: str = ""
    searched: str = ""
    kept: Sequence[str] = field(default=("domain",))
    """Parameters of the address that belong to no filter, and that the form of the filters must keep."""
    choice: RowSelection | None = None
    action: RowAction | None = None
    no_match: str = ""
    no_match_url: str = ""
    sizes: Sequence[int] = ()
    """Numbers of rows that the person can choose for a page; empty if the page has a fixed number."""

    @cached_property
    def chosen(self) -> list[Column]:
        """The columns that are shown, in the order of the declaration."""
        wanted = self.visit.query.getlist("column")
        known = [column for column in self.columns if column.key in wanted]
        return known or [column for column in self.columns if column.is_chosen]

    @property
    def is_filtered(self) -> bool:
        """Whether the person has set a filter."""
        return any(self.visit.query.get(each.name) for each in self.filters)

    @property
    def page_url(self) -> Callable[[int], str]:
        """A function that returns the address of another page."""
        return lambda page: self.visit.url(page=page if page > 1 else None)

    @property
    def last_page(self) -> int:
        """The number of the last page."""
        return max(1, -(-(self.total or 0) // self.size))

    def sort_url(self, column: Column) -> str:
        """Return the address that sorts the list by a column. If the list is sorted by this column in ascending order,
        the new order is descending."""
        present = self.visit.query.get("sort", "")
        return self.visit.url(sort=f"-{column.key}" if present == column.key else column.key, page=None)

    def csv(self, *, most: int = MAX_EXPORTED, has_titles: bool = True) -> bytes:
        """Return the first rows with the chosen columns as CSV. has_titles: whether the first line has the titles of
        the columns."""
        out = io.StringIO()
        titles: list[list[JSON]] = [[column.title for column in self.chosen]] if has_titles else []
        write_csv(
            out, chain(titles, ([row.get(column.key) for column in self.chosen] for row in self.rows[:most])), _text
        )
        return out.getvalue().encode(errors="replace")


def is_export(visit: Visit) -> bool:
    """Return whether the answer is a CSV file. Then a page returns one part of the list, which may have more rows than
    a page, and the `next_url` of its table leads to the next part."""
    return visit.query.get("format") == "csv"


def wanted(visit: Visit, filters: Sequence[Filter]) -> dict[str, JSON]:
    """Return the values of the filters that are set, by name."""
    return {each.name: visit.query[each.name] for each in filters if visit.query.get(each.name)}


async def listed(
    visit: Visit,
    columns: Sequence[Column],
    path: str,
    rows: str,
    body: Mapping[str, JSON],
    *,
    domain: int | None = None,
    filters: Sequence[Filter] = (),
    empty: str = "There is nothing here yet.",
    most: int = 100,
) -> Table:
    """Return one page of a list operation, or one part of an export. rows: the field of the answer that contains the
    rows. most: the maximum number of rows in one answer of the operation. Raises Refused, StoreError."""
    page, exports = page_of(visit), is_export(visit)
    size = most if exports else size_of(visit)
    paging: dict[str, JSON] = {"pageId": page, "pageSize": size}
    answer = await visit.call(path, {**body, **paging}, domain=domain)
    found = entries(answer.get(rows))
    total = int(str(answer.get("totalCount", answer.get("count", len(found)))))
    next_url = visit.url(page=page + 1) if exports and len(found) == size else ""
    is_minimum = bool(answer.get("totalIsMinimum"))
    return Table(
        visit, columns, found, total, page, size, filters, empty, is_minimum=is_minimum, next_url=next_url, sizes=SIZES
    )


async def recent(
    visit: Visit, path: str, rows: str, time: str, filters: Sequence[str], *, domain: int | None = None
) -> dict[str, JSON]:
    """Return the field `from` for a log whose filters have no index, so that a page need not search a million entries.
    The result is empty if the page must search the whole log (see `has_slow_filter`).

    The other parameters are those of `since`. filters: the names of the filters. Raises Refused, StoreError.
    """
    return await since(visit, path, rows, time, domain=domain) if has_slow_filter(visit, filters) else {}


def has_slow_filter(visit: Visit, filters: Sequence[str]) -> bool:
    """Return whether only the newest entries of a log are searched. This is so if one of the filters is set. It is not
    so if the person has set a time or wants to search everything (`all` in the address), or if the page is exported.

    filters: the names of the filters that have no index.
    """
    given = {name for name, text in visit.query.multi_items() if text}
    return bool(given & set(filters)) and not given & {"from", "to", "all"} and not is_export(visit)


async def since(visit: Visit, path: str, rows: str, time: str, *, domain: int | None = None) -> dict[str, JSON]:
    """Return the field `from` that selects about the SEARCHED newest entries of a log. The result is empty if the log
    has fewer entries.

    path: the list operation of the log. rows: the field of the answer that contains the rows. time: the field of a row
    with its time. Raises Refused, StoreError.
    """
    body: dict[str, JSON] = {"pageId": SEARCHED, "pageSize": 1}
    if path == LOGINS:
        body["withTotal"] = False
    found = entries((await visit.call(path, body, domain=domain)).get(rows))
    return {"from": found[0][time]} if found else {}


def complete(
    visit: Visit,
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    filters: Sequence[Filter] = (),
    empty: str = "There is nothing here yet.",
) -> Table:
    """Return one page of a list, or all rows for an export. `rows` contains the whole list.

    A filter compares its text with the field that has the name of the filter. It selects the rows in which this field
    contains the text. The filter `search` selects the rows in which any column contains the text.
    """
    for each in filters:
        text = fold(visit.query.get(each.name, ""))
        keys = [column.key for column in columns] if each.name == "search" else [each.name]
        if text:
            rows = [row for row in rows if any(text in fold(_text(row.get(key))) for key in keys)]
    sort = visit.query.get("sort", "")
    if sort.removeprefix("-") in {column.key for column in columns}:
        rows = sorted(rows, key=lambda row: _order(row.get(sort.removeprefix("-"))), reverse=sort.startswith("-"))
    page, size, total = page_of(visit), size_of(visit), len(rows)
    if not is_export(visit):
        rows = rows[(page - 1) * size : page * size]
    return Table(visit, columns, rows, total, page, size, filters, empty, can_sort=True, sizes=SIZES)


def size_of(visit: Visit) -> int:
    """Return the number of rows of a page in the address; SIZE if it has none of SIZES."""
    text = visit.query.get("size", "")
    return next((size for size in SIZES if str(size) == text), SIZE)


def page_of(visit: Visit) -> int:
    """Return the number of the page in the address; 1 if it has none."""
    text = visit.query.get("page", "")
    return max(1, int(text)) if text.isdecimal() and text.isascii() and len(text) < 10 else 1


def _text(value: JSON) -> str:
    return "" if value is None else text_of(value)


def _order(value: JSON) -> tuple[bool, float, str]:
    """Return the sort key of a value. Numbers are sorted by size, and texts without regard to case. Empty values are
    last."""
    if isinstance(value, int | float):
        return False, float(value), ""
    return not value, 0.0, fold(_text(value))
