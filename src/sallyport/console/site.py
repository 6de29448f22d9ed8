"""The routes of the console: the checks before each page, its rendering, and the pages of errors."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import trio
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from sallyport.areas.signin import openid
from sallyport.areas.signin.person import Person
from sallyport.base.errors import Forbidden, NotFound, Refused
from sallyport.console import running, sign_in
from sallyport.console.export import Exports
from sallyport.console.guard import HEADERS, NOTICE, SESSION, Guard, form_token, source
from sallyport.console.sign_in import SignIn
from sallyport.console.table import Table, is_export
from sallyport.console.visit import Form, FormProblem, Page, Services, Visit, address
from sallyport.nodes.answers import SlowAnswers
from sallyport.web import problem
from sallyport.web.connections import PEER
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.console_pages import Pages as AnyPages
from sallyport.web.content import headers_of
from sallyport.web.handling import TemplateRoute
from sallyport.web.scope import INSTALLATIONS, Role

MENU: Final = (
    "", "Logins", "Network", "Sign-in policy", "People", "Endpoints", "Credentials", "Administration", "Installation",
)  # fmt: skip
"""The headings of the menu, in their order. The pages under the first have no heading."""
CLOSED: Final = frozenset({"Endpoints", "Credentials", "Administration", "Installation"})
"""The groups of the menu that are open only while one of their pages is shown, so that the menu fits on the screen. The
script keeps the groups that a person has opened or closed."""
TENANTS: Final = "/tenants"
"""The page on which an installation administrator chooses a tenant."""
CLOSED_PAGES: Final = "/installation"
"""The page that says how to open the pages of the installation. Installation administrators do not need it."""
MAX_EXAMINED: Final = 100
"""Maximum number of domains of a tenant among which the first one with a login is found."""
QUIET: Final = "x-refresh"
"""The header of a request that the script has sent without the person."""
_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class MenuGroup:
    """A group of the menu. symbol: the name of its icon in `symbols.svg`."""

    heading: str
    symbol: str
    pages: Sequence[Page]
    is_open: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """A page with its form, if it has one."""

    page: Page
    form: Form | None = None


class Site:
    """The console. areas: the pages of each module, in the order of the menu. answers: the answers of slow actions of
    all processes.

    Raises ValueError if two pages have the same path, or if a form has no page.
    """

    def __init__(
        self, areas: Sequence[AnyPages[Any]], services: Services, public_url: str, answers: SlowAnswers
    ) -> None:
        self._services = services
        self._guard = Guard(public_url)
        self._assets = services.assets
        self._exports = Exports(services.assets, services.gate.answers)
        self._status = services.status
        self.running = running.Running(answers, services.gate.answers)
        """The slow actions. The owner of the site runs it."""
        self._places: dict[str, _Place] = {}
        for page in (page for area in areas for page in area.pages):
            if page.path in self._places:
                raise ValueError(f"two pages have the path {page.path}")
            if page.menu is not None and page.menu not in MENU:
                raise ValueError(f"the menu has no heading {page.menu}")
            self._places[page.path] = _Place(page)
        for form in (form for area in areas for form in area.forms):
            if form.path not in self._places or self._places[form.path].form is not None:
                raise ValueError(f"the form {form.path} has no page of its own")
            self._places[form.path] = replace(self._places[form.path], form=form)

    def routes(self) -> list[BaseRoute]:
        """Return all routes of the console."""
        services = self._services
        entrance = SignIn(services.sign_ins, services.open_id, services.clock, self._guard, self._assets)
        routes: list[BaseRoute] = [
            TemplateRoute(sign_in.PATH, partial(self._safely, entrance.answer), methods=["GET", "POST"]),
            TemplateRoute(openid.PATH, partial(self._safely, entrance.leave), methods=["GET"]),
            TemplateRoute(openid.RETURN, partial(self._safely, entrance.come_back), methods=["GET"]),
            TemplateRoute("/sign-out", partial(self._safely, self._sign_out), methods=["GET", "POST"]),
            *self._assets.routes(),
        ]
        for path, place in self._places.items():
            methods = ["GET"] if place.form is None else ["GET", "POST"]
            routes.append(TemplateRoute(path, partial(self._safely, partial(self._answer, place)), methods=methods))
        return routes

    # --- one request ------------------------------------------------------------------------------------------

    async def _answer(self, place: _Place, request: Request) -> Response:
        query = QueryParams(request.scope["query_string"].decode("latin-1"))
        waits_for = query.get(running.PARAMETER, "")
        person = await self._person(request, is_quiet=place.page.is_quiet or bool(waits_for))
        if person is None:
            return self._to_sign_in(request)
        at = {name: str(value) for name, value in request.path_params.items()}
        kept = [(name, value) for name, value in query.multi_items() if name != running.PARAMETER]
        visit = Visit(request, self._services, person, at, QueryParams(kept))
        return await self._or_error(partial(self._answer_visit, place, visit, waits_for), visit)

    async def _answer_visit(self, place: _Place, visit: Visit, waits_for: str) -> Response:
        domains = visit.domains()[:MAX_EXAMINED]
        if len(domains) > 1 and not visit.query.get("domain") and not place.page.is_quiet:
            visit = replace(visit, main=await self._services.events.first_used([each.id for each in domains]))
        if visit.request.method == "POST" and place.form is not None:
            visit = await self._with_form(place.form, visit)
            work, is_slow = partial(self._submitted, place, place.form, visit), place.form.is_slow
        elif waits_for:
            return await self._waited(place, visit, waits_for)
        else:
            is_slow = place.page.is_slow
            work = partial(self._shown, place.page, visit)
        return await self._slowly(visit, work) if is_slow else await work()

    async def _with_form(self, form: Form, visit: Visit) -> Visit:
        """Return the visit with the fields of its form. Raises Forbidden, Invalid."""
        key = self._guard.cookie(visit.request, SESSION)
        if form.has_file:
            self._guard.check_origin(visit.request)
            return replace(visit, key=key)
        return replace(visit, fields=await self._guard.fields(visit.request, key))

    async def _shown(self, page: Page, visit: Visit, status: int = 200) -> Response:
        if not visit.may(page.roles):
            if visit.person.is_installation and Role.ADMIN in page.roles:
                return RedirectResponse(TENANTS, 303, HEADERS)
            if page.roles == INSTALLATIONS:
                return await self._rendered(page, self._places[CLOSED_PAGES].page.template, {}, visit, 403)
            raise Forbidden(_needed("page", page.roles, visit))
        content = await (self._exports.part(page, visit) if is_export(visit) else page.show(visit))
        await trio.lowlevel.checkpoint()
        if isinstance(content, Response):
            return content
        table = content.get("table")
        if is_export(visit) and isinstance(table, Table):
            return await self._exports.response(page, visit, table)
        managed = await visit.managed_here()
        return await self._rendered(page, page.template, {**content, "managed": managed}, visit, status)

    async def _submitted(self, place: _Place, form: Form, visit: Visit) -> Response:
        if not visit.may(form.roles):
            raise Forbidden(_needed("change", form.roles, visit))
        try:
            answer = await form.submit(visit)
        except Refused as error:
            # A browser logs an answer with an error status as an error of the page. Typing is none.
            status = 200 if QUIET in headers_of(visit.request) else error.status
            return await self._shown(place.page, replace(visit, problem=FormProblem.of(error)), status)
        if isinstance(answer, Redirect):
            response = RedirectResponse(answer.to, 303, HEADERS)
            self._guard.set_notice(visit.request, response, answer.notice)
            return response
        return await self._rendered(place.page, form.template or place.page.template, answer, visit)

    # --- answers that take longer than a second ---------------------------------------------------------------

    async def _slowly(self, visit: Visit, work: running.Work) -> Response:
        """Return the answer of slow work, or send the browser to the page that waits for it."""
        safe = partial(self._or_error, work, visit)
        answer = await self.running.start(visit.person.session.id, visit.caller.tenant_id, safe)
        if isinstance(answer, Response):
            return answer
        kind = "form" if visit.request.method == "POST" else "page"
        return RedirectResponse(visit.url(**{running.PARAMETER: f"{kind}-{answer}"}), 303, HEADERS)

    async def _waited(self, place: _Place, visit: Visit, waits_for: str) -> Response:
        """Return the answer of slow work that was started before, or a page that says that it runs."""
        kind, _, number = waits_for.partition("-")
        try:
            answer = await self.running.result(visit.person.session.id, number)
        except LookupError:
            if kind != "form":
                return await self._shown(place.page, visit)
            lost = RedirectResponse(visit.url(), 303, HEADERS)
            self._guard.set_notice(visit.request, lost, "The answer is not kept any longer. Look at the result.")
            return lost
        if answer is not None:
            return answer
        response = await self._rendered(place.page, "running.html", {"is_export": is_export(visit)}, visit)
        response.headers["refresh"] = str(running.AGAIN_S)
        return response

    # --- rendering --------------------------------------------------------------------------------------------

    async def _rendered(
        self, page: Page | None, template: str, content: Context, visit: Visit, status: int = 200
    ) -> Response:
        request, notice = visit.request, self._guard.notice(visit.request)
        variables = {
            "title": page.title if page else "",
            "here": page.path if page else "",
            "visit": visit,
            "person": visit.person,
            "menu": self._menu(visit.person, page),
            "status_line": await self._status.read(),
            "csrf": form_token(self._guard.cookie(request, SESSION)),
            "notice": notice,
            "problem": visit.problem,
            "managed": (),
            **content,
        }
        octets = await self._assets.render(template, variables, visit.caller.tenant_id)
        response = Response(octets, status, HEADERS, media_type="text/html")
        if notice:
            self._guard.set_cookie(request, response, NOTICE, "")
        return response

    def _menu(self, person: Person, shown: Page | None) -> list[MenuGroup]:
        """Return the groups of the menu, with the pages that the person may open. shown: the page that is shown."""
        pages = [place.page for place in self._places.values() if person.roles & place.page.roles]
        if person.is_installation:
            pages = [page for page in pages if page.path != CLOSED_PAGES]
        groups = list[MenuGroup]()
        for heading in MENU:
            listed = [page for page in pages if page.menu == heading]
            symbol = heading.lower().replace(" ", "-") or "home"
            is_open = heading not in CLOSED or len(listed) == 1 or any(_is_under(shown, page) for page in listed)
            if listed:
                groups.append(MenuGroup(heading, symbol, listed, is_open))
        return groups

    # --- session ----------------------------------------------------------------------------------------------

    async def _person(self, request: Request, *, is_quiet: bool) -> Person | None:
        key = self._guard.cookie(request, SESSION)
        if not key:
            return None
        touch = not is_quiet and QUIET not in headers_of(request)
        person = await self._services.sessions.person(key, source(request), touch=touch)
        if person is not None and (peer := PEER.get()) is not None:
            peer.authenticate()
        return person

    def _to_sign_in(self, request: Request) -> Response:
        path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
        wanted = f"{path}?{query}" if query else path
        shown = wanted if request.method == "GET" and wanted != "/" else ""
        response = RedirectResponse(address(sign_in.PATH, [("next", shown)]), 303, HEADERS)
        if self._guard.cookie(request, SESSION):
            self._guard.set_cookie(request, response, SESSION, "")
        return response

    async def _sign_out(self, request: Request) -> Response:
        """End the session if the request is a POST. For a GET, show a page with a button that sends the POST.

        If the person has signed in through an identity provider, the answer is a page that links to the sign-out at the
        provider. A redirect to the provider is not possible, because `form-action 'self'` also applies to redirects.
        """
        person = await self._person(request, is_quiet=False)
        if person is None:
            return self._to_sign_in(request)
        if request.method != "POST":
            visit = Visit(request, self._services, person, {}, QueryParams())
            return await self._rendered(None, "sign_out.html", {"title": "Sign out"}, visit)
        await self._guard.fields(request, self._guard.cookie(request, SESSION))
        elsewhere = await self._services.sessions.sign_out(person)
        response: Response = RedirectResponse(sign_in.PATH, 303, HEADERS)
        if elsewhere:
            named = self._services.open_id.title(person.session.issuer or "")
            variables = {"title": "Sign out", "elsewhere": elsewhere, "provider": named}
            octets = await self._assets.render("signed_out.html", variables)
            response = Response(octets, headers=HEADERS, media_type="text/html")
        self._guard.set_cookie(request, response, SESSION, "")
        return response

    # --- errors -----------------------------------------------------------------------------------------------

    async def unknown(self, request: Request) -> Response:
        """Return the page for a path that does not exist. A signed-in person sees it with the menu."""
        return await self._safely(self._unknown, request)

    async def _unknown(self, request: Request) -> Response:
        person = await self._person(request, is_quiet=False)
        visit = None if person is None else Visit(request, self._services, person, {}, QueryParams())
        return await self._error(request, NotFound("there is no page at this address"), visit)

    async def _safely(self, answer: _Handler, request: Request) -> Response:
        try:
            return await answer(request)
        except Exception as error:
            return await self._error(request, error, None)

    async def _or_error(self, work: running.Work, visit: Visit) -> Response:
        try:
            return await work()
        except Exception as error:
            return await self._error(visit.request, error, visit)

    async def _error(self, request: Request, error: Exception, visit: Visit | None) -> Response:
        """Return an error as a page. `problem` determines its status, its text and the entry in the log."""
        told = problem.response(error, request.scope.get("path", ""))
        message = json.loads(bytes(told.body)).get("message", "")
        variables = {"title": "This did not work", "message": message, "status": told.status_code}
        if visit is not None:
            return await self._rendered(None, "error.html", variables, visit, told.status_code)
        octets = await self._assets.render("error_bare.html", variables)
        return Response(octets, told.status_code, HEADERS, media_type="text/html")


def _is_under(shown: Page | None, page: Page) -> bool:
    """Return whether the shown page is this page of the menu, or a page below it."""
    return shown is not None and f"{shown.path}/".startswith(f"{page.path}/")


def _needed(thing: str, roles: frozenset[Role], visit: Visit) -> str:
    """Return the message for a person whose role does not allow a page or a change."""
    needed = " or ".join(sorted(each.value for each in roles))
    return f"this {thing} needs the role {needed}; you are signed in with the role {visit.person.session.role}"
