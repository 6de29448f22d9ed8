"""Bodies of requests and answers: the types of their fields, the ids that a body claims, and the pages of lists.

A body claims ids of organization, tenant and domain: `Scoped`, `InDomain`, `ScopedIfGiven` or `OfDomain` is its base
class. `web.scope.Gate` compares these ids with the token.

Pages of lists are numbered from 1, with 10 entries by default. A body class inherits one of the mix-ins `ShortPaged`,
`Paged` and `PagedByNumber`, and its operation calls `body.page()`. Every list accepts both names of the page, pageId
and pageNumber. A value that is out of range is an error in the body: `invalid pageId`, `invalid pageNumber` or `invalid
pageSize`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import not_
from types import GenericAlias
from typing import Annotated, Final, Generic, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SecretBytes,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import CoreSchema

from sallyport.base.addresses import canonical
from sallyport.base.model import SentModel, as_given
from sallyport.base.validation import Between, one_or_several, unfit
from sallyport.base.wire import JSON, Minimum, Row

AnswerT = TypeVar("AnswerT")
ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # all control characters (Unicode category Cc)


def _whole(value: object) -> object:
    if isinstance(value, bool):
        raise unfit("must be a whole number")
    return value


def _flag(value: object) -> object:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    found = known.get(str(value).strip().lower()) if isinstance(value, bool | int | str) else None
    if found is None:
        raise unfit("must be true or false")
    return found


def plain(value: ValueT) -> ValueT:
    """Return the text. Raise a validation error if it contains control characters."""
    if isinstance(value, str) and _CONTROL.search(value):
        raise unfit("must be text without control characters")
    return value


def _not_blank(value: str) -> str:
    if value.isspace():
        raise unfit("must not consist of white space only")
    return value


def _octets(value: object) -> object:
    if isinstance(value, dict) and isinstance(value.get("hex"), str):
        with suppress(ValueError):
            return bytes.fromhex(value["hex"])
    elif isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).encode()
    raise unfit('must be text, or an object {"hex": ...} with octets in hexadecimal digits')


def _many(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    if isinstance(value, list) and len(value) > MAX_OF_MANY:
        raise unfit(f"must have at most {MAX_OF_MANY} entries")
    return one_or_several(value, handler)


def _most_of_many(schema: JsonDict) -> None:
    schema.setdefault("maxItems", MAX_OF_MANY)


MAX_MEMBERS = 500


def few_members(values: dict[str, object]) -> dict[str, object]:
    """Return the object. Raise a validation error if it is too large.

    The limit MAX_MEMBERS applies to the sum of all members and entries, including those of inner objects and inner
    arrays.
    """
    count, inner = 0, list[Collection[object]]([values])
    while inner:
        each = inner.pop()
        count += len(each)
        if count > MAX_MEMBERS:
            raise unfit(f"must have at most {MAX_MEMBERS} members, including the members of inner objects and arrays")
        held = each.values() if isinstance(each, dict) else each
        inner += [value for value in held if isinstance(value, dict | list)]
    return values


MAX_OF_MANY = 10_000
"""Maximum number of entries of an array. A declaration as max_length would override a smaller max_length of a field."""

Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number of any size. It may also be a string, but never a boolean."""
Id = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), BeforeValidator(_whole)]
"""An identifier: a whole number of at most 64 bits, which the store can hold."""
Flag = Annotated[bool, BeforeValidator(_flag)]
"""A truth value: true, yes, 1 or false, no, 0, as text, number or boolean. Text is case-insensitive."""
PlainText = Annotated[str, AfterValidator(plain)]
"""Text without control characters. White space at its ends is kept. Set a maximum length with Field(max_length=)."""
Text = Annotated[str, Field(max_length=255), AfterValidator(plain)]
"""A short text, which may be empty."""
AddressOrText = Annotated[Text, AfterValidator(canonical)]
"""A short text, which may be empty. An IP address is converted to its canonical form."""
Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(plain), AfterValidator(_not_blank)]
"""A name, which must not be empty or blank."""
NameOrNone = Annotated[Text, AfterValidator(_not_blank)]
"""A name. An empty text means that there is no name."""
LongText = Annotated[str, Field(max_length=4096), AfterValidator(plain)]
"""A long text, such as a description, a URL or a path."""
Members = Annotated[dict[str, object], AfterValidator(few_members)]
"""An object of limited size. The operation validates its members with another model."""
Octets = Annotated[
    SecretBytes,
    BeforeValidator(_octets),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "password", "writeOnly": True},
                {"type": "object", "properties": {"hex": {"type": "string"}}, "required": ["hex"]},
            ]
        }
    ),
]
"""A secret: a text, or an object {"hex": ...} with the octets in hex if the secret is not UTF-8."""
Many = Annotated[list[ItemT], WrapValidator(_many), Field(json_schema_extra=_most_of_many)]
"""An array, or a single value as an array of one: `Many[Id]`, `Many[Text]`."""
OrgId = Annotated[Whole, Field(description="Number of the token's organization.")]
TenantId = Annotated[Whole, Field(description="Number of the token's tenant.")]
DomainId = Annotated[Whole, Field(description="Id of the domain, as GetAllDomains gives it.")]


class Body(SentModel):
    """The base class of all request bodies. Numbers and strings are converted.

    If a field has a default other than null, the value null has the same meaning as an absent field.
    """

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        coerce_numbers_to_str=True,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
    )

    @model_validator(mode="before")
    @classmethod
    def _says_each_field_once(cls, values: object) -> object:
        """Raise a validation error if the body contains a field under several names with different values.

        If one of the values is an array, no error is raised, and the value under the first name is used.
        """
        if isinstance(values, dict):
            if None in values.values():
                values = as_given(cls, values)
            for choices in _several_spellings(cls):
                given = {name: values[name] for name in choices if name in values}
                several = len({str(value) for value in given.values()}) > 1
                if several and not any(isinstance(value, list) for value in given.values()):
                    raise unfit(f"{' and '.join(given)} have different values: send only one of them", *given)
        return values

    def claimed_scope(self) -> tuple[int, int] | None:
        """Return the orgId and tenantId that the body contains, or None. The gate compares them with the ids of the
        token."""
        return None

    def claimed_domains(self) -> Sequence[int]:
        """Return every domainId that the body contains. Each domain must belong to the token's tenant."""
        return ()

    def claimed_key(self) -> str | None:
        """Return the API key that the body contains, or None. The key takes precedence over the token of the
        request."""
        return None


@cache
def _several_spellings(model: type[Body]) -> list[list[str]]:
    """Return the accepted names of each field that has more than one name."""
    aliases = [field.validation_alias for field in model.model_fields.values()]
    several = [alias.choices for alias in aliases if isinstance(alias, AliasChoices)]
    return [[name for name in choices if isinstance(name, str)] for choices in several]


class ScopedIfGiven(Body):
    """A body with optional orgId and tenantId. If a body contains these ids, they must be equal to the ids of the
    token's tenant."""

    orgId: Whole | None = Field(  # noqa: N815
        default=None, description="Number of the token's organization; requires tenantId."
    )
    tenantId: Whole | None = Field(  # noqa: N815
        default=None, description="Number of the token's tenant; requires orgId."
    )

    def claimed_scope(self) -> tuple[int, int] | None:
        given = (self.orgId, self.tenantId)
        # A missing id becomes 0, which no organization or tenant has.
        return None if given == (None, None) else (self.orgId or 0, self.tenantId or 0)


class OfDomain(ScopedIfGiven):
    """A body with a domainId, for endpoint and identity operations."""

    domainId: DomainId  # noqa: N815

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


class Scoped(Body):
    """A body with orgId and tenantId, for radius and domain operations."""

    orgId: OrgId  # noqa: N815
    tenantId: TenantId  # noqa: N815

    def claimed_scope(self) -> tuple[int, int] | None:
        return self.orgId, self.tenantId


class InDomain(Scoped):
    """A body with orgId, tenantId and the id of one domain."""

    domainId: DomainId  # noqa: N815

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


TOTAL_HEADER: Final = "X-Total-Count"
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


def given_fields(body: Body) -> dict[str, object]:
    """Return the fields that a request has given, with their validated values."""
    return {name: getattr(body, name) for name in body.model_fields_set}


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


class Plain(Generic[AnswerT]):
    """An answer that consists of plain dicts, lists, texts and numbers. It is serialised without a model.

    AnswerT is the type of the answer in the API description. Use this class for lists, because building models takes
    ten times as long as serialising them.
    """

    __slots__ = ("content",)

    def __init__(self, content: Mapping[str, object] | Counted[dict[str, object]] | Counted[Row]) -> None:
        self.content = content
