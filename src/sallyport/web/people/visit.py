"""One request of a person's browser: its form, its cookie, and the check that it comes from a page of this site."""

import re
import secrets
from collections.abc import Hashable, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from sallyport.base.errors import Forbidden, Invalid
from sallyport.web import content
from sallyport.web.connections import counted_address
from sallyport.web.handling import source_of

COOKIE: Final = "__Host-sallyport-people"
"""The cookie of a browser. It belongs to this site alone: the console has other names, and browsers accept the prefix
only over TLS and from this host."""
FORM: Final = "application/x-www-form-urlencoded"
FORM_LIMIT: Final = 16 << 10
"""Maximum size of a form in octets. The response of a passkey has up to 12 KiB."""
MAX_FIELDS: Final = 16
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_OTHER_SITE: Final = "this form was not sent by a page of this service: open the page again"


class PeopleVisit:
    """One request.

    browser: the random secret of the browser. It is empty if a page is shown to a browser without the cookie; a form
    always has one. at: the parameters of the path. query: the parameters of the address. fields: the fields of the
    form; empty if a page is shown. tenant_id: the tenant of the person, or None as long as it is unknown.
    """

    def __init__(self, request: Request, fields: Mapping[str, str] | None = None) -> None:
        self.request = request
        self.at: Mapping[str, str] = request.path_params
        self.query: Mapping[str, str] = request.query_params
        self.fields = fields or {}
        self.tenant_id: int | None = None
        given = request.cookies.get(COOKIE, "")
        known = given if _SECRET.fullmatch(given) else ""
        self._sets_cookie = fields is not None and not known
        self.browser = secrets.token_urlsafe(32) if self._sets_cookie else known

    @property
    def source(self) -> str:
        """The address of the browser: the peer, or the address that a trusted proxy has named. It is `unknown` if the
        proxy has named none."""
        return source_of(self.request)

    @property
    def owner(self) -> Hashable:
        """The owner of the request, for turns: the tenant, or else the address or /64 network."""
        return counted_address(self.source) if self.tenant_id is None else self.tenant_id

    def belongs_to(self, tenant_id: int) -> None:
        """Note the tenant of the request. Call this only after a secret has proved that the request is one of a person:
        the code of an open login, a link, or a session.

        The connection still counts for the limits of its address. Otherwise one person with a login could hold all
        connections, and no other person could open a page.
        """
        self.tenant_id = tenant_id

    def renew(self) -> str:
        """Give the browser another secret, and return it. Call this at each sign-in, so that a secret that another
        person has planted in the browser is worthless."""
        self.browser, self._sets_cookie = secrets.token_urlsafe(32), True
        return self.browser

    def finish(self, response: Response) -> None:
        """Set the cookie if the browser gets a new secret."""
        if self._sets_cookie:
            response.set_cookie(COOKIE, self.browser, path="/", secure=True, httponly=True, samesite="lax")


async def form_of(request: Request, origin: str) -> dict[str, str]:
    """Return the fields of a form. If several fields have the same name, the last one counts.

    origin: the origin of this site. Raises Forbidden if another site has sent the form, or if the browser does not say
    which site has sent it. Raises Invalid, TooLarge, WrongContentType.
    """
    check_origin(request, origin)
    octets = await content.read(request, kind=FORM, limit=FORM_LIMIT)
    try:
        return dict(
            parse_qsl(octets.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace")
        )
    except ValueError:
        raise Invalid("invalid form") from None


def check_origin(request: Request, origin: str) -> None:
    """Check that a page of this site has sent a form. Raises Forbidden.

    Pages send no referrer, so browsers send `Origin: null` with their forms. `Sec-Fetch-Site` tells the site then.
    Browsers without this header must send the origin.
    """
    headers = content.headers_of(request)
    site = headers.get("sec-fetch-site")
    is_own = site in ("same-origin", "none") if site is not None else headers.get("origin") == origin
    if not is_own:
        raise Forbidden(_OTHER_SITE)


def origin_of(url: str) -> str:
    """Return the origin of a URL, as browsers write it (RFC 6454 section 6.1)."""
    parts = urlsplit(url)
    default = {"https": 443, "http": 80}.get(parts.scheme)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    port = "" if parts.port in (None, default) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"
