"""The pages of step-ups."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from sallyport.areas.factors.pages.factor import PageFactor, WrongCode
from sallyport.areas.factors.stepup.service import PATH, StepUps
from sallyport.areas.factors.stepup.stepup import KEPT_US, Shown
from sallyport.areas.mfa.host import StepUpState
from sallyport.areas.mfa.provider import Strength
from sallyport.base.bounded import ExpiringMap
from sallyport.base.clock import Clock, iso_seconds, now_us
from sallyport.base.errors import Refused, TooMany
from sallyport.base.text import counted
from sallyport.web.people.site import PeoplePage, PeopleSite
from sallyport.web.people.visit import PeopleVisit

FOLDER: Final = Path(__file__).parent / "templates"
MAX_FORMS: Final = 50
"""Maximum number of forms that a node accepts for one login."""
_REMEMBERED: Final = 20_000
NOT_VALID: Final = (
    "This code is not valid. It is mistyped, or its login is over, or another browser has opened it. Codes are valid "
    "for two minutes. Type it again, or log in again to get a new one."
)
NO_FACTOR: Final = (
    "You have no second factor that this login accepts. Ask your administrator for an enrolment link or a bypass code."
)
_NOT_OFFERED: Final = "This second factor cannot be used for this login."
_TITLES: Final = {
    StepUpState.OPEN: "Is this your login?",
    StepUpState.PROVEN: "Confirmed",
    StepUpState.USED: "Confirmed",
    StepUpState.DENIED: "Login refused",
    StepUpState.UNBOUND: "Login refused",
    StepUpState.WRONG: "Login refused",
    StepUpState.OVER: "This login is over",
}
_DENIABLE: Final = frozenset({StepUpState.OPEN, StepUpState.PROVEN, StepUpState.USED, StepUpState.OVER})
"""The states in which a person can say that the login is not theirs. Another person knows the password, or the name, in
any case."""
_REPORTED: Final = "Your administrator is told. Somebody knows your password: change it now."
_CONTINUED: Final = f"{_REPORTED} The login has continued already: ask your administrator to end its session."
_CONFIRMED: Final = "Your administrator is told. You have confirmed the login before: ask for the end of its session."
_OVER: Final = "The login is over, and nobody was let in."


Check = Callable[[Shown, PeopleVisit], Awaitable[Strength | Response | None]]
"""A function that checks a proof, see `PageFactor.check`."""


class StepUpPages:
    """The pages `/mfa` and `/mfa/CODE`. factors: the factors that the pages can offer."""

    def __init__(self, stepups: StepUps, factors: Sequence[PageFactor] = (), clock: Clock = now_us) -> None:
        self._stepups = stepups
        self._factors: dict[str, PageFactor] = {each.name: each for each in factors}
        self._clock = clock
        self._forms = ExpiringMap[str, int](_REMEMBERED, KEPT_US)

    def add(self, factor: PageFactor) -> None:
        """Offer another factor."""
        self._factors[factor.name] = factor

    def routes(self, site: PeopleSite) -> list[BaseRoute]:
        """Return the routes of the pages."""
        return [
            site.route(PATH, self.show_form, self.submit, templates=FOLDER),
            site.route(f"{PATH}/{{code}}", self.show_link, self.submit, templates=FOLDER),
        ]

    async def show_form(self, visit: PeopleVisit) -> PeoplePage:
        """Show the form for a code."""
        return _form()

    async def show_link(self, visit: PeopleVisit) -> PeoplePage:
        """Show the button that opens the step-up. The code is not looked up."""
        return PeoplePage("mfa_link.html", "Confirm your login", {"code": visit.at["code"]})

    async def submit(self, visit: PeopleVisit) -> PeoplePage | Response:
        """Open the step-up of a code, and do what the form says: a proof, or "This is not me". Raises TooMany."""
        stepup = await self._stepup(visit)
        if stepup is None:
            return _form(NOT_VALID, 404)
        visit.belongs_to(stepup.tenant_id)
        self._count(stepup)
        wanted = visit.fields.get("do", "")
        if wanted == "deny":
            denied = await self._stepups.deny(stepup.id, visit.browser)
            return _form(NOT_VALID, 404) if denied is None else await self.page(denied, visit, _after_denial(denied))
        if not wanted or stepup.state is not StepUpState.OPEN or stepup.problem:
            return await self.page(stepup, visit)
        return await self._check(stepup, wanted, visit)

    async def _stepup(self, visit: PeopleVisit) -> Shown | None:
        """Return the step-up of a form, or None. The forms of an open page name it by its id, and the browser proves by
        its cookie that it has opened the page."""
        if "login" in visit.fields:
            return await self._stepups.shown(visit.fields["login"], visit.browser)
        return await self._stepups.opened(_code(visit), visit.browser, visit.source)

    def _count(self, stepup: Shown) -> None:
        """Count a form of a step-up. Raises TooMany after MAX_FORMS."""
        now = self._clock()
        sent = self._forms.get(stepup.id, now=now) or 0
        self._forms.put(stepup.id, sent + 1, stepup.tenant_id, now=now)
        if sent >= MAX_FORMS:
            raise TooMany("too many forms were sent for this login: start it again")

    async def _check(self, stepup: Shown, name: str, visit: PeopleVisit) -> PeoplePage | Response:
        """Check a proof, and return the page that follows."""
        factor = self._factors.get(name) if name in stepup.factors else None
        if factor is None:
            return await self.page(stepup, visit, _NOT_OFFERED, 400)

        async def check(stepup: Shown, visit: PeopleVisit) -> Strength | Response | None:
            if factor.is_guessable and not await self._stepups.take_try(stepup.id, visit.browser):
                return None
            return await factor.check(stepup, visit)

        return await self._checked(stepup, factor, visit, check)

    async def resume(self, stepup_id: str, name: str, visit: PeopleVisit, check: Check) -> PeoplePage | Response:
        """Continue with a factor at which a browser has left the page, or comes back to it. check: continues with the
        factor, if the browser has opened the step-up, and the step-up is open. Raises TooMany."""
        stepup = await self._stepups.shown(stepup_id, visit.browser)
        if stepup is None:
            return _form(NOT_VALID, 404)
        visit.belongs_to(stepup.tenant_id)
        self._count(stepup)
        if stepup.state is not StepUpState.OPEN or stepup.problem:
            return await self.page(stepup, visit)
        factor = self._factors.get(name) if name in stepup.factors else None
        if factor is None:
            return await self.page(stepup, visit, _NOT_OFFERED, 400)
        return await self._checked(stepup, factor, visit, check)

    async def _checked(
        self, stepup: Shown, factor: PageFactor, visit: PeopleVisit, check: Check
    ) -> PeoplePage | Response:
        """Check a proof, and return the page that follows, or the response that continues elsewhere."""
        try:
            strength = await check(stepup, visit)
        except WrongCode as error:
            left = await self._stepups.failed(stepup.id, visit.browser)
            return await self._again(stepup, visit, f"{error} {_tries(left)}", error.status)
        except Refused as error:
            return await self._again(stepup, visit, _sentence(str(error)), error.status)
        if strength is None:
            return await self._again(stepup, visit)
        return strength if isinstance(strength, Response) else await self.proved(stepup, factor.name, strength, visit)

    async def proved(self, stepup: Shown, name: str, strength: Strength, visit: PeopleVisit) -> PeoplePage:
        """Accept a proof that a factor has checked, and return the page that follows. name: the name of the factor."""
        proof = await self._stepups.prove(stepup.id, visit.browser, name, strength, visit.source)
        return await self._again(stepup, visit, "" if proof.accepted else proof.text, 200 if proof.accepted else 403)

    async def _again(self, stepup: Shown, visit: PeopleVisit, problem: str = "", status: int = 200) -> PeoplePage:
        """Return the page of a step-up as it is now."""
        now = await self._stepups.shown(stepup.id, visit.browser)
        return _form(NOT_VALID, 404) if now is None else await self.page(now, visit, problem, status)

    async def page(self, stepup: Shown, visit: PeopleVisit, problem: str = "", status: int = 200) -> PeoplePage:
        """Return the page of a step-up. problem: a sentence about the last form, or empty."""
        offers, form_to = list[Mapping[str, object]](), list[str]()
        if stepup.state is StepUpState.OPEN and not stepup.problem:
            for factor in [self._factors[name] for name in stepup.factors if name in self._factors]:
                offer = await self._offer(factor, stepup, visit)
                form_to += [str(offer["form_to"])] if offer.get("form_to") else []
                offers.append(offer)
            problem = problem or ("" if offers else NO_FACTOR)
        is_other_place = stepup.state is StepUpState.OPEN and bool(stepup.problem)
        variables = {
            "stepup": stepup,
            "time": iso_seconds(stepup.opened_at),
            "offers": offers,
            "problem": problem,
            "may_deny": stepup.state in _DENIABLE,
            "code": _code(visit) if is_other_place else "",
        }
        title = "Open this page on the other device" if is_other_place else _TITLES[stepup.state]
        return PeoplePage("mfa.html", title, variables, status, form_to)

    async def _offer(self, factor: PageFactor, stepup: Shown, visit: PeopleVisit) -> Mapping[str, object]:
        try:
            return {"template": factor.template, **await factor.offer(stepup, visit)}
        except Refused as error:
            return {"template": "mfa_unusable.html", "name": factor.name, "reason": _sentence(str(error))}


def _code(visit: PeopleVisit) -> str:
    """Return the code of a form, or of the address of a page."""
    return visit.fields.get("code") or visit.at.get("code", "")


def _form(problem: str = "", status: int = 200) -> PeoplePage:
    return PeoplePage("mfa_form.html", "Confirm your login", {"problem": problem}, status)


def _tries(left: int) -> str:
    if not left:
        return "It was the last try."
    return f"You have {counted(left, 'try', 'tries')} left."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _after_denial(denied: Shown) -> str:
    """Return what the page says after a denial. The page of a login that was refused by it says it anyway."""
    if denied.state is StepUpState.DENIED:
        return ""
    if not denied.is_checked:
        return _CONFIRMED if denied.state is StepUpState.USED else _OVER
    return _CONTINUED if denied.state is StepUpState.USED else _REPORTED
