"""The columns of lists, and their cells as HTML. Cells are made here instead of in a template, because a page has
hundreds of them, and a template takes several times as long for each."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Final, Literal, cast

from markupsafe import Markup

from sallyport.base.answer import Wire, WireField, wire_fields
from sallyport.base.clock import iso
from sallyport.base.mac import as_mac
from sallyport.base.wire import JSON, Row

Kind = Literal[
    "text", "long", "time", "age", "number", "share", "duration", "code", "mac", "flag", "outcome", "verdict", "changes"
]
"""The kinds of columns. long: text that wraps anywhere, so that long identifiers do not widen the list. age: a time
that the script shows relative to now, such as `5 minutes ago`. verdict: an outcome with its reason, such as `reject:
wrong password`. changes: a list of lines; the times in them are shown like other times. share: a number from 0 to 1,
shown as a percentage. duration: a number of seconds, shown as hours and minutes. mac: a MAC address in any notation,
shown in one notation; a CSV file has it as the device sent it. Any other text is shown unchanged."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. key: a field of the rows. is_chosen: whether the column is shown as long as the person has not chosen
    columns. link: a function that returns the address to which the cell of a row links."""

    key: str
    title: str
    kind: Kind = "text"
    is_chosen: bool = True
    link: Callable[[Row], str] | None = None


_NUMBERS: Final = (int, float, int | None, float | None)


def row_columns(
    row: type[object], *chosen: str | Column, links: Mapping[str, Callable[[Row], str]] = MappingProxyType({})
) -> tuple[Column, ...]:
    """Return the columns of a list of rows: first the chosen ones, then those of all other values of a row.

    chosen: the keys of the columns that are shown as long as the person has not chosen columns, and columns of values
    that the page itself adds to the rows. links: by key.
    """
    known = {each.name: each for each in wire_fields(row) if each.wire.look != "none"}
    return tuple(
        key
        if isinstance(key, Column)
        else Column(key, _title(known[key].wire, key), _kind(known[key]), key in chosen, links.get(key))
        for key in dict.fromkeys((*chosen, *known))
    )


def _title(wire: Wire, key: str) -> str:
    return wire.title or re.sub(r"[_A-Z]", lambda part: " " + part[0].strip("_").lower(), key).capitalize()


def _kind(field: WireField) -> Kind:
    if field.wire.look or field.wire.convert is iso:
        return cast(Kind, field.wire.look or "time")
    return "flag" if field.kind is bool else "number" if field.kind in _NUMBERS else "text"


_EMPTY: Final = '<span class="none">&ndash;</span>'
_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("number", "share", "duration"), ' class="number"')
    | {"long": ' class="long"', "changes": ' class="long"', "time": ' class="time"'}
)
_PARTS: Final = re.compile(r"(?<=[,/:;@=])(?=[^/\s])")
"""The places in a long value at which a line may break."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def with_cells(rows: Iterable[Row], columns: Sequence[Column]) -> Iterator[tuple[Row, Markup]]:
    """Yield each row with its cells. Each cell has the title of its column, for narrow screens."""
    heads = [(f'<td data-title="{escape(each.title)}"{class_of(each)}>', each) for each in columns]
    for row in rows:
        yield row, Markup("".join([f"{head}{_content(row, each)}</td>\n" for head, each in heads]))  # noqa: S704


def class_of(column: Column) -> Markup:
    """Return the class attribute of the cells of a column; empty if they need none."""
    return Markup(_CLASSES.get(column.kind, ""))  # noqa: S704  a constant


def cell(row: Row, column: Column) -> Markup:
    """Return the content of a cell."""
    return Markup(_content(row, column))  # noqa: S704  all parts are escaped


def as_time(text: object) -> Markup:
    """Return an ISO 8601 time in UTC as an element that the script converts to the viewer's zone."""
    return Markup(_as_time(str(text)) if text else "")  # noqa: S704  all parts are escaped


def as_age(text: object) -> Markup:
    """Return an ISO 8601 time in UTC as an element that the script shows relative to now."""
    return Markup(_as_age(str(text)) if text else "")  # noqa: S704  all parts are escaped


def as_clock(text: object) -> Markup:
    """Return the time of the service as an element that the script keeps running."""
    return Markup(_as_time(str(text), " data-clock"))  # noqa: S704  all parts are escaped


def breakable(value: object) -> Markup:
    """Return a long value with places at which a line may break, so that no name in it is broken."""
    return Markup("<wbr>".join(map(escape, _PARTS.split(str(value)))))  # noqa: S704  all parts are escaped


def as_duration(seconds: float) -> str:
    """Return a time in seconds as hours, minutes and seconds, such as `2 h 5 min`. Only the two largest parts are
    shown."""
    whole = int(seconds)
    parts = ((whole // 86_400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    first = next((index for index, (number, _) in enumerate(parts) if number), len(parts) - 1)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number) or "0 s"


def as_percent(share: float) -> str:
    """Return a share from 0 to 1 as a percentage."""
    return f"{share * 100:.0f} %"


def _content(row: Row, column: Column) -> str:
    value = row.get(column.key)
    if value is None or value in ("", [], {}):
        return _EMPTY
    if column.link is None:
        return _HTML.get(column.kind, _as_text)(value)
    return f'<a href="{escape(column.link(row))}">{_LINKED.get(column.kind, _as_text)(value)}</a>'


def text_of(value: JSON) -> str:
    """Return a value as text: an array with commas, and an object as KEY=VALUE with commas."""
    if isinstance(value, dict):
        value = [f"{key}={each}" for key, each in value.items()]
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _as_text(value: JSON) -> str:
    return escape(text_of(value))


def _as_time(value: JSON, attribute: str = "") -> str:
    text = str(value)
    return f'<time datetime="{escape(text)}"{attribute}>{escape(text[:19].replace("T", " "))} UTC</time>'


def _as_age(value: JSON) -> str:
    return _as_time(value, " data-ago")


def _as_changes(value: JSON) -> str:
    """Return each line as a list entry."""
    lines = value if isinstance(value, list) else [value]
    found = [_TIME.sub(lambda time: _as_time(time[0]), escape(str(each))) for each in lines]
    return f'<ul class="plain">{"".join(f"<li>{each}</li>" for each in found)}</ul>'


def _as_verdict(value: JSON) -> str:
    outcome, _, reason = str(value).partition(": ")
    return f"{_as_outcome(outcome)} {escape(reason)}".strip()


def _as_code(value: JSON) -> str:
    return f"<code>{escape(str(value))}</code>"


def _as_linked_mac(value: JSON) -> str:
    return escape(as_mac(str(value)))


def _as_outcome(value: JSON) -> str:
    text = escape(str(value))
    return f'<span class="outcome {text}">{text}</span>'


_HTML: Final[Mapping[Kind, Callable[[JSON], str]]] = MappingProxyType(
    {
        "time": _as_time,
        "age": _as_age,
        "changes": _as_changes,
        "verdict": _as_verdict,
        "mac": lambda value: _as_code(as_mac(str(value))),
        "code": _as_code,
        "duration": lambda value: as_duration(cast(float, value)),
        "share": lambda value: as_percent(cast(float, value)),
        "flag": lambda value: "yes" if value else "no",
        "outcome": _as_outcome,
    }
)
"""The HTML of a value by the kind of its column; any other kind is text."""
_LINKED: Final[Mapping[Kind, Callable[[JSON], str]]] = MappingProxyType(
    {"time": _as_time, "age": _as_age, "mac": _as_linked_mac}
)
"""The same for the text of a link."""
