"""Functions that read all rows of a list, one row of a list, or the lines of a text field. Several pages use them."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sallyport.base.command import entries
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.visit import Visit
from sallyport.domains.domain import Domain
from sallyport.web.scope import ADMINS, OPERATORS

PAGE: Final = 1000
MOST: Final = 100_000
_NOTHING: Final[Mapping[str, JSON]] = MappingProxyType({})


async def every(
    visit: Visit, path: str, rows: str, body: Mapping[str, JSON], *, domain: int | None = None, size: int = PAGE
) -> list[Row]:
    """Return all rows of a list operation, but at most MOST rows. rows: the field of the answer that contains the rows.
    size: the maximum number of rows in one answer of the operation. Raises Refused, StoreError."""
    found = list[Row]()
    while len(found) < MOST:
        number = len(found) // size + 1
        paging: dict[str, JSON] = {"pageId": number, "pageNumber": number, "pageSize": size}
        more = entries((await visit.call(path, {**body, **paging}, domain=domain)).get(rows))
        found += more
        if len(more) < size:
            break
    return found


def one(rows: Iterable[Row], key: str, value: str, kind: str) -> Row:
    """Return the first row whose field `key` is equal to `value`, as text. kind: the kind of object, for the error
    message. Raises NotFound if there is no such row."""
    for row in rows:
        if str(row.get(key)) == value:
            return row
    raise NotFound(f"{kind} not found")


def number(text: str, kind: str) -> int:
    """Return the number of an id that is given as text in an address. kind: the kind of object, for the error message.
    Raises NotFound if the text is not an id."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise NotFound(f"{kind} not found")
    return int(text)


def lines(text: str) -> list[JSON]:
    """Return the lines of a text field without spaces around them, and without empty lines."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def ids(values: Iterable[str], kind: str) -> list[JSON]:
    """Return the ids of chosen rows, which a form sends as texts. Raises NotFound."""
    return [number(value, kind) for value in values]


def joined(values: JSON, most: int = 3) -> str:
    """Return the first entries of a list as text. If the list has more entries, the text ends with their number, such
    as `a, b, c and 2 more`."""
    texts = [str(each) for each in values] if isinstance(values, list) else []
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def of(path: str, domain: Domain) -> str:
    """Return the address of a page, with the domain as parameter."""
    return f"{path}?domain={domain.id}"


def rights(visit: Visit) -> dict[str, object]:
    """Return variables for a template. With these variables, the template shows only the links that the person may
    follow."""
    return {"is_admin": visit.may(ADMINS), "is_operator": visit.may(OPERATORS)}


def choices(values: Sequence[str]) -> list[tuple[str, str]]:
    """Return (value, text) for each value of a choice. The text is equal to the value."""
    return [(value, value) for value in values]


async def find(
    visit: Visit,
    path: str,
    rows: str,
    key: str,
    value: int,
    kind: str,
    *,
    domain: int,
    body: Mapping[str, JSON] = _NOTHING,
) -> Row:
    """Search a list operation for the row with an id. The rows must be ordered by this id. kind: the kind of object,
    for the error message. Raises NotFound if there is no such row. Also raises Refused, StoreError."""
    for page in range(1, MOST // PAGE + 1):
        paging: dict[str, JSON] = {**body, "pageId": page, "pageNumber": page, "pageSize": PAGE}
        found = entries((await visit.call(path, paging, domain=domain)).get(rows))
        for row in found:
            if row.get(key) == value:
                return row
        if len(found) < PAGE or int(str(found[-1].get(key))) > value:
            break
    raise NotFound(f"{kind} not found")
