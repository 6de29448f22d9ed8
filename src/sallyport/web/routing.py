"""Routing of requests, measurement of each request, and handling of errors that no other code has caught.

A dict finds the operation by its path, because testing 150 routes one after another takes 110 us. Starlette routes all
other paths. The label of a measurement is the template of the route, never the path in the request. Therefore a client
cannot create labels.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sallyport.base.spelling import Spellings
from sallyport.web import problem
from sallyport.web.operation import BEARER_PREFIX, Handler, Operation

Observe: TypeAlias = Callable[[str, str, int, float], None]
"""A function that records a request: observe(method, route template, status, seconds)."""

LONGEST_PATH = 200
"""Maximum number of characters of an unknown path that is compared with the known paths."""
UNMATCHED = "unmatched"
TEMPLATE = "sallyport.template"
"""The key in an ASGI scope under which the template of the route is stored."""
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Observed:
    """The outermost layer of an app, which measures requests. ASGI scopes other than HTTP requests are ignored."""

    def __init__(self, app: ASGIApp, observe: Observe) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:  # an error after the start of the answer was logged already
            if not status:
                await problem.response(error, scope["path"])(scope, receive, noting)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._observe(method, scope.get(TEMPLATE, UNMATCHED), status or 499, time.perf_counter() - started)


class ByPath:
    """The operations by path. Their paths have no parameters. Requests with other paths go to `rest`.

    Raises ValueError if two operations have the same method and path.
    """

    def __init__(self, operations: Sequence[Operation], rest: ASGIApp) -> None:
        self._rest = rest
        self._handlers: dict[str, dict[str, Handler]] = {}  # by path, and then by method
        self._near: NearPaths | None = None
        for operation in operations:
            for path in operation.paths:
                methods = self._handlers.setdefault(path, {})
                if operation.method in methods:
                    raise ValueError(f"two operations have the method and path {operation.method} {path}")
                methods[operation.method] = operation.handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        methods = self._handlers.get(path)
        if methods is None and (near := self._nearest(path)) is not None:
            await problem.body(path, 404, f"no such path; did you mean {near}?")(scope, receive, send)
            return
        if methods is None:
            await self._rest(scope, receive, send)
            return
        scope[TEMPLATE] = path
        handler = methods.get(scope["method"])
        if handler is None:
            response = problem.response(HTTPException(405), path)
            response.headers["allow"] = ", ".join(sorted(methods))
        else:
            response = await handler(Request(scope, receive))
        await response(scope, receive, send)

    def _nearest(self, path: str) -> str | None:
        """Return the path of an operation that a client has probably meant, or None. Only paths below the prefixes of
        operations are compared."""
        if not path.startswith((*problem.RADIUS_PREFIXES, BEARER_PREFIX)):
            return None
        self._near = self._near or NearPaths(self._handlers)
        return self._near.find(path)


class NearPaths:
    """The paths of the operations by their last parts. A path in another case, with a misspelled last part, or with the
    prefix of another operation is found at the cost of a few comparisons, because anybody may send such paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_end = defaultdict[str, list[str]](list)
        for path in paths:
            self._by_end[path.rpartition("/")[2].casefold()].append(path)
        self._ends = Spellings(self._by_end)

    def find(self, path: str) -> str | None:
        """Return the known path that is most similar to a path, or None."""
        if len(path) > LONGEST_PATH:
            return None
        start, _, end = path.rstrip("/").rpartition("/")
        ends = [end.casefold()] if end.casefold() in self._by_end else self._ends.near(end)
        found = [known for each in ends for known in self._by_end[each]]
        same = [known for known in found if known.casefold().startswith(f"{start.casefold()}/")]
        likely = same or Spellings(found).near(path) or found
        return likely[0] if same or len(likely) == 1 else None


class TemplateRoute(Route):
    """A Starlette route that stores its path template in the ASGI scope. This template is the label when a request is
    measured."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is not Match.NONE:
            child[TEMPLATE] = self.path_format
        return match, child
