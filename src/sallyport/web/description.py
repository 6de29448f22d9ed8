"""The OpenAPI 3.1 document and its page, generated from the declared operations.

The document and the page are generated on the first request, because this takes a third of a second, and most processes
never need them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, get_origin

import trio
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from sallyport.web import docs, problem
from sallyport.web.examples import EXAMPLES, TOKENS
from sallyport.web.operation import BEARER_PREFIX, Operation
from sallyport.web.paging import TOTAL_HEADER, Counted
from sallyport.web.routing import TemplateRoute
from sallyport.web.upload import FILE, KIND

Json: TypeAlias = dict[str, object]

_NO_SCRIPTS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
_DESCRIPTION: Final = (
    "Network device inventory and login policy. In the examples, replace the text in <angle brackets>: "
    "<apiKey of createKey> stands for the field apiKey in the answer of createKey."
)
_REFERENCE: Final = "#/components/schemas/{model}"
_ERRORS: Final = {
    "400": "invalid body",
    "401": "no valid token",
    "403": "outside the token's scope, domain or role",
    "4XX": "refused",
    "5XX": "failed",
}
_SCHEMES: Final[Json] = {
    "X-Authorization": {"type": "apiKey", "in": "header", "name": "X-Authorization"},
    "Bearer": {"type": "http", "scheme": "bearer"},
}
_TOTAL: Final[Json] = {
    TOTAL_HEADER: {"description": "Number of entries in the whole list.", "schema": {"type": "integer"}}
}


class Description:
    """The documents /openapi.json and /docs, generated once."""

    def __init__(self, operations: Sequence[Operation], version: str) -> None:
        self._operations = operations
        self._version = version
        self._making = trio.Lock()
        self._made: tuple[bytes, bytes] | None = None

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the document and of its page."""

        async def openapi(request: Request) -> Response:
            made, _ = await self._both()
            return Response(made, media_type="application/json")

        async def page(request: Request) -> Response:
            _, html = await self._both()
            return Response(html, media_type="text/html", headers=_NO_SCRIPTS)

        return [TemplateRoute("/openapi.json", openapi), TemplateRoute("/docs", page)]

    async def _both(self) -> tuple[bytes, bytes]:
        async with self._making:
            if self._made is None:
                self._made = await trio.to_thread.run_sync(self._make)
            return self._made

    def _make(self) -> tuple[bytes, bytes]:
        made = document(self._operations, self._version)
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode(), docs.page(made)


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
    paths: dict[str, dict[str, Json]] = {}
    for operation in operations:
        for path in operation.paths:
            paths.setdefault(path, {})[operation.method.lower()] = _described(operation, path, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sallyport", "version": version, "description": _DESCRIPTION},
        "paths": paths,
        "components": {"schemas": definitions.get("$defs", {}), "securitySchemes": _SCHEMES},
    }


_Schemas: TypeAlias = Mapping[tuple[type[object], JsonSchemaMode], Mapping[str, object]]


def _described(operation: Operation, path: str, schemas: _Schemas) -> Json:
    """Return the description of an operation on one of its paths."""
    answer: Json = {"description": "done", "content": _json(schemas[operation.answer, "serialization"])}
    if get_origin(operation.answer) is Counted:
        answer["headers"] = _TOTAL
    error = _json(schemas[problem.model_for(path), "serialization"])
    schemes = ["X-Authorization", "Bearer"] if path.startswith(BEARER_PREFIX) else ["X-Authorization"]
    described: Json = {
        "tags": [operation.tag],
        "summary": operation.name.replace("_", " ").capitalize(),
        "description": operation.description,
        "operationId": re.sub(r"\W", "_", operation.name + path) + "_" + operation.method.lower(),
        "requestBody": {"required": True, "content": _body(operation, path, schemas[operation.body, "validation"])},
        "responses": {"200": answer}
        | {status: {"description": text, "content": error} for status, text in _ERRORS.items()},
        "security": [{scheme: []} for scheme in schemes],
    }
    if path in TOKENS:
        described[docs.TOKEN] = TOKENS[path]
    return described


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
