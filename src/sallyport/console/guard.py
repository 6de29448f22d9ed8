"""Cookies and form tokens, and what a request must prove before it may change something.

A form token is an HMAC under the key in a cookie that scripts cannot read. It belongs to one session, and a new session
has other tokens. The form of the sign-in has no session yet, so it uses a key of its own in a cookie of its own.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from sallyport.areas.signin.sessions import Browser
from sallyport.base.errors import Forbidden, Invalid
from sallyport.web import content
from sallyport.web.docs import SELF_ONLY

SESSION: Final = "sallyport"
BEFORE: Final = "sallyport_form"
"""The cookie with the key of the sign-in form's token."""
PROVIDER: Final = "sallyport_provider"
"""The cookie of a sign-in that has begun at an identity provider."""
NOTICE: Final = "sallyport_notice"
"""The cookie with the notice that the next page shows."""
TOKEN: Final = "csrf"  # noqa: S105  the name of a field
FORM: Final = "application/x-www-form-urlencoded"
FORM_LIMIT: Final = 256 << 10
SMALL_LIMIT: Final = 4 << 10
"""Maximum size of a form without a session, in octets."""
_FIELDS: Final = 2000
_OUTDATED: Final = "this form has expired: send it again"
HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "content-security-policy": SELF_ONLY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}
"""The headers of every page. With the policy `no-referrer`, browsers would send forms with `Origin: null`."""


class Guard:
    """The checks of requests. public_url: the base URL of the service for browsers; empty if it is not configured."""

    def __init__(self, public_url: str) -> None:
        self._public = urlsplit(public_url)

    # --- cookies ----------------------------------------------------------------------------------------------

    def is_secure(self, request: Request) -> bool:
        """Return whether the browser uses TLS: to this service, or to the proxy of `public_url`."""
        host = content.headers_of(request).get("host", "")
        behind_proxy = self._public.scheme == "https" and host == self._public.netloc
        return request.scope["scheme"] == "https" or behind_proxy

    def cookie(self, request: Request, name: str) -> str:
        """Return the value of a cookie of this service; empty if the browser has sent none."""
        return request.cookies.get(self._name(request, name), "")

    def set_cookie(self, request: Request, response: Response, name: str, value: str, for_s: int | None = None) -> None:
        """Set a cookie. An empty value deletes the cookie. for_s: the time in seconds until the browser drops it; None
        until the browser ends."""
        response.set_cookie(
            self._name(request, name),
            value,
            max_age=for_s if value else 0,
            path="/",
            secure=self.is_secure(request),
            httponly=True,
            samesite="lax",
        )

    def _name(self, request: Request, name: str) -> str:
        """Return the name of a cookie. Browsers accept the prefix only from this host, and only over TLS."""
        return f"__Host-{name}" if self.is_secure(request) else name

    def notice(self, request: Request) -> str:
        """Return the notice for this page. The browser keeps it, so it is no more trusted than an address."""
        return unquote(self.cookie(request, NOTICE))[:300]

    def set_notice(self, request: Request, response: Response, text: str) -> None:
        """Set the notice for the next page."""
        self.set_cookie(request, response, NOTICE, quote(text[:300]))

    # --- what a request must prove ----------------------------------------------------------------------------

    def browser(self, request: Request) -> Browser:
        """Return the sender of a request."""
        return Browser(source(request), content.headers_of(request).get("user-agent", ""))

    def is_private(self, request: Request) -> bool:
        """Return whether a password may be sent: over TLS, through a trusted proxy with TLS, or on this machine.

        The client of a request through a trusted proxy has no port (see `web.connection`).
        """
        if request.scope["scheme"] == "https" or self.browser(request).is_local:
            return True
        through_proxy = request.client is not None and request.client.port == 0
        return through_proxy and self._public.scheme == "https"

    async def fields(self, request: Request, key: str, limit: int = FORM_LIMIT) -> QueryParams:
        """Return the fields of a form whose token belongs to a key. Raises Forbidden if another site has sent the form,
        or if its token is not right. Raises Invalid."""
        self.check_origin(request)
        octets = await content.read(request, kind=FORM, limit=limit)
        if octets.count(b"&") >= _FIELDS:
            raise Invalid("the form has too many fields")
        try:
            fields = QueryParams(octets.decode("ascii"))
        except ValueError:
            raise Invalid("invalid form") from None
        check_token(fields.get(TOKEN, ""), key)
        return fields

    def check_origin(self, request: Request) -> None:
        """Check that a form comes from a page of this service. Raises Forbidden."""
        headers = content.headers_of(request)
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            is_own = site in ("same-origin", "none")
        else:
            is_own = origin is None or urlsplit(origin).netloc in (headers.get("host", ""), self._public.netloc or None)
        if not is_own:
            raise Forbidden("another site has sent this form")


def form_token(key: str) -> str:
    """Return the token of forms for the key in a cookie."""
    return hmac.digest(key.encode(), b"form", "sha256").hex()


def check_token(token: str, key: str) -> None:
    """Check the token of a form. Raises Forbidden if it does not belong to the key in the cookie."""
    if not key or not hmac.compare_digest(token.encode(), form_token(key).encode()):
        raise Forbidden(_OUTDATED)


def new_key() -> str:
    """Return a random key for a cookie."""
    return secrets.token_urlsafe(32)


def source(request: Request) -> str:
    """Return the address of the client."""
    return request.client.host if request.client else ""


def local_path(text: str) -> str:
    """Return a path of this service, with its query. Return `/` if the text is anything else, such as the address of
    another host."""
    is_path = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and "\\" not in text
    return text if is_path and len(text) <= 2000 else "/"
