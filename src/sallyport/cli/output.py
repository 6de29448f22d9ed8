"""How commands print: tables for people, JSON and CSV for programs.

Names come from the network, and a terminal obeys what it is sent: whatever is not printable is shown as a replacement
character, or as an escape where the output is JSON.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence

import click
from tabulate import tabulate

from sallyport.base.command import JSON, Form, Row

_OUTSIDE_ASCII = re.compile(r"[^\n -~]")


def safe(text: str) -> str:
    """Text that a terminal shows and does not obey; line ends are kept."""
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)


def print_rows(rows: Iterable[Row], columns: Sequence[str], form: Form | None = None) -> None:
    """The columns of rows as a table or CSV, or the whole rows as JSON; the last two as they come."""
    if form == "json":
        _print_json_rows(rows)
    elif form == "csv":
        _print_csv(rows, columns)
    else:
        _print_table(rows, columns)


def print_json(value: JSON) -> None:
    """Indented JSON on standard output."""
    click.echo(_json(value))


def _print_json_rows(rows: Iterable[Row]) -> None:
    opening = "["
    for row in rows:
        click.echo(opening + "\n  " + _json(row).replace("\n", "\n  "), nl=False)
        opening = ","
    click.echo("[]" if opening == "[" else "\n]")


def _json(value: JSON) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _OUTSIDE_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def _print_csv(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """CSV with a line of names (RFC 4180). A cell that a spreadsheet would run as a formula is quoted as text."""
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    sys.stdout.flush()


def _cell(value: JSON) -> str:
    text = _text(value)
    return f"'{text}" if isinstance(value, str) and value[:1] in set("=+-@\t\r\n") else text


def _print_table(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """The named columns; a list stands in one cell."""
    lines = [[_text(row.get(column)) for column in columns] for row in rows]
    click.echo(tabulate(lines, headers=[column.replace("_", " ") for column in columns], disable_numparse=True))


def _text(value: JSON) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else safe(str(value)).replace("\n", "\ufffd")
