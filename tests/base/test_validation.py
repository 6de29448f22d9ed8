"""The messages for errors of pydantic, which never contain the sent values."""

import uuid
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from sallyport.base.errors import FieldError, Invalid
from sallyport.base.validation import MAX_COUNTED, MAX_LISTED, Between, refusal, unfit


def _leaky(value: object) -> object:
    raise ValueError(f"{value} is bad")


def _strict(value: object) -> object:
    raise unfit("must be an IP address")


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Everything(BaseModel):
    """A model that has a field for each kind of error."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None
    id: uuid.UUID | None = None
    leaky: Annotated[str, BeforeValidator(_leaky)] = ""
    strict: Annotated[str, BeforeValidator(_strict)] = ""
    many: int | list[int] = 0
    inner: dict[str, int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> "Everything":
        if self.many == 7:
            raise unfit("missing ikey, host")
        if self.many == 8:
            raise ValueError("hunter2")
        return self


def refused(**values: object) -> Invalid:
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate(values)
    return refusal(caught.value)


@pytest.mark.parametrize(
    ("values", "message", "field", "accepted"),
    [
        ({"pet": {"kind": "hunter2"}}, "invalid pet", "pet", "is not valid"),
        ({"id": "hunter2"}, "invalid id", "id", "is not valid"),
        ({"leaky": "hunter2"}, "invalid leaky", "leaky", "is not valid"),
        ({"strict": "hunter2"}, "invalid strict", "strict", "must be an IP address"),
        ({"many": ["hunter2"]}, "invalid many", "many", None),
        ({"inner": {"a": "hunter2"}}, "invalid a", "inner.a", None),
    ],
)
def test_no_message_repeats_a_value(values: dict[str, object], message: str, field: str, accepted: str | None) -> None:
    """For each kind of error the message names the field. The accepted values in it come only from the schema."""
    invalid = refused(**values)
    assert str(invalid) == message
    assert invalid.fields[0].field == field
    assert accepted is None or invalid.fields[0].message == accepted
    assert "hunter2" not in f"{invalid} {invalid.fields}"


class Bounds(BaseModel):
    """A model that has a field for each bound and each type."""

    flag: bool = False
    colour: Literal["red", "green"] = "red"
    above: Annotated[int, Field(gt=0)] = 1
    least: Annotated[int, Field(ge=2)] = 2
    below: Annotated[float, Field(lt=1)] = 0
    most: Annotated[float, Field(le=60)] = 0
    span: Annotated[int, Between(1, 9)] = 1
    short: Annotated[str, Field(min_length=1)] = "x"
    long: Annotated[str, Field(max_length=3)] = ""
    some: Annotated[list[int], Field(min_length=1, max_length=2)] = Field(default_factory=lambda: [1])
    behind: Annotated[str, BeforeValidator(str), Field(min_length=3)] = "abc"
    inner: Cat | None = None
    needed: str

    @model_validator(mode="after")
    def _whole(self) -> "Bounds":
        if self.flag:
            raise unfit("flag and colour exclude each other", "flag", "colour")
        return self


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("flag", "hunter2", "must be true or false"),
        ("colour", "hunter2", "must be red or green"),
        ("above", 0, "must be a number above 0"),
        ("above", 0.5, "must be a whole number"),
        ("above", "9" * 5000, "must be a whole number with fewer digits"),
        ("least", 1, "must be a number of at least 2"),
        ("below", 1, "must be a number below 1"),
        ("below", "hunter2", "must be a number"),
        ("below", "inf", "must be a number below 1"),
        ("most", 61, "must be a number of at most 60"),
        ("span", 10, "must be a whole number from 1 to 9"),
        ("short", "", "must have at least 1 character"),
        ("short", 5, "must be text"),
        ("long", "hunter2", "must have at most 3 characters"),
        ("some", [], "must have at least 1 entry"),
        ("some", [1, 2, 3], "must have at most 2 entries"),
        ("some", "hunter2", "must be an array"),
        ("behind", "x", "must have at least 3 characters"),
        ("inner", "hunter2", "must be an object"),
    ],
)
def test_accepted_values_in_words_of_our_own(field: str, value: object, accepted: str) -> None:
    """Each type of error has a message with the accepted values. The message is singular if only one value is
    accepted.
    """
    with pytest.raises(ValidationError) as caught:
        Bounds.model_validate({"needed": "x", field: value})
    assert refusal(caught.value).fields == (FieldError(field, accepted),)


def test_a_message_follows_the_name_of_its_field() -> None:
    """A colon separates a sentence from the name of its field. A predicate follows the name directly."""
    with pytest.raises(ValidationError) as caught:
        Bounds.model_validate({})
    (missing,) = refusal(caught.value).fields
    assert missing.about("--needed") == "--needed is missing"
    assert FieldError("port", "must be a number").about("--port") == "--port must be a number"
    with pytest.raises(ValidationError) as caught:
        Bounds.model_validate({"needed": "x", "flag": True})
    assert [each.about(each.field) for each in refusal(caught.value).fields] == [
        "flag: flag and colour exclude each other",
        "colour: flag and colour exclude each other",
    ]


def test_the_message_of_a_model_validator_is_used() -> None:
    """A message that a model's validator passes to `unfit` is shown. For any other error the message is `invalid
    body`.
    """
    assert str(refused(many=7)) == "missing ikey, host"
    assert str(refused(many=8)) == "invalid body"


def test_a_refusal_lists_at_most_max_listed_fields() -> None:
    """If several fields are wrong, the message names the first one."""
    wrong: dict[str, object] = {f"a{number}": "hunter2" for number in range(MAX_LISTED + 50)}
    invalid = refused(inner=wrong)
    assert str(invalid) == "invalid a0"
    assert [each.field for each in invalid.fields] == [f"inner.a{number}" for number in range(MAX_LISTED)]


def test_a_refusal_of_too_many_values_lists_none() -> None:
    """If there are more than MAX_COUNTED errors, the refusal names the whole body or the field that contains the wrong
    values.
    """
    wrong: dict[str, object] = {f"a{number}": "hunter2" for number in range(MAX_COUNTED + 1)}
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate({"inner": wrong})
    for within, field in (("", "body"), ("ldap", "ldap")):
        invalid = refusal(caught.value, within)
        assert str(invalid) == f"invalid {field}"
        assert [(each.field, each.message) for each in invalid.fields] == [(field, "over 1000 values are wrong")]
