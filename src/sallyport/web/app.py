"""The ASGI application, composed of the operations, health, metrics and API description."""

import gzip
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import trio
from prometheus_client.exposition import gzip_accepted
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from sallyport.base.errors import Refused, StoreError
from sallyport.metrics import OPENMETRICS, TEXT, format_for
from sallyport.web import docs, problem
from sallyport.web.content import headers_of
from sallyport.web.description import Description
from sallyport.web.handling import ByPath, Handler, Observe, Observed, TemplateRoute
from sallyport.web.operation import Operations

NotReady: TypeAlias = Callable[[], Sequence[str]]
"""A function that returns the reasons why the service is not ready for requests. The result is empty if it is ready."""
RenderMetrics: TypeAlias = Callable[[str], Awaitable[bytes]]
"""A function that returns the metrics. It gets one of the content types OPENMETRICS and TEXT."""

API_PREFIXES: Final = ("/api/", *problem.RADIUS_PREFIXES)
"""The beginnings of the paths of the API. A browser that asks for an unknown path there gets JSON as well."""
_VARY: Final = {"vary": "accept, accept-encoding"}


def create_app(
    operations: Sequence[Operations],
    *,
    version: str,
    observe: Observe,
    not_ready: NotReady,
    metrics: RenderMetrics | None,
    pages: Sequence[BaseRoute] = (),
    unknown: Handler | None = None,
) -> ASGIApp:
    """Return the ASGI application for the service's address.

    metrics: a function that returns the metrics, or None if the metrics have a separate address. pages: routes that are
    not operations, such as the enrolment page. unknown: a function that answers a browser that asks for an unknown
    path; None if browsers get the same answer as programs.

    Raises ValueError if two operations have the same method and path.
    """
    every = [operation for one in operations for operation in one.all]
    described = [*Description(every, version).routes(), *docs.routes()]
    rest = _starlette([*_service_routes(not_ready, metrics), *described, *pages], unknown)
    handlers = [(operation.method, path, operation.handler) for operation in every for path in operation.paths]
    return Observed(ByPath(handlers, rest), observe)


def create_metrics_app(*, observe: Observe, not_ready: NotReady, metrics: RenderMetrics) -> ASGIApp:
    """Return the ASGI application for the separate address of the metrics."""
    return Observed(_starlette(_service_routes(not_ready, metrics)), observe)


def _starlette(routes: Sequence[BaseRoute], unknown: Handler | None = None) -> ASGIApp:
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    _install_problems(app, unknown)
    return app


def _service_routes(not_ready: NotReady, metrics: RenderMetrics | None) -> list[BaseRoute]:
    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def readyz(request: Request) -> Response:
        reasons = list(not_ready())
        if reasons:
            return JSONResponse({"status": "not ready", "reasons": reasons}, 503)
        return JSONResponse({"status": "ready"})

    routes: list[BaseRoute] = [TemplateRoute("/healthz", healthz), TemplateRoute("/readyz", readyz)]
    return routes if metrics is None else [*routes, _metrics_route(metrics)]


def _metrics_route(render: RenderMetrics) -> BaseRoute:
    one_at_a_time = trio.Lock()
    rendered = dict.fromkeys((OPENMETRICS, TEXT), (-math.inf, b""))

    async def scrape(request: Request) -> Response:
        """Return the metrics. If several requests for the same format arrive while the metrics are rendered, they all
        get the result of the next rendering."""
        came, headers = trio.current_time(), headers_of(request)
        kind = format_for(headers.get("accept", ""))
        async with one_at_a_time:
            if rendered[kind][0] < came:
                rendered[kind] = trio.current_time(), await render(kind)
            octets = rendered[kind][1]
        if not gzip_accepted(headers.get("accept-encoding", "")):
            return Response(octets, media_type=kind, headers=_VARY)
        packed = await trio.to_thread.run_sync(gzip.compress, octets)
        return Response(packed, media_type=kind, headers={**_VARY, "content-encoding": "gzip"})

    return TemplateRoute("/metrics", scrape)


def _install_problems(app: Starlette, unknown: Handler | None) -> None:
    async def answer(request: Request, error: Exception) -> Response:
        is_unknown = isinstance(error, HTTPException) and error.status_code == 404
        if unknown is not None and is_unknown and _is_for_a_person(request):
            return await unknown(request)
        response = problem.response(error, request.scope["path"])
        if response.status_code == 405:
            response.headers["allow"] = ", ".join(_allowed(app, request.scope["path"]))
        return response

    for kind in (Refused, StoreError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def _is_for_a_person(request: Request) -> bool:
    """Return whether a request comes from a browser, and not for a path of the API."""
    is_api = request.scope["path"].startswith(API_PREFIXES)
    return not is_api and "text/html" in headers_of(request).get("accept", "")


def _allowed(app: Starlette, path: str) -> list[str]:
    routes = [route for route in app.router.routes if isinstance(route, Route) and route.path_regex.match(path)]
    return sorted({method for route in routes for method in route.methods or ()})
