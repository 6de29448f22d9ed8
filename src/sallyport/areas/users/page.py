"""The page behind the link of an enrolment. It shows the QR code of the new seed, and a field for the first code.

Besides the seed, the page shows only the names of the user and the domain. The link can be opened several times. After
a correct code or the fifth wrong code, the link is no longer valid.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from markupsafe import Markup
from starlette.routing import BaseRoute

from sallyport.areas.users.totp import OneTimeSeeds
from sallyport.base.errors import Invalid, NotFound
from sallyport.web.link_page import LinkPage, link_route, templates

PATH = "/enrol/"

_LINK = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_GONE = LinkPage(
    "This link is not valid",
    "The link has expired, was used already, or is incomplete. Ask your administrator for a new one.",
    404,
)
_DONE = LinkPage("Done", "Your app is set up. Use its codes when you log in. You can close this page.")


def routes(seeds: OneTimeSeeds) -> list[BaseRoute]:
    """Return the routes of the page."""
    page = _EnrolmentPage(seeds)
    return [link_route(f"{PATH}{{token}}", show=page.show, submit=page.submit)]


class _EnrolmentPage:
    def __init__(self, seeds: OneTimeSeeds) -> None:
        self._seeds = seeds
        self._form = templates(Path(__file__).parent / "templates").get_template("enrolment_link.html")

    async def show(self, link: str) -> LinkPage:
        return await self._opened(link)

    async def submit(self, link: str, fields: Mapping[str, str]) -> LinkPage:
        if not _LINK.fullmatch(link):
            return _GONE
        try:
            checked = await self._seeds.confirm_link(link, fields.get("code", ""))
        except NotFound:
            return _GONE
        except Invalid:
            return await self._opened(link, "A code is six digits.")
        return _DONE if checked.right else await self._opened(link, f"This code is wrong{checked.hint}.")

    async def _opened(self, link: str, wrong: str = "") -> LinkPage:
        """Return the page of a pending enrolment, or the page for an invalid link. wrong: a message about the code that
        the user has typed, or empty."""
        waiting = await self._seeds.behind(link) if _LINK.fullmatch(link) else None
        if waiting is None:
            return _GONE
        form = self._form.render(
            waiting=waiting,
            domain=self._seeds.issuer(waiting.user.domain_id),
            image=await self._seeds.image(waiting),
            seed=" ".join(re.findall(".{1,4}", waiting.seed)),
            wrong=wrong,
        )
        return LinkPage("Set up one-time codes", Markup(form), 400 if wrong else 200)  # noqa: S704  the template escapes
