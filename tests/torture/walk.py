"""Costly bodies for an operation, made from its description. Each body is the example with one costly field.

Each field in the description gets costly values: texts and lists of the maximum length, objects with as many names as
fit, and the same for the fields of inner objects. `costly.BY_NAME` adds values for fields whose cost depends on the
meaning of their text.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.torture import costly

Schema = Mapping[str, Any]
LIMIT = (1 << 20) - 4096
"""The maximum number of octets of a costly value, because a body has at most 1 MiB."""
CONTAINERS = 49_900
"""The number of objects and arrays in a body, because at most 50,000 are read."""


@dataclass(frozen=True)
class Costly:
    """A body, with the name of its costly field and the kind of its value."""

    field: str
    body: Any

    @property
    def octets(self) -> bytes:
        """The body as it is sent."""
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()


class Walk:
    """A generator of costly bodies. It uses the named schemas of an API description."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._numbers = count()

    def bodies(self, schema: Schema, example: Callable[[], dict[str, Any]]) -> Iterator[Costly]:
        """Yield a body for each costly value of each field. A list of bodies is walked as one body and as many.

        example: returns a body that is accepted.
        """
        resolved = self._resolve(schema)
        one = self._resolve(resolved["items"]) if resolved.get("type") == "array" else resolved
        for name, field in self._fields(one).items():
            for label, value in self._values(name, field, LIMIT - len(json.dumps(example()))):
                yield Costly(f"{name} {label}", {**example(), name: value})
        if one is not resolved:
            number = min(CONTAINERS, LIMIT // (len(json.dumps(example())) + 2))
            yield Costly("many bodies", [example() for _ in range(number)])

    def _resolve(self, schema: Schema) -> Schema:
        """Return the schema that a reference points to. If there are several alternatives, return the costliest one."""
        if name := schema.get("$ref", "").rpartition("/")[2]:
            return self._resolve(self._schemas[name])
        kinds = [self._resolve(each) for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))]
        if kinds := [each for each in kinds if each.get("type") != "null"]:
            return max(kinds, key=lambda each: len(json.dumps(each)))
        return schema

    def _fields(self, schema: Schema) -> dict[str, Schema]:
        """Return the fields of an object, keyed by their names in JSON."""
        found: dict[str, Schema] = {}
        for part in (schema, *schema.get("allOf", ())):
            found |= self._resolve(part).get("properties", {})
        return found

    def _values(self, name: str, schema: Schema, room: int) -> Iterator[tuple[str, Any]]:
        """Yield costly values for a field, each of at most `room` octets."""
        yield from costly.BY_NAME.get(name, {}).items()
        kinds = [self._resolve(each) for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))] or [schema]
        for kind in map(self._resolve, kinds):
            yield from self._of_kind(kind, room)

    def _of_kind(self, schema: Schema, room: int) -> Iterator[tuple[str, Any]]:
        kind = schema.get("type")
        if kind == "string" and "enum" not in schema and "const" not in schema:
            yield from costly.texts(min(schema.get("maxLength", room), room))
        elif kind == "integer":
            yield "digits", "9" * room
        elif kind == "array":
            yield from self._lists(schema, room)
        elif kind == "object" and (fields := self._fields(schema)):
            for name, field in fields.items():
                for label, value in self._values(name, field, room):
                    yield f"{name} {label}", {**self._sample(schema), name: value}
        elif kind == "object":
            yield from costly.objects(room)

    def _lists(self, schema: Schema, room: int) -> Iterator[tuple[str, Any]]:
        entry, most = self._resolve(schema["items"]), schema.get("maxItems", room)
        if entry.get("type") == "integer":
            yield "numbers", list(range(1, min(most, room // 7) + 1))
            yield "unknown numbers", list(range(2**53 - min(most, room // 17), 2**53))
            return
        yield from _filled(lambda: self._sample(entry), "samples", most, room)
        if entry.get("type") == "string":
            longest = min(entry.get("maxLength", room), room // 2)
            for label, text in costly.texts(longest):
                yield from _filled(lambda text=text: text, f"of {label}", most, room)
        for name, field in self._fields(entry).items():
            for label, value in self._values(name, field, room // 2):
                small = {**self._sample(entry), name: value}
                yield f"one {name} {label}", [small]
        if self._long(entry):
            yield from _filled(lambda: self._long(entry), "long texts", most, room)

    def _long(self, entry: Schema) -> Any:
        """Return an object with long texts, or None if the schema has no texts."""
        kinds = {name: self._resolve(field) for name, field in self._fields(entry).items()}
        texts = [name for name, kind in kinds.items() if kind.get("type") == "string" and "enum" not in kind]
        long = {name: f"{next(self._numbers)}{costly.MARKS}"[:64] for name in texts}
        return {**self._sample(entry), **long} if texts else None

    def _sample(self, schema: Schema, name: str = "") -> Any:
        """Return a small value for a field. All texts are different."""
        schema = self._resolve(schema)
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type")
        if "const" in schema:
            return schema["const"]
        if kind == "string":
            return costly.GOOD.get(name, f"é{next(self._numbers)}")
        if kind == "array":
            return [self._sample(schema["items"], name)] * schema.get("minItems", 0)
        if kind == "object":
            needed = schema.get("required", ())
            return {name: self._sample(each, name) for name, each in self._fields(schema).items() if name in needed}
        return {"integer": 1, "boolean": True, "number": 1}.get(str(kind))


def _filled(make: Callable[[], Any], label: str, most: int, room: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield a list with as many entries as fit."""
    entry = make()
    octets = len(json.dumps(entry, ensure_ascii=False).encode()) + 6
    containers = sum(json.dumps(entry).count(each) for each in "[{") or 1
    number = min(most, room // octets, CONTAINERS // containers)
    yield label, [make() for _ in range(max(number, 1))]
