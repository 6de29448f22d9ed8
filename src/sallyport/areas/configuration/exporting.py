"""The objects of the store as files have them: without the values that are the default, and with KEEP for secrets."""

from collections.abc import Mapping, Sequence

from sallyport.areas.configuration.item import KEEP
from sallyport.areas.configuration.planning import validated
from sallyport.areas.configuration.schemas import secret_names
from sallyport.areas.configured import AnyKind, Stored
from sallyport.base.errors import Invalid

_NOTHING: Sequence[object] = (None, "", [], {})


def exported(kind: AnyKind, objects: Sequence[Stored]) -> list[dict[str, object]]:
    """Return the fields of objects for a file."""
    defaults = _defaults(kind, objects)
    return [_entry(kind, each, defaults) for each in objects if not each.is_implied]


def _defaults(kind: AnyKind, objects: Sequence[Stored]) -> Mapping[str, object]:
    """Return the values of an object with only the required fields, without these fields."""
    required = {name for name, field in kind.body.model_fields.items() if field.is_required()} | {kind.refers, kind.key}
    for each in objects:
        try:
            values = validated(kind, {name: value for name, value in each.fields.items() if name in required}).values
        except Invalid:
            continue
        return {name: value for name, value in values.items() if name not in required and name not in kind.keeps}
    return {}


def _entry(kind: AnyKind, stored: Stored, defaults: Mapping[str, object]) -> dict[str, object]:
    secrets = secret_names(kind)
    try:
        values = validated(kind, stored.fields).values
    except Invalid:
        values = {}
    models = kind.body.model_fields
    fields = dict[str, object]()
    for name, value in stored.fields.items():
        if name in defaults and name in values:
            is_default = values[name] == defaults[name]
        else:  # no object with only the required fields is valid, as a rule that allows needs a scope
            is_default = name in models and value == models[name].default
        empty = value in _NOTHING and (value is None or name not in {*defaults, *kind.keeps})
        if not is_default and not empty:
            fields[name] = _hidden(name, value, secrets)
    return fields


def _hidden(name: str, value: object, secrets: frozenset[str]) -> object:
    """Return a value in which each secret is KEEP."""
    if name in secrets:
        return KEEP
    if isinstance(value, Mapping):
        return {
            inner: _hidden(inner, each, secrets) for inner, each in value.items() if each is not None and each != ""
        }
    return [_hidden("", each, secrets) for each in value] if isinstance(value, list) else value
