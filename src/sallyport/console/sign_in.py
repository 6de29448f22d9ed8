"""The pages of sign-in and sign-out. They are the only pages without a session."""

from dataclasses import dataclass

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sallyport.base.errors import Forbidden, Refused
from sallyport.console.assets import Assets
from sallyport.console.guard import BEFORE, HEADERS, SESSION, SMALL_LIMIT, Guard, form_token, local_path, new_key
from sallyport.tenancy.signin.sessions import Sessions

PATH = "/sign-in"
IN_CLEAR = "passwords are accepted only over TLS, or on the machine of the service itself"


@dataclass(frozen=True, slots=True)
class SignIn:
    """The page of the sign-in, with a form for an access token and one for a local administrator."""

    sessions: Sessions
    guard: Guard
    assets: Assets

    async def answer(self, request: Request) -> Response:
        """Show the forms, or sign in. Each sign-in makes a new session with a new key, whatever cookie the browser had
        before."""
        if request.method != "POST":
            return await self._page(request, QueryParams(request.scope["query_string"].decode("latin-1")))
        fields = QueryParams()
        try:
            fields = await self.guard.fields(request, self.guard.cookie(request, BEFORE), SMALL_LIMIT)
            key = await self._sign_in(request, fields)
        except Refused as error:
            return await self._page(request, fields, error)
        response = RedirectResponse(local_path(fields.get("next", "")), 303, HEADERS)
        self.guard.set_cookie(request, response, SESSION, key)
        self.guard.set_cookie(request, response, BEFORE, "")
        return response

    async def _sign_in(self, request: Request, fields: QueryParams) -> str:
        browser = self.guard.browser(request)
        if "token" in fields:
            return await self.sessions.by_token(fields["token"], browser)
        if not self.guard.is_private(request):
            raise Forbidden(IN_CLEAR)
        name, password, code = (fields.get(each, "") for each in ("name", "password", "code"))
        return await self.sessions.by_password(name, password, code, browser)

    async def _page(self, request: Request, fields: QueryParams, error: Refused | None = None) -> Response:
        key = self.guard.cookie(request, BEFORE) or new_key()
        variables = {
            "title": "Sign in",
            "csrf": form_token(key),
            "next": local_path(fields.get("next", "")),
            "name": fields.get("name", ""),
            "problem": "" if error is None else str(error),
            "is_private": self.guard.is_private(request),
            "by_password": "name" in fields,
        }
        octets = await self.assets.render("sign_in.html", variables)
        response = Response(octets, 200 if error is None else error.status, HEADERS, media_type="text/html")
        self.guard.set_cookie(request, response, BEFORE, key)
        return response
