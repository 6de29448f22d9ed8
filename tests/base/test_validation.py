"""Messages of pydantic's errors, without the submitted values."""

import uuid
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from sallyport.base.errors import Invalid
from sallyport.base.validation import MAX_COUNTED, MAX_LISTED, refusal, unfit


def _leaky(value: object) -> object:
    raise ValueError(f"{value} is bad")


def _strict(value: object) -> object:
    raise unfit("an IP address")


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Everything(BaseModel):
    """A model with a field for each kind of error."""

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
    ("values", "message", "field", "told"),
    [
        ({"pet": {"kind": "hunter2"}}, "invalid pet", "pet", "is not valid"),
        ({"id": "hunter2"}, "invalid id", "id", "is not valid"),
        ({"leaky": "hunter2"}, "invalid leaky", "leaky", "is not valid"),
        ({"strict": "hunter2"}, "invalid strict", "strict", "an IP address"),
        ({"many": ["hunter2"]}, "invalid many", "many", None),
        ({"inner": {"a": "hunter2"}}, "invalid a", "inner.a", None),
    ],
)
def test_no_message_repeats_a_value(values: dict[str, object], message: str, field: str, told: str | None) -> None:
    """Each kind of error names its field. A message of pydantic is used only if it depends on the schema alone."""
    invalid = refused(**values)
    assert str(invalid) == message
    assert invalid.fields[0].field == field
    assert told is None or invalid.fields[0].message == told
    assert "hunter2" not in f"{invalid} {invalid.fields}"


def test_the_message_of_a_models_validator() -> None:
    """`unfit` from a model's validator is the message; another error is `invalid body`."""
    assert str(refused(many=7)) == "missing ikey, host"
    assert str(refused(many=8)) == "invalid body"


def test_a_refusal_lists_a_hundred_wrong_fields() -> None:
    """The first MAX_LISTED are listed, and the message names the first one."""
    wrong: dict[str, object] = {f"a{number}": "hunter2" for number in range(MAX_LISTED + 50)}
    invalid = refused(inner=wrong)
    assert str(invalid) == "invalid a0"
    assert [each.field for each in invalid.fields] == [f"inner.a{number}" for number in range(MAX_LISTED)]


def test_a_refusal_of_thousands_of_values_describes_none() -> None:
    """Above MAX_COUNTED errors the refusal names the whole body, or the field with the values."""
    wrong: dict[str, object] = {f"a{number}": "hunter2" for number in range(MAX_COUNTED + 1)}
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate({"inner": wrong})
    for within, field in (("", "body"), ("ldap", "ldap")):
        invalid = refusal(caught.value, within)
        assert str(invalid) == f"invalid {field}"
        assert [(each.field, each.message) for each in invalid.fields] == [(field, "over 1000 values are wrong")]
