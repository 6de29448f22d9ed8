"""Conversion of pydantic's errors to `Invalid`, which names the wrong fields and never contains a submitted value.

Some of pydantic's messages contain submitted values, for example a character of a UUID. So this module has its own
message for each type of error that it knows. All other types of errors become `is not valid`. Validators of this
program describe their errors themselves, by a predicate of the field (`unfit("must be an IP address")`) or by a
sentence (`unfit("give userName or station, not both")`). For the range of a number, use `Between`: its error names both
limits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from sallyport.base.clock import from_iso
from sallyport.base.errors import BODY, MISSING, FieldError, Invalid, invalid_field

_UNFIT: Final = "unfit"
_UNKNOWN: Final = "extra_forbidden"
_FLAG, _WHOLE_NUMBER, _NUMBER = "must be true or false", "must be a whole number", "must be a number"
_OBJECT, _CHOICE = "must be an object", "must be {expected}"
_TIME: Final = "must be an ISO 8601 time, such as 2026-11-27T10:00:00Z"
_MESSAGES: Final[Mapping[str, str]] = {
    "bool_parsing": _FLAG,
    "bool_type": _FLAG,
    "dict_type": _OBJECT,
    "enum": _CHOICE,
    "finite_number": "must be a finite number",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "must be a number above {gt}",
    "greater_than_equal": "must be a number of at least {ge}",
    "int_from_float": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": "must be a whole number with fewer digits",
    "int_type": _WHOLE_NUMBER,
    "json_invalid": "must be valid JSON",
    "less_than": "must be a number below {lt}",
    "less_than_equal": "must be a number of at most {le}",
    "list_type": "must be an array",
    "literal_error": _CHOICE,
    "missing": MISSING,
    "model_type": _OBJECT,
    "string_too_long": "must have at most {max_length} {characters}",
    "string_too_short": "must have at least {min_length} {characters}",
    "string_type": "must be text",
    "string_unicode": "must be text in Unicode",
    "too_long": "must have at most {max_length} {parts}",
    "too_short": "must have at least {min_length} {parts}",
    _UNKNOWN: "must have only known fields; /docs lists them",
    _UNFIT: "{message}",
}
"""The message of an error, by pydantic's type of the error."""
MAX_LISTED = 100
"""Maximum number of wrong fields that an error lists."""
MAX_COUNTED = 1000
"""Maximum number of errors that pydantic may describe. Describing 10,000 errors holds the interpreter lock for 15
ms."""
# Parts of a path that pydantic adds inside a union. They are not names of fields.
_UNION_TAGS = frozenset({"bool", "dict", "float", "int", "list", "none", "str"})


def unfit(message: str, *fields: str) -> PydanticCustomError:
    """Return an error for a validator to raise.

    message: the message of a FieldError; must not contain the submitted value. fields: the names of the wrong fields,
    if the validator checks the whole model.
    """
    return PydanticCustomError(_UNFIT, "{message}", {"message": message, "fields": fields})


@dataclass(frozen=True, slots=True)
class Between:
    """A number from `low` to `high`, both included: `Annotated[int, Between(1, 100)]`."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        number = "a number" if source is float else "a whole number"
        return core_schema.custom_error_schema(
            handler(Annotated[source, Field(ge=self.low, le=self.high)]),
            custom_error_type=_UNFIT,
            custom_error_message="{message}",
            custom_error_context={"message": f"must be {number} from {self.low} to {self.high}"},
        )


def _moment(value: object) -> object:
    try:
        return from_iso(str(value))
    except (ValueError, OverflowError):
        raise unfit(_TIME) from None


Moment = Annotated[int, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time as ISO 8601 text; the validated value is in microseconds."""


def moment(field: str, text: str, default: int) -> int:
    """Parse the ISO 8601 text of a field, and return microseconds. Return the default if the text is empty. Raises
    Invalid."""
    if not text:
        return default
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        raise invalid_field(field, _TIME) from None


def refusal(error: ValidationError, within: str = "") -> Invalid:
    """Convert an error of pydantic to Invalid, with a message such as `missing orgId` or `invalid pageId`.

    The Invalid lists at most MAX_LISTED wrong fields. Its message names only the first wrong field, by the last part of
    the path, because user interfaces show the message to users. If there are more than MAX_COUNTED errors, the Invalid
    names no single field. within: the path of the validated object in the body.
    """
    if error.error_count() > MAX_COUNTED:
        field = within or BODY
        wrong = FieldError(field, f"over {MAX_COUNTED} values are wrong")
        return Invalid(f"invalid {field}", (wrong,))
    details = error.errors(include_url=False)
    fields = (field for detail in details for field in _fields(detail, within))
    return Invalid(_headline(details[0]), tuple(islice(fields, MAX_LISTED)))


def one_or_several(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Validate a list, or a single value as a list of one. For a wrap validator.

    An error of a single value has no index in its path, because the caller has sent no list.
    """
    if isinstance(value, list) or value is None:
        return handler(value)
    try:
        return handler([value])
    except ValidationError as error:
        if error.error_count() > MAX_COUNTED:
            raise
        raise ValidationError.from_exception_data(error.title, [_moved_up(each) for each in error.errors()]) from None


def _moved_up(detail: ErrorDetails) -> InitErrorDetails:
    context = detail.get("ctx", {})
    kind = detail["type"] if detail["type"] != _UNFIT else PydanticCustomError(_UNFIT, "{message}", context)
    place = detail["loc"][1:] if detail["loc"][:1] == (0,) else detail["loc"]
    return InitErrorDetails(type=kind, loc=place, input=detail["input"], ctx=context)


def _fields(detail: ErrorDetails, within: str) -> Iterator[FieldError]:
    """Yield the wrong fields of one pydantic error. A validator of the whole model may have named several fields."""
    path = [within, *_path(detail)] if within else _path(detail)
    named = detail.get("ctx", {}).get("fields", ()) if detail["type"] == _UNFIT else ()
    for place in [[*path, name] for name in named] or [path or [BODY]]:
        yield FieldError(".".join(place), described(detail))


def _headline(detail: ErrorDetails) -> str:
    if detail["type"] == "json_invalid":
        return "invalid JSON"
    names = [part for part in _path(detail) if not part.isdecimal()]
    if not names:
        return detail["msg"] if detail["type"] == _UNFIT else "invalid body"
    return f"{'missing' if detail['type'] == 'missing' else 'invalid'} {names[-1]}"


def _path(detail: ErrorDetails) -> list[str]:
    """Return the path to the wrong field. If a field is unknown, its name is a submitted value. Therefore the path then
    ends with the object that contains the field."""
    known = detail["loc"][:-1] if detail["type"] == _UNKNOWN else detail["loc"]
    return [str(part) for part in known if not isinstance(part, str) or _is_name(part)]


def _is_name(part: str) -> bool:
    return part not in _UNION_TAGS and "[" not in part and "(" not in part


def described(detail: ErrorDetails) -> str:
    """Return the message of an error of pydantic: a predicate of the field, or a sentence."""
    kind, context = detail["type"], detail.get("ctx", {})
    one = 1 in (context.get("min_length"), context.get("max_length"))
    words = {"characters": "character" if one else "characters", "parts": "entry" if one else "entries"}
    if isinstance(
        detail.get("input"), str
    ):  # pydantic reports a too long text as a too long list if a validator comes before
        words["parts"] = words["characters"]
    words |= {"expected": str(context.get("expected")).replace("'", "")}
    words |= {name: f"{value:g}" for name, value in context.items() if isinstance(value, float)}
    return _MESSAGES.get(kind, "is not valid").format_map({**context, **words})
