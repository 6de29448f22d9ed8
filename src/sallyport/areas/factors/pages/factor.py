"""The factors with which a person proves a login on the page."""

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final, Protocol

from starlette.responses import Response

from sallyport.areas.factors.passkeys.passkey import Binding, Person
from sallyport.areas.factors.passkeys.service import Passkeys
from sallyport.areas.factors.stepup.stepup import Shown
from sallyport.areas.mfa.host import Seeds
from sallyport.areas.mfa.provider import Code, Strength
from sallyport.base.clock import Clock
from sallyport.base.errors import Invalid
from sallyport.base.totp import matching_steps, seed_octets
from sallyport.web.people.visit import PeopleVisit

MAX_CODE: Final = 64
"""Maximum length of a typed code, in characters."""
NO_RESPONSE: Final = "The browser has sent no passkey. Passkeys need JavaScript."
SpendCode = Callable[[Person, Code], Awaitable[bool]]
"""A function that returns whether a bypass code of a person is right, and spends it."""


class WrongCode(Invalid):
    """A typed code is wrong, or was used before."""


class PageFactor(Protocol):
    """A factor that the page offers.

    name: one of `mfa.fields.FACTORS`. template: the part of the page with the form of this factor. The form has the
    fields `do`, with the name of the factor, and `login`, with the id of the step-up. is_guessable: whether each check
    counts as a try, because a code could be guessed.
    """

    name: ClassVar[str]
    template: ClassVar[str]
    is_guessable: ClassVar[bool]

    async def offer(self, stepup: Shown, visit: PeopleVisit) -> Mapping[str, object]:
        """Return the variables of the template. `form_to` is the origin to which the answer of the form may redirect.
        Raises Refused if the factor cannot be used now."""

    async def check(self, stepup: Shown, visit: PeopleVisit) -> Strength | Response | None:
        """Check the submitted form. Return the strength of the proof by itself, a response that continues elsewhere, or
        None to show the page again. Raises WrongCode, or another Refused if the person may try again."""


class PasskeyFactor:
    """Passkeys. The challenge is bound to the browser and to the login."""

    name: ClassVar[str] = "passkey"
    template: ClassVar[str] = "mfa_passkey.html"
    is_guessable: ClassVar[bool] = False

    def __init__(self, passkeys: Passkeys) -> None:
        self._passkeys = passkeys

    async def offer(self, stepup: Shown, visit: PeopleVisit) -> Mapping[str, object]:
        """Return the options for the browser."""
        return {"options": await self._passkeys.begin_assertion(stepup.person, Binding(visit.browser, stepup.id))}

    async def check(self, stepup: Shown, visit: PeopleVisit) -> Strength:
        """Check the response of the browser."""
        response = visit.fields.get("credential", "")
        if not response:
            raise Invalid(NO_RESPONSE)
        await self._passkeys.finish_assertion(stepup.person, Binding(visit.browser, stepup.id), response)
        return Strength.PHISHING_RESISTANT


class AppFactor:
    """The codes of an authenticator app (RFC 6238)."""

    name: ClassVar[str] = "totp"
    template: ClassVar[str] = "mfa_totp.html"
    is_guessable: ClassVar[bool] = True

    def __init__(self, seeds: Seeds, clock: Clock) -> None:
        self._seeds = seeds
        self._clock = clock

    async def offer(self, stepup: Shown, visit: PeopleVisit) -> Mapping[str, object]:
        """Return no variables."""
        return {}

    async def check(self, stepup: Shown, visit: PeopleVisit) -> Strength:
        """Check a code, and spend its time step."""
        code = Code(visit.fields.get("answer", "")[:MAX_CODE])
        seed = await self._seeds.seed(stepup.domain_id, stepup.user)
        steps = [] if seed is None else matching_steps(seed_octets(seed), code.matches, self._clock())
        for step in steps:
            if await self._seeds.spend(stepup.domain_id, stepup.user, step):
                return Strength.TWO_CHANNELS
        if steps:
            raise WrongCode("This code was used before. Wait for the next one.")
        raise WrongCode("This code is wrong.")


class BypassFactor:
    """The bypass codes of an operator."""

    name: ClassVar[str] = "bypass"
    template: ClassVar[str] = "mfa_bypass.html"
    is_guessable: ClassVar[bool] = True

    def __init__(self, spend: SpendCode) -> None:
        self._spend = spend

    async def offer(self, stepup: Shown, visit: PeopleVisit) -> Mapping[str, object]:
        """Return no variables."""
        return {}

    async def check(self, stepup: Shown, visit: PeopleVisit) -> Strength:
        """Check a code, and spend it."""
        code = Code(visit.fields.get("answer", "")[:MAX_CODE])
        if not await self._spend(stepup.person, code):
            raise WrongCode("This code is wrong, was used before, or has expired.")
        return Strength.ANY
