"""The provider for TOTP codes of authenticator apps (RFC 6238). It checks a code with the seed of the endpoint user,
and makes no connections.

The used time step is on disk before the login continues. So an observed code cannot be used again.
"""

from typing import ClassVar, Final

from sallyport.areas.mfa.fields import Fields, TotpFields
from sallyport.areas.mfa.host import Host
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.base.errors import SecretError
from sallyport.base.totp import clock_off, matching_steps, seconds_off, seed_octets

USED: Final = "the code, or a newer one, was used before"


class Totp:
    """The provider for endpoint users with an authenticator app."""

    name: ClassVar[str] = "totp"
    fields: ClassVar[type[Fields]] = TotpFields
    asks_for_codes: ClassVar[bool] = True
    only_codes: ClassVar[bool] = True

    def __init__(self, fields: Fields, host: Host) -> None:
        self._host = host

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user has a confirmed seed."""
        return Enrolment.NOT_ENROLLED if await self._seed(user) is None else Enrolment.ENROLLED

    async def check(self) -> str:
        """Return a text for the admin: there is no server to test."""
        return "codes are checked by this service; no server is asked"

    async def start(self, question: Question) -> Answer:
        """Ask the user for a code."""
        enrolled = await self._seed(question.user) is not None
        return Answer(Outcome.CODE if enrolled else Outcome.NOT_ENROLLED)

    async def poll(self, handle: str) -> Answer:
        """Raise ProviderError. `poll` is never needed, because no answer of this provider is WAITING."""
        raise ProviderError("this provider has no push to wait for, only typed codes")

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a code, and store its time step, so that it cannot be used again. Raises StoreError if the step cannot
        be stored.

        Never show the detail of a wrong code to the user who logs in. It would tell an attacker which guess becomes
        valid later.
        """
        seed = await self._seed(question.user)
        if seed is None:
            return Answer(Outcome.NOT_ENROLLED)
        now = self._host.clock()
        steps = matching_steps(seed, code.matches, now)
        for step in steps:
            if await self._host.seeds.spend(question.domain_id, question.user, step):
                return Answer(Outcome.APPROVED)
        off_s = 0 if steps else seconds_off(seed, code.matches, now)
        other_time = f"the code is right for another time: {clock_off(off_s)}" if off_s else ""
        return Answer(Outcome.WRONG_CODE, detail=USED if steps else other_time)

    async def cancel(self, handle: str) -> None:
        """Do nothing, because there is no prompt."""

    async def aclose(self) -> None:
        """Do nothing, because there are no connections."""

    async def _seed(self, user: str) -> bytes | None:
        try:
            seed = await self._host.seeds.seed(self._host.domain_id, user)
            return None if seed is None else seed_octets(seed)
        except (SecretError, ValueError):
            raise ProviderError("the user's seed cannot be read") from None
