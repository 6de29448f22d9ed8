"""The base classes of all pydantic models: bodies and answers of the API, command arguments, settings of providers.

Objects that a caller sends are of the class `SentModel`, which decides about fields that the model does not have.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import cache
from itertools import chain
from typing import Any, ClassVar, Final, TypeVar, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sallyport.base.answer import wire_fields
from sallyport.base.spelling import Spellings, unknown_field
from sallyport.base.validation import unfit

MAX_COMPARED: Final = 50
"""Maximum number of different unknown fields of one body that are compared with the known fields. A comparison takes up
to 30 us, and a body may have thousands of objects."""


class Model(BaseModel):
    """A model whose validator is built on first use. Building a validator takes some milliseconds, and a process uses
    only some of the hundreds of models."""

    model_config = ConfigDict(defer_build=True)


class Success(Model):
    """The base class of answers with the fields `code` and `status`. Radius and domain operations answer without these
    fields."""

    code: int = Field(default=200, description="HTTP status of the answer.")
    status: str = Field(default="Success", description="Success. Only an error has another value.")


class Done(Success):
    """The answer of an operation that has no result besides its success. It is also the base class of answers with a
    message."""

    message: str = Field(description="Result in words.")


ModelT = TypeVar("ModelT", bound=Model)
_JSON_TYPES: Final[dict[object, object]] = {dict[str, object]: dict[str, JsonValue]}
"""pydantic's type for each type of the standard library that describes JSON less exactly."""


def answer_of(row: type[object], *names: str, detail: bool = False) -> Callable[[type[ModelT]], type[ModelT]]:
    """Return a decorator that gives a model the values of `base.answer.wire_fields`. They follow the model's own fields
    and precede those of a subclass. names: the names of the values; all values if there are none."""
    found = {each.name: each for each in wire_fields(row, detail=detail)}
    chosen = [found[name] for name in names or found]
    return with_fields(
        {
            each.name: (_JSON_TYPES.get(each.kind, each.kind), Field(description=each.wire.description))
            for each in chosen
        }
    )


def given(body: BaseModel, names: Mapping[str, str]) -> dict[str, object]:
    """Return the values of a body that are not null, by the names of the fields of a row. names: the name of the row's
    field for each field of the body; others are left out."""
    values = {field: getattr(body, name, None) for name, field in names.items()}
    return {field: value for field, value in values.items() if value is not None}


def with_fields(fields: Mapping[str, tuple[object, object]]) -> Callable[[type[ModelT]], type[ModelT]]:
    """Return a decorator that adds fields to a model. fields: the type of each field, and its default or description,
    by name."""

    def derive(model: type[ModelT]) -> type[ModelT]:
        given = cast(dict[str, Any], dict(fields))
        name, module = model.__name__, model.__module__
        return create_model(name, __base__=model, __doc__=model.__doc__, __module__=module, **given)

    return derive


class Unknown(Enum):
    """What happens to fields of a request that the operation does not know."""

    REFUSED = auto()
    """Each unknown field is an error."""
    NEAR_MISSES_REFUSED = auto()
    """A near miss of a known field is an error, if the known field itself is absent. Other fields are ignored."""
    IGNORED = auto()


class SentModel(Model):
    """The base class of objects in a request: the body, the objects within the body, and the settings of a provider.

    unknown: what happens to unknown fields, if the validation has no context. An operation passes a `FieldCheck` as the
    context, which applies to the whole body.
    """

    unknown: ClassVar[Unknown] = Unknown.IGNORED

    @model_validator(mode="before")
    @classmethod
    def _has_known_fields(cls, values: object, info: ValidationInfo) -> object:
        check = info.context if isinstance(info.context, FieldCheck) else FieldCheck(cls.unknown)
        if check.unknown is not Unknown.IGNORED and isinstance(values, dict):
            check.check(cls, values)
        return values


class FieldCheck:
    """The check of the unknown fields in one body. unknown: what happens to them."""

    def __init__(self, unknown: Unknown) -> None:
        self.unknown = unknown
        self._compared: dict[tuple[type[BaseModel], str], list[str]] = {}

    @property
    def refuses(self) -> bool:
        """Whether each unknown field is an error."""
        return self.unknown is Unknown.REFUSED

    def check(self, model: type[SentModel], values: Mapping[str, object]) -> None:
        """Raise a validation error if an object has unknown fields that are not accepted. The error names the fields
        that the caller probably meant, but never a field that the caller has sent."""
        known = _names(model)
        others = [name for name in values if name not in known.field_of]
        if not others:
            return
        if self.refuses and model.model_config.get("extra") != "allow":
            found = [self._meant(model, name, known.spellings.most_similar) for name in others]
            meant = list(dict.fromkeys(chain.from_iterable(found)))
            raise unfit(unknown_field(meant, () if all(found) else known.shown), *meant)
        given = {known.field_of[name] for name in values if name in known.field_of}
        near = chain.from_iterable(self._meant(model, name, known.spellings.near) for name in others)
        if meant := list(dict.fromkeys(each for each in near if known.field_of[each] not in given)):
            raise unfit(unknown_field(meant), *meant)

    def _meant(self, model: type[BaseModel], name: str, find: Callable[[str], list[str]]) -> list[str]:
        """Return the known fields that the caller probably meant. The objects of a list often have the same unknown
        fields, so each name is compared once."""
        meant = self._compared.get((model, name))
        if meant is None:
            if len(self._compared) >= MAX_COMPARED:
                return []
            meant = self._compared[model, name] = find(name)
        return meant


def accepts(model: type[SentModel], name: str) -> bool:
    """Return whether a model has a field with this name."""
    return name in _names(model).field_of


class _Names:
    """The names that a model accepts. field_of: the field of each name. shown: one name of each field."""

    def __init__(self, model: type[BaseModel]) -> None:
        spellings = {name: _accepted(model, name, field) for name, field in model.model_fields.items()}
        self.field_of = {each: name for name, several in spellings.items() for each in several}
        self.shown = [several[0] for several in spellings.values()]
        self.spellings = Spellings(self.field_of)


@cache
def _names(model: type[BaseModel]) -> _Names:
    return _Names(model)


def _accepted(model: type[BaseModel], name: str, field: FieldInfo) -> list[str]:
    """Return the names that a model accepts for a field, first the name in the description of the API."""
    own, *others = _spellings(name, field)
    by_name = model.model_config.get("validate_by_name") or model.model_config.get("populate_by_name")
    if not others:
        return [own]
    return [*others, own] if by_name and own not in others else others


def as_given(
    model: type[BaseModel], values: Mapping[str, object], *, nothing: tuple[object, ...] = (None,)
) -> Mapping[str, object]:
    """Return the sent values without each null that means "not set".

    Some programs send null for each field without a value. If the default of a field is not null, a null of this field
    is left out. A null of any other field is kept, because there it has a meaning or is an error. nothing: the values
    that count as null.
    """
    if not any(value in nothing for value in values.values()):
        return values
    own = {
        spelling
        for name, field in model.model_fields.items()
        if field.get_default(call_default_factory=True) not in (None, PydanticUndefined)
        for spelling in _spellings(name, field)
    }
    return {name: value for name, value in values.items() if value not in nothing or name not in own}


def _spellings(name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    others = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [name, *(each for each in others if isinstance(each, str))]
