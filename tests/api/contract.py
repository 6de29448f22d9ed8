"""What programs rely on in /openapi.json: one line for each operation, field, type, limit, status, header and way to
authenticate.

`contract.txt` has these lines as of the last release; before the first release, as of a commit of the source. A line
that a program relies on must not disappear. `python -m tests.api.contract` writes the file anew, which a release does.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx

from tests.running_service import running_service

FILE: Final = Path(__file__).with_name("contract.txt")
_PREFIX: Final = "#/components/schemas/"
_TYPED: Final = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "type"}
_MAXIMA: Final = ("maxLength", "maxItems", "maximum")
_MINIMA: Final = ("minLength", "minItems", "minimum")
Schema = dict[str, Any]


def facts(document: Schema) -> set[str]:
    """Return the lines of a description. A line begins with `takes` if it is about requests, and with `gives` if it is
    about answers. The place of an answer has its status, unless the status is 200.
    """
    components, found = document["components"], set[str]()
    schemas = components["schemas"]
    for name, scheme in components["securitySchemes"].items():
        found.add(f"takes scheme {name}: " + " ".join(scheme[key] for key in sorted(scheme) if key != "description"))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            found.add(f"takes {name}")
            for each in operation.get("parameters", ()):
                found.add(f"takes {name} {each['in']} {each['name']}")
                found |= {f"takes {name} {each['in']} {each['name']} required"} if each.get("required") else set()
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                found |= set(_facts(schemas, body["schema"], "takes", f"{name} {kind}", set()))
            for each in operation.get("security") or [{}]:
                found.add(f"takes {name} with {' and '.join(sorted(each)) or 'no authentication'}")
            for status, answer in operation["responses"].items():
                place = name if status == "200" else f"{name} {status}"
                found |= {f"gives {place}"} | {f"gives {place} header {header}" for header in answer.get("headers", ())}
                for kind, body in answer.get("content", {}).items():
                    found |= set(_facts(schemas, body.get("schema", {}), "gives", f"{place} {kind}", set()))
    return found


def _facts(schemas: Schema, schema: Schema, side: str, place: str, seen: set[str]) -> Iterator[str]:
    if reference := schema.get("$ref"):
        name = reference.removeprefix(_PREFIX)
        yield f"{side} {place}: {name}"
        if name not in seen:
            seen.add(name)
            yield from _facts(schemas, schemas[name], side, name, seen)
        return
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _facts(schemas, each, side, place, seen)
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    yield from (f"{side} {place}: {value!r}" for value in values)
    if "type" in schema and not values:
        yield f"{side} {place}: {schema['type']}"
    limits = () if side == "gives" else (*_MAXIMA, *_MINIMA)
    yield from (f"{side} {place} {limit}={schema[limit]}" for limit in limits if limit in schema)
    if "items" in schema:
        yield from _facts(schemas, schema["items"], side, f"{place}[]", seen)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _facts(schemas, schema["additionalProperties"], side, f"{place}.*", seen)
    for field, each in schema.get("properties", {}).items():
        yield from (
            _facts(schemas, each, side, f"{place}.{field}", seen)
            if each.keys() & _TYPED
            else [f"{side} {place}.{field}"]
        )
    yield from (f"{side} {place}.{field} required" for field in schema.get("required", ()))


def breaks(before: set[str], after: set[str]) -> list[str]:
    """Return the differences between two contracts that can break a program.

    A request may be given what it took before: no field, type or value disappears, no limit becomes narrower, and no
    field becomes required. An answer has what it had before: no status, header, field and no promise that it is present
    disappears. A program may authenticate as before.
    """
    limits = {_name(line): _value(line) for line in after if _is_limit(line)}
    owners, limited = {_parent(line) for line in before}, {_name(line) for line in before if _is_limit(line)}
    typed = {line.partition(":")[0] for line in before}
    found = []
    for line in sorted(before - after):
        if _is_limit(line):
            name = _name(line)
            if name in limits and _is_narrower(name, _value(line), limits[name]):
                found.append(f"narrower: {line}")
        elif not (line.startswith("takes") and line.endswith(" required")):
            found.append(f"gone: {line}")
    for line in sorted(each for each in after - before if each.startswith("takes")):
        is_required = line.endswith(" required") and _parent(line.removesuffix(" required")) in owners
        is_limited = _is_limit(line) and _name(line) not in limited and line.rpartition(" ")[0] in typed
        if is_required or is_limited:
            found.append(f"new: {line}")
    return found


def _parent(place: str) -> str:
    """Return what a field or a parameter belongs to."""
    return place.rpartition(".")[0] if "." in place.rpartition("/")[2] else place.rpartition(" ")[0]


def _name(line: str) -> str:
    return line.rpartition("=")[0]


def _value(line: str) -> float:
    return float(line.rpartition("=")[2])


def _is_limit(line: str) -> bool:
    return _name(line).endswith((*_MAXIMA, *_MINIMA))


def _is_narrower(name: str, old: float, new: float) -> bool:
    return new < old if name.endswith(_MAXIMA) else new > old


def stored() -> set[str]:
    """Return the lines of contract.txt."""
    return set(FILE.read_text(encoding="utf-8").splitlines())


def main() -> None:
    """Write contract.txt anew."""
    with tempfile.TemporaryDirectory() as directory, running_service(Path(directory), {}) as service:
        document = httpx.get(f"http://127.0.0.1:{service.ports.http}/openapi.json", trust_env=False).json()
    FILE.write_text("\n".join(sorted(facts(document))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
