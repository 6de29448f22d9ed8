"""The base class of all pydantic models: bodies and answers of the API, command arguments, settings of providers."""

from collections.abc import Mapping

from pydantic import AliasChoices, BaseModel, ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined


class Model(BaseModel):
    """A model whose validator is built on first use. Building a validator takes some milliseconds, and a process uses
    only some of the hundreds of models."""

    model_config = ConfigDict(defer_build=True)


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
