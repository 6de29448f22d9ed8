"""Conversion of pydantic's errors to `Invalid`, which names fields and never repeats a submitted value.

Pydantic puts values into some of its messages (a tag, a character of a UUID, the text of a ValueError). So this module
has its own phrase for each type of error, made from the schema alone; an error of another type becomes `is not valid`.
A validator of this program names the accepted values by raising `unfit("an IP address")`, or describes the error by
raising `unfit_because("userName and station exclude each other")`. A range is declared with `Between`: its error has
both ends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, ValidationError, WithJsonSchema
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from sallyport.base.clock import from_iso
from sallyport.base.errors import BODY, MISSING, FieldError, Invalid, invalid_field

_PHRASE: Final = "unfit"
_SENTENCE: Final = "unfit_because"
_UNKNOWN: Final = "extra_forbidden"
_SENTENCES: Final[Mapping[str, str]] = {
    "json_invalid": "valid JSON is required",
    "missing": MISSING,
    _UNKNOWN: "known fields only; /docs lists them",
}
_WHOLE_NUMBER, _NUMBER, _OBJECT = "a whole number", "a number", "an object"
_PHRASES: Final[Mapping[str, str]] = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": _OBJECT,
    "enum": "{expected}",
    "finite_number": "a finite number",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number from {ge} on",
    "int_from_float": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_parsing_size": "a whole number with fewer digits",
    "int_type": _WHOLE_NUMBER,
    "less_than": "a number below {lt}",
    "less_than_equal": "a number up to {le}",
    "list_type": "an array",
    "literal_error": "{expected}",
    "model_type": _OBJECT,
    "string_too_long": "at most {max_length} {characters}",
    "string_too_short": "at least {min_length} {characters}",
    "string_type": "text",
    "string_unicode": "text in Unicode",
    "too_long": "at most {max_length} {parts}",
    "too_short": "at least {min_length} {parts}",
    _PHRASE: "{message}",
}
"""Phrase for the accepted values, by the type of an error."""
MAX_LISTED = 100
"""Maximum number of wrong fields that an error lists."""
MAX_COUNTED = 1000
"""Maximum number of errors that pydantic may describe. It holds the interpreter lock meanwhile (15 ms for 10,000
errors)."""
# Parts that pydantic adds to the path inside a union. They are not field names.
_UNION_TAGS = frozenset({"bool", "dict", "float", "int", "list", "none", "str"})


def unfit(accepted: str, *fields: str) -> PydanticCustomError:
    """Return the error for a validator to raise.

    accepted: a phrase that describes the accepted values; it must not contain the submitted value. fields: names of the
    wrong fields, for a validator of the whole model.
    """
    return PydanticCustomError(_PHRASE, "{message}", {"message": accepted, "fields": fields})


def unfit_because(sentence: str, *fields: str) -> PydanticCustomError:
    """Return the error for a validator to raise.

    sentence: the error, without a submitted value. fields: names of the wrong fields, for a validator of the whole
    model.
    """
    return PydanticCustomError(_SENTENCE, "{message}", {"message": sentence, "fields": fields})


@dataclass(frozen=True, slots=True)
class Between:
    """The range of a number, both ends included: `Annotated[int, Between(1, 100)]`."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        number = "a number" if source is float else "a whole number"
        return core_schema.custom_error_schema(
            handler(Annotated[source, Field(ge=self.low, le=self.high)]),
            custom_error_type=_PHRASE,
            custom_error_message="{message}",
            custom_error_context={"message": f"{number} from {self.low} to {self.high}"},
        )


def _moment(value: object) -> object:
    try:
        return from_iso(str(value))
    except (ValueError, OverflowError):
        raise unfit("an ISO 8601 time") from None


Moment = Annotated[int, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time as ISO 8601 text; the validated value is in microseconds."""


def moment(field: str, text: str, default: int) -> int:
    """Return a field's ISO 8601 text in microseconds; the default if the text is empty. Invalid: the text is
    malformed."""
    if not text:
        return default
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        raise invalid_field(field, "an ISO 8601 time") from None


def refusal(error: ValidationError, within: str = "") -> Invalid:
    """Return the error for a body or for arguments, with a message such as `missing orgId` or `invalid pageId`.

    The error lists at most MAX_LISTED wrong fields. Its message contains only the last part of the first field's path,
    because user interfaces show the text word for word. If there are more than MAX_COUNTED errors, no single field is
    named. within: the field of the body that contains the validated object.
    """
    if error.error_count() > MAX_COUNTED:
        field = within or BODY
        wrong = FieldError(field, f"over {MAX_COUNTED} values are wrong", is_sentence=True)
        return Invalid(f"invalid {field}", (wrong,))
    details = error.errors(include_url=False)
    fields = (field for detail in details for field in _fields(detail, within))
    return Invalid(_headline(details[0]), tuple(islice(fields, MAX_LISTED)))


def _fields(detail: ErrorDetails, within: str) -> Iterator[FieldError]:
    """Yield the wrong fields of an error: a single one, or the fields that a validator of the whole model has named."""
    path = [within, *_path(detail)] if within else _path(detail)
    named = detail.get("ctx", {}).get("fields", ()) if detail["type"] in (_PHRASE, _SENTENCE) else ()
    for place in [[*path, name] for name in named] or [path or [BODY]]:
        yield FieldError(".".join(place), *described(detail))


def _headline(detail: ErrorDetails) -> str:
    if detail["type"] == "json_invalid":
        return "invalid JSON"
    names = [part for part in _path(detail) if not part.isdecimal()]
    if not names:
        return detail["msg"] if detail["type"] in (_PHRASE, _SENTENCE) else "invalid body"
    return f"{'missing' if detail['type'] == 'missing' else 'invalid'} {names[-1]}"


def _path(detail: ErrorDetails) -> list[str]:
    """Return the path to the wrong field. For an unknown field, return the path of the object that contains it,
    because the unknown name is a submitted value."""
    known = detail["loc"][:-1] if detail["type"] == _UNKNOWN else detail["loc"]
    return [str(part) for part in known if not isinstance(part, str) or _is_name(part)]


def _is_name(part: str) -> bool:
    return part not in _UNION_TAGS and "[" not in part and "(" not in part


def described(detail: ErrorDetails) -> tuple[str, bool]:
    """Return the message of an error, and whether it is a sentence about the error (True) or a phrase for the accepted
    values."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == _SENTENCE:
        return str(context["message"]), True
    if kind not in _PHRASES:
        return _SENTENCES.get(kind, "is not valid"), True
    one = 1 in (context.get("min_length"), context.get("max_length"))
    words = {"characters": "character" if one else "characters", "parts": "entry" if one else "entries"}
    if isinstance(detail.get("input"), str):  # our validators make pydantic report a long text as a long list
        words["parts"] = words["characters"]
    words |= {"expected": str(context.get("expected")).replace("'", "")}
    words |= {name: f"{value:g}" for name, value in context.items() if isinstance(value, float)}
    return _PHRASES[kind].format_map({**context, **words}), False
