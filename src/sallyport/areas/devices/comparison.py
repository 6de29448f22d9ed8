"""The comparison of the inventory with a list from another source, such as an export of NetBox.

A line of the list is a device if one of its cells is an IP address, or if it has a name. It matches a device of the
inventory with the same device address (NAS-IP-Address) or the same NAS-Identifier. Behind a proxy, many devices have
one source address. So a source address shows that the line is heard, but does not make the devices behind it known.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

from sallyport.base.addresses import parse_address
from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.errors import invalid_field
from sallyport.base.text import fold, of_cell

MAX_FILE: Final = 900_000
"""Maximum number of characters of a list."""
MAX_LINES: Final = 20_000
MAX_CELLS: Final = 100
MAX_ADDRESSES: Final = 50_000
"""Maximum number of cells that look like an address. Each of them takes up to 8 µs in a thread beside the logins."""
MAX_DEVICES: Final = 100_000
"""Maximum number of devices of a domain that can be compared."""
MAX_SHOWN: Final = 1000
"""Maximum number of lines and of devices in an answer."""
_NAMES: Final = frozenset(
    {"name", "hostname", "host", "host name", "device", "device name", "device_name", "nas_identifier", "fqdn"}
)
"""Titles of columns with names, in lower case."""
_ADDRESS: Final = re.compile(r"(?=[0-9A-Fa-f]{0,4}[:.][0-9A-Fa-f]{0,4}[:.])[0-9A-Fa-f:.]{2,45}(/\d{1,3})?")
"""A text with two separators, unlike a time or a version number."""


@dataclass(slots=True)
class Line:
    """A device of the list. last_seen: the time of the last request of a matching device, in microseconds, or 0."""

    name: Annotated[str, Wire("Name in the list; empty if it has none.")]
    addresses: Annotated[tuple[str, ...], Wire("IP addresses in the list.", kind=list[str])]
    last_seen: Annotated[
        int,
        Wire(
            "Last request of a matching device, ISO 8601 UTC; empty if none matches.",
            convert=iso,
            empty=True,
            look="age",
        ),
    ] = 0


@dataclass(frozen=True, slots=True)
class ComparedDevice:
    """A device of the inventory that the list does not have."""

    id: Annotated[int, Wire("Id of the device.", "device_id", title="Id")]
    device_name: Annotated[str, Wire("Name of the device.", title="Device")]
    device_type: Annotated[str, Wire("Product of the device.", title="Product")]
    ip_address: Annotated[str, Wire("Source address of its requests.", title="Source address", look="code")]
    client_ip: Annotated[str, Wire("Address of the device.", title="Device address", look="code")]
    nas_identifier: Annotated[str, Wire("NAS-Identifier; empty if absent.", title="NAS-Identifier")]
    last_seen: Annotated[int, Wire("Last request, ISO 8601 UTC.", convert=iso, title="Last request", look="age")]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    lines: the number of devices in the list. silent: those of them that have sent no request since the given time.
    unknown: devices of the inventory that the list does not have.
    """

    lines: int
    silent: Sequence[Line]
    unknown: Sequence[ComparedDevice]


def read_list(text: str) -> list[Line]:
    """Return the devices of a list as CSV (RFC 4180), with commas, semicolons or tabs. The first line has the titles.
    Raises Invalid."""
    text = text.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    found, cells = list[Line](), 0
    try:
        rows = csv.reader(io.StringIO(text), delimiter=delimiter)
        titles = [title.strip().lower() for title in next(rows, [])]
        column = next((index for index, title in enumerate(titles) if title in _NAMES), None)
        for row in rows:
            if len(row) > MAX_CELLS:
                raise invalid_field("file", f"must have at most {MAX_CELLS} columns")
            name = of_cell(row[column]).strip() if column is not None and column < len(row) else ""
            likely = [text for text in map(str.strip, row) if _ADDRESS.fullmatch(text)]
            cells += len(likely)
            if cells > MAX_ADDRESSES:
                raise invalid_field("file", f"must have at most {MAX_ADDRESSES} cells with an IP address")
            addresses = tuple(dict.fromkeys(_addresses(likely)))
            if name or addresses:
                found.append(Line(name, addresses))
            if len(found) > MAX_LINES:
                raise invalid_field("file", f"must have at most {MAX_LINES} lines")
    except csv.Error:
        raise invalid_field("file", "must be a CSV file") from None
    if not found:
        raise invalid_field("file", "must have a line with titles, and lines with a name or an IP address")
    return found


def _addresses(likely: Iterable[str]) -> Iterator[str]:
    """Yield the addresses among texts that look like one, in canonical form, without the length of their prefixes."""
    for text in likely:
        with suppress(ValueError):
            yield str(parse_address(text.partition("/")[0]))


def _host(name: str) -> str:
    """Return the host part of a name with a domain, or an empty text if it has no domain."""
    host, dot, _ = name.partition(".")
    return host if dot else ""


def compare(lines: Sequence[Line], found: Iterable[ComparedDevice], since: int) -> Comparison:
    """Compare a list with devices of the inventory. A name with a domain and one without it match by their host part.
    The work grows with the number of lines and devices, not with their product.

    since: a line without a request since this time is silent, in microseconds.
    """
    addresses = {address for line in lines for address in line.addresses}
    names = {fold(line.name) for line in lines if line.name}
    hosts = {_host(name) for name in names}
    unknown, heard = list[ComparedDevice](), dict[tuple[str, str], int]()
    for device in found:
        name = fold(device.nas_identifier)
        host = _host(name)
        is_named = bool(name) and (name in names or (host in names if host else name in hosts))
        if not is_named and device.client_ip not in addresses:
            unknown.append(device)
        for key in (("", device.client_ip), ("", device.ip_address), ("name", name), ("host", host)):
            heard[key] = max(heard.get(key, 0), device.last_seen)
    for line in lines:
        keys = [("", address) for address in line.addresses]
        if name := fold(line.name):
            host = _host(name)
            keys += [("name", name), ("name", host) if host else ("host", name)]
        line.last_seen = max((heard.get(key, 0) for key in keys), default=0)
    return Comparison(len(lines), [line for line in lines if line.last_seen < since], unknown)
