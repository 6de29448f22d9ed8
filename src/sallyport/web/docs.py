"""The API page `/docs`. Swagger UI shows the document of /openapi.json. It can send requests with a token that the
reader enters.

The files come from the installed package `swagger-ui-bundle-v2`, so that the page needs no other host.

The style sheet of the package has its icons in `data:` URLs, which the policy of the page refuses. So the service sends
the icons as files, and replaces these URLs.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute
from swagger_ui_bundle import swagger_ui_path

from sallyport.web.handling import Handler, TemplateRoute

SELF_ONLY: Final = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
"""The Content-Security-Policy of pages whose scripts and styles are files of this service. The console has it too."""
POLICY: Final = {
    "content-security-policy": SELF_ONLY,
    "x-content-type-options": "nosniff",
}
_FILES: Final = ("swagger-ui-bundle.js", "favicon-32x32.png")
_STYLE: Final = "swagger-ui.css"
_ICON: Final = re.compile(r'url\("data:image/svg\+xml;charset=utf-8,(.*?</svg>)"\)')
_START: Final = """\
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  validatorUrl: null,
});
"""
_OWN_STYLE: Final = (
    "body > header { padding: 12px 20px; border-bottom: 1px solid #d9dee3; font: 14px system-ui, sans-serif; }\n"
    "body > header a { color: #14558f; }\n"
    "@media (prefers-color-scheme: dark) { html { background: #fff; filter: invert(0.9) hue-rotate(180deg); } }\n"
)
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sallyport API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
<link rel="icon" href="docs/favicon-32x32.png">
</head>
<body>
<noscript>This page needs JavaScript. The same description is in <a href="openapi.json">openapi.json</a>.</noscript>
<header><a href="./">Back to the console</a></header>
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""


def routes() -> Sequence[BaseRoute]:
    """Return the routes of the page and of its files."""
    folder: Path = swagger_ui_path

    def text(content: str, kind: str) -> Handler:
        async def answer(request: Request) -> Response:
            return Response(content, media_type=kind, headers=POLICY)

        return answer

    async def file(request: Request) -> Response:
        return FileResponse(folder / request.scope["path"].rpartition("/")[2], headers=POLICY)

    style, icons = _without_data((folder / _STYLE).read_text())
    return [
        TemplateRoute("/docs", text(_PAGE, "text/html")),
        TemplateRoute(f"/docs/{_STYLE}", text(style, "text/css")),
        *(TemplateRoute(f"/docs/icon-{number}.svg", text(each, "image/svg+xml")) for number, each in enumerate(icons)),
        TemplateRoute("/docs/start.js", text(_START, "text/javascript")),
        TemplateRoute("/docs/page.css", text(_OWN_STYLE, "text/css")),
        *(TemplateRoute(f"/docs/{name}", file) for name in _FILES),
    ]


def _without_data(style: str) -> tuple[str, list[str]]:
    """Return a style sheet in which each icon has an address of its own, and the icons as SVG. The number of an icon in
    its address is its place in the list."""
    icons = [unquote(each.replace('\\"', '"')) for each in _ICON.findall(style)]
    numbers = iter(range(len(icons)))
    return _ICON.sub(lambda _: f"url(icon-{next(numbers)}.svg)", style), icons
