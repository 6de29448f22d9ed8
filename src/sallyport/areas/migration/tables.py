"""Network devices in CSV files: those of Cisco ISE (Administration > Network Devices > Export), and any table.

A header of ISE has the type behind the name, such as `Name:String(32):Required`. Groups of devices are
`Location#All Locations#Berlin|Device Type#All Device Types#Switch`, and become the tags location=Berlin and
device-type=Switch; deeper levels are separated by `/`.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sallyport.areas.migration.devices import Devices
from sallyport.areas.migration.translation import Finding, Options, Translation, Weight
from sallyport.base.errors import Invalid
from sallyport.base.text import of_cell

MAX_OCTETS: Final = 64 << 20
MAX_ROWS: Final = 100_000
MAX_COLUMNS: Final = 500
MAX_LISTED: Final = 1000
"""Maximum number of characters of the names of columns in an error."""
FIELDS: Final = ("name", "address", "secret", "product", "note")
TAG: Final = "tag."
_ISE: Final = {
    "name": "name",
    "ipaddress": "address",
    "ipaddressmask": "address",
    "authenticationsharedsecret": "secret",
    "description": "note",
    "networkdevicegroups": "groups",
}
_TYPE: Final = re.compile(r":(?:String|Subnets|Boolean|Integer|Enumeration|Required).*", re.DOTALL | re.IGNORECASE)
_SEPARATOR: Final = re.compile('"?sep=([,;\t|])"?\r?', re.IGNORECASE)
"""The first line of some tables, which tells Excel the separator."""
_Row = tuple[int, dict[str, str]]


def translate(path: Path, options: Options) -> Translation:
    """Read a table whose columns the options name. Raises Invalid, OSError."""
    header, rows = _rows(path)
    columns = {field: _column(header, name, field) for field, name in options.columns.items()}
    for field in ("name", "address", "secret"):
        if field not in columns:
            raise Invalid(f"give --map {field}=COLUMN; the columns are {_listed(header)}")
    return _translated(path, options, header, rows, columns)


def translate_ise(path: Path, options: Options) -> Translation:
    """Read the network devices of Cisco ISE. Raises Invalid, OSError."""
    header, rows = _rows(path)
    found = {_ISE[key]: name for name in header if (key := _ise_key(name)) in _ISE}
    if missing := [field for field in ("name", "address", "secret") if field not in found]:
        raise Invalid(
            f"the file has no column for {' and '.join(missing)} of Cisco ISE; `sallyport import csv --map` reads any "
            "table"
        )
    return _translated(path, options, header, rows, found)


def _ise_key(name: str) -> str:
    return re.sub("[^a-z]", "", _TYPE.sub("", name).casefold())


def _column(header: Sequence[str], name: str, field: str) -> str:
    if field not in FIELDS and not field.startswith(TAG):
        raise Invalid(f"--map: no field {field}; fields: {', '.join(FIELDS)}, {TAG}KEY")
    found = next((each for each in header if each.casefold() == name.casefold()), None)
    if found is None:
        raise Invalid(f"--map {field}: no column {name!r}; columns: {_listed(header)}")
    return found


def _listed(header: Sequence[str]) -> str:
    return ", ".join(header)[:MAX_LISTED]


def _rows(path: Path) -> tuple[list[str], list[_Row]]:
    """Return the header, and the rows with their lines."""
    octets = path.read_bytes() if path.stat().st_size <= MAX_OCTETS else b""
    if not octets:
        raise Invalid(f"the file is empty, or has more than {MAX_OCTETS >> 20} MiB")
    encoding = "utf-16" if octets[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = octets.decode(encoding)
    except UnicodeDecodeError as error:
        raise Invalid(f"octet {error.start + 1} is not UTF-8: save the file as UTF-8") from None
    first, _, rest = text.partition("\n")
    named = _SEPARATOR.fullmatch(first)
    delimiter, before = (named[1], 1) if named else (max(",;\t", key=first.count), 0)
    reader = csv.reader(io.StringIO(rest if named else text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(filter(any, reader), [])]
        if len(header) > MAX_COLUMNS:
            raise Invalid(f"the file has more than {MAX_COLUMNS} columns")
        if twice := next((name for name in header if name and header.count(name) > 1), ""):
            raise Invalid(f"the column {twice[:100]!r} is there twice: remove one")
        rows = list[_Row]()
        for cells in reader:
            line = before + reader.line_num
            if not any(cells):
                continue
            if len(cells) > len(header) or len(rows) == MAX_ROWS:
                raise Invalid(f"line {line}: too many {'rows' if len(rows) == MAX_ROWS else 'cells'}")
            rows.append((line, dict(zip(header, cells, strict=False))))
    except csv.Error as error:
        raise Invalid(f"line {before + reader.line_num}: {error}") from None
    return header, rows


def _translated(
    path: Path, options: Options, header: Sequence[str], rows: Sequence[_Row], columns: Mapping[str, str]
) -> Translation:
    devices = Devices([options.domain])
    for line, row in rows:
        source = f"{path.name}:{line}"
        values = {field: row.get(column, "").strip() for field, column in columns.items()}
        values = {field: value if field == "secret" else of_cell(value) for field, value in values.items()}
        name = values["name"]
        tags = [
            tag
            for field, value in values.items()
            if field.startswith(TAG)
            for tag in devices.tag(field.removeprefix(TAG), value, name, source)
        ]
        tags += _group_tags(devices, values.get("groups", ""), name, source)
        for address in re.split(r"[|\s]+", values["address"]) if values["address"] else [""]:
            devices.add(
                name, address, values["secret"], source, tags=tags, note=values.get("note", ""),
                product=values.get("product", ""),
            )  # fmt: skip
    return Translation(devices.items, [*devices.findings, *_unused(path, header, rows, columns)])


def _group_tags(devices: Devices, groups: str, name: str, source: str) -> list[str]:
    """Return the tags of groups of devices of ISE."""
    found = list[str]()
    for group in filter(None, groups.split("|")):
        kind, *levels = group.split("#")
        if len(levels) > 1:  # the first level is the root, such as All Locations
            found += devices.tag(kind.strip().replace(" ", "-"), "/".join(levels[1:]), name, source)
        elif not levels:
            devices.find(Weight.LEFT_OUT, name, source, f"the group {group[:100]!r} is not understood")
    return list(dict.fromkeys(found))


def _unused(path: Path, header: Sequence[str], rows: Sequence[_Row], columns: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each column with values that are not imported. The values may be secrets."""
    found = list[Finding]()
    for name in header:
        count = sum(bool(row.get(name, "").strip()) for _, row in rows)
        if count and name not in columns.values():
            text = f"the column is not imported ({count} with a value)"
            found.append(Finding(Weight.LEFT_OUT, name, f"{path.name}:1", text))
    return found
