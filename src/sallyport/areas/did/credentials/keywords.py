"""The keywords of JSON Schema. Each evaluation of a keyword is charged to a budget.

A subject is validated in a worker thread. The code is Python code, which releases the interpreter lock every 5 ms, and
RE2, which releases the lock during a match. RE2 matches in a time proportional to the size of the compiled pattern and
the length of the text, whatever the pattern is. `MAX_STEPS` limits the total.

Some keywords of the library jsonschema are replaced here. The library's versions match by `re`, which backtracks for an
exponential time, and keep a copy of the value for each alternative that fails.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, Protocol, cast

import re2
from jsonschema import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from sallyport.base.wire import JSON

MAX_STEPS: Final = 20_000
"""Maximum number of steps in the validation of one subject. Subschemas, references and compared values are steps.
References must be JSON pointers, because for an anchor the library would search the whole schema each time."""
MAX_LENGTH: Final = 512
MAX_MEMORY: Final = 1 << 20
"""Maximum size of a compiled pattern, and of its states in the cache, in octets."""
_MATCHED_PER_STEP: Final = 500
"""Size of a compiled pattern times octets of a text that are matched in the time of one step: at most 20 ns each."""
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)
_CHARGED: Final = (
    "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "items", "prefixItems", "contains", "properties",
    "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "dependencies",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "enum", "const", "required", "dependentRequired",
    "type",
)  # fmt: skip

_Schema = dict[str, JSON]
_Errors = Iterator[ValidationError]
_Keyword = Callable[[Validator, JSON, JSON, _Schema], _Errors | None]


class Spent(Exception):
    """The error for a validation that has used up its budget."""


class _Descends(Protocol):
    """Declares a method that jsonschema's validators have. The protocol class of jsonschema does not declare this
    method."""

    def descend(self, instance: JSON, schema: JSON, path: str | None = None) -> _Errors: ...


class Budget:
    """The remaining budget of one validation. A keyword raises Spent if the budget is used up."""

    def __init__(self) -> None:
        self._steps = MAX_STEPS

    def validator(self, dialect: type[Validator]) -> type[Validator]:
        """Return a validator class for a dialect. The keywords of this class charge their cost to this budget."""
        ours: dict[str, _Keyword] = {
            "anyOf": _any_of,
            "oneOf": _one_of,
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
        }
        keywords = {**dialect.VALIDATORS, **ours}
        charged = {name: self._charged(name, keywords[name]) for name in _CHARGED if name in dialect.VALIDATORS}
        made: type[Validator] = extend(dialect, {**ours, **charged})  # type: ignore[no-untyped-call]
        return made

    def _charged(self, name: str, keyword: _Keyword) -> _Keyword:
        def run(validator: Validator, wanted: JSON, value: JSON, schema: _Schema) -> _Errors:
            self._charge(_steps(name, wanted, value))
            yield from keyword(validator, wanted, value, schema) or ()

        return run

    def _pattern(self, _: Validator, wanted: JSON, value: JSON, schema: _Schema) -> _Errors:
        if isinstance(value, str) and not self._matches(str(wanted), value):
            yield ValidationError("pattern")

    def _pattern_properties(self, validator: Validator, wanted: JSON, value: JSON, schema: _Schema) -> _Errors:
        if isinstance(value, dict) and isinstance(wanted, dict):
            for text, subschema in wanted.items():
                for name, inner in value.items():
                    if self._matches(text, name):
                        yield from _descend(validator, inner, subschema, name)

    def _additional_properties(self, validator: Validator, wanted: JSON, value: JSON, schema: _Schema) -> _Errors:
        named, patterns = schema.get("properties") or {}, schema.get("patternProperties") or {}
        if not isinstance(value, dict) or not isinstance(named, dict) or not isinstance(patterns, dict):
            return
        for name, inner in value.items():
            if name in named or any(self._matches(text, name) for text in patterns):
                continue
            if wanted is False:
                yield ValidationError("additionalProperties")
                return
            yield from _descend(validator, inner, wanted, name)

    def _matches(self, text: str, value: str) -> bool:
        pattern, octets = compiled(text), value.encode()
        self._charge(pattern.programsize * len(octets) // _MATCHED_PER_STEP)
        return pattern.search(octets) is not None

    def _charge(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise Spent


def _any_of(validator: Validator, wanted: JSON, value: JSON, _: _Schema) -> _Errors:
    if isinstance(wanted, list) and not any(_is_valid(validator, each, value) for each in wanted):
        yield ValidationError("anyOf")


def _one_of(validator: Validator, wanted: JSON, value: JSON, _: _Schema) -> _Errors:
    if isinstance(wanted, list) and sum(_is_valid(validator, each, value) for each in wanted) != 1:
        yield ValidationError("oneOf")


def _is_valid(validator: Validator, schema: JSON, value: JSON) -> bool:
    return next(_descend(validator, value, schema), None) is None


def _descend(validator: Validator, value: JSON, schema: JSON, name: str | None = None) -> _Errors:
    return iter(cast("_Descends", validator).descend(value, schema, name))


def _steps(name: str, wanted: JSON, value: JSON) -> int:
    """Return the number of steps to charge for a keyword. Each subschema or value in the keyword costs one step.
    Comparisons of pairs cost more steps."""
    parts = len(wanted) if isinstance(wanted, list | dict) else 1
    if name == "patternProperties" and isinstance(value, dict):
        return 1 + parts * len(value)
    if name == "uniqueItems" and isinstance(value, list):
        return 1 + len(value) ** 2 // 20
    return 1 + parts


class Pattern(Protocol):
    """A regular expression that RE2 has compiled. programsize: the number of its instructions."""

    @property
    def programsize(self) -> int: ...

    def search(self, text: bytes) -> object | None: ...


@lru_cache(maxsize=128)
def compiled(text: str) -> Pattern:
    """Return the pattern of a regular expression. Raises ValueError with the reason if the expression is too long, is
    not valid, or uses a feature that RE2 does not have, such as a back-reference."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a pattern has more than {MAX_LENGTH} characters")
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MAX_MEMORY
    try:
        pattern: Pattern = re2.compile(_ESCAPE.sub(_in_syntax_of_re2, text), options)
    except re2.error as error:
        raise ValueError(f"a pattern is not in the syntax of RE2: {error.args[0].decode(errors='replace')}") from None
    return pattern


def _in_syntax_of_re2(escape: re.Match[str]) -> str:
    """Return an escape sequence of ECMA-262 in the syntax of RE2, which writes `\\u00e9` as `\\x{00e9}`."""
    return rf"\x{{{escape[1]}}}" if escape[1] else escape[0]
