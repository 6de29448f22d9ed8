"""Templates and static files, which are package data.

Templates are rendered in a worker thread, one at a time, so that a long list does not delay logins. The tenants take
turns.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeVar

import trio
from jinja2 import Environment
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from sallyport.base.fair import FairLimiter
from sallyport.base.mac import as_mac
from sallyport.base.tags import as_texts
from sallyport.base.text import counted
from sallyport.base.totp import qr_code
from sallyport.console import columns
from sallyport.console.labels import FIRST_FACTORS, PROVIDERS, label
from sallyport.web.handling import TemplateRoute
from sallyport.web.link_page import templates

TYPES: Final[Mapping[str, str]] = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "symbols.svg": "image/svg+xml",
}
T = TypeVar("T")
RENDERING: Final = 1
"""Maximum number of templates that are rendered at the same time. With two, logins beside the console took longer, and
so did the pages: all threads share one interpreter lock."""


class Assets:
    """The templates and static files. folders: the folders of the templates of areas."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._environment = _environment(*folders)
        self._turns: FairLimiter[int] = FairLimiter(RENDERING)

    async def render(self, template: str, variables: Mapping[str, object], tenant_id: int = 0) -> bytes:
        """Return a rendered template in UTF-8. tenant_id: the tenant of the request, for the order of rendering; 0 if
        the request has no tenant."""
        return await self.in_turn(tenant_id, partial(self.rendered, template, variables))

    async def in_turn(self, tenant_id: int, work: Callable[[], T]) -> T:
        """Call a function in the worker thread of the templates when it is the tenant's turn."""
        async with self._turns.slot(tenant_id):
            return await trio.to_thread.run_sync(work)

    def rendered(self, template: str, variables: Mapping[str, object]) -> bytes:
        """Return a rendered template in UTF-8. Call this method only in a function for `in_turn`."""
        return self._environment.get_template(template).render(variables).encode(errors="replace")

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the static files."""

        async def static(request: Request) -> Response:
            name = str(request.path_params["name"])
            if name not in TYPES:
                raise HTTPException(404)
            headers = {
                "cache-control": "public, max-age=31536000, immutable",
                "x-content-type-options": "nosniff",
                "cross-origin-resource-policy": "same-origin",
            }
            return Response(_content(name), headers=headers, media_type=TYPES[name])

        return [TemplateRoute("/static/{name}", static)]


def address_of(name: str) -> str:
    """Return the address of a static file. It changes with the content, so browsers may keep the file."""
    return f"/static/{name}?v={hashlib.sha256(_content(name)).hexdigest()[:12]}"


@cache
def _content(name: str) -> bytes:
    return files(__package__).joinpath("static", name).read_bytes()


@cache
def _environment(*folders: Path) -> Environment:
    """Return the templates of the console and of further folders, with their filters and functions."""
    environment = templates(Path(__file__).parent / "templates", *folders)
    environment.filters |= {
        "time": columns.as_time,
        "ago": columns.as_age,
        "clock": columns.as_clock,
        "breakable": columns.breakable,
        "counted": counted,
        "share": columns.as_percent,
        "mac": as_mac,
        "pairs": as_texts,
        "duration": columns.as_duration,
    }
    environment.globals |= {
        "static": address_of,
        "qr": _qr,
        "cell": columns.cell,
        "with_cells": columns.with_cells,
        "class_of": columns.class_of,
        "label": label,
        "first_factors": FIRST_FACTORS,
        "providers": PROVIDERS,
    }
    return environment


def _qr(text: str) -> Markup:
    return Markup(qr_code(text, "element"))  # noqa: S704  segno makes it of squares; the text is not in it
