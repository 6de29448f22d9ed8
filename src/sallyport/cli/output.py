"""The output of commands: tables for people, and JSON or CSV for programs.

A table shows times in the local time zone, to the second. The table of a list is not wider than the terminal: the
widest cells are cut and end with an ellipsis. JSON and CSV are complete, with times in UTC.

Names come from the network and may contain terminal control sequences. Unprintable characters are replaced by a
replacement character, and escaped in JSON.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, TextIO

import click

from sallyport.base.text import printable, write_csv

if TYPE_CHECKING:
    from typing import TypeGuard

    from sallyport.base.wire import JSON, Row
    from sallyport.shell.command import Form

MIN_WIDTH = 8
"""The least width of a column whose cells are cut."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_OUTSIDE_ASCII = re.compile(r"[^\n -~]")


def print_rows(
    rows: "Iterable[Row]",
    columns: Sequence[str],
    form: "Form | None" = None,
    *,
    to: TextIO | None = None,
    fits: bool = False,
    spare: Sequence[str] = (),
) -> None:
    """Print the columns of rows as a table or CSV, or whole rows as JSON. CSV and JSON are printed row by row; a table
    waits for all rows.

    to: a text file opened without newline translation; None for standard output. fits: whether a table is cut to the
    width of the terminal. spare: columns that the table then leaves out first.
    """
    out = sys.stdout if to is None else to
    if form == "json":
        _print_json_rows(rows, out)
    elif form == "jsonl":
        out.writelines(_json(row, indent=None) + "\n" for row in rows)
    elif form == "csv":
        write_csv(out, chain([columns], ([row.get(column) for column in columns] for row in rows)), _text)
    else:
        click.echo("\n".join(Table(columns, terminal_width(out) if fits else None, spare).lines(rows)), file=out)
    out.flush()


def print_json(value: "JSON") -> None:
    """Print indented JSON."""
    click.echo(_json(value))


def _print_json_rows(rows: "Iterable[Row]", out: TextIO) -> None:
    opening = "["
    for row in rows:
        out.write(opening + "\n  " + _json(row).replace("\n", "\n  "))
        opening = ","
    out.write("[]\n" if opening == "[" else "\n]\n")


def _json(value: "JSON", indent: int | None = 2) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isascii() and "\x7f" not in text:  # json.dumps escapes all other control characters
        return text
    return _OUTSIDE_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def only(rows: "Iterable[Row]", wanted: Sequence[str]) -> "tuple[Iterable[Row], Sequence[str]]":
    """Return rows with the wanted columns only, and the names of these columns. A name is found in any case, and with
    blanks or without, as the header of a table shows it. Raises UsageError with the existing names."""
    rest = iter(rows)
    first = next(rest, None)
    if first is None:
        return (), wanted
    known = {_folded(name): name for name in first}
    missing = [name for name in wanted if _folded(name) not in known]
    if missing:
        raise click.UsageError(f'--columns: no column "{printable(missing[0])}"; columns: {", ".join(first)}')
    names = [known[_folded(name)] for name in wanted]
    return ({name: row.get(name) for name in names} for row in chain([first], rest)), names


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


class Table:
    """The lines of a table. The first batch of rows decides the widths of the columns, so that later rows fit below it.

    columns: the columns to show. width: the maximum length of a line, or None if nothing is cut. spare: columns that
    are left out, in this order, until the others fit without a cut.
    """

    def __init__(self, columns: Sequence[str], width: int | None, spare: Sequence[str] = ()) -> None:
        self._columns = columns
        self._width = width
        self._spare = spare
        self._widths: list[int] = []

    def lines(self, rows: "Iterable[Row]") -> list[str]:
        """Return the lines of rows; before the first rows, those of the header."""
        rows = list(rows)
        if self._spare and self._width is not None and not self._widths:
            self._leave_out(rows, self._width)
        zones: dict[str, set[str]] = {column: set() for column in self._columns}
        cells = [[_shown(row.get(column), zones[column]) for column in self._columns] for row in rows]
        header: list[str] = []
        if not self._widths:
            names = [_title(column, zones[column], rows) for column in self._columns]
            names_by_line = self._fit(names, cells, [bool(zones[column]) for column in self._columns])
            header = [self._line(each) for each in names_by_line]
            header.append("  ".join("-" * width for width in self._widths))
        return [*header, *(self._line(row) for row in cells)]

    def _leave_out(self, rows: "Sequence[Row]", most: int) -> None:
        """Leave out spare columns until a line with the whole cells, and the words of the header below each other, has
        at most `most` characters."""
        widths = {
            column: max([*map(len, _words(column)), *(len(_shown(row.get(column), set())) for row in rows)])
            for column in self._columns
        }
        spare = iter(self._spare)
        while _length([*widths.values()]) > most and (column := next(spare, None)):
            widths.pop(column, None)
        self._columns = [*widths]

    def _fit(self, names: Sequence[str], cells: Sequence[Sequence[str]], fixed: Sequence[bool]) -> list[list[str]]:
        """Set the widths of the columns, and return the lines of the header. fixed: whether a column is never cut."""
        natural = [max([len(name), *(len(row[at]) for row in cells)]) for at, name in enumerate(names)]
        self._widths = natural
        if self._width is None or _length(natural) <= self._width:
            return [list(names)]
        words = [_words(name) for name in names]
        heads = [max(map(len, each)) for each in words]
        self._widths = [max([head, *(len(row[at]) for row in cells)]) for at, head in enumerate(heads)]
        least = [
            width if whole or all(row[at].isdecimal() for row in cells) else min(width, max(head, MIN_WIDTH))
            for at, (width, head, whole) in enumerate(zip(self._widths, heads, fixed, strict=True))
        ]
        while _length(self._widths) > self._width:
            wide = max(range(len(names)), key=lambda at: self._widths[at] - least[at] and self._widths[at])
            if self._widths[wide] <= least[wide]:
                break
            self._widths[wide] -= 1
        height = max(map(len, words))
        return [[(each[line] if line < len(each) else "") for each in words] for line in range(height)]

    def _line(self, cells: Sequence[str]) -> str:
        """Return a line of the table. A cell that is wider than its column is cut if the line would be too long."""
        whole = [max(len(cell), width) for cell, width in zip(cells, self._widths, strict=True)]
        if self._width is not None and _length(whole) > self._width:
            pairs = zip(cells, self._widths, strict=True)
            cells = [cell if len(cell) <= width else cell[: width - 1] + "\u2026" for cell, width in pairs]
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)).rstrip()


def terminal_width(out: TextIO) -> int | None:
    """Return the number of characters in a line of the terminal, or None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if out.isatty() else None


def _length(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _words(name: str) -> list[str]:
    """Return the words of a column's name, such as applied and Decision, one for each line of the header."""
    return re.findall(r"[A-Z]?[^A-Z\s]+|[A-Z]+", name) or [name]


def _title(column: str, zones: set[str], rows: "Sequence[Row]") -> str:
    """Return the header of a column. It names the zones of the column's times."""
    name, zone = column.replace("_", " "), "/".join(sorted(zones))
    if zone and any(value and not _is_time(value) for value in (row.get(column) for row in rows)):
        return f"{name} (times in {zone})"
    return f"{name} {zone}" if zone else name


def _is_time(value: "JSON") -> "TypeGuard[str]":
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def _shown(value: "JSON", zones: set[str]) -> str:
    """Return the text of a cell. A time is shown in the local time zone, and its zone is added to `zones`."""
    if _is_time(value):
        local = datetime.fromisoformat(value).astimezone()
        zones.add(local.tzname() or "")
        return f"{local:%Y-%m-%d %H:%M:%S}"
    return _text(value)


def _text(value: "JSON") -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{_text(key)}={_text(each)}" for key, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else printable(str(value)).replace("\n", "\ufffd")
