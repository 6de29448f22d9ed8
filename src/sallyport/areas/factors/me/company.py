"""The sign-in at the company's identity provider as a proof at /me.

    GET /me/openid          leads to the identity provider of the person's domain
    GET /me/openid/DOMAIN   the browser is back: the redirect URI is below /mfa, and leads here (`openid.page`)

The browser leaves by a link and not by a form, and a GET takes the proof, as for step-ups.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from sallyport.areas.factors.me.service import OwnFactors
from sallyport.areas.factors.me.session import PersonSession
from sallyport.areas.factors.openid.service import AT_ME
from sallyport.web.people.site import PeoplePage
from sallyport.web.people.visit import PeopleVisit

Answer: TypeAlias = PeoplePage | Response
Step: TypeAlias = Callable[[PeopleVisit, PersonSession], Awaitable[Answer]]
Do: TypeAlias = Callable[[PeopleVisit, Step], Awaitable[Answer]]
"""A function that does a step of the sign-in of a browser, and shows its errors."""


class CompanyProof:
    """The two routes. factors: the factors of signed-in people."""

    def __init__(self, factors: OwnFactors, do: Do) -> None:
        self._factors = factors
        self._do = do

    def routes(self, route: Callable[..., BaseRoute]) -> list[BaseRoute]:
        """Return the routes. route: makes a route of a path and a function that answers a GET."""
        return [route(AT_ME, self.leave), route(f"{AT_ME}/{{domain}}", self.come_back)]

    async def leave(self, visit: PeopleVisit) -> Answer:
        """Lead the browser to the identity provider."""

        async def step(visit: PeopleVisit, session: PersonSession) -> Response:
            return RedirectResponse(await self._factors.company_address(session, visit.browser), 303)

        return await self._do(visit, step)

    async def come_back(self, visit: PeopleVisit) -> Answer:
        """Take the proof."""

        async def step(visit: PeopleVisit, session: PersonSession) -> Response:
            await self._factors.prove_by_company(session, visit)
            return RedirectResponse("/me", 303)

        return await self._do(visit, step)
