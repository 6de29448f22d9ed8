"""One measurement for each request, and the last net under an unexpected error.

The label is the template of the route, never the path that was sent: a client cannot add labels.
"""

import time
from collections.abc import Callable
from typing import TypeAlias

from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sallyport.web import problem

Observe: TypeAlias = Callable[[str, str, int, float], None]
"""observe(method, route template, status, seconds)."""

UNMATCHED = "unmatched"
TEMPLATE = "sallyport.template"
"""The key of a scope under which the template of its route is."""
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class TemplateRoute(Route):
    """A route that notes its template for the measurement."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is not Match.NONE:
            child[TEMPLATE] = self.path_format
        return match, child


class Observed:
    """The outermost layer of an app. Anything but an HTTP request is left unanswered."""

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
        except Exception as error:  # an answer that has begun was reported where it failed
            if not status:
                await problem.response(error, scope["path"])(scope, receive, noting)
        finally:
            self._observe(_method(scope), _template(scope), status or 499, time.perf_counter() - started)


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in _METHODS else "other"


def _template(scope: Scope) -> str:
    template: str = scope.get(TEMPLATE, UNMATCHED)
    return template
