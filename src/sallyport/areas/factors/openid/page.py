"""The factor `oidc` on the step-up page, and its two routes.

    GET /mfa/openid/DOMAIN/STEPUP   leads to the identity provider of the domain
    GET /mfa/openid/DOMAIN          the redirect URI: the browser comes back, also for a sign-in at /me

The browser leaves by a link and not by a form, because a form may not be redirected to another site (`form-action`).
The first route changes nothing. The second one is the only GET that changes something, as OpenID Connect demands: its
parameter `state` proves that the browser has left from this page.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from sallyport.areas.factors.openid.service import AT_ME, ME, PATH, CompanySignIns, State
from sallyport.areas.factors.pages.mfa import FOLDER, StepUpPages
from sallyport.areas.factors.stepup.stepup import Shown
from sallyport.areas.mfa.provider import Strength
from sallyport.base.errors import Invalid
from sallyport.web.people.site import PeoplePage, PeopleSite
from sallyport.web.people.visit import PeopleVisit

_NO_FORM: Final = "open the link of the company sign-in"


class SignInFactor:
    """The sign-in with the company's identity provider."""

    name: ClassVar[str] = "oidc"
    template: ClassVar[str] = "mfa_oidc.html"
    is_guessable: ClassVar[bool] = False

    def __init__(self, sign_ins: CompanySignIns, pages: StepUpPages) -> None:
        self._sign_ins = sign_ins
        self._pages = pages

    async def offer(self, stepup: Shown, visit: PeopleVisit) -> Mapping[str, object]:
        """Return the link that leads to the provider."""
        return {"link": f"{PATH}/{stepup.domain_id}/{stepup.id}"}

    async def check(self, stepup: Shown, visit: PeopleVisit) -> Strength:
        """Refuse a form: the proof comes with the redirect of the provider."""
        raise Invalid(_NO_FORM)

    def routes(self, site: PeopleSite) -> Sequence[BaseRoute]:
        """Return the routes of the sign-in."""
        return [
            site.route(f"{PATH}/{{domain}}", self.come_back, templates=FOLDER),
            site.route(f"{PATH}/{{domain}}/{{stepup}}", self.leave, templates=FOLDER),
        ]

    async def leave(self, visit: PeopleVisit) -> PeoplePage | Response:
        """Lead the browser to the identity provider of the domain."""

        async def check(stepup: Shown, visit: PeopleVisit) -> Response:
            return RedirectResponse(await self._sign_ins.address(stepup, visit.browser), 303)

        return await self._pages.resume(visit.at["stepup"], self.name, visit, check)

    async def come_back(self, visit: PeopleVisit) -> PeoplePage | Response:
        """Finish the sign-in, and show the step-up. A reload shows the step-up as it is then."""
        state = State.read(visit.query.get("state", ""))
        if state is not None and state.asking_id.startswith(ME):
            return RedirectResponse(f"{AT_ME}/{visit.at['domain']}?{visit.request.url.query}", 303)

        async def check(stepup: Shown, visit: PeopleVisit) -> Strength:
            return await self._sign_ins.prove(stepup, visit.at["domain"], visit.browser, visit.query, visit.source)

        return await self._pages.resume("" if state is None else state.asking_id, self.name, visit, check)
