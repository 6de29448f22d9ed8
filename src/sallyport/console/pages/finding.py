"""Functions that find the object in the address of a page, and the rights of the person."""

from typing import Final

from sallyport.base.command import entries
from sallyport.base.errors import NotFound
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.console.visit import Visit
from sallyport.domains.domain import Domain
from sallyport.web.scope import ADMINS, OPERATORS

PAGE: Final = 1000
MOST_PAGES: Final = 10


def rights(visit: Visit) -> dict[str, object]:
    """Return variables for a template. With these variables, the template shows only the links that the person may
    follow."""
    return {"is_admin": visit.may(ADMINS), "is_operator": visit.may(OPERATORS)}


def domain_at(visit: Visit) -> Domain:
    """Return the domain whose id is in the path. Raises NotFound."""
    for each in visit.domains():
        if str(each.id) == visit.at["domain"]:
            return each
    raise NotFound("domain not found")


def number_at(visit: Visit, name: str) -> int:
    """Return the id that a parameter of the path contains. Raises NotFound if it is no id."""
    text = visit.at[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise NotFound(f"{name} not found")
    return int(text)


async def named(
    visit: Visit, path: str, rows: str, body: dict[str, JSON], keys: tuple[str, ...], name: str, *, domain: int
) -> Row | None:
    """Search a list operation for the row in which one of the fields `keys` is equal to a name, ignoring case. Return
    None if there is no such row.

    The operation returns all rows that contain the name. So the function may need to read several pages. Raises
    Refused, StoreError.
    """
    wanted = fold(name)
    for page in range(1, MOST_PAGES + 1):
        found = entries((await visit.call(path, {**body, "pageId": page, "pageSize": PAGE}, domain=domain)).get(rows))
        for row in found:
            if any(fold(str(row[key])) == wanted for key in keys):
                return row
        if len(found) < PAGE:
            break
    return None
