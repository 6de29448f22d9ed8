"""Functions that several pages use: they read the rows of a list, the object in the address of a page, the lines of a
text field, and the rights of the person."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.console.visit import Visit
from sallyport.shell.command import entries
from sallyport.web.scope import ADMINS, OPERATORS

PAGE: Final = 1000
MAX_ROWS: Final = 100_000
MAX_PAGES: Final = 10
"""Maximum number of pages that are read to find a name."""
_NOTHING: Final[Mapping[str, JSON]] = MappingProxyType({})


async def every(
    visit: Visit, path: str, rows: str, body: Mapping[str, JSON], *, domain: int | None = None, size: int = PAGE
) -> list[Row]:
    """Return all rows of a list operation, but at most MAX_ROWS. rows: the field of the answer that contains the rows.
    size: the maximum number of rows in one answer of the operation. Raises Refused, StoreError."""
    found = list[Row]()
    while len(found) < MAX_ROWS:
        number = len(found) // size + 1
        paging: dict[str, JSON] = {"pageId": number, "pageSize": size}
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


def number_at(visit: Visit, name: str) -> int:
    """Return the id that a parameter of the path contains. Raises NotFound if it is no id."""
    return number(visit.at[name], name)


def domain_at(visit: Visit) -> Domain:
    """Return the domain whose id is in the path. Raises NotFound."""
    for each in visit.domains():
        if str(each.id) == visit.at["domain"]:
            return each
    raise NotFound("domain not found")


def lines(text: str) -> list[JSON]:
    """Return the lines of a text field without spaces around them, and without empty lines."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def tag_changes(visit: Visit, present: JSON) -> dict[str, JSON]:
    """Return the fields `tags` and `note` of a change, from the form `tags.html`. A present tag whose line was removed
    is removed. present: the tags before."""
    found: dict[str, JSON] = {"note": visit.fields.get("note", "")}
    if "tags" in visit.fields:
        given = lines(visit.fields["tags"])
        before = present if isinstance(present, dict) else {}
        keys = {str(line).partition("=")[0].strip().lower() for line in given}
        removed = [f"{key}=" for key in before if key not in keys]
        found["tags"] = [*given, *removed] if given else []
    return found


def pairs(text: str, form: str, field: str) -> dict[str, JSON]:
    """Return the names and values of a text field with NAME=VALUE on each line.

    form: how to write a line, for the error message. field: the field of the operation. Raises Invalid.
    """
    return dict[str, JSON](_pair(line, field, form) for line in lines(text))


def _pair(line: JSON, field: str, form: str = "NAME=VALUE") -> tuple[str, str]:
    name, sign, value = str(line).partition("=")
    if not sign:
        raise Invalid.about(f'"{line}" is not understood: write {form}', field)
    return name.strip(), value.strip()


def replies(text: str) -> list[JSON]:
    """Return the reply attributes of a text field with NAME=VALUE on each line. Raises Invalid."""
    return [{"name": name, "value": value} for line in lines(text) for name, value in [_pair(line, "replyAttributes")]]


def ids(values: Iterable[str], kind: str) -> list[JSON]:
    """Return the ids of chosen rows, which a form sends as texts. Raises NotFound."""
    return [number(value, kind) for value in values]


def changes(
    known: Iterable[JSON], present: Iterable[JSON], chosen: Iterable[str], kind: str
) -> list[tuple[str, list[JSON]]]:
    """Return the changes that a form with checkboxes makes, as (`add` or `remove`, ids).

    known: the ids that the form has listed. Others are not changed. present: the ids that are assigned already. chosen:
    the ids that are checked, as texts. kind: the kind of object, for the error message. Raises NotFound.
    """
    listed = {int(str(each)) for each in known}
    before = listed & {int(str(each)) for each in present}
    after = listed & {int(str(each)) for each in ids(chosen, kind)}
    both = (("add", after - before), ("remove", before - after))
    return [(action, list[JSON](sorted(changed))) for action, changed in both if changed]


def joined(values: JSON, most: int = 3, total: int = 0) -> str:
    """Return the first entries of a list as text. If the list has more entries, the text ends with their number, such
    as `a, b, c and 2 more`. total: the number of all entries, if `values` contains only the first ones."""
    texts = [str(each) for each in values] if isinstance(values, list) else []
    more = max(len(texts), total) - min(len(texts), most)
    return ", ".join(texts[:most]) + (f" and {more} more" if more else "")


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


async def instances(visit: Visit, domain: Domain, text: str = "") -> list[tuple[str, str]]:
    """Return the id and the name of the first PAGE instances of a domain, as choices. text: a part of the name, or
    empty. Raises Refused, StoreError."""
    body: dict[str, JSON] = {"filter": text, "pageSize": PAGE}
    found = entries((await visit.call("/api/v1/instances/list", body, domain=domain.id)).get("instances"))
    return [(str(each["instanceId"]), str(each["instanceName"])) for each in found]


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
    for the error message. Raises NotFound if there is no such row. Also raises Refused, StoreError.

    The function halves the list until it has found the row: in a list of 100,000 rows, it reads 17 rows.
    """
    first, last = 1, 1
    number = 1
    while first <= last:
        paging: dict[str, JSON] = {**body, "pageId": number, "pageSize": 1}
        answer = await visit.call(path, paging, domain=domain)
        found = entries(answer.get(rows))
        present = int(str(found[0][key])) if found else 0
        if found and present == value:
            return found[0]
        if number == 1:
            last = int(str(answer.get("totalCount", answer.get("count", 0))))
        if found and present < value:
            first = number + 1
        else:
            last = number - 1
        number = (first + last) // 2
    raise NotFound(f"{kind} not found")


async def named(
    visit: Visit, path: str, rows: str, body: dict[str, JSON], keys: tuple[str, ...], name: str, *, domain: int
) -> Row | None:
    """Search a list operation for the row in which one of the fields `keys` is equal to a name, ignoring case. Return
    None if there is no such row.

    The operation returns all rows that contain the name. So the function may need to read several pages. Raises
    Refused, StoreError.
    """
    wanted = fold(name)
    for page in range(1, MAX_PAGES + 1):
        found = entries((await visit.call(path, {**body, "pageId": page, "pageSize": PAGE}, domain=domain)).get(rows))
        for row in found:
            if any(fold(str(row[key])) == wanted for key in keys):
                return row
        if len(found) < PAGE:
            break
    return None
