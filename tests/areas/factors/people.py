"""A browser of a person at the site of people, in memory."""

import html
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from starlette.types import ASGIApp

from sallyport.base.clock import SECOND
from sallyport.base.totp import hotp, seed_octets, step_at
from sallyport.service.operations import people
from tests.areas import Areas, SetClock, running_areas
from tests.areas.factors.authenticator import ORIGIN, Authenticator

SETTINGS = {"public_url": ORIGIN, "people_bind": "127.0.0.1:0"}
PASSWORD = "correct horse"
FORM = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}


@asynccontextmanager
async def running_site(directory: Path, clock: SetClock, *, lockout_failures: int = 0) -> AsyncIterator[Areas]:
    """Yield the areas of a service with a site of people, and with the user ann."""
    async with running_areas(directory, clock, lockout_failures=lockout_failures, more=SETTINGS) as areas:
        await areas.add_user(areas.domain, "ann", PASSWORD.encode())
        yield areas


def app_of(areas: Areas) -> ASGIApp:
    """Return the app of the site."""
    return people(areas.app, lambda *_measured: None)


class Browser:
    """A browser, which keeps its cookie. page: the last page."""

    def __init__(self, areas: Areas, source: str = "203.0.113.7") -> None:
        transport = httpx.ASGITransport(app_of(areas), client=(source, 40_000))
        self._client = httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=FORM, follow_redirects=True)
        self._clock = areas.clock
        self.page = ""
        self.status = 0

    async def get(self, path: str = "/me") -> str:
        """Open a page, and return its text."""
        return self._shown(await self._client.get(path))

    async def post(self, path: str = "/me", **fields: str) -> str:
        """Send a form, and return the text of the next page."""
        return self._shown(await self._client.post(path, content=urlencode(fields)))

    async def do(self, wanted: str, **fields: str) -> str:
        """Send a form of /me."""
        return await self.post(do=wanted, **fields)

    async def sign_in(self, user: str = "ann", password: str = PASSWORD, **fields: str) -> str:
        """Send the form of the sign-in."""
        return await self.do("sign-in", user=user, password=password, **fields)

    async def leave(self, path: str) -> str:
        """Open an address that leads to another site. Return where it leads, or an empty text if it shows a page."""
        answer = await self._client.get(path, follow_redirects=False)
        self._shown(answer)
        return answer.headers.get("location", "")

    async def open_link(self, link: str, password: str = PASSWORD) -> str:
        """Open an enrolment link, continue, and type the password."""
        path = link.removeprefix(ORIGIN)
        await self.get(path)
        await self.post(path)
        return await self.post(path, password=password)

    @property
    def secret(self) -> str:
        """The secret in the cookie."""
        (found,) = {str(cookie.value) for cookie in self._client.cookies.jar}
        return found

    def options(self) -> Any:
        """Return the options of a passkey in the last page."""
        found = re.search(r'data-options="([^"]*)"', self.page)
        assert found is not None, self.page
        return json.loads(html.unescape(found[1]))

    async def add_passkey(self, device: Authenticator, name: str = "phone") -> str:
        """Register a passkey."""
        await self.do("add-passkey")
        return await self.do("save-passkey", credential=device.create(self.options()), name=name)

    async def use_passkey(self, device: Authenticator) -> str:
        """Answer the request for a passkey in the last page."""
        return await self.do("passkey", credential=device.get(self.options()))

    async def add_app(self) -> str:
        """Register an authenticator app, and return its seed."""
        await self.do("add-app")
        found = re.search(r"<code>([A-Z2-7 ]+)</code>", self.page)
        assert found is not None, self.page
        seed = found[1].replace(" ", "")
        await self.do("save-app", code=self.code(seed))
        return seed

    def code(self, seed: str) -> str:
        """Return the present code of a seed."""
        return hotp(seed_octets(seed), step_at(self._clock()))

    def _shown(self, answer: httpx.Response) -> str:
        self.page, self.status = answer.text, answer.status_code
        return self.page


def a_minute(areas: Areas) -> None:
    """Let a minute pass, so that the code of an app is another one."""
    areas.clock.now += 60 * SECOND
