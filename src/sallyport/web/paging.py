"""Pages of lists: numbered from 1, 10 entries unless asked otherwise.

A body takes one of the mix-ins; an operation calls `body.page()`. A number outside is `invalid pageId`,
`invalid pageNumber` or `invalid pageSize`, a body error like any other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import not_
from types import GenericAlias
from typing import Annotated, Final, TypeVar, get_args

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from sallyport.base.validation import Between
from sallyport.web.scope import Body, Text, Whole

TOTAL_HEADER: Final = "X-Total-Count"
ItemT = TypeVar("ItemT")
SHORT = 100
LONG = 1000
# The last page whose offset a 63-bit number can hold at the largest size.
LAST = (2**63 - 1) // LONG
IsMinimum = Annotated[
    bool,
    Field(
        exclude_if=not_,
        description="Present and true if more entries match than the total says: a search counts 10,000 at most.",
    ),
]
"""Field of the answer of a search; an exact total has none."""
TotalCount = Annotated[int, Field(description="Entries of the whole list, over all pages.")]
Search = Annotated[Text, Field(description="Text that an entry contains, in upper or lower case. Empty: all entries.")]
"""Search term of a list; a body names the searched fields with a description of its own."""


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of a list: `limit :size offset :offset`."""

    offset: int
    size: int


class Counted(list[ItemT]):
    """An answer that is an array: one page of a list. The total of the whole list is sent in TOTAL_HEADER."""

    def __init__(self, entries: Iterable[ItemT], total: int) -> None:
        super().__init__(entries)
        self.total = total

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(GenericAlias(list, get_args(source)))


_PAGE = "Page of the list; the first is 1."
_SIZE = "Entries of a page."
PageNumber = Annotated[Whole, Between(1, LAST), Field(description=_PAGE)]
ShortSize = Annotated[Whole, Between(1, SHORT), Field(description=_SIZE)]
LongSize = Annotated[Whole, Between(1, LONG), Field(description=_SIZE)]


class ShortPaged(Body):
    """pageId and pageSize up to 100: ListDevices and GetAllDomains."""

    pageId: PageNumber = 1  # noqa: N815
    pageSize: ShortSize = 10  # noqa: N815

    def page(self) -> Page:
        """What part of the list is asked for."""
        return Page((self.pageId - 1) * self.pageSize, self.pageSize)


class Paged(Body):
    """pageId and pageSize up to 1000."""

    pageId: PageNumber = 1  # noqa: N815
    pageSize: LongSize = 10  # noqa: N815

    def page(self) -> Page:
        """What part of the list is asked for."""
        return Page((self.pageId - 1) * self.pageSize, self.pageSize)


class PagedByNumber(Body):
    """pageNumber and pageSize up to 1000: the identity operations."""

    pageNumber: PageNumber = 1  # noqa: N815
    pageSize: LongSize = 10  # noqa: N815

    def page(self) -> Page:
        """What part of the list is asked for."""
        return Page((self.pageNumber - 1) * self.pageSize, self.pageSize)
