"""Check credential schemas, and check subjects against these schemas. Each check has a limited cost (`keywords`)."""

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable

from sallyport.areas.did.credentials.keywords import MAX_LENGTH, Budget, Spent, compiled
from sallyport.areas.did.crypto.encoding import canonical
from sallyport.base.errors import FieldError, Invalid, invalid_field
from sallyport.base.wire import JSON

DIALECTS: Final = {
    "http://json-schema.org/draft-07/schema": Draft7Validator,
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
}
DEFAULT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_OCTETS: Final = 64 << 10
MAX_DEPTH: Final = 24
MAX_VALUES: Final = 1000
MAX_SUBJECT_OCTETS: Final = 32 << 10
MAX_SUBJECT_DEPTH: Final = 12
MAX_SUBJECT_VALUES: Final = 500
MAX_NAME: Final = 255
MAX_PATTERNS: Final = 64
"""Maximum number of patterns in a schema. Compiling a pattern takes up to 25 ms."""
MAX_REPORTED: Final = 20
_NO_FORMATS: Final = FormatChecker(())
"""The rules of the drafts without formats. jsonschema would compile each pattern by `re`."""
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_UNCOUNTED: Final = frozenset({"dependentSchemas", "patternProperties"})
_REFERENCE_ERRORS: Final = (Unresolvable, UnknownType, ValueError, TypeError, AttributeError)
"""The exceptions that a reference raises if it does not lead to a schema."""


def check_schema(schema: JSON) -> dict[str, JSON]:
    """Check a schema, and return it in its stored form, which always has `$schema`.

    Raises Invalid if the schema is not a JSON Schema, uses another draft, or is too large or nested too deep. Raises
    Invalid if the schema refers to another document, or has a pattern that may take too long.
    """
    if not isinstance(schema, dict):
        raise _unfit("must be an object")
    bound("schema", schema, octets=MAX_OCTETS, depth=MAX_DEPTH, values=MAX_VALUES, name=MAX_LENGTH)
    kept: dict[str, JSON] = {"$schema": DEFAULT, **schema}
    dialect = kept["$schema"]
    validator = DIALECTS.get(dialect.rstrip("#")) if isinstance(dialect, str) else None
    if validator is None:
        raise _unfit("$schema must name the draft draft-07 or 2020-12")
    try:
        validator.check_schema(kept, format_checker=_NO_FORMATS)
    except SchemaError as error:
        raise _unfit(f"the schema breaks the rules of its draft at /{_keywords(error, validator)}") from None
    _check_bounds(kept)
    _check_targets(kept)
    return kept


def check_subject(schema: dict[str, JSON], subject: JSON) -> None:
    """Check that a subject meets a schema. Raises Invalid if the subject does not meet the schema, or if the check
    would take too long.

    The field of the error is usually `metadata`. An older version may have stored a schema that breaks the current
    rules. In this case the field of the error is `schema`.
    """
    limits = {"octets": MAX_SUBJECT_OCTETS, "depth": MAX_SUBJECT_DEPTH, "values": MAX_SUBJECT_VALUES, "name": MAX_NAME}
    bound("metadata", subject, **limits)
    _check_bounds(schema)
    validator = Budget().validator(DIALECTS[str(schema["$schema"]).rstrip("#")])
    try:
        errors = list(islice(validator(schema, registry=Registry()).iter_errors(subject), MAX_REPORTED))
    except (RecursionError, Spent):
        raise Invalid(
            "metadata takes too long to compare with the schema",
            (FieldError("metadata", "must have shorter texts, or fewer values"),),
        ) from None
    except _REFERENCE_ERRORS:
        raise Invalid.about("a reference in the schema does not lead to a schema", "schemaId") from None
    if errors:
        raise Invalid("metadata does not meet the schema", tuple(map(_broken, errors)))


def bound(field: str, value: JSON, *, octets: int, depth: int, values: int, name: int) -> None:
    """Raise Invalid if a value is too large, is nested too deep, or contains too many values. Raise Invalid if a name
    in the value is too long, or if other JSON parsers would round a number in the value."""
    level, found = [value], 0
    for _ in range(depth):
        if any(len(each) > name for part in level if isinstance(part, dict) for each in part):
            raise Invalid(f"invalid {field}", (FieldError(field, f"must have names of at most {name} characters"),))
        level = [inner for each in level for inner in _inner(each)]
        found += len(level)
        if not all(map(_is_exact, level)):
            raise invalid_field(field, "must have only numbers that a double can hold without rounding")
        if found > values:
            raise invalid_field(field, f"must have at most {values} values")
    if level:
        raise invalid_field(field, f"must be nested at most {depth} levels deep")
    if len(canonical(value)) > octets:
        raise invalid_field(field, f"must be at most {octets >> 10} KiB of JSON")


def _is_exact(value: JSON) -> bool:
    """Return True if every JSON parser reads the number without rounding (RFC 7493 section 2.2). Return True also for a
    value that is not a number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) < 1 << 53


def _check_bounds(schema: dict[str, JSON]) -> None:
    """Raise Invalid if the validation of a subject could have a cost that is not charged to the budget.

    For the keywords `unevaluated...`, jsonschema itself follows references and dependentSchemas, and matches
    patternProperties. The cost of these steps is not counted. So a schema must not combine these keywords.
    """
    _check_part(schema, root=True)
    parts = list(_parts(schema))
    names = {name for part in parts for name in part}
    if names & _UNEVALUATED and (names & _UNCOUNTED or _references(schema)):
        raise _unfit(
            "a schema with unevaluatedItems or unevaluatedProperties must not have references, "
            "dependentSchemas or patternProperties"
        )
    if sum(len(_patterns(part)) for part in parts) > MAX_PATTERNS:
        raise _unfit(f"the schema has more than {MAX_PATTERNS} patterns")


def _check_part(schema: JSON, *, root: bool = False) -> None:
    """Raise Invalid if the cost of a part of the schema cannot be limited. A name of a keyword is treated as a keyword
    everywhere, even in plain data."""
    for each in _inner(schema):
        _check_part(each)
    if not isinstance(schema, dict):
        return
    for name in _REFERENCES:
        reference = schema.get(name)
        if isinstance(reference, str) and reference != "#" and not reference.startswith("#/"):
            raise _unfit("a reference must be `#` or a JSON pointer `#/...`")
    if not root and isinstance(schema.get("$id"), str):
        raise _unfit("$id is allowed only at the top level of the schema")
    if not root and isinstance(schema.get("$schema"), str):  # jsonschema would run this part with uncounted keywords
        raise _unfit("$schema is allowed only at the top level of the schema")
    try:
        for text in _patterns(schema):
            compiled(text)
    except ValueError as error:
        raise _unfit(str(error)) from None


def _patterns(schema: dict[str, JSON]) -> list[str]:
    """Return the patterns in one part of a schema: the pattern for values, and the patterns for names."""
    pattern, of_names = schema.get("pattern"), schema.get("patternProperties")
    return [*([pattern] if isinstance(pattern, str) else []), *(of_names if isinstance(of_names, dict) else [])]


def _check_targets(kept: dict[str, JSON]) -> None:
    """Raise Invalid if a reference does not lead to a schema."""
    dialect = DIALECTS[str(kept["$schema"]).rstrip("#")]
    try:
        resolver = Registry().resolver_with_root(Resource.from_contents(kept))
        found = [resolver.lookup(each).contents for each in _references(kept)]
        targets = {id(each): each for each in found if each is not kept}.values()
        if sum(1 for each in targets for _ in _parts(each)) > MAX_VALUES:
            raise _unfit("the references lead to too many parts of the schema")
        for each in targets:
            dialect.check_schema(each, format_checker=_NO_FORMATS)
    except (*_REFERENCE_ERRORS, SchemaError):
        raise _unfit("a reference does not lead to a schema") from None


def _references(schema: JSON) -> set[str]:
    return {each for part in _parts(schema) for name in _REFERENCES if isinstance(each := part.get(name), str)}


def _parts(value: JSON) -> Iterator[dict[str, JSON]]:
    """Yield every object in a schema, at any depth."""
    if isinstance(value, dict):
        yield value
    for each in _inner(value):
        yield from _parts(each)


def _inner(value: JSON) -> Iterable[JSON]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _keywords(error: SchemaError, dialect: type[Validator]) -> str:
    """Return the path to an error in a schema. A name in the path is replaced by `*` if the name is not a keyword of
    the schema's draft."""
    path = (each if isinstance(each, int) or each in dialect.VALIDATORS else "*" for each in error.absolute_path)
    return "/".join(map(str, path))[:200]


def _place(error: ValidationError) -> str:
    """Return the path of an error in the metadata. The path is cut to 255 characters, because the names in the path are
    chosen by the caller."""
    return ".".join(["metadata", *map(str, error.absolute_path)])[:255]


def _broken(error: ValidationError) -> FieldError:
    return FieldError(_place(error), f"must meet `{error.validator}` of the schema")


def _unfit(message: str) -> Invalid:
    return Invalid("invalid schema", (FieldError("schema", message),))
