"""The pages of sign-in and sign-out. They are the only pages without a session."""

from dataclasses import dataclass

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sallyport.areas.signin.openid import STARTED_S, OpenId, Started
from sallyport.areas.signin.sign_ins import SignIns
from sallyport.base.clock import Clock
from sallyport.base.errors import Forbidden, Refused
from sallyport.console.assets import Assets
from sallyport.console.guard import (
    BEFORE,
    HEADERS,
    PROVIDER,
    SESSION,
    SMALL_LIMIT,
    Guard,
    form_token,
    local_path,
    new_key,
)
from sallyport.outgoing.openid.client import EXPIRED

PATH = "/sign-in"
IN_CLEAR = "passwords are accepted only over TLS, or on the machine of the service itself"
PROVIDER_IN_CLEAR = "identity providers are accepted only over TLS, or on the machine of the service itself"


@dataclass(frozen=True, slots=True)
class SignIn:
    """The page of the sign-in, with a form for an access token, one for a local administrator, and a link for each
    identity provider."""

    sign_ins: SignIns
    open_id: OpenId
    clock: Clock
    guard: Guard
    assets: Assets

    async def answer(self, request: Request) -> Response:
        """Show the forms, or sign in. Each sign-in makes a new session with a new key, whatever cookie the browser had
        before."""
        if request.method != "POST":
            return await self._page(request, _query(request))
        fields = QueryParams()
        try:
            fields = await self.guard.fields(request, self.guard.cookie(request, BEFORE), SMALL_LIMIT)
            key = await self._sign_in(request, fields)
        except Refused as error:
            return await self._page(request, fields, error)
        return self._signed_in(request, key, fields.get("next", ""))

    async def leave(self, request: Request) -> Response:
        """Lead the browser to an identity provider. This is a link, not a form, because `form-action 'self'` also
        applies to the redirects of forms."""
        query = _query(request)
        started = Started.new(request.path_params["provider"], local_path(query.get("next", "")), self.clock())
        try:
            self._check_private(request)
            to = await self.sign_ins.leave(started, self.guard.browser(request))
        except Refused as error:
            return await self._page(request, query, error)
        response = RedirectResponse(to, 303, HEADERS)
        self.guard.set_cookie(request, response, PROVIDER, started.text(), STARTED_S)
        return response

    async def come_back(self, request: Request) -> Response:
        """Finish a sign-in through an identity provider. Only the browser that has left for the provider
        has the cookie, so another site cannot sign a person in to an account of the attacker."""
        started = Started.read(self.guard.cookie(request, PROVIDER), self.clock())
        fields = QueryParams({"next": started.next_path if started else ""})
        try:
            if started is None or started.provider != request.path_params["provider"]:
                raise Forbidden(EXPIRED)
            self._check_private(request)
            key = await self.sign_ins.by_identity(started, _query(request), self.guard.browser(request))
        except Refused as error:
            return await self._page(request, fields, error)
        response = self._signed_in(request, key, started.next_path)
        self.guard.set_cookie(request, response, PROVIDER, "")
        return response

    def _check_private(self, request: Request) -> None:
        if not self.guard.is_private(request):
            raise Forbidden(PROVIDER_IN_CLEAR)

    def _signed_in(self, request: Request, key: str, next_path: str) -> Response:
        response = RedirectResponse(local_path(next_path), 303, HEADERS)
        self.guard.set_cookie(request, response, SESSION, key)
        self.guard.set_cookie(request, response, BEFORE, "")
        return response

    async def _sign_in(self, request: Request, fields: QueryParams) -> str:
        browser = self.guard.browser(request)
        if "token" in fields:
            return await self.sign_ins.by_token(fields["token"], browser)
        if not self.guard.is_private(request):
            raise Forbidden(IN_CLEAR)
        name, password, code = (fields.get(each, "") for each in ("name", "password", "code"))
        return await self.sign_ins.by_password(name, password, code, browser)

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
            "providers": self.open_id.titles(),
        }
        octets = await self.assets.render("sign_in.html", variables)
        response = Response(octets, 200 if error is None else error.status, HEADERS, media_type="text/html")
        self.guard.set_cookie(request, response, BEFORE, key)
        return response


def _query(request: Request) -> QueryParams:
    return QueryParams(request.scope["query_string"].decode("latin-1"))
