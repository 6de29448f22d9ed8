"""Tests of the types of body fields, and of the limits, defaults and offsets of pages."""

from typing import Annotated

import pytest
from pydantic import AliasChoices, Field, TypeAdapter, ValidationError

from sallyport.base.model import Done, Model
from sallyport.base.validation import Between, Moment, refusal
from sallyport.web.bodies import (
    LAST,
    LONG,
    Body,
    Flag,
    Id,
    InDomain,
    LongText,
    Many,
    Name,
    OfDomain,
    Page,
    Paged,
    PagedByNumber,
    ScopedIfGiven,
    ShortPaged,
    Text,
    Whole,
)
from sallyport.web.problem import Problem


class Lenient(Body):
    """A body with optional fields. The field `none` accepts null."""

    text: Text = "x"
    many: Many[Whole] = Field(default_factory=list, validation_alias=AliasChoices("many", "all"))
    none: Whole | None = None


def test_null_is_the_default_of_an_optional_field() -> None:
    """An optional field accepts null under each of its names. A required field does not accept null."""
    assert Lenient.model_validate({"text": None, "all": None, "none": None}) == Lenient()
    assert Lenient.model_validate({"many": None, "all": [1]}).many == [1]
    assert Lenient.model_validate({"none": None}).model_fields_set == {"none"}
    with pytest.raises(ValidationError, match="domainId"):
        Spelled.model_validate({"domainId": None})


class Spelled(Body):
    """A body with one field that has two names."""

    number: Whole = Field(validation_alias=AliasChoices("domainId", "adId"))


def test_two_names_of_a_field_must_have_the_same_value() -> None:
    """If a field is given under both names, the values must be equal. A number and a text can be equal."""
    assert Spelled.model_validate({"domainId": 3, "adId": "3"}).number == 3
    with pytest.raises(ValidationError, match="domainId and adId have different values"):
        Spelled.model_validate({"domainId": 3, "adId": 4})


@pytest.mark.parametrize("value", [True, 1, "true", "TRUE", "Yes", "1", " yes "])
def test_true_yes_and_1_are_true(value: object) -> None:
    """Case and surrounding spaces are ignored."""
    assert TypeAdapter(Flag).validate_python(value) is True


@pytest.mark.parametrize("value", [False, 0, "false", "No", "0"])
def test_false_no_and_0_are_false(value: object) -> None:
    """Case is ignored."""
    assert TypeAdapter(Flag).validate_python(value) is False


@pytest.mark.parametrize("value", ["", "on", 2, 1.0, None, [], "truetrue"])
def test_other_values_are_not_booleans(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Flag).validate_python(value)


@pytest.mark.parametrize("value", ["a\0b", "a\nb", "a\x7f", "a\x9b", "x" * 256])
def test_control_characters_and_long_texts_are_refused(value: str) -> None:
    """NUL, line ends, DEL and C1 are refused, and so is a text of more than 255 characters."""
    with pytest.raises(ValidationError):
        TypeAdapter(Text).validate_python(value)


def test_text_is_not_altered() -> None:
    """Leading and trailing spaces are kept, and any script is accepted."""
    assert TypeAdapter(Text).validate_python("  Zürich 上海 🚪 ") == "  Zürich 上海 🚪 "
    assert len(TypeAdapter(LongText).validate_python("x" * 4096)) == 4096


def test_identifiers_fit_into_the_store() -> None:
    """An identifier is a signed 64-bit number. The number of a scope has no limit."""
    assert TypeAdapter(Id).validate_python(str(2**63 - 1)) == 2**63 - 1
    assert TypeAdapter(Whole).validate_python(2**80) == 2**80


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, True, "x", 1.5, None])
def test_other_values_are_not_identifiers(value: object) -> None:
    """Larger numbers, booleans, text, fractions and null are refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(Id).validate_python(value)


def test_a_single_value_is_an_array_of_one() -> None:
    """Null is refused."""
    assert TypeAdapter(Many[Id]).validate_python("5") == [5]
    assert TypeAdapter(Many[Id]).validate_python([5, "6"]) == [5, 6]
    with pytest.raises(ValidationError):
        TypeAdapter(Many[Id]).validate_python(None)


class Few(Body):
    """A body with an array whose field has its own limit."""

    some: Many[Id] = Field(min_length=1, max_length=3)
    any: Many[Id] = Field(default_factory=list)


@pytest.mark.parametrize(("field", "most"), [("some", 3), ("any", 10_000)])
def test_an_array_has_a_limit(field: str, most: int) -> None:
    """The limit is that of the field, or 10,000 entries if the field has none."""
    body: dict[str, object] = {"some": [1], field: [1] * most}
    assert len(getattr(Few.model_validate(body), field)) == most
    with pytest.raises(ValidationError, match="at most"):
        Few.model_validate(body | {field: [1] * (most + 1)})


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        pytest.param(Name, {"minLength": 1, "maxLength": 255}, id="name"),
        pytest.param(Id, {"minimum": -(2**63), "maximum": 2**63 - 1}, id="identifier"),
        pytest.param(Annotated[Whole, Between(1, 9)], {"minimum": 1, "maximum": 9}, id="range"),
        pytest.param(Moment, {"type": "string", "format": "date-time"}, id="time"),
        pytest.param(Many[Text], {"maxItems": 10_000}, id="array"),
        pytest.param(Annotated[Many[Text], Field(max_length=3)], {"maxItems": 3}, id="array with a limit of its own"),
    ],
)
def test_the_description_has_the_limits_of_a_type(kind: object, limits: dict[str, object]) -> None:
    """The JSON schema of a field's type has the limits that the type enforces."""
    schema = TypeAdapter(kind).json_schema()
    assert limits.items() <= schema.items()


@pytest.mark.parametrize("model", [ScopedIfGiven, OfDomain, InDomain, Paged, PagedByNumber, Done, Problem])
def test_shared_fields_are_described(model: type[Model]) -> None:
    """Each field of the shared models has a description."""
    fields = model.model_json_schema()["properties"]
    assert all(field.get("description") for field in fields.values())


def message_of(model: type[Paged | ShortPaged | PagedByNumber], **values: object) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    return str(refusal(caught.value))


@pytest.mark.parametrize("model", [Paged, ShortPaged, PagedByNumber])
def test_defaults_are_the_first_ten(model: type[Paged | ShortPaged | PagedByNumber]) -> None:
    """If the fields are absent or null, the page is page 1 with 10 entries."""
    nulls = dict.fromkeys(model.model_fields)
    assert model().page() == model.model_validate(nulls).page() == Page(0, 10)


def test_pages_are_counted_from_one() -> None:
    """Page 3 with 20 entries starts at offset 40. The numbers may be strings."""
    assert Paged.model_validate({"pageId": "3", "pageSize": "20"}).page() == Page(40, 20)
    assert PagedByNumber.model_validate({"pageNumber": 3, "pageSize": 20}).page() == Page(40, 20)


@pytest.mark.parametrize("number", [0, -1, "x", "", 1.5, True, LAST + 1, 2**200, [1]])
def test_an_invalid_page_number_is_named(number: object) -> None:
    """The error message contains the name of the field."""
    assert message_of(ShortPaged, pageId=number) == "invalid pageId"
    assert message_of(Paged, pageId=number) == "invalid pageId"
    assert message_of(PagedByNumber, pageNumber=number) == "invalid pageNumber"


def test_the_page_size_has_a_maximum() -> None:
    """The maximum is 100 for the lists of devices and domains, and 1000 for others."""
    assert ShortPaged(pageSize=100).page().size == 100
    assert Paged(pageSize=1000).page().size == 1000
    assert [message_of(ShortPaged, pageSize=size) for size in (0, 101)] == ["invalid pageSize"] * 2
    assert [message_of(Paged, pageSize=size) for size in (0, 1001)] == ["invalid pageSize"] * 2


def test_the_last_page_fits_into_the_store() -> None:
    """The offset of an accepted page always fits into 63 bits."""
    assert Paged(pageId=LAST, pageSize=LONG).page().offset < 2**63
