"""The JSON Schema of the files, and the names of the fields with secrets, both from the bodies of the kinds."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

from sallyport.areas.configured import AnyKind

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
REFERENCE: Final = r"^(keep|file:.+|env:SALLYPORT_SECRET_[A-Za-z0-9_]+)$"
_DOMAIN: Final = {"type": "string", "description": "Name of the domain."}
_REFERS: Final = {
    "domain": _DOMAIN,
    "domains": {
        "type": "array",
        "items": _DOMAIN,
        "description": "Names of the domains, the default first. Empty: all.",
    },
}


@cache
def secret_names(kind: AnyKind) -> frozenset[str]:
    """Return the names of the fields of a kind that have secrets, also within other fields."""
    schemas = [model.model_json_schema(by_alias=False) for model in (kind.body, *kind.parts)]
    return frozenset(name for name, schema in _properties(schemas) if _is_secret(schema))


def schema_of(kind: AnyKind) -> dict[str, object]:
    """Return the JSON Schema of the file of a kind."""
    body = cast(dict[str, Any], kind.body.model_json_schema(by_alias=False))
    for _, schema in _properties(body):
        if _is_secret(schema):
            text = {"type": "string", "pattern": REFERENCE, "description": schema.get("description", "")}
            schema.clear()
            schema.update(text)
    own = {name: each for name, each in body["properties"].items() if name in kind.fields()}
    required = [name for name in body.get("required", ()) if name in own]
    if kind.refers:
        own = {kind.refers: _REFERS[kind.refers], **own}
    if kind.refers == "domain":
        required = ["domain", *required]
    entry: dict[str, object] = {
        "type": "object",
        "properties": own,
        "required": required,
        "additionalProperties": False,
    }
    if kind.body.model_config.get("extra") == "allow":
        entry["additionalProperties"] = True
    return {
        "$schema": DRAFT,
        "title": f"{kind.name}.toml of Sallyport",
        "type": "object",
        "properties": {kind.name: {"type": "array", "items": entry}},
        "additionalProperties": False,
        "$defs": body.get("$defs", {}),
    }


def _properties(schema: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the properties of a schema, and of the schemas within, by name."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            yield from ((name, each) for name, each in properties.items() if isinstance(each, dict))
        for each in list(schema.values()):
            yield from _properties(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _properties(each)


def _is_secret(schema: object) -> bool:
    """Return whether a schema is that of a secret, which may be null or an object with octets."""
    if not isinstance(schema, Mapping):
        return False
    return schema.get("writeOnly") is True or any(map(_is_secret, schema.get("anyOf", ())))
