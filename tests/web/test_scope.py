"""Tests of roles, scopes and the types of body fields."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import AliasChoices, Field, TypeAdapter, ValidationError

from sallyport.base.actor import Actor
from sallyport.base.errors import Forbidden, TooMany, Unauthenticated
from sallyport.base.model import Model
from sallyport.base.validation import Between, Moment
from sallyport.web.operation import Done
from sallyport.web.paging import Paged, PagedByNumber
from sallyport.web.problem import Problem
from sallyport.web.scope import (
    ADMINS,
    MOST_RUNNING,
    OPERATORS,
    READERS,
    Body,
    Caller,
    Flag,
    Gate,
    Id,
    InDomain,
    LongText,
    Many,
    Name,
    OfDomain,
    Role,
    ScopedIfGiven,
    Text,
    Whole,
)
from tests.web.sample import SampleOwners, SampleTokens


def gate() -> Gate:
    return Gate(SampleTokens(), SampleOwners())


def caller(role: Role = Role.ADMIN) -> Caller:
    return Caller(1, 1, 1, tenant_id=7, role=role, name="n")


def test_roles_contain_each_other() -> None:
    """An admin has all rights of an operator, and an operator has all rights of a reader."""
    assert ADMINS < OPERATORS < READERS
    assert not READERS & {Role.AGENT, Role.WALLET}


@pytest.mark.parametrize("token", [None, "", "sp_nobody"])
async def test_a_caller_needs_a_valid_token(token: str | None) -> None:
    """None and an empty text count as a missing token. Any unknown text is an invalid token."""
    with pytest.raises(Unauthenticated, match="invalid token" if token else "missing token"):
        await gate().caller(token)


def test_every_body_of_an_array_is_checked() -> None:
    """If one domain belongs to another tenant, the whole request is refused."""
    own = InDomain(orgId=1, tenantId=1, domainId=3)
    foreign = InDomain(orgId=1, tenantId=1, domainId=4)
    gate().admit(caller(), [own, own, Body()], ADMINS)
    with pytest.raises(Forbidden, match="domain not in tenant"):
        gate().admit(caller(), [own, foreign], ADMINS)


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


def test_a_tenant_runs_a_limited_number_of_requests() -> None:
    """A request beyond the limit is refused until another request has ended.

    Requests of other tenants and of agents do not count.
    """
    one = gate()
    with ExitStack() as running:
        for _ in range(MOST_RUNNING):
            running.enter_context(one.running(caller(Role.AUDITOR)))
        with pytest.raises(TooMany), one.running(caller()):
            pass
        with one.running(replace(caller(), tenant_id=8)), one.running(caller(Role.AGENT)):
            pass
    with one.running(caller()):
        pass


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


def test_the_actor_of_an_administrator() -> None:
    """An administrator of the installation is marked, whichever tenant the person has chosen. So the limits of a tenant
    do not apply, for example to break-glass."""
    root = Caller(0, 1, 1, 7, Role.ADMIN, "root", person="administrator", is_installation=True)
    ann = Caller(0, 1, 1, 7, Role.ADMIN, "ann", person="administrator")
    assert root.actor == Actor("administrator", "root", tenant_id=7, is_installation=True)
    assert ann.actor == Actor("administrator", "ann", tenant_id=7)
