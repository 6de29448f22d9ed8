"""Import files: CSV with a header line, or a JSON array of objects.

Column names are case-insensitive and may contain underscores. An export writes an apostrophe before the text of a cell
if a spreadsheet would interpret the text as a formula. An import removes this apostrophe. It does not remove an
apostrophe from a secret, because exports contain no secrets.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from sallyport.base.errors import StartError
from sallyport.base.text import of_cell
from sallyport.base.wire import JSON, Row
from sallyport.shell.options import InputFile

_SECRETS = {"password", "motp", "psk"}
_NOTHING: tuple[JSON, ...] = ("", None, [])


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of an import file, each with its line number in the key `line`. Empty values are left out.

    columns: the allowed column names. Raises StartError if the file cannot be read or is invalid.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return rows_of(file.read(), columns)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartError(f"{path}: octet {error.start + 1} is not UTF-8; save the file as UTF-8") from error
    except ValueError as error:
        raise StartError(f"{path}: {error}") from error


def rows_of(text: str, columns: Sequence[str]) -> list[Row]:
    """Return the rows of the text of an import file, as `read_rows` does. Raises ValueError."""
    known = {_key(column): column for column in columns}
    try:
        found = _objects(text, known) if text.lstrip()[:1] in ("[", "{") else _cells(text, known)
        return [{"line": line, **row} for line, row in found]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _cells(text: str, known: dict[str, str]) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names = _names(next(reader, []), known, "line 1")
    for row in reader:
        if row and len(row) != len(names):
            raise ValueError(
                f"line {reader.line_num} has more or fewer cells than the first line; give one cell for each column"
            )
        cells = ((name, value if name in _SECRETS else of_cell(value)) for name, value in zip(names, row, strict=False))
        if row:
            yield reader.line_num, {name: value for name, value in cells if value}


def _objects(text: str, known: dict[str, str]) -> Iterator[tuple[int, Row]]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("the file is not an array of objects; give one, such as the output of the export with --json")  # noqa: TRY004  it is the file's fault
    for number, each in enumerate(found, 1):
        if not isinstance(each, dict):
            raise ValueError(f"entry {number} is not an object; give an object with a value for each column")  # noqa: TRY004
        names = _names(list(each), known, f"entry {number}")
        yield number, {name: value for name, value in zip(names, each.values(), strict=True) if value not in _NOTHING}


def _names(given: Sequence[str], known: dict[str, str], where: str) -> list[str]:
    """Return the canonical names of columns. Raises ValueError if a column is unknown or occurs twice.

    given: the names in the file. where: the position in the file, for the error.
    """
    for index, name in enumerate(given):
        if _key(name) not in known:
            raise ValueError(f"{where}: unknown column {name}; there are {', '.join(known.values())}")
        if _key(name) in map(_key, given[:index]):
            raise ValueError(f"{where}: the column {known[_key(name)]} is there twice; remove one")
    return [known[_key(name)] for name in given]


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "")


source = click.argument("file", type=InputFile())
