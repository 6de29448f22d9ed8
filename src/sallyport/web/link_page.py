"""Pages for people without a token. The last part of the link to a page is a secret for a single purpose.

    route = link_route("/enrol/{token}", show=show, submit=submit)

GET shows the page, and POST submits a small form to the same address. A page is one document without scripts or
external resources. It must not be cached, framed or indexed, and sends no referrer. The log and the metrics contain the
route's template, not the secret.
"""

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import Invalid
from sallyport.web import content, problem
from sallyport.web.handling import TemplateRoute, source_of

FORM_LIMIT = 4 << 10
FORM = "application/x-www-form-urlencoded"
_FIELDS = 16

_STYLE = Markup("""
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:26rem;padding:0 1rem;color:#1c2126;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.15rem}img{display:block;margin:1rem auto;max-width:100%;height:auto;background:#fff}
code{font:14px ui-monospace,monospace;overflow-wrap:anywhere}.name{overflow-wrap:anywhere}
label{display:block;font-weight:600}input,button{font:inherit;padding:.5rem .75rem;border-radius:4px}
input{border:1px solid #6b7580;width:9rem;letter-spacing:.15em;color:inherit;background:inherit}
button{border:0;background:#14508c;color:#fff;cursor:pointer}.wrong{border-left:4px solid #b3261e;padding-left:.75rem}
:focus-visible{outline:3px solid #e0a100;outline-offset:2px}
@media(prefers-color-scheme:dark){body{background:#14181c;color:#e4e8ec}a{color:#8ab4f8}}
""")
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}


@dataclass(frozen=True, slots=True)
class LinkPage:
    """A page for people. content: a paragraph of plain text, or HTML from a template."""

    title: str
    content: str | Markup
    status: int = 200


@cache
def templates(*folders: Path) -> Environment:
    """Return the templates of folders. They escape variable text, and refuse unknown variables. A process compiles each
    template once, because that takes up to a tenth of a second."""
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


Show: TypeAlias = Callable[[str], Awaitable[LinkPage]]
"""A function that returns the page of a link: show(secret). It must not change anything, because mail scanners also
open links."""
Submit: TypeAlias = Callable[[str, Mapping[str, str]], Awaitable[LinkPage]]
"""A function that processes a submitted form and returns the next page: submit(secret, fields of the form)."""


def link_route(path: str, *, show: Show, submit: Submit) -> BaseRoute:
    """Return the route of a link. path: the path of the route, which ends in `/{token}`."""
    document = templates(Path(__file__).parent / "templates").get_template("link.html")

    async def answer(request: Request) -> Response:
        secret = str(request.path_params["token"])
        try:
            with acting_as(Actor("public", source_of(request))):  # anybody can send tokens: they wait for their turns
                if request.method == "POST":
                    page = await submit(secret, _fields(await content.read(request, kind=FORM, limit=FORM_LIMIT)))
                else:
                    page = await show(secret)
        except Exception as error:
            page = _refused(error, path)
        html = document.render(title=page.title, content=page.content, style=_STYLE)
        return Response(html, page.status, HEADERS, media_type="text/html")

    return TemplateRoute(path, answer, methods=["GET", "POST"])


def _fields(octets: bytes) -> dict[str, str]:
    """Return the fields of a form. If several fields have the same name, the last field counts. Raises Invalid."""
    try:
        return dict(parse_qsl(octets.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS, errors="replace"))
    except ValueError:
        raise Invalid("invalid form") from None


def _refused(error: Exception, template: str) -> LinkPage:
    """Return an error as a page. The module `problem` determines the status, the text and the log entry."""
    answer = problem.response(error, template)
    message = json.loads(bytes(answer.body))["message"]
    return LinkPage("This did not work", message, answer.status_code)
