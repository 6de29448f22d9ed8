"""Files with bypass stations, in the format of `bypass export`, for the command line and the console."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from sallyport.areas.policy.bypass.bodies import MAX_STATIONS
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON, Row

EXPORTED: Final = ("station", "name", "vlan", "role", "tags", "until")
FILE_COLUMNS: Final = (*EXPORTED, "psk")
"""The columns that an import may have."""
MAX_ROWS_SIZE: Final = 1 << 19
"""Maximum length of the rows of one request, far below the limit of a body. A row has at most some ten thousand."""
_TAGS_IN_A_CELL: Final = "tags must be separated by commas, with quotation marks around each tag that contains a comma"


def split_tags(rows: Iterable[Row]) -> None:
    """Replace the tags in one cell of each row by an array of tags. Raises ValueError with the line."""
    for row in rows:
        if isinstance(tags := row.get("tags"), str):
            try:
                row["tags"] = [*chain.from_iterable(csv.reader([tags], skipinitialspace=True, strict=True))]
            except csv.Error:
                raise ValueError(f"line {row['line']}: {_TAGS_IN_A_CELL}") from None


def parts_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows of a file in parts that fit into one request of ImportBypassStations."""
    part, size = list[Row](), 0
    for row in rows:
        octets = len(json.dumps(row))
        if part and (len(part) == MAX_STATIONS or size + octets > MAX_ROWS_SIZE):
            yield part
            part, size = [], 0
        part.append(row)
        size += octets
    if part:
        yield part


def stations_of(part: Iterable[Row]) -> list[JSON]:
    """Return the stations in a request of ImportBypassStations for rows of a file."""
    return [{field: value for field, value in row.items() if field != "line"} for row in part]


def message_with_line(error: Invalid, rows: Sequence[Row]) -> str:
    """Return the message of an error about a row of a file, with its line."""
    first = error.errors[0]
    _, index, *rest = [*first.field.split("."), ""]
    if not index.isdecimal() or int(index) >= len(rows):
        return str(error)
    return f"line {rows[int(index)]['line']}: {'.'.join(filter(None, rest))} {first.message}"
