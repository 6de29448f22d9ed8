"""The page behind the link of an enrolment. It shows the QR code of the new seed, and a field for the first code.

Besides the seed, the page shows only the names of the user and the domain. The link can be opened several times. After
a correct code or the fifth wrong code, the link is no longer valid.
"""

import re
from collections.abc import Mapping
from html import escape

from starlette.routing import BaseRoute

from sallyport.areas.users.totp import OneTimeSeeds
from sallyport.areas.users.user import Enrolment
from sallyport.base.errors import Invalid, NotFound
from sallyport.web.page import Page, link_route

PATH = "/enrol/"

_LINK = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_GONE = Page(
    "This link is not valid",
    "<p>The link has expired, was used already, or is incomplete. Ask your administrator for a new one.</p>",
    404,
)
_DONE = Page("Done", "<p>Your app is set up. Use its codes when you log in. You can close this page.</p>")


def routes(seeds: OneTimeSeeds) -> list[BaseRoute]:
    """Return the routes of the page."""
    page = _EnrolmentPage(seeds)
    return [link_route(f"{PATH}{{token}}", show=page.show, submit=page.submit)]


class _EnrolmentPage:
    def __init__(self, seeds: OneTimeSeeds) -> None:
        self._seeds = seeds

    async def show(self, link: str) -> Page:
        return await self._opened(link)

    async def submit(self, link: str, fields: Mapping[str, str]) -> Page:
        if not _LINK.fullmatch(link):
            return _GONE
        try:
            checked = await self._seeds.confirm_link(link, fields.get("code", ""))
        except NotFound:
            return _GONE
        except Invalid:
            return await self._opened(link, "A code is six digits.")
        return _DONE if checked.right else await self._opened(link, f"This code is wrong{checked.hint}.")

    async def _opened(self, link: str, wrong: str = "") -> Page:
        """Return the page of a pending enrolment, or the page for an invalid link. wrong: a message about the code that
        the user has typed, or empty."""
        waiting = await self._seeds.behind(link) if _LINK.fullmatch(link) else None
        if waiting is None:
            return _GONE
        image = await self._seeds.image(waiting)
        form = _form(waiting, self._seeds.issuer(waiting.user.domain_id), image, wrong)
        return Page("Set up one-time codes", form, 400 if wrong else 200)


def _form(waiting: Enrolment, domain: str, image: str, wrong: str) -> str:
    tries = f"{waiting.tries_left} more {'try' if waiting.tries_left == 1 else 'tries'}"
    refusal = f'<p class="wrong" role="alert">{escape(wrong)} You have {tries}.</p>' if wrong else ""
    seed = " ".join(re.findall(".{1,4}", waiting.seed))
    return (
        f'<p class="name">For <strong>{escape(waiting.user.name)}</strong> at <strong>{escape(domain)}</strong>.</p>'
        f"{refusal}<ol><li>Scan this QR code with your authenticator app, "
        f'or <a href="{escape(waiting.otpauth)}">open it on this device</a>.'
        f'<img alt="QR code of the key below" src="{escape(image)}">'
        f"If you cannot scan it, type this key into the app: <code>{seed}</code></li>"
        "<li>Type the code that the app shows, and press Confirm.</li></ol>"
        '<form method="post"><label for="code">Code</label> <input id="code" name="code" inputmode="numeric" '
        'autocomplete="one-time-code" maxlength="16" required> <button>Confirm</button></form>'
    )
