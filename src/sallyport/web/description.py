"""The OpenAPI 3.1 document, generated from the declared operations.

The document is generated when a client first requests it. The generation takes a third of a second, and most processes
never need the document.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast, get_origin

import trio
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from sallyport.base.model import Unknown
from sallyport.web import problem
from sallyport.web.bodies import TOTAL_HEADER, Counted
from sallyport.web.examples import EXAMPLES, TOKENS
from sallyport.web.handling import OVERRIDE, TemplateRoute
from sallyport.web.interface import unknown_fields
from sallyport.web.operation import Operation
from sallyport.web.scope import MANAGED_BY
from sallyport.web.upload import FILE, KIND

Json: TypeAlias = dict[str, object]

TOKEN: Final = "x-example-token"  # noqa: S105
"""Extension field of an operation in the document. It names the token with which the example is sent. If the example is
sent with an admin's token, the field is absent."""
_DESCRIPTION: Final = (
    "RADIUS server for the second factor of network logins. Enter an access token with *Authorize*; *Try it out* sends "
    "requests with it. In the examples, replace a text in angle brackets: `<apiKey of createKey>` stands for the field "
    "`apiKey` in the answer of createKey."
)
_REFERENCE: Final = "#/components/schemas/{model}"
_REFERRED: Final = re.compile(r'"#/components/schemas/([^"]+)"')
_MODE: Final = re.compile(r'\b(\w+)-(Input|Output)"')
_VALUES: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords of a schema whose value is no schema."""
_LONG_NAME: Final = re.compile(r"sallyport(?:__[a-z]\w*?)?__([a-z0-9]+)__([A-Z]\w*)")
_ERRORS: Final = {
    "400": "invalid body",
    "401": "no valid token",
    "403": "outside the token's scope, domain or role",
    "429": "too many requests in progress, or a rate limit is reached",
    "4XX": "refused",
    "5XX": "failed",
}
_SCHEMES: Final[Json] = {
    "X-Authorization": {"type": "apiKey", "in": "header", "name": "X-Authorization"},
    "Bearer": {"type": "http", "scheme": "bearer"},
}
_HEADERS: Final[Json] = {
    "X-Request-Id": {
        "description": "Id of the request, which the log and the audit trail have too: the X-Request-Id of the "
        "request, if it has 1 to 64 letters, digits, dots, hyphens and underscores; otherwise the trace id of its "
        "`traceparent` (W3C Trace Context); otherwise a new one.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "required": True,
    },
    "Retry-After": {
        "description": "With status 429 and 503: seconds after which the request may be repeated.",
        "schema": {"type": "integer"},
    },
    "WWW-Authenticate": {
        "description": "How to send a token (RFC 9110 section 11.6.1): the scheme `ApiKey` names the header of the "
        "token, and `Bearer` stands for the header Authorization.",
        "schema": {"type": "string"},
        "required": True,
    },
}
_OF_STATUS: Final = {"401": ("WWW-Authenticate",), **dict.fromkeys(("429", "4XX", "5XX"), ("Retry-After",))}
"""The headers of answers with a status, beside X-Request-Id."""
_MANAGED_BY: Final[Json] = {
    "type": "string",
    "enum": ["file"],
    "description": "`file` if files manage the object (`sallyport apply`); otherwise it is absent.",
}
_OVERRIDE: Final[Json] = {
    "name": OVERRIDE,
    "in": "query",
    "schema": {"type": "boolean", "default": False},
    "description": "Change an object although files manage it (`sallyport apply`). Otherwise the status is 409.",
}
_TOTAL: Final[Json] = {"description": "Number of entries in the whole list.", "schema": {"type": "integer"}}


class Description:
    """The document /openapi.json, generated once."""

    def __init__(self, operations: Sequence[Operation], version: str) -> None:
        self._operations = operations
        self._version = version
        self._generating = trio.Lock()
        self._document: bytes | None = None

    def routes(self) -> list[BaseRoute]:
        """Return the route of the document."""

        async def openapi(request: Request) -> Response:
            async with self._generating:
                if self._document is None:
                    self._document = await trio.to_thread.run_sync(self._generate)
            return Response(self._document, media_type="application/json")

        return [TemplateRoute("/openapi.json", openapi)]

    def _generate(self) -> bytes:
        generated = document(self._operations, self._version)
        return json.dumps(generated, ensure_ascii=False, separators=(",", ":")).encode()


class _Generator(GenerateJsonSchema):
    """A schema generator that moves the description of a nullable field out of `anyOf`, where pydantic leaves it."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        made = super().nullable_schema(schema)
        for part in made.get("anyOf", ()):
            if "description" in part:
                made["description"] = part.pop("description")
        return made


def document(operations: Sequence[Operation], version: str) -> Json:
    """Return the OpenAPI 3.1 document of the operations."""
    bodies = {operation.body for operation in operations}
    answers = {operation.answer for operation in operations} | {problem.Problem, problem.RadiusProblem}
    types: list[tuple[type[object], JsonSchemaMode]] = [(kind, "validation") for kind in sorted(bodies, key=str)]
    types += [(kind, "serialization") for kind in sorted(answers, key=str)]
    found, definitions = TypeAdapter.json_schemas(
        [((kind, mode), mode, TypeAdapter(kind)) for kind, mode in types],
        ref_template=_REFERENCE,
        schema_generator=_Generator,
    )
    schemas = {key: schema for (key, _), schema in found.items()}
    names = operation_ids(operations)
    paths: dict[str, dict[str, Json]] = {}
    for operation in operations:
        for path in operation.paths:
            method = operation.method.lower()
            paths.setdefault(path, {})[method] = _described(operation, path, schemas) | {
                "operationId": names[operation.method, path]
            }
    components: dict[str, Json] = definitions.get("$defs", {})
    _close(operations, schemas, components)
    _mark(operations, schemas, components)
    described = _short_names(
        {
            "openapi": "3.1.0",
            "info": {"title": "Sallyport", "version": version, "description": _DESCRIPTION},
            "paths": paths,
            "components": {"schemas": components, "headers": _HEADERS, "securitySchemes": _SCHEMES},
        }
    )
    _set_titles(cast(dict[str, dict[str, Json]], described["components"])["schemas"])
    return described


def _close(operations: Sequence[Operation], schemas: "_Schemas", components: Mapping[str, Json]) -> None:
    """Add `additionalProperties: false` to the objects that refuse unknown fields. An object that another operation or
    an answer has too stays open."""
    closed, others = set[str](), set[str]()
    for each in operations:
        is_closed = unknown_fields(each.paths) is Unknown.REFUSED
        body = _reached(schemas[each.body, "validation"], components)
        (closed if is_closed else others).update(body)
        others |= _reached(schemas[each.answer, "serialization"], components)
    for name in closed - others:
        if "properties" in components[name]:
            components[name]["additionalProperties"] = False


def _mark(operations: Sequence[Operation], schemas: "_Schemas", components: Mapping[str, Json]) -> None:
    """Add the field MANAGED_BY to the answered objects that files may manage."""
    for each in operations:
        field = each.gate.managed.shown_in(each.paths[0])
        if field is not None:
            entry: object = schemas[each.answer, "serialization"]
            for step in ("properties", field, "items", "properties") if field else ("properties",):
                known = cast(Json, entry)
                if "$ref" in known:
                    known = components[str(known["$ref"]).rpartition("/")[2]]
                entry = known[step]
            cast(Json, entry)[MANAGED_BY] = _MANAGED_BY


def _reached(schema: Mapping[str, object], components: Mapping[str, Json]) -> set[str]:
    """Return the names of the components to which a schema refers, also through other components."""
    found = set[str]()
    new = set(_REFERRED.findall(json.dumps(schema)))
    while new:
        found |= new
        new = {name for each in new for name in _REFERRED.findall(json.dumps(components[each]))} - found
    return found


def _short_names(described: Json) -> Json:
    """Replace names such as `sallyport__did__dids__did__Kind` by names such as `DidKind`, and `GroupEntry-Input` by
    `GroupEntryInput`. pydantic makes the long names for models that have the same name."""
    text = _LONG_NAME.sub(lambda found: found[1].capitalize() + found[2], json.dumps(described))
    shortened: Json = json.loads(_MODE.sub(r'\1\2"', text))
    return shortened


def _set_titles(components: Mapping[str, Json]) -> None:
    """Give each component its own name as its title, and remove all other titles.

    Generators of clients take the title as the name of a class. pydantic gives classes of the same name the same title,
    and each member its name as a title: then generators find several classes of one name, and lose operations.
    """
    for name, component in components.items():
        _drop_titles(component)
        component["title"] = name


def _drop_titles(schema: object) -> None:
    if isinstance(schema, list):
        for each in schema:
            _drop_titles(each)
    elif isinstance(schema, dict):
        schema.pop("title", None)
        for keyword in schema.keys() - _VALUES:
            inner = schema[keyword]
            _drop_titles(list(inner.values()) if keyword == "properties" else inner)


def operation_ids(operations: Sequence[Operation]) -> dict[tuple[str, str], str]:
    """Return the operationId of each method and path: the last part of the path, such as `ListDevices`.

    If the paths of several operations end in this part, as in `list`, the part before it is added: `instancesList`.
    Generators of clients change the case, so the names differ in more than case and hyphens.
    """
    first = sorted([(each.method, each.paths[0]) for each in operations], key=lambda each: each[0] != "POST")
    alternatives = [(each.method, path) for each in operations for path in each.paths[1:]]
    ends = Counter(_plain(path.rpartition("/")[2]) for path in {path for _, path in first})
    names: dict[tuple[str, str], str] = {}
    used = set[str]()
    for method, path in (*first, *alternatives):
        before, last = path.split("/")[-2:]
        short = [] if ends[_plain(last)] > 1 else [_joined(last)]
        if (method, path) in first and short:
            short.append(_joined(last, method.lower()))
        choices = (*short, _joined(before, last), _joined(before, last, method.lower()))
        names[method, path] = next(name for name in choices if _plain(name) not in used)
        used.add(_plain(names[method, path]))
    return names


def _joined(*words: str) -> str:
    """Return words as one name: `add-machine` becomes `addMachine`."""
    first, *rest = "-".join(words).split("-")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _plain(name: str) -> str:
    return name.replace("-", "").casefold()


_Schemas: TypeAlias = Mapping[tuple[type[object], JsonSchemaMode], Mapping[str, object]]


def _described(operation: Operation, path: str, schemas: _Schemas) -> Json:
    """Return the description of an operation on one of its paths."""
    headers = _headers("200") | ({TOTAL_HEADER: _TOTAL} if get_origin(operation.answer) is Counted else {})
    answer = {"description": "done", "headers": headers, "content": _json(schemas[operation.answer, "serialization"])}
    error = _json(schemas[problem.model_for(path), "serialization"])
    is_bearer = path.startswith(problem.BEARER_PREFIX)
    texts = _ERRORS if is_bearer else {**_ERRORS, "401": "no valid token in the header X-Authorization"}
    schemes = ["X-Authorization", "Bearer"] if is_bearer else ["X-Authorization"]
    described: Json = {
        "tags": [operation.tag],
        "summary": operation.name.replace("_", " ").capitalize(),
        "description": operation.description,
        "requestBody": {"required": True, "content": _body(operation, path, schemas[operation.body, "validation"])},
        "responses": {"200": answer}
        | {
            status: {"description": text, "headers": _headers(status), "content": error}
            for status, text in texts.items()
        },
        "security": [{scheme: []} for scheme in schemes],
    }
    if operation.can_override:
        described["parameters"] = [_OVERRIDE]
    if path in TOKENS:
        described[TOKEN] = TOKENS[path]
    return described


def _headers(status: str) -> Json:
    """Return the headers of an answer with a status, as references to their descriptions."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *_OF_STATUS.get(status, ()))}


def _body(operation: Operation, path: str, schema: Mapping[str, object]) -> Json:
    """Return the media types of a body, with an example that works."""
    media: Json = {"schema": _form(schema) if operation.has_file else schema}
    if (operation.method, path) in EXAMPLES:
        media["example"] = EXAMPLES[operation.method, path]
    return {KIND if operation.has_file else "application/json": media}


def _form(fields: Mapping[str, object]) -> Json:
    """Return the schema of a form. It has the fields of the form and one file."""
    file: Json = {"type": "object", "properties": {FILE: {"type": "string", "format": "binary"}}, "required": [FILE]}
    return {"allOf": [fields, file]}


def _json(schema: Mapping[str, object]) -> Json:
    return {"application/json": {"schema": schema}}
