"""The API description as one HTML page, generated from the document of /openapi.json.

FastAPI's own page loads scripts from another host, and many networks block that host.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import TypeAlias, cast

Json: TypeAlias = Mapping[str, object]

TOKEN = "x-example-token"  # noqa: S105
"""Extension field of an operation in the OpenAPI document. It names the token for the example of the operation. The
field is absent if the example uses an admin's token."""

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#1c2126;background:#fff}
h2{border-bottom:1px solid #d5dae0;margin-top:2.5rem}h3{margin:1.5rem 0 .25rem}code{font:13px ui-monospace,monospace}
table{border-collapse:collapse;margin:.5rem 0 1rem;width:100%}td,th{border:1px solid #d5dae0;padding:.25rem .5rem;
text-align:left;vertical-align:top}th{background:#f3f5f7}.method{background:#1c2126;color:#fff;border-radius:3px;
padding:.1rem .4rem;font:12px ui-monospace,monospace}nav a{margin-right:1rem}
pre{white-space:pre-wrap}
@media(prefers-color-scheme:dark){body{background:#14181c;color:#e4e8ec}a{color:#8ab4f8}th{background:#22282e}
td,th,h2{border-color:#3a424a}.method{background:#e4e8ec;color:#14181c}}
"""


def page(document: Json) -> bytes:
    """Return the HTML page of an OpenAPI 3.1 document, in UTF-8."""
    info = _object(document, "info")
    title = f"{escape(str(info.get('title', '')))} {escape(str(info.get('version', '')))}"
    tags = _by_tag(document)
    links = "".join(f'<a href="#{_anchor(tag)}">{escape(tag)}</a>' for tag in tags)
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><h1>{title}</h1>',
        f'<p>{escape(str(info.get("description", "")))}</p><nav>{links}<a href="#models">Models</a>',
        '<a href="openapi.json">openapi.json</a></nav>',
    ]
    for tag, operations in tags.items():
        parts += [f'<h2 id="{_anchor(tag)}">{escape(tag)}</h2>', *operations]
    parts.append('<h2 id="models">Models</h2>')
    parts += [_model(name, schema) for name, schema in _items(_object(_object(document, "components"), "schemas"))]
    parts.append("</body></html>")
    return "".join(parts).encode()


def _by_tag(document: Json) -> dict[str, list[str]]:
    tags: dict[str, list[str]] = {}
    for path, methods in _items(_object(document, "paths")):
        for method, operation in _items(methods):
            names = cast(list[str], operation.get("tags") or ["Other"])
            tags.setdefault(names[0], []).append(_operation(method, path, operation))
    return tags


def _operation(method: str, path: str, operation: Json) -> str:
    rows = []
    request = _object(_object(operation, "requestBody"), "content")
    if request:
        rows.append(("request", "", _content(request)))
    for status, response in _items(_object(operation, "responses")):
        content = _content(_object(response, "content"))
        rows.append((status, escape(str(response.get("description", ""))), content))
    table = "".join(f"<tr><td>{status}</td><td>{text}</td><td>{kind}</td></tr>" for status, text, kind in rows)
    headers = ", ".join(sorted({name for each in _list(operation, "security") for name in each}))
    security = f"<p>Authorization: {escape(headers)}</p>" if headers else ""
    return (
        f'<h3><span class="method">{escape(method.upper())}</span> <code>{escape(path)}</code></h3>'
        f"<p>{escape(str(operation.get('description', '')))}</p>{security}{_example(method, path, operation)}"
        f"<table><tr><th>part</th><th></th><th>body</th></tr>{table}</table>"
    )


def _example(method: str, path: str, operation: Json) -> str:
    """Return the example of an operation as a shell command, or an empty string if the operation has no example."""
    for kind, media in _items(_object(_object(operation, "requestBody"), "content")):
        if "example" in media:
            call = (
                f"curl -s -X {method.upper()} http://127.0.0.1:8080{path} "
                f'-H "X-Authorization: {operation.get(TOKEN, "$TOKEN")}" {_sent(kind, _object(media, "example"))}'
            )
            return f"<pre><code>{escape(call)}</code></pre>"
    return ""


def _sent(kind: str, example: Json) -> str:
    """Return a request body as arguments of curl. The body is JSON, or a form with a file."""
    if kind == "application/json":
        return f"-H 'Content-Type: application/json' -d '{json.dumps(example)}'"
    named = (name for name in example if name != "file")
    return " ".join([f"-F file=@{example.get('fileName', 'FILE')}", *(f"-F {name}={example[name]}" for name in named)])


def _content(content: Json) -> str:
    return ", ".join(_kind(_object(media, "schema")) for _, media in _items(content))


def _model(name: str, schema: Json) -> str:
    required = cast(list[str], schema.get("required") or [])
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code></td><td>{_kind(kind)}</td>"
        f"<td>{'required' if field in required else _default(kind)}</td><td>{_bounds(kind)}</td></tr>"
        for field, kind in _items(_object(schema, "properties"))
    )
    table = f"<table><tr><th>field</th><th>type</th><th></th><th>limits</th></tr>{rows}</table>" if rows else ""
    text = escape(str(schema.get("description", "")))
    return f'<h3 id="{_anchor(name)}"><code>{escape(name)}</code></h3><p>{text}</p>{table}'


def _kind(schema: Json) -> str:
    """Return a short description of a schema, with links to the models that it names."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f'<a href="#{_anchor(name)}">{escape(name)}</a>'
    for combination in ("anyOf", "oneOf", "allOf"):
        if combination in schema:
            return " or ".join(_kind(each) for each in _list(schema, combination))
    if "enum" in schema:
        return escape(" | ".join(str(value) for value in cast(list[object], schema["enum"])))
    if schema.get("type") == "array":
        return f"array of {_kind(_object(schema, 'items'))}"
    return escape(str(schema.get("type", "any")))


def _default(schema: Json) -> str:
    return f"default {escape(str(schema['default']))}" if schema.get("default") not in (None, "", []) else "optional"


def _bounds(schema: Json) -> str:
    names = ("minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern", "format")
    return escape(", ".join(f"{name} {schema[name]}" for name in names if name in schema))


def _anchor(name: str) -> str:
    return escape("".join(character if character.isalnum() else "-" for character in name))


def _object(parent: Json, name: str) -> Json:
    return cast(Json, parent.get(name) or {})


def _list(parent: Json, name: str) -> list[Json]:
    return cast(list[Json], parent.get(name) or [])


def _items(parent: Json) -> Iterator[tuple[str, Json]]:
    return ((name, cast(Json, value)) for name, value in parent.items())
