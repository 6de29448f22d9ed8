"""The page behind the link of a profile, and its files.

The page shows the files for each system, and the settings to type on Android. It needs no sign-in, and contains no
secret. The link cannot be guessed, and it expires, so that nobody else learns the settings of a network.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from sallyport.areas.domains.service import Domains
from sallyport.areas.profiles.android import typed_settings
from sallyport.areas.profiles.files import Kind, files_of
from sallyport.areas.profiles.profile import Profile
from sallyport.areas.profiles.service import NOT_FOUND, Profiles
from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import Conflict, NotFound
from sallyport.web import problem
from sallyport.web.handling import TemplateRoute, source_of
from sallyport.web.link_page import HEADERS, LinkPage, link_route, templates

PATH: Final = "/profile/"
_LINK: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_GONE: Final = LinkPage(
    "This link is not valid", "The link has expired or is incomplete. Ask your administrator for a new one.", 404
)
_NO_FILES: Final = "The files of this network cannot be made at present. Ask your administrator."
"""The text for people with a link. `profile show` names the cause."""
_NOT_READY: Final = LinkPage("This network is not ready", _NO_FILES, 409)


def routes(profiles: Profiles, domains: Domains) -> list[BaseRoute]:
    """Return the routes of the page and of its files."""
    page = _ProfilePage(profiles, domains)
    file_path = f"{PATH}{{token}}/{{file}}"

    async def file(request: Request) -> Response:
        try:
            with acting_as(Actor("public", source_of(request))):
                return await page.file(str(request.path_params["token"]), str(request.path_params["file"]))
        except Exception as error:
            refused = problem.response(error, file_path)
            refused.headers.update(HEADERS)
            return refused

    return [
        link_route(f"{PATH}{{token}}", show=page.show, submit=page.submit),
        TemplateRoute(file_path, file),
    ]


class _ProfilePage:
    def __init__(self, profiles: Profiles, domains: Domains) -> None:
        self._profiles = profiles
        self._domains = domains
        self._list = templates(Path(__file__).parent / "templates").get_template("profile_link.html")

    async def show(self, link: str) -> LinkPage:
        try:
            profile = await self._behind(link)
        except NotFound:
            return _GONE
        domain = self._domains.table.present(profile.domain_id)
        try:
            trust = await self._profiles.trust_of(profile, domain.tenant_id)
        except Conflict:
            return _NOT_READY
        files = [each for each in files_of(profile) if each.kind is not Kind.ANDROID]
        content = self._list.render(
            domain=domain.name,
            link=link,
            profile=profile,
            files=files,
            typed=typed_settings(profile, trust) if profile.ssids else [],
            anchors=trust.anchors,
        )
        return LinkPage(f"Join {profile.name}", Markup(content))  # noqa: S704  the template escapes

    async def submit(self, link: str, _fields: Mapping[str, str]) -> LinkPage:
        return await self.show(link)

    async def file(self, link: str, name: str) -> Response:
        profile = await self._behind(link)
        tenant_id = self._domains.table.present(profile.domain_id).tenant_id
        try:
            made = await self._profiles.made(profile, tenant_id, name)
        except Conflict:
            raise Conflict(_NO_FILES) from None
        # Safari offers to install a configuration profile only if it is not sent as an attachment.
        shown = "inline" if made.file.kind is Kind.APPLE else "attachment"
        headers = {**HEADERS, "content-disposition": f'{shown}; filename="{made.file.file}"'}
        return Response(made.content, headers=headers, media_type=made.file.media_type)

    async def _behind(self, link: str) -> Profile:
        if not _LINK.fullmatch(link):
            raise NotFound(NOT_FOUND)
        return await self._profiles.behind(link)
