"""Whether a schema may be kept, and whether a subject is what it asks for."""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from jsonschema import Draft7Validator, Draft202012Validator, SchemaError, ValidationError
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable

from sallyport.base.command import JSON
from sallyport.base.errors import FieldError, Invalid
from sallyport.did.crypto.jcs import canonical
from sallyport.did.schemas.patterns import compiled

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
MAX_TOLD: Final = 20
BUDGET: Final = 2_000_000
"""Ways to match that the patterns of one run may try."""
MAX_STEPS: Final = 20_000
"""References that one run may follow, and subschemas that it may enter. References are JSON pointers: for an anchor
the library reads the whole schema again each time."""
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_BROKEN: Final = (Unresolvable, UnknownType, ValueError, TypeError, AttributeError)
"""What comes of a reference to a place that is no schema."""
_COUNTED: Final = (
    "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "items", "prefixItems", "contains", "properties",
    "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "dependencies",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "enum",
)  # fmt: skip

Keyword = Callable[[Validator, JSON, JSON, dict[str, JSON]], Iterator[ValidationError] | None]


class _Spent(Exception):
    """A run has used up what it may."""


def check_schema(schema: JSON) -> dict[str, JSON]:
    """The schema as it is kept, with its `$schema`. Invalid: it is none, of another draft, too large or too deep, or
    refers to somewhere else; or a pattern may take too long."""
    if not isinstance(schema, dict):
        raise _unfit("a JSON Schema is an object")
    bound("schema", schema, octets=MAX_OCTETS, depth=MAX_DEPTH, values=MAX_VALUES)
    kept: dict[str, JSON] = {"$schema": DEFAULT, **schema}
    dialect = kept["$schema"]
    validator = DIALECTS.get(dialect.rstrip("#")) if isinstance(dialect, str) else None
    if validator is None:
        raise _unfit("its $schema is draft-07 or 2020-12")
    try:
        validator.check_schema(kept)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))[:200]
        raise _unfit(f"it breaks the rules of its draft at /{place}") from None
    _check_bounds(kept)
    _check_targets(kept, validator)
    return kept


def check_subject(schema: dict[str, JSON], subject: JSON) -> None:
    """Invalid `metadata`: the subject is not what the schema asks for, or to find out would take too long; `schema`: it
    was kept before today's rules, and does what no run can count."""
    bound("metadata", subject, octets=MAX_SUBJECT_OCTETS, depth=MAX_SUBJECT_DEPTH, values=MAX_SUBJECT_VALUES)
    _check_bounds(schema)
    budget = _Budget()
    dialect = DIALECTS[str(schema["$schema"]).rstrip("#")]
    validator: type[Validator] = extend(  # type: ignore[no-untyped-call]
        dialect,
        {
            "pattern": budget.pattern,
            **{name: budget.counted(name, dialect.VALIDATORS[name]) for name in _COUNTED if name in dialect.VALIDATORS},
        },
    )
    try:
        errors = list(islice(validator(schema, registry=Registry()).iter_errors(subject), MAX_TOLD))
    except (RecursionError, _Spent):
        raise Invalid(
            "metadata takes too long to compare with the schema", (FieldError("metadata", "is too much"),)
        ) from None
    except _BROKEN:
        raise Invalid("the schema refers to something that is no schema") from None
    if errors:
        fields = tuple(FieldError(_place(each), f"breaks `{each.validator}` of the schema") for each in errors)
        raise Invalid("metadata is not what the schema asks for", fields)


def bound(field: str, value: JSON, *, octets: int, depth: int, values: int) -> None:
    """Invalid: a value is larger, deeper, or has more values in it; or a number that others would read as another."""
    level, found = [value], 0
    for _ in range(depth):
        level = [inner for each in level for inner in _inner(each)]
        found += len(level)
        if not all(map(_is_exact, level)):
            raise Invalid(f"invalid {field}", (FieldError(field, "numbers that a double holds exactly"),))
        if found > values:
            raise Invalid(f"invalid {field}", (FieldError(field, f"at most {values} values"),))
    if level:
        raise Invalid(f"invalid {field}", (FieldError(field, f"at most {depth} levels deep"),))
    if len(canonical(value)) > octets:
        raise Invalid(f"invalid {field}", (FieldError(field, f"at most {octets >> 10} KiB"),))


def _is_exact(value: JSON) -> bool:
    """Whether every reader of JSON finds the same value (RFC 8259 section 6)."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) <= 1 << 53


class _Budget:
    """What one run may still do."""

    def __init__(self) -> None:
        self._ways = BUDGET
        self._steps = MAX_STEPS

    def counted(self, name: str, keyword: Keyword) -> Keyword:
        """A keyword that leads into other schemas, each use of which is counted."""

        def count(
            validator: Validator, wanted: JSON, value: JSON, schema: dict[str, JSON]
        ) -> Iterator[ValidationError]:
            self._steps -= _steps(name, wanted, value)
            if self._steps < 0:
                raise _Spent
            yield from keyword(validator, wanted, value, schema) or ()

        return count

    def pattern(
        self, validator: Validator, wanted: JSON, value: JSON, schema: dict[str, JSON]
    ) -> Iterator[ValidationError]:
        """The keyword `pattern`, if there is time for it."""
        if isinstance(value, str):
            pattern = compiled(str(wanted))
            self._ways -= pattern.ways(len(value))
            if self._ways < 0:
                raise _Spent
            if not pattern.expression.search(value):
                yield ValidationError("pattern", validator="pattern")


def _steps(name: str, wanted: JSON, value: JSON) -> int:
    """How much a keyword has to do: for each subschema or value that it names; twice over for what compares each with
    each."""
    parts = len(wanted) if isinstance(wanted, list | dict) else 1
    if name == "patternProperties" and isinstance(value, dict):
        return 1 + parts * len(value)
    if name == "uniqueItems" and isinstance(value, list):
        return 1 + len(value) ** 2 // 20
    return 1 + parts


def _check_bounds(schema: dict[str, JSON]) -> None:
    """What bounds every run. No reference stands beside `unevaluated...`: jsonschema follows references and
    dependentSchemas for these on its own, where nothing counts them."""
    _look_at(schema, root=True)
    names = {name for part in _parts(schema) for name in part}
    if names & _UNEVALUATED and ("dependentSchemas" in names or _references(schema)):
        raise _unfit("unevaluatedItems or unevaluatedProperties together with references or dependentSchemas")


def _look_at(schema: JSON, *, root: bool = False) -> None:
    """Everything in a schema, wherever it stands: what only looks like a keyword is held to the same."""
    for each in _inner(schema):
        _look_at(each)
    if not isinstance(schema, dict):
        return
    for name in _REFERENCES:
        reference = schema.get(name)
        if isinstance(reference, str) and reference != "#" and not reference.startswith("#/"):
            raise _unfit("it refers to something else than `#` or a JSON pointer `#/...`")
    if not root and isinstance(schema.get("$id"), str):
        raise _unfit("a part of it has an $id of its own")
    patterns = schema.get("patternProperties")
    try:
        if isinstance(schema.get("pattern"), str):
            compiled(str(schema["pattern"]))
        for text in patterns if isinstance(patterns, dict) else ():
            if compiled(text).degree > 1:
                raise ValueError("a pattern of names has too many ways to match")
    except ValueError as error:
        raise _unfit(str(error)) from None


def _check_targets(kept: dict[str, JSON], dialect: type[Validator]) -> None:
    """Each reference leads to a schema."""
    try:
        resolver = Registry().resolver_with_root(Resource.from_contents(kept))
        found = [resolver.lookup(each).contents for each in _references(kept)]
        targets = {id(each): each for each in found if each is not kept}.values()
        if sum(1 for each in targets for _ in _parts(each)) > MAX_VALUES:
            raise _unfit("it refers to too many parts of parts of itself")
        for each in targets:
            dialect.check_schema(each)
    except (*_BROKEN, SchemaError):
        raise _unfit("it refers to something that is no schema") from None


def _references(schema: JSON) -> set[str]:
    """Where it refers to."""
    return {each for part in _parts(schema) for name in _REFERENCES if isinstance(each := part.get(name), str)}


def _parts(value: JSON) -> Iterator[dict[str, JSON]]:
    """Every object in a schema, wherever it stands."""
    if isinstance(value, dict):
        yield value
    for each in _inner(value):
        yield from _parts(each)


def _inner(value: JSON) -> Iterable[JSON]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _place(error: ValidationError) -> str:
    """Where in the metadata; the names are the caller's own, and are cut."""
    return ".".join(["metadata", *map(str, error.absolute_path)])[:255]


def _unfit(message: str) -> Invalid:
    return Invalid("invalid schema", (FieldError("schema", message),))
