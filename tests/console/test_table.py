"""Lists: filters, sorting, paging, columns and CSV, by the parameters of the address."""

from dataclasses import dataclass

import pytest
from starlette.datastructures import QueryParams

from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.table import SIZE, Filter, Table, complete

COLUMNS = (Column("name", "Name"), Column("count", "Count", "number"), Column("note", "Note", is_chosen=False))
ROWS: list[Row] = [
    {"name": "beta", "count": 10, "note": ""},
    {"name": "Alpha", "count": 9, "note": "x"},
    {"name": "", "count": 2, "note": "=1+1"},
]


@dataclass
class Visit:
    """The part of a visit that a list uses."""

    query: QueryParams


def table(query: str, rows: list[Row] = ROWS) -> Table:
    """Return a list for the parameters of an address."""
    visit = Visit(QueryParams(query))
    filters = (Filter("search", "Search"), Filter("note", "Note"))
    return complete(visit, COLUMNS, rows, filters=filters)  # type: ignore[arg-type]


def names(shown: Table) -> list[object]:
    """Return the names in the rows."""
    return [row["name"] for row in shown.rows]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["beta", "Alpha", ""]),
        ("sort=name", ["Alpha", "beta", ""]),
        ("sort=count", ["", "Alpha", "beta"]),
        ("sort=-count", ["beta", "Alpha", ""]),
        ("sort=unknown", ["beta", "Alpha", ""]),
        ("search=ALPHA", ["Alpha"]),
        ("search=10", ["beta"]),
        ("note=x", ["Alpha"]),
        ("note=y", []),
    ],
)
def test_a_list_is_filtered_and_sorted_by_its_address(query: str, expected: list[str]) -> None:
    """Filters ignore case, numbers are sorted by size, and a column that does not exist changes nothing."""
    assert names(table(query)) == expected


def test_the_columns_are_chosen_in_the_address() -> None:
    """The chosen columns keep their order. Columns that do not exist are ignored."""
    assert [each.key for each in table("").chosen] == ["name", "count"]
    assert [each.key for each in table("column=note&column=name&column=secret").chosen] == ["name", "note"]


@pytest.mark.parametrize("page", ["2", "0", "-1", "x", "99999999999999999999", "²"])
def test_a_page_that_does_not_exist_is_the_first_or_empty(page: str) -> None:
    """No text in the address makes the page fail."""
    rows: list[Row] = [{"name": str(number), "count": number} for number in range(SIZE + 1)]
    shown = table(f"page={page}", rows)
    assert len(shown.rows) == (1 if page == "2" else SIZE)
    assert (shown.total, shown.last_page) == (SIZE + 1, 2)


def test_csv_has_all_rows_and_no_formula() -> None:
    """The export has every page, with the chosen columns. A text that a spreadsheet would run becomes plain text."""
    rows: list[Row] = [*ROWS, *({"name": str(number), "count": -number, "note": ""} for number in range(SIZE))]
    lines = table("format=csv&column=count&column=note", rows).csv().decode().split("\r\n")
    assert lines[0] == "Count,Note"
    assert lines[3] == "2,'=1+1"
    assert lines[-2] == f"-{SIZE - 1},"
    assert len(lines) == len(rows) + 2


@pytest.mark.parametrize(
    ("query", "size"), [("", 50), ("size=25", 25), ("size=100", 100), ("size=7", 50), ("size=x", 50)]
)
def test_a_person_chooses_the_number_of_rows(query: str, size: int) -> None:
    """A page has one of the offered numbers of rows. Any other number in the address is ignored."""
    shown = table(query, [{"name": str(number)} for number in range(120)])
    assert (len(shown.rows), shown.last_page) == (size, -(-120 // size))
