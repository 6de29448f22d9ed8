"""The base classes of all pydantic models: bodies and answers of the API, command arguments, settings of providers.

Objects that a caller sends are of the class `SentModel`, which decides about fields that the model does not have.
"""

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from itertools import islice
from typing import ClassVar, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, ValidationInfo, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sallyport.base.spelling import Spellings, unknown_field
from sallyport.base.validation import unfit

MOST_COMPARED: Final = 20
"""Maximum number of unknown fields of one object that are compared with the known fields."""


class Model(BaseModel):
    """A model whose validator is built on first use. Building a validator takes some milliseconds, and a process uses
    only some of the hundreds of models."""

    model_config = ConfigDict(defer_build=True)


class Unknown(Enum):
    """What happens to fields of a request that the operation does not know."""

    REFUSED = auto()
    """Each unknown field is an error."""
    NEAR_MISSES_REFUSED = auto()
    """A near miss of a known field is an error, if the known field itself is absent. Other fields are ignored."""
    IGNORED = auto()


class SentModel(Model):
    """The base class of objects in a request: the body, the objects within the body, and the settings of a provider.

    unknown: what happens to unknown fields, if the validation has no context. An operation passes its own value as the
    context, so that the value applies to the whole body.
    """

    unknown: ClassVar[Unknown] = Unknown.IGNORED

    @model_validator(mode="before")
    @classmethod
    def _has_known_fields(cls, values: object, info: ValidationInfo) -> object:
        unknown = info.context if isinstance(info.context, Unknown) else cls.unknown
        if unknown is not Unknown.IGNORED and isinstance(values, dict):
            _check_names(cls, values, unknown)
        return values


def _check_names(model: type[SentModel], values: Mapping[str, object], unknown: Unknown) -> None:
    """Raise a validation error if an object has unknown fields that are not accepted. The error names the fields that
    the caller probably meant, but never a field that the caller has sent."""
    known = _names(model)
    others = [name for name in values if name not in known.field_of]
    if not others:
        return
    compared = islice(others, MOST_COMPARED)
    if unknown is Unknown.REFUSED and model.model_config.get("extra") != "allow":
        found = list(dict.fromkeys(known.spellings.nearest(name) for name in compared))
        meant = [name for name in found if name is not None]
        raise unfit(unknown_field(meant, known.shown if None in found else ()), *meant)
    given = {known.field_of[name] for name in values if name in known.field_of}
    near = (each for name in compared for each in known.spellings.near(name) if known.field_of[each] not in given)
    if meant := list(dict.fromkeys(near)):
        raise unfit(unknown_field(meant), *meant)


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
