"""Answers from rows: the class of a row states once how answers show each of its fields.

    @dataclass(slots=True)
    class StationRow:
        domain_id: int  # in no answer
        domain: ClassVar[Annotated[str, Wire("Name of the domain.")]]  # the same for all rows
        user_name: Annotated[str, Wire("User of the last login.", "user")]
        first_seen: Annotated[int, Wire("First login, ISO 8601 UTC.", convert=iso)]

        @Wire("Whether the station is a phone.", after="user")
        def is_phone(self, names: Names) -> bool: ...

`answers(rows, domain=domain, names=names)` returns the JSON objects, `base.model.answer_of` makes the model for the
description of the API, and the lists of the command line and of the console derive their columns from `wire_fields`.
This module uses only the standard library, because the login path imports the classes of rows.
"""

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, ClassVar, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from sallyport.base.wire import Row

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])
_MARK: Final = "sallyport_wire"


@dataclass(frozen=True, slots=True)
class Wire:
    """How answers show a field of a row. As a decorator of a method: a value that answers have beside the fields.

    description: the meaning of the value, for the description of the API. name: the name in answers; empty if it is
    the name of the field. convert: a function from the stored value to the shown one; its annotation is the type in
    answers. Null is not converted. kind: the type in answers, if it follows neither from `convert` nor from the field.
    empty: whether null and 0 become an empty text. after: the name of the preceding value in answers, unless it is the
    preceding field of the class. detail: whether only the answer about a single row has the value. title, look: title
    and kind of the console's column (see `console.columns.Kind`), unless they follow from name and type. With
    the look `none`, there is no column.
    """

    description: str
    name: str = ""
    convert: Callable[..., object] | None = None
    kind: object = None
    empty: bool = False
    after: str = ""
    detail: bool = False
    title: str = ""
    look: str = ""

    def __call__(self, method: FunctionT) -> FunctionT:
        """Mark a method. Its parameters are the names of values that `answers` gets."""
        method.__dict__[_MARK] = self
        return method


@dataclass(frozen=True, slots=True)
class WireField:
    """A value in an answer. source: the Python expression for the stored value, with `row` and the arguments `values`.
    stored: its type."""

    name: str
    source: str
    stored: object
    wire: Wire

    @property
    def may_be_null(self) -> bool:
        """Whether the stored value may be null."""
        return NoneType in get_args(self.stored)

    @property
    def kind(self) -> object:
        """The type of the value in answers."""
        if self.wire.empty or self.wire.kind is not None:
            return self.wire.kind or str
        if self.wire.convert is None:
            return self.stored
        shown = get_type_hints(self.wire.convert)["return"]
        return shown | None if self.may_be_null else shown


def wire_fields(row: type[object], *, detail: bool = False) -> tuple[WireField, ...]:
    """Return the values that answers have of a row, in their order. detail: whether it is the answer's only row."""
    listed = _wire_fields(cast(Hashable, row))
    return (
        *(each for each in listed if not each.wire.detail),
        *(each for each in listed if each.wire.detail and detail),
    )


@cache
def _wire_fields(key: Hashable) -> list[WireField]:
    row = cast(type[object], key)
    found = [*_fields(row), *_methods(row)]
    placed = [each for each in found if not each.wire.after]
    waiting = [each for each in found if each.wire.after]
    while waiting:
        names = {each.name: index for index, each in enumerate(placed)}
        each = next((each for each in waiting if each.wire.after in names), None)
        if each is None:
            raise TypeError(f"{row.__name__}: there is no value {waiting[0].wire.after!r} for `after`")
        waiting.remove(each)
        placed.insert(names[each.wire.after] + 1, each)
    return placed


def answers(rows: Iterable[object], *, detail: bool = False, **values: object) -> list[Row]:
    """Return rows of one class as JSON objects. values: the values that are the same for all rows, and the arguments of
    the methods."""
    several = rows if isinstance(rows, Sequence) else list(rows)
    return _converter(cast(Hashable, type(several[0])), detail)(several, values) if several else []


def answer(row: object, *, detail: bool = False, **values: object) -> Row:
    """Return a row as a JSON object. detail: whether it is the only row of the answer."""
    return answers([row], detail=detail, **values)[0]


def wire_names(row: type[object], *first: str) -> tuple[str, ...]:
    """Return the names of all values of a row, with the given names first."""
    return tuple(dict.fromkeys((*first, *(each.name for each in wire_fields(row)))))


def field_names(row: type[object]) -> Mapping[str, str]:
    """Return the name of the field of a row for each name in answers."""
    return {each.name: each.source.removeprefix("row.") for each in wire_fields(row)}


def _fields(row: type[object]) -> Iterable[WireField]:
    for name, hint in get_type_hints(row, include_extras=True).items():
        is_given = get_origin(hint) is ClassVar
        own = get_args(hint)[0] if is_given else hint
        source = f"values[{name!r}]" if is_given else f"row.{name}"
        stored, *marks = get_args(own) if get_origin(own) is Annotated else (own,)
        for wire in (each for each in marks if isinstance(each, Wire)):
            yield WireField(wire.name or name, source, stored, wire)


def _methods(row: type[object]) -> Iterable[WireField]:
    members = {name: each for base in reversed(row.__mro__) for name, each in vars(base).items()}
    for name, member in members.items():
        method = member.fget if isinstance(member, property) else member
        wire = getattr(method, "__dict__", {}).get(_MARK)
        if isinstance(wire, Wire):
            source = f"row.{name}"
            if method is member:
                source += f"({', '.join(f'values[{each!r}]' for each in [*inspect.signature(method).parameters][1:])})"
            yield WireField(wire.name or name, source, get_type_hints(method)["return"], wire)


@cache
def _converter(row: Hashable, detail: bool) -> Callable[[Sequence[object], Mapping[str, object]], list[Row]]:
    """Return a function that converts rows. It is compiled, because a generic loop takes 1.6 times as long for a list
    of 1,000 rows. Its text consists of names from the class alone."""
    functions: dict[str, object] = {}
    pairs = []
    for field in wire_fields(cast(type[object], row), detail=detail):
        value = field.source
        if field.wire.convert is not None:
            function = f"convert{len(functions)}"
            functions[function] = field.wire.convert
            value = f"{function}({value})"
        if field.wire.empty:
            value = f"({value} if {field.source} else '')"
        elif field.wire.convert is not None and field.may_be_null:
            value = f"({value} if {field.source} is not None else None)"
        pairs.append(f"{field.name!r}: {value}")
    text = f"lambda rows, values: [{{{', '.join(pairs)}}} for row in rows]"
    return cast("Callable[[Sequence[object], Mapping[str, object]], list[Row]]", eval(text, functions))  # noqa: S307
