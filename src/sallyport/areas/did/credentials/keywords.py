"""The keywords of JSON Schema. Each evaluation of a keyword is charged to a budget.

A subject is validated in a worker thread. `re` holds the interpreter lock during a match. So `MAX_COST` limits each
match, and `BUDGET` limits all matches of one validation. All other code is Python code, which releases the lock every 5
ms. `MAX_STEPS` limits the total of this code.

Some keywords of the library jsonschema are replaced here. The library's versions match names without counting the cost,
and keep a copy of the value for each alternative that fails.

The maximum cost of a match is computed from the pattern before the match. `re` backtracks: it may try all ways to
divide the text among the parts of the pattern. Repeated groups are not allowed. Without them, the number of ways is a
product of factors. The unbounded repetitions and the start of the match give the first factor: they divide a text of n
characters in `comb(n + degree, degree)` ways. Each bounded repetition and each alternative gives one more factor. For
each way, the literals and the longest class of the expression are compared again. So their length is part of the cost.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Final, Protocol, cast

from jsonschema import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from sallyport.base.wire import JSON

MAX_COST: Final = 200_000
"""Maximum cost of one match (`Pattern.cost`). A match of this cost takes at most 7 ms."""
BUDGET: Final = 2_000_000
"""Maximum cost of all matches in the validation of one subject."""
MAX_STEPS: Final = 20_000
"""Maximum number of steps in the validation of one subject. Subschemas, references and compared values are steps.
References must be JSON pointers, because for an anchor the library would search the whole schema each time."""
LONGEST: Final = 512
MAX_DEGREE: Final = 4
MAX_FACTOR: Final = 4096
MAX_RANGES: Final = 32
"""Maximum number of ranges, such as `a-z`, in the character classes of a pattern. Compiling a range takes up to 65,536
steps."""
_LITERALS_PER_STEP: Final = 32
"""Number of literals that can be compared in the time of one step."""
_ATOM: Final = re.compile(r"\\([^\W_]|.)|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEATED: Final = re.compile(r"\)(?:[*+]|\{)")
_BOUNDS: Final = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
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
        self._cost = BUDGET
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
            self._steps -= _steps(name, wanted, value)
            if self._steps < 0:
                raise Spent
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
        pattern = compiled(text)
        cost = pattern.cost(len(value))
        self._cost -= cost
        if cost > MAX_COST or self._cost < 0:
            raise Spent
        return pattern.expression.search(value) is not None


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


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, and the numbers that limit its cost.

    factor, degree: two numbers from which the number of ways to match is computed (see the module's docstring).
    repeated: the sum of the minimum counts in the bounded repetitions `{m,n}`. size: the length of the expression plus
    the length of its longest class.
    """

    expression: re.Pattern[str]
    factor: int
    degree: int
    repeated: int
    size: int

    def cost(self, length: int) -> int:
        """Return the maximum number of steps of a search in a text with this length. A step takes up to 70 ns."""
        weight = 1 + (min(self.repeated, length) + self.size) // _LITERALS_PER_STEP
        return self.factor * comb(length + self.degree + 1, self.degree) * weight


@lru_cache(maxsize=1024)
def compiled(text: str) -> Pattern:
    """Return the pattern of a regular expression. Raises ValueError with the reason if the expression is not valid,
    uses a feature that is not supported, or has too many ways to match."""
    if len(text) > LONGEST:
        raise ValueError(f"a pattern has more than {LONGEST} characters")
    atoms = list(_ATOM.finditer(text))
    if any(found[1] and found[1] in "123456789k" for found in atoms):
        raise ValueError("a pattern has a back-reference")
    bare = _ATOM.sub("a", text)
    if "(?" in bare.replace("(?:", "(") or _REPEATED.search(bare):
        raise ValueError("a pattern repeats a group, or uses a (?...) group other than (?:...)")
    classes = [found[0] for found in atoms if found[0].startswith("[")]
    if sum(each.count("-") for each in classes) > MAX_RANGES:
        raise ValueError(f"a pattern has more than {MAX_RANGES} ranges such as a-z")
    factor, degree = 2 ** (bare.count("?") + bare.count("|")), bare.count("*") + bare.count("+")
    repeated = 0
    for least, comma, most in _BOUNDS.findall(bare):
        repeated += int(least or 0)
        if comma and not most:
            degree += 1
        elif comma:
            factor *= max(int(most) - int(least or 0) + 1, 1)
    if not bare.startswith("^") or "|" in bare:
        degree += 1
    if degree > MAX_DEGREE or factor > MAX_FACTOR:
        raise ValueError("a pattern has too many ways to match")
    try:
        expression = re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise ValueError("a pattern is not a regular expression") from None
    return Pattern(expression, factor, degree, repeated, len(bare) + max(map(len, classes), default=0))
