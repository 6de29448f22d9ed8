"""How commands print: tables for people, JSON and CSV for programs."""

import csv
import json
import sys
from collections.abc import Sequence

import click

from sallyport.base.command import JSON

Rows = Sequence[dict[str, JSON]]


def rows(value: JSON) -> list[dict[str, JSON]]:
    """The rows of a list command's result."""
    assert isinstance(value, list)  # noqa: S101  what the service sends
    return [row for row in value if isinstance(row, dict)]


def print_json(value: JSON) -> None:
    """Indented JSON on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_csv(table: Rows) -> None:
    """CSV with a line of names (RFC 4180). A cell that a spreadsheet would run as a formula is quoted as text."""
    writer = csv.writer(sys.stdout)
    if table:
        writer.writerow(table[0])
    writer.writerows([_cell(value) for value in row.values()] for row in table)


def _cell(value: JSON) -> JSON:
    return f"'{value}" if isinstance(value, str) and value[:1] in set("=+-@\t\r") else value


def print_table(table: Rows, columns: Sequence[str]) -> None:
    """The named columns as a table; a list stands in one cell."""
    from tabulate import tabulate

    lines = [[_text(row.get(column)) for column in columns] for row in table]
    click.echo(tabulate(lines, headers=[column.replace("_", " ") for column in columns], disable_numparse=True))


def _text(value: JSON) -> str:
    """A value for a terminal: what came from the network cannot send control sequences to it."""
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = "" if value is None else str(value)
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
