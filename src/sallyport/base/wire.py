"""Strict conversion between JSON and frozen dataclasses, with bounds. It uses only the standard library.

A message is a dataclass whose annotations define the valid values of its fields:

    @dataclass(frozen=True, slots=True)
    class Greeting:
        name: Annotated[str, Text(32, pattern=r"[a-z]+")]
        friends: Annotated[tuple[Greeting, ...], Many(10)] = ()
        since: Annotated[int, Whole(0, LATEST)] | None = None

A field's name in JSON is the Python name in camelCase. A field with a default may be absent or `null`. Unknown fields
are ignored, so that a newer sender can add fields, unless the receiver decodes strictly. Errors contain the name of the
wrong field and never its value.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Final, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sallyport.base.errors import BODY, WireError
from sallyport.base.errors import MISSING as IS_MISSING
from sallyport.base.spelling import Spellings, unknown_field

LATEST: Final = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""A JSON value."""
Row: TypeAlias = dict[str, JSON]
"""A JSON object, such as an entry of a list."""


class Minimum(int):
    """The total of a search that has stopped counting. The true total is this number or more."""


MessageT = TypeVar("MessageT")
_Reader = Callable[[object, str], object]


JsonSchema: TypeAlias = dict[str, object]
Describe: TypeAlias = Callable[[object], JsonSchema]


@dataclass(frozen=True, slots=True)
class Text:
    """A field type: printable text of at most `longest` characters that matches `pattern`.

    means: a description of the accepted text, for error messages.
    """

    longest: int
    pattern: str = ""
    means: str = "printable text"

    def __call__(self, value: object, path: str) -> str:
        if not isinstance(value, str):
            raise WireError(f"{path}: must be text")
        if len(value) > self.longest:
            raise WireError(f"{path}: must have at most {self.longest} characters")
        if not value.isprintable() or (self.pattern and not re.fullmatch(self.pattern, value, re.ASCII)):
            raise WireError(f"{path}: must be {self.means}")
        return value

    def __get_pydantic_json_schema__(self, schema: object, handler: Describe) -> JsonSchema:
        pattern = {"pattern": f"^{self.pattern}$"} if self.pattern else {}
        return {**handler(schema), "maxLength": self.longest, **pattern}


@dataclass(frozen=True, slots=True)
class Whole:
    """A field type: a whole number from `low` to `high`."""

    low: int
    high: int

    def __call__(self, value: object, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise WireError(f"{path}: must be a whole number from {self.low} to {self.high}")
        return value

    def __get_pydantic_json_schema__(self, schema: object, handler: Describe) -> JsonSchema:
        return {**handler(schema), "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True, slots=True)
class Many:
    """A field type: a list of at most `most` entries."""

    most: int

    def __get_pydantic_json_schema__(self, schema: object, handler: Describe) -> JsonSchema:
        return {**handler(schema), "maxItems": self.most}


def loads(octets: bytes, *, most: int) -> object:
    """Parse a JSON message of at most `most` octets.

    Raises WireError if the message is longer, is not JSON, or contains an object with a duplicate name.
    """
    if len(octets) > most:
        raise WireError(f"the message is longer than {most} octets")
    try:
        value: object = json.loads(octets, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise WireError("the message is not JSON") from None
    return value


def dumps(message: object) -> bytes:
    """Return a message as canonical JSON: ASCII, sorted names, no whitespace. Equal messages have equal octets."""
    return json.dumps(encode(message), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def decode(kind: type[MessageT], value: object, path: str = "", *, strict: bool = False) -> MessageT:
    """Convert a JSON value to a message of class `kind`. strict: whether unknown fields are errors.

    Raises WireError with the path of the wrong field, such as users[3].name.
    """
    if not isinstance(value, dict):
        raise WireError(f"{path or 'message'}: must be an object")
    found: dict[str, object] = {}
    plan = _plan(cast(Hashable, kind), strict)
    if strict:
        _check_names(value, [key for _, key, _, _ in plan], path)
    for name, key, required, read in plan:
        sent = value.get(key)
        here = f"{path}.{key}" if path else key
        if sent is not None:
            found[name] = read(sent, here)
        elif required:
            raise WireError(f"{here}: {IS_MISSING}")
    return kind(**found)


def encode(value: object) -> object:
    """Return a message in JSON's types. Fields that are None are left out."""
    if is_dataclass(value):
        each = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {camel(name): encode(item) for name, item in each if item is not None}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def mapping(message: object) -> dict[str, object]:
    """Return a message as a JSON object. Fields that are None are left out."""
    value = encode(message)
    if not isinstance(value, dict):
        raise TypeError(f"{type(message).__name__} is not a message")
    return value


def camel(name: str) -> str:
    """Return a name in snake_case as camelCase."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _check_names(value: dict[str, object], known: list[str], path: str) -> None:
    unknown = next((name for name in value if name not in known), None)
    if unknown is not None:
        meant = Spellings(known).nearest(unknown)
        place = ".".join(filter(None, (path, meant))) or BODY
        raise WireError(f"{place}: {unknown_field([meant] if meant else [], () if meant else known)}")


@cache
def _plan(kind: Hashable, strict: bool) -> tuple[tuple[str, str, bool, _Reader], ...]:
    """Return one tuple for each field of a message class: the name, the name in JSON, whether the field is required,
    and the function that reads its value."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (
            field.name,
            camel(field.name),
            field.default is MISSING and field.default_factory is MISSING and not _takes_none(hints[field.name]),
            _reader(hints[field.name], strict),
        )
        for field in fields(cast("type[_Dataclass]", kind))
    )


@dataclass
class _Dataclass:
    """A stand-in for the type of the argument of `fields`. Only the type checker needs it."""


def _takes_none(hint: object) -> bool:
    return get_origin(hint) in {Union, UnionType} and NoneType in get_args(hint)


def _reader(hint: object, strict: bool) -> _Reader:
    if _takes_none(hint):
        return _reader(next(each for each in get_args(hint) if each is not NoneType), strict)
    if get_origin(hint) is Annotated:
        kind, check = get_args(hint)
        if isinstance(check, Many):
            return _many(_reader(get_args(kind)[0], strict), check.most)
        return cast(_Reader, check)
    if hint is bool:
        return _flag
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda value, path: decode(hint, value, path, strict=strict)
    raise TypeError(f"{hint!r} has no bounds: annotate it with Text, Whole or Many")


def _flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise WireError(f"{path}: must be true or false")
    return value


def _choice(kind: type[StrEnum]) -> _Reader:
    choices = {str(each): each for each in kind}

    def read(value: object, path: str) -> object:
        if not isinstance(value, str) or value not in choices:
            raise WireError(f"{path}: must be one of {', '.join(choices)}")
        return choices[value]

    return read


def _many(read: _Reader, most: int) -> _Reader:
    def read_all(value: object, path: str) -> object:
        if not isinstance(value, list):
            raise WireError(f"{path}: must be an array")
        if len(value) > most:
            raise WireError(f"{path}: must have at most {most} entries")
        return tuple(read(item, f"{path}[{index}]") for index, item in enumerate(value))

    return read_all


def _object(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError("an object has a duplicate name")
        found[name] = value
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not valid in JSON")
