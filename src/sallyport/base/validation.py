"""Pydantic's errors as ours: they name fields and never repeat a submitted value.

Pydantic puts values into some of its messages (a tag, a character of a UUID, whatever a ValueError says), so only
messages that are known to be free of them pass; every other one becomes `is not valid`. A validator of ours names the
accepted values by raising `unfit("an IP address")`. A range is declared with `Between`: its error has both ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, ValidationError, WithJsonSchema
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from sallyport.base.clock import from_iso
from sallyport.base.errors import BODY, FieldError, Invalid, invalid_field

_OURS, _UNKNOWN = "unfit", "extra_forbidden"
_WRITTEN = {"json_invalid": "valid JSON is required", _UNKNOWN: "known fields only; /docs lists them"}
# Their messages are made of the schema alone.
_TOLD = frozenset(
    {
        "bool_parsing", "bool_type", "dict_type", "enum", "finite_number", "float_parsing", "float_type",
        "greater_than", "greater_than_equal", "int_from_float", "int_parsing", "int_parsing_size", "int_type",
        "less_than", "less_than_equal", "list_type", "literal_error", "missing", "model_type",
        "string_too_long", "string_too_short", "string_type", "string_unicode", "too_long", "too_short", _OURS,
    }
)  # fmt: skip
MAX_LISTED = 100
"""Wrong fields that a refusal lists."""
MAX_COUNTED = 1000
"""Errors that pydantic describes: it holds the interpreter lock meanwhile, 15 ms for 10,000."""
# Parts that pydantic adds to the path inside a union. They are not field names.
_UNION_TAGS = frozenset({"bool", "dict", "float", "int", "list", "none", "str"})


def unfit(message: str, *fields: str) -> PydanticCustomError:
    """Return the error for a validator to raise. message: the accepted values, never the submitted one. fields: the
    fields that a validator of the whole model refuses."""
    return PydanticCustomError(_OURS, "{message}", {"message": message, "fields": fields})


@dataclass(frozen=True, slots=True)
class Between:
    """The range of a number, both ends included: `Annotated[int, Between(1, 100)]`."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        number = "a number" if source is float else "a whole number"
        return core_schema.custom_error_schema(
            handler(Annotated[source, Field(ge=self.low, le=self.high)]),
            custom_error_type=_OURS,
            custom_error_message=f"{number} from {self.low} to {self.high}",
        )


def _moment(value: object) -> object:
    try:
        return from_iso(str(value))
    except (ValueError, OverflowError):
        raise unfit("an ISO 8601 time") from None


Moment = Annotated[int, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
"""ISO 8601 text, which becomes microseconds."""


def moment(field: str, text: str, default: int) -> int:
    """Return the microseconds of a field's ISO 8601 text, the default if it is empty. Invalid: names the field."""
    if not text:
        return default
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        raise invalid_field(field, "an ISO 8601 time") from None


def refusal(error: ValidationError, within: str = "") -> Invalid:
    """Return the refusal of a body or of arguments: `missing orgId`, `invalid pageId`; `fields` has the wrong fields,
    at most MAX_LISTED.

    The message names the first wrong field by its own name, since interfaces print such texts word for word. Beyond
    MAX_COUNTED errors it names none. within: the field of the body that holds the fields.
    """
    if error.error_count() > MAX_COUNTED:
        return invalid_field(within or BODY, f"over {MAX_COUNTED} values are wrong")
    details = error.errors(include_url=False, include_input=False)
    fields = (field for detail in details for field in _fields(detail, within))
    return Invalid(_headline(details[0]), tuple(islice(fields, MAX_LISTED)))


def _fields(detail: ErrorDetails, within: str) -> Iterator[FieldError]:
    """Yield the fields that an error is about: one, or those that a validator of the whole model names."""
    path = [within, *_path(detail)] if within else _path(detail)
    named = detail.get("ctx", {}).get("fields", ()) if detail["type"] == _OURS else ()
    for place in [[*path, name] for name in named] or [path or [BODY]]:
        yield FieldError(".".join(place), _message(detail))


def _headline(detail: ErrorDetails) -> str:
    if detail["type"] == "json_invalid":
        return "invalid JSON"
    names = [part for part in _path(detail) if not part.isdecimal()]
    if not names:
        return detail["msg"] if detail["type"] == _OURS else "invalid body"
    return f"{'missing' if detail['type'] == 'missing' else 'invalid'} {names[-1]}"


def _path(detail: ErrorDetails) -> list[str]:
    """Return the path to the wrong field; to the object that has it if the field is unknown, as its name is a value."""
    known = detail["loc"][:-1] if detail["type"] == _UNKNOWN else detail["loc"]
    return [str(part) for part in known if not isinstance(part, str) or _is_name(part)]


def _is_name(part: str) -> bool:
    return part not in _UNION_TAGS and "[" not in part and "(" not in part


def _message(detail: ErrorDetails) -> str:
    if detail["type"] in _WRITTEN:
        return _WRITTEN[detail["type"]]
    return detail["msg"] if detail["type"] in _TOLD else "is not valid"
