"""Puts the operations, health, metrics and the description of the API into one ASGI application.

FastAPI routes and describes; what happens to a request is decided in `operation`, so its own reading of bodies and
its 422 never run.
"""

import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeAlias, cast

import trio
from fastapi import FastAPI, Security
from fastapi.params import Depends
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from sallyport.base.errors import Refused, StoreError
from sallyport.web import docs, problem
from sallyport.web.examples import EXAMPLES, TOKENS
from sallyport.web.observe import Observe, Observed, PlainRoute
from sallyport.web.operation import BEARER_PREFIX, Operation, Operations
from sallyport.web.upload import FILE, KIND

NotReady: TypeAlias = Callable[[], Sequence[str]]
"""Why the service should get no requests at the moment; empty when it should."""
RenderMetrics: TypeAlias = Callable[[], bytes]
"""The metrics in Prometheus' text format; called in a worker thread."""

_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_NO_SCRIPTS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
_DESCRIPTION = (
    "Network device inventory and login policy. In the examples, what stands in <angle brackets> is yours to fill in: "
    "<apiKey of createKey> is that field of that operation's answer."
)
_ERRORS = {400: "invalid body", 401: "no valid token", 403: "outside the token's scope, domain or role"}


class _Endpoint:
    """What FastAPI describes; it is never called, the handler is."""

    def __init__(self, operation: Operation) -> None:
        self.handler = operation.handler
        self.__doc__ = operation.description
        body = inspect.Parameter("body", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=operation.body)
        taken = [] if operation.has_file else [body]
        self.__signature__ = inspect.Signature(taken, return_annotation=operation.answer)

    async def __call__(self, body: object) -> None:
        raise NotImplementedError


class _OperationRoute(APIRoute):
    """A route whose requests go to the operation's own handler."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        return cast(_Endpoint, self.endpoint).handler


def create_app(
    operations: Sequence[Operations],
    *,
    version: str,
    observe: Observe,
    not_ready: NotReady,
    metrics: RenderMetrics | None,
    pages: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """The application of the service's address.

    metrics: None when they have an address of their own. pages: routes that are no operations (the console).
    ValueError: two operations claim the same method and path.
    """
    app = FastAPI(
        title="Sallyport",
        version=version,
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Its exporters would be set up from the environment; what is measured here is in `metrics`.
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    _refuse_doubles(operations)
    for slice_operations in operations:
        for operation in slice_operations.all:
            _add(app, operation)
    app.router.routes += [*_service_routes(not_ready, metrics), *_description_routes(app), *pages]
    _install_problems(app)
    return Observed(app, observe)


def create_metrics_app(*, observe: Observe, not_ready: NotReady, metrics: RenderMetrics) -> ASGIApp:
    """The application of the address that the metrics may have of their own."""
    app = Starlette(routes=_service_routes(not_ready, metrics))
    app.router.redirect_slashes = False
    _install_problems(app)
    return Observed(app, observe)


def _add(app: FastAPI, operation: Operation) -> None:
    for path in operation.paths:
        errors = {str(status): told for status, told in _ERRORS.items()} | {"4XX": "refused", "5XX": "failed"}
        app.router.add_api_route(
            path,
            _Endpoint(operation),
            methods=[operation.method],
            route_class_override=_OperationRoute,
            response_model=operation.answer,
            name=operation.name,
            tags=[operation.tag],
            description=operation.description,
            responses={code: {"model": problem.model_for(path), "description": told} for code, told in errors.items()},
            dependencies=_security(path),
            openapi_extra=_extra(operation, path),
        )


def _extra(operation: Operation, path: str) -> dict[str, object]:
    """What FastAPI does not describe by itself: a body that works, whose token is sent with it, and a form."""
    kind, media = (KIND, _form(operation)) if operation.has_file else ("application/json", dict[str, object]())
    if (operation.method, path) in EXAMPLES:
        media["example"] = EXAMPLES[operation.method, path]
    extra: dict[str, object] = {"requestBody": {"required": True, "content": {kind: media}}} if media else {}
    return extra | ({docs.TOKEN: TOKENS[path]} if path in TOKENS else {})


def _form(operation: Operation) -> dict[str, object]:
    """The description of a form with a file, which FastAPI would only describe if it read it."""
    schema = cast(type[BaseModel], operation.body).model_json_schema()
    schema["properties"] = {**schema["properties"], FILE: {"type": "string", "format": "binary"}}
    schema["required"] = [*schema.get("required", ()), FILE]
    return {"schema": schema}


def _security(path: str) -> list[Depends]:
    """For the description only: the token is read in `operation`."""
    header = Security(APIKeyHeader(name="X-Authorization", scheme_name="X-Authorization"))
    return [header, Security(HTTPBearer(scheme_name="Bearer"))] if path.startswith(BEARER_PREFIX) else [header]


def _refuse_doubles(operations: Sequence[Operations]) -> None:
    seen: set[tuple[str, str]] = set()
    for operation in (each for one in operations for each in one.all):
        for path in operation.paths:
            if (operation.method, path) in seen:
                raise ValueError(f"two operations claim {operation.method} {path}")
            seen.add((operation.method, path))


def _service_routes(not_ready: NotReady, metrics: RenderMetrics | None) -> list[BaseRoute]:
    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def readyz(request: Request) -> Response:
        reasons = list(not_ready())
        if reasons:
            return JSONResponse({"status": "not ready", "reasons": reasons}, 503)
        return JSONResponse({"status": "ready"})

    routes: list[BaseRoute] = [PlainRoute("/healthz", healthz), PlainRoute("/readyz", readyz)]
    return routes if metrics is None else [*routes, _metrics_route(metrics)]


def _metrics_route(render: RenderMetrics) -> BaseRoute:
    one_at_a_time = trio.CapacityLimiter(1)

    async def scrape(request: Request) -> Response:
        return Response(await trio.to_thread.run_sync(render, limiter=one_at_a_time), media_type=_TEXT_FORMAT)

    return PlainRoute("/metrics", scrape)


def _description_routes(app: FastAPI) -> list[BaseRoute]:
    async def openapi(request: Request) -> Response:
        return JSONResponse(await trio.to_thread.run_sync(app.openapi))

    async def page(request: Request) -> Response:
        document = await trio.to_thread.run_sync(app.openapi)
        return Response(await trio.to_thread.run_sync(docs.page, document), media_type="text/html", headers=_NO_SCRIPTS)

    return [PlainRoute("/openapi.json", openapi), PlainRoute("/docs", page)]


def _install_problems(app: Starlette) -> None:
    async def answer(request: Request, error: Exception) -> Response:
        response = problem.response(error, request.scope["path"])
        if response.status_code == 405:
            response.headers["allow"] = ", ".join(_allowed(app, request.scope["path"]))
        return response

    for kind in (Refused, StoreError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def _allowed(app: Starlette, path: str) -> list[str]:
    routes = [route for route in app.router.routes if isinstance(route, Route) and route.path_regex.match(path)]
    return sorted({method for route in routes for method in route.methods or ()})
