"""Pages of lists, numbered from 1, with 10 entries by default.

A body class inherits one of the mix-ins, and its operation calls `body.page()`. Every list accepts both names of the
page, pageId and pageNumber. A value that is out of range is an error in the body: `invalid pageId`, `invalid
pageNumber` or `invalid pageSize`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import not_
from types import GenericAlias
from typing import Annotated, Final, TypeVar, get_args

from pydantic import AliasChoices, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from sallyport.base.validation import Between
from sallyport.base.wire import JSON, Minimum
from sallyport.web.scope import Body, Text, Whole

TOTAL_HEADER: Final = "X-Total-Count"
ItemT = TypeVar("ItemT")
SHORT = 100
LONG = 1000
# the last page whose offset fits into 63 bits if the page size is the maximum
LAST = (2**63 - 1) // LONG
IsMinimum = Annotated[
    bool,
    Field(
        exclude_if=not_,
        description="Present and true if more entries match than totalCount says: a search counts at most 10,000.",
    ),
]
"""A field in the answer of a search. If the total is exact, the answer omits the field."""
TotalCount = Annotated[int, Field(description="Number of entries in the whole list, on all pages.")]
Search = Annotated[
    Text, Field(description="Text that an entry contains, in upper or lower case. Leave it empty to list all entries.")
]
"""Search term of a list. A body can replace the description, to name the fields that are searched."""


def totals(total: int) -> dict[str, JSON]:
    """Return the fields totalCount and totalIsMinimum for the answer of a search."""
    return {"totalCount": total, "totalIsMinimum": True} if isinstance(total, Minimum) else {"totalCount": total}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list, in the form of the SQL clause `limit :size offset :offset`."""

    offset: int
    size: int


class Counted(list[ItemT]):
    """An answer that is an array with one page of a list. The header TOTAL_HEADER has the number of entries in the
    whole list."""

    def __init__(self, entries: Iterable[ItemT], total: int) -> None:
        super().__init__(entries)
        self.total = total

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(GenericAlias(list, get_args(source)))


_PAGE = "Number of the page; the first page is 1."
_SIZE = "Maximum number of entries on a page."
PageId = Annotated[
    Whole, Between(1, LAST), Field(validation_alias=AliasChoices("pageId", "pageNumber"), description=_PAGE)
]
PageNumber = Annotated[
    Whole, Between(1, LAST), Field(validation_alias=AliasChoices("pageNumber", "pageId"), description=_PAGE)
]
ShortSize = Annotated[Whole, Between(1, SHORT), Field(description=_SIZE)]
LongSize = Annotated[Whole, Between(1, LONG), Field(description=_SIZE)]


class ShortPaged(Body):
    """A body with pageId, and with pageSize up to 100, as in ListDevices and GetAllDomains."""

    pageId: PageId = 1  # noqa: N815
    pageSize: ShortSize = 10  # noqa: N815

    def page(self) -> Page:
        """Return the requested page."""
        return Page((self.pageId - 1) * self.pageSize, self.pageSize)


class Paged(Body):
    """A body with pageId, and with pageSize up to 1000."""

    pageId: PageId = 1  # noqa: N815
    pageSize: LongSize = 10  # noqa: N815

    def page(self) -> Page:
        """Return the requested page."""
        return Page((self.pageId - 1) * self.pageSize, self.pageSize)


class PagedByNumber(Body):
    """A body with pageNumber, and with pageSize up to 1000, as in the identity operations."""

    pageNumber: PageNumber = 1  # noqa: N815
    pageSize: LongSize = 10  # noqa: N815

    def page(self) -> Page:
        """Return the requested page."""
        return Page((self.pageNumber - 1) * self.pageSize, self.pageSize)
