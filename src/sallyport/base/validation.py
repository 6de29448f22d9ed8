"""Pydantic's errors as ours: they name fields and never repeat a submitted value.

Pydantic puts values into some of its messages (a tag, a character of a UUID, whatever a ValueError says), so only
messages that are known to be free of them pass; everything else is told as `is not valid`. A validator of ours says
what it wants by raising `unfit("an IP address")`.
"""

from typing import Annotated

from pydantic import BeforeValidator, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from sallyport.base.clock import from_iso
from sallyport.base.errors import FieldError, Invalid

_OURS = "unfit"
# Their messages are made of the schema alone.
_TOLD = frozenset(
    {
        "bool_parsing", "bool_type", "dict_type", "enum", "finite_number", "float_parsing", "float_type",
        "greater_than", "greater_than_equal", "int_from_float", "int_parsing", "int_parsing_size", "int_type",
        "less_than", "less_than_equal", "list_type", "literal_error", "missing", "model_type", "extra_forbidden",
        "string_too_long", "string_too_short", "string_type", "string_unicode", "too_long", "too_short", _OURS,
    }
)  # fmt: skip
# What pydantic adds to the path inside a union; nobody sent it.
_UNION_TAGS = frozenset({"bool", "dict", "float", "int", "list", "none", "str"})


def unfit(message: str) -> PydanticCustomError:
    """The error for a validator to raise: what the field takes, without the value."""
    return PydanticCustomError(_OURS, "{message}", {"message": message})


def _moment(value: object) -> object:
    try:
        return from_iso(str(value))
    except (ValueError, OverflowError):
        raise unfit("an ISO 8601 time") from None


Moment = Annotated[int, BeforeValidator(_moment)]
"""ISO 8601 text, which becomes microseconds."""


def refusal(error: ValidationError) -> Invalid:
    """The refusal of a body or of arguments: `missing orgId`, `invalid pageId`; every wrong field is in `fields`.

    The message names the first wrong field by its own name, since interfaces print such texts word for word.
    """
    details = error.errors(include_url=False, include_context=False, include_input=False)
    fields = tuple(FieldError(".".join(_path(detail)), _message(detail)) for detail in details)
    return Invalid(_headline(details[0]), tuple(field for field in fields if field.field))


def _headline(detail: ErrorDetails) -> str:
    if detail["type"] == "json_invalid":
        return "invalid JSON"
    names = [part for part in _path(detail) if not part.isdecimal()]
    if not names:
        return detail["msg"] if detail["type"] == _OURS else "invalid body"
    return f"{'missing' if detail['type'] == 'missing' else 'invalid'} {names[-1]}"


def _path(detail: ErrorDetails) -> list[str]:
    return [str(part) for part in detail["loc"] if not isinstance(part, str) or _is_name(part)]


def _is_name(part: str) -> bool:
    return part not in _UNION_TAGS and "[" not in part and "(" not in part


def _message(detail: ErrorDetails) -> str:
    return detail["msg"] if detail["type"] in _TOLD else "is not valid"
