"""The app of the site: its pages with their headers, its static files, and the answers to unknown paths and errors."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeAlias

import trio
from jinja2 import Environment
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from sallyport.base.actor import Actor, acting_as
from sallyport.base.fair import FairLimiter
from sallyport.web import problem
from sallyport.web.handling import TEMPLATE, UNMATCHED, Observe, Observed, TemplateRoute
from sallyport.web.link_page import templates
from sallyport.web.people.visit import PeopleVisit, form_of, origin_of

FOLDER: Final = Path(__file__).parent / "templates"
STATIC: Final = "/mfa/static/"
"""The static files are below `/mfa`, because a proxy may send only `/mfa` and `/me` to this site."""
TYPES: Final[Mapping[str, str]] = {
    "people.css": "text/css; charset=utf-8",
    "people.js": "text/javascript; charset=utf-8",
}
RENDERING: Final = 1
"""Maximum number of pages that are rendered at the same time, in worker threads: all share one interpreter lock."""
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action {}; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "content-security-policy": _POLICY.format("'self'"),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "publickey-credentials-get=(self), publickey-credentials-create=(self)",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """A page. variables: those of its template. form_to: the origins, beside this site, to which the answer of one of
    its forms may redirect, such as that of an identity provider."""

    template: str
    title: str
    variables: Mapping[str, object] = field(default_factory=dict)
    status: int = 200
    form_to: Sequence[str] = ()


Show: TypeAlias = Callable[[PeopleVisit], Awaitable[PeoplePage | Response]]
"""A function that answers a GET. It must not change anything."""
Submit: TypeAlias = Callable[[PeopleVisit], Awaitable[PeoplePage | Response]]
"""A function that answers a form. Its page may be the answer itself, or a redirect (303) leads to it."""


class PeopleSite:
    """Makes the routes of the site. public_url: the setting of this name."""

    def __init__(self, public_url: str) -> None:
        self.origin = origin_of(public_url)
        self._turns: FairLimiter[object] = FairLimiter(RENDERING)

    def route(self, path: str, show: Show | None, submit: Submit | None = None, *, templates: Path) -> BaseRoute:
        """Return the route of a page. templates: the folder of the area's templates. show, submit: None if the page
        takes no GET, or no form."""
        environment = environment_of(templates)

        async def answer(request: Request) -> Response:
            visit = PeopleVisit(request)
            try:
                with acting_as(Actor("public", visit.source)):
                    if request.method == "POST":
                        visit = PeopleVisit(request, await form_of(request, self.origin))
                        found = await _handled(submit, visit)
                    else:
                        found = await _handled(show, visit)
            except Exception as error:
                found = refused(error, path)
            response = found if isinstance(found, Response) else await self._response(environment, found, visit)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            visit.finish(response)
            return response

        methods = (["GET"] if show else []) + (["POST"] if submit else [])
        return TemplateRoute(path, answer, methods=methods)

    async def _response(self, environment: Environment, page: PeoplePage, visit: PeopleVisit) -> Response:
        """Return a page as a response. The page is rendered when it is the turn of the request's owner."""
        async with self._turns.slot(visit.owner):
            html = await trio.to_thread.run_sync(partial(_rendered, environment, page))
        response = Response(html, page.status, media_type="text/html")
        if page.form_to:
            response.headers["content-security-policy"] = _POLICY.format(" ".join(["'self'", *page.form_to]))
        return response

    def app(self, routes: Iterable[BaseRoute], observe: Observe) -> ASGIApp:
        """Return the app of the site. It has these routes, the static files, and nothing else.

        A route without parameters comes before the others, whatever their order: `/mfa/callback` is no code.
        """
        found = sorted(routes, key=lambda each: "{" in getattr(each, "path", ""))
        app = Starlette(routes=[TemplateRoute(f"{STATIC}{{name}}", _static), *found])
        app.router.redirect_slashes = False
        environment = environment_of(FOLDER)

        async def failed(request: Request, error: Exception) -> Response:
            page = refused(error, request.scope.get(TEMPLATE, UNMATCHED))
            response = await self._response(environment, page, PeopleVisit(request))
            response.headers.update(HEADERS)
            if page.status == 405:
                response.headers["allow"] = ", ".join(_methods(app, request.scope["path"]))
            return response

        for kind in (HTTPException, Exception):
            app.add_exception_handler(kind, failed)
        return Observed(app, observe)


async def _handled(handler: Show | None, visit: PeopleVisit) -> PeoplePage | Response:
    if handler is None:  # HEAD of a page that takes only forms
        raise HTTPException(405)
    return await handler(visit)


def refused(error: Exception, template: str) -> PeoplePage:
    """Return an error as a page. The module `problem` determines the status, the text and the log entry. template: the
    template of the route, which the log shows instead of the path."""
    answer = problem.response(error, template)
    message = str(json.loads(bytes(answer.body))["message"])
    return PeoplePage("people_error.html", "This did not work", {"message": message}, answer.status_code)


def static(name: str) -> str:
    """Return the address of a static file. It changes with the content, so browsers may keep the file."""
    return f"{STATIC}{name}?v={hashlib.sha256(_content(name)).hexdigest()[:12]}"


@cache
def environment_of(folder: Path) -> Environment:
    """Return the templates of a folder and those of the site."""
    environment = templates(FOLDER) if folder == FOLDER else templates(folder, FOLDER)
    environment.globals["static"] = static
    return environment


def _rendered(environment: Environment, page: PeoplePage) -> bytes:
    text = environment.get_template(page.template).render({"title": page.title, **page.variables})
    return text.encode(errors="replace")


async def _static(request: Request) -> Response:
    name = str(request.path_params["name"])
    if name not in TYPES:
        raise HTTPException(404)
    headers = {**HEADERS, "cache-control": "public, max-age=31536000, immutable"}
    return Response(_content(name), headers=headers, media_type=TYPES[name])


@cache
def _content(name: str) -> bytes:
    return files(__package__).joinpath("static", name).read_bytes()


def _methods(app: Starlette, path: str) -> list[str]:
    routes = [route for route in app.router.routes if isinstance(route, Route) and route.path_regex.match(path)]
    return sorted({method for route in routes for method in route.methods or ()})
