"""The pages of step-ups in tests, in memory, and the browsers that open them."""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import httpx
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from sallyport.areas.factors.pages.factor import AppFactor, BypassFactor, PageFactor, PasskeyFactor
from sallyport.areas.factors.pages.mfa import StepUpPages
from sallyport.areas.factors.passkeys.passkey import Binding, Person
from sallyport.areas.factors.passkeys.service import Passkeys
from sallyport.areas.factors.stepup.service import StepUps
from sallyport.areas.mfa.provider import Code
from sallyport.web.people.site import PeopleSite
from tests.areas import Areas
from tests.areas.factors.authenticator import Authenticator
from tests.areas.factors.stepups import SITE, STATION, node

SEED = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
BYPASS = "2468-1357"
FORM = {"sec-fetch-site": "same-origin"}
_OPTIONS = re.compile(r'data-options="([^"]*)"')


@dataclass
class Seeds:
    """Everybody has the same seed. spent: the time steps that were used."""

    spent: list[int] = field(default_factory=list)

    async def seed(self, domain_id: int, user: str) -> str | None:
        """Return the seed."""
        return SEED

    async def spend(self, domain_id: int, user: str, step: int) -> bool:
        """Spend a time step."""
        if step in self.spent:
            return False
        self.spent.append(step)
        return True


@dataclass
class Browser:
    """A browser with its cookies."""

    client: httpx.AsyncClient

    async def get(self, path: str) -> httpx.Response:
        """Open an address."""
        return await self.client.get(path)

    async def send(self, **fields: str) -> httpx.Response:
        """Send a form of the page."""
        return await self.client.post("/mfa", data=fields, headers=FORM)


@dataclass
class Site:
    """The site of people with the pages of a node."""

    stepups: StepUps
    passkeys: Passkeys
    pages: StepUpPages
    seeds: Seeds
    measured: list[tuple[str, str, int]]
    more: list[Callable[[PeopleSite], Sequence[BaseRoute]]] = field(default_factory=list)

    def app(self, url: str = SITE) -> ASGIApp:
        """Return the app of the site. url: its public_url."""
        site = PeopleSite(url)

        def observe(method: str, route: str, status: int, seconds: float) -> None:
            self.measured.append((method, route, status))

        return site.app([*self.pages.routes(site), *(route for each in self.more for route in each(site))], observe)

    @asynccontextmanager
    async def browser(self, source: str = STATION) -> AsyncIterator[Browser]:
        """Yield a browser with an address."""
        transport = httpx.ASGITransport(self.app(), client=(source, 40000))
        async with httpx.AsyncClient(transport=transport, base_url=SITE) as client:
            yield Browser(client)


def site_of(areas: Areas, *factors: str, url: str = SITE) -> Site:
    """Return the pages over a store. factors: those that everybody has. url: the public_url of the service."""
    stepups = node(areas, factors=factors or ("passkey", "totp", "bypass"))
    passkeys, seeds, codes = Passkeys(areas.store, url, areas.clock), Seeds(), [BYPASS]

    async def spend(_person: Person, code: Code) -> bool:
        found = [each for each in codes if code.matches(each.replace("-", ""))]
        for each in found:
            codes.remove(each)
        return bool(found)

    offered: list[PageFactor] = [PasskeyFactor(passkeys), AppFactor(seeds, areas.clock), BypassFactor(spend)]
    return Site(stepups, passkeys, StepUpPages(stepups, offered, areas.clock), seeds, [])


async def register(areas: Areas, passkeys: Passkeys, user: str = "ann") -> Authenticator:
    """Register a passkey of a user, and return its authenticator."""
    party = passkeys.party()
    device = Authenticator(host=party.id, origin=party.origin)
    person, here = Person(areas.domain, user), Binding("enrolment", "1")
    options = await passkeys.begin_registration(person, here)
    await passkeys.finish_registration(person, here, device.create(options), "phone")
    return device


def options_of(answer: httpx.Response) -> Mapping[str, Any]:
    """Return the options of the passkey on a page."""
    found = _OPTIONS.search(answer.text)
    assert found, answer.text
    options: Mapping[str, Any] = json.loads(unescape(found[1]))
    return options


def text_of(answer: httpx.Response) -> str:
    """Return the texts of a page in one line."""
    body = answer.text.partition("<body>")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def digits_of(answer: httpx.Response) -> str:
    """Return the digits that a page shows, or an empty text."""
    found = re.search(r'class="digits"[^>]*>(\d+)<', answer.text)
    return found[1] if found else ""
