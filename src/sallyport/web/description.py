"""What the API is, for programs and for people: the OpenAPI document and its page.

FastAPI makes the document out of what the operations declare. It is imported, and the models described, when somebody
asks for the first time: a start of the service would pay a third of a second for what most of its days do not need.
"""

import inspect
import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, get_origin

import trio
from pydantic import BaseModel
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from sallyport.web import docs, problem
from sallyport.web.examples import EXAMPLES, TOKENS
from sallyport.web.observe import TemplateRoute
from sallyport.web.operation import BEARER_PREFIX, Operation
from sallyport.web.paging import TOTAL_HEADER, Counted
from sallyport.web.upload import FILE, KIND

if TYPE_CHECKING:
    from fastapi.params import Depends

_NO_SCRIPTS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
_DESCRIPTION = (
    "Network device inventory and login policy. In the examples, what stands in <angle brackets> is yours to fill in: "
    "<apiKey of createKey> is that field of that operation's answer."
)
_ERRORS = {400: "invalid body", 401: "no valid token", 403: "outside the token's scope, domain or role"}


class _Endpoint:
    """What FastAPI describes; it is never called."""

    def __init__(self, operation: Operation) -> None:
        self.__doc__ = operation.description
        body = inspect.Parameter("body", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=operation.body)
        taken = [] if operation.has_file else [body]
        self.__signature__ = inspect.Signature(taken, return_annotation=operation.answer)

    async def __call__(self) -> None:
        """FastAPI takes nothing that cannot be called."""


class Description:
    """/openapi.json and /docs, made once."""

    def __init__(self, operations: Sequence[Operation], version: str) -> None:
        self._operations = operations
        self._version = version
        self._making = trio.Lock()
        self._made: tuple[bytes, bytes] | None = None

    def routes(self) -> list[BaseRoute]:
        """Where they are."""

        async def openapi(request: Request) -> Response:
            document, _ = await self._both()
            return Response(document, media_type="application/json")

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
        document = _document(self._operations, self._version)
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), docs.page(document)


def _document(operations: Sequence[Operation], version: str) -> dict[str, object]:
    """The document, OpenAPI 3.1."""
    from fastapi import FastAPI

    app = FastAPI(
        title="Sallyport",
        version=version,
        description=_DESCRIPTION,
        openapi_url=None,
        # Its exporters would be set up from the environment; what is measured of requests is in `metrics`.
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    for operation in operations:
        for path in operation.paths:
            errors = {str(status): told for status, told in _ERRORS.items()} | {"4XX": "refused", "5XX": "failed"}
            shape = problem.model_for(path)
            app.router.add_api_route(
                path,
                _Endpoint(operation),
                methods=[operation.method],
                response_model=operation.answer,
                name=operation.name,
                tags=[operation.tag],
                description=operation.description,
                responses={
                    **_headers(operation),
                    **{code: {"model": shape, "description": told} for code, told in errors.items()},
                },
                dependencies=_security(path),
                openapi_extra=_extra(operation, path),
            )
    with warnings.catch_warnings():  # FastAPI does so itself, around what it makes of models that are not deferred
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        return app.openapi()


def _extra(operation: Operation, path: str) -> dict[str, object]:
    """What FastAPI does not describe by itself: a body that works, whose token is sent with it, and a form."""
    kind, media = (KIND, _form(operation)) if operation.has_file else ("application/json", dict[str, object]())
    if (operation.method, path) in EXAMPLES:
        media["example"] = EXAMPLES[operation.method, path]
    extra: dict[str, object] = {"requestBody": {"required": True, "content": {kind: media}}} if media else {}
    return extra | ({docs.TOKEN: TOKENS[path]} if path in TOKENS else {})


def _headers(operation: Operation) -> "dict[int | str, dict[str, Any]]":
    """Return the header of a successful answer that carries a total."""
    if get_origin(operation.answer) is not Counted:
        return {}
    total = {"description": "Number of entries in the whole list.", "schema": {"type": "integer"}}
    return {200: {"description": "Successful Response", "headers": {TOTAL_HEADER: total}}}


def _form(operation: Operation) -> dict[str, object]:
    """The description of a form with a file, which FastAPI would only describe if it read it."""
    schema = cast(type[BaseModel], operation.body).model_json_schema()
    schema["properties"] = {**schema["properties"], FILE: {"type": "string", "format": "binary"}}
    schema["required"] = [*schema.get("required", ()), FILE]
    return {"schema": schema}


def _security(path: str) -> "list[Depends]":
    """How a request is authorized. It is for the description alone: `operation` reads the token."""
    from fastapi import Security
    from fastapi.security import APIKeyHeader, HTTPBearer

    header = Security(APIKeyHeader(name="X-Authorization", scheme_name="X-Authorization"))
    return [header, Security(HTTPBearer(scheme_name="Bearer"))] if path.startswith(BEARER_PREFIX) else [header]
