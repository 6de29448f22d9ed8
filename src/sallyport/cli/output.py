"""The output of commands: tables for people, and JSON or CSV for programs.

Names come from the network and may contain terminal control sequences. Unprintable characters are replaced by a
replacement character, and escaped in JSON.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

import click

from sallyport.base.text import as_cell

if TYPE_CHECKING:
    from sallyport.base.command import Form
    from sallyport.base.wire import JSON, Row

_OUTSIDE_ASCII = re.compile(r"[^\n -~]")


def safe(text: str) -> str:
    """Replace unprintable characters, because a terminal may execute control sequences. Line ends are kept."""
    if text.isprintable():  # the usual case, for speed
        return text
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)


def print_rows(
    rows: "Iterable[Row]", columns: Sequence[str], form: "Form | None" = None, *, to: TextIO | None = None
) -> None:
    """Print the columns of rows as a table or CSV, or whole rows as JSON. CSV and JSON are printed row by row; a table
    waits for all rows.

    to: a text file opened without newline translation; None for standard output.
    """
    out = sys.stdout if to is None else to
    if form == "json":
        _print_json_rows(rows, out)
    elif form == "jsonl":
        out.writelines(_json(row, indent=None) + "\n" for row in rows)
    elif form == "csv":
        _print_csv(rows, columns, out)
    else:
        click.echo(_table(rows, columns), file=out)
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


def _print_csv(rows: "Iterable[Row]", columns: Sequence[str], out: TextIO) -> None:
    """Print CSV with a header line (RFC 4180), in which no cell is a formula for a spreadsheet."""
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)


def _cell(value: "JSON") -> str:
    text = _text(value)
    return as_cell(text) if isinstance(value, str | list) else text


def _table(rows: "Iterable[Row]", columns: Sequence[str]) -> str:
    """Return the columns of rows as a text table. A list is shown in one cell."""
    from tabulate import tabulate

    lines = [[_text(row.get(column)) for column in columns] for row in rows]
    return tabulate(lines, headers=[column.replace("_", " ") for column in columns], disable_numparse=True)


def _text(value: "JSON") -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else safe(str(value)).replace("\n", "\ufffd")
