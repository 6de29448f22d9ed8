"""Find out for previews which users are enrolled for a second factor, without prompting them."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import trio

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.login import Reason
from sallyport.areas.login.second.forecast import Enrolments, Standing, standing
from sallyport.areas.login.second.prompts import UserKey
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.provider import Strength
from sallyport.areas.mfa.service import Providers
from sallyport.areas.policy.rules.rule import MFA_REQUIRED, UNMATCHED, Action, Rule
from sallyport.base.errors import StoreError

ASK_S: Final = 5.0
AT_ONCE: Final = 2  # the provider's other connections are left for live logins
MAX_ASKED: Final = 50
SURVEY_S: Final = 10.0
"""Time limit of one survey request, in seconds. The next request continues the survey."""
REST_S: Final = 60.0
"""Minimum time between two previews of a domain that ask the provider, in seconds. The pause leaves most of the
provider's rate limit to logins."""
MAX_SINGLE: Final = 10
OWN: Final = frozenset({"totp"})
"""Providers that use only this service's own store. Their look-ups are limited in time, but not in number."""
LookUp = Callable[[Attached, int, UserKey, str], Awaitable[object]]
"""A function that looks up the enrolment of a user, and caches it."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a login rule demands. provider: the name of the MFA provider, or empty for the default one of the domain.
    strength: the minimum strength of the second factor."""

    action: Action
    provider: str = ""
    strength: Strength = Strength.ANY

    @classmethod
    def of(cls, rule: Rule | None) -> "Demand":
        """Return the demand of a rule, or that of a login that no rule matches."""
        if rule is None:
            return NO_RULE
        return cls(rule.action, rule.definition.provider, rule.definition.strength)

    @property
    def asks(self) -> bool:
        """Whether a second factor is asked for."""
        return self.action is MFA_REQUIRED


NO_RULE: Final = Demand(UNMATCHED)
Standings = Mapping[str, Standing]
"""Whether a domain can ask for a second factor now, by the name of the provider. The name of the default provider is
empty."""


class SecondFactors:
    """The second factors of all domains, as previews need them."""

    def __init__(self, providers: Providers, enrolments: Enrolments) -> None:
        self._providers = providers
        self._enrolments = enrolments
        self._asked_at: dict[tuple[int, str], float] = {}  # by domain and provider
        self._singles: dict[tuple[int, str], deque[float]] = {}

    def of(self, domain: Domain, provider: str = "") -> Standing:
        """Return whether a domain can ask for a second factor now. provider: the name of the provider; empty for the
        default one."""
        return standing(self._providers.of(domain.id, provider))

    def standings(self, domain: Domain, rules: Iterable[Rule]) -> Standings:
        """Return whether a domain can ask for a second factor now, for the default provider and for each that the rules
        name."""
        return {name: self.of(domain, name) for name in {"", *(rule.definition.provider for rule in rules)}}

    def known(self, domain: Domain, second: Standing, key: str, strength: Strength = Strength.ANY) -> Reason | None:
        """Return the cached enrolment of a user, or None if it is unknown. key: the case-folded name. strength: the
        minimum strength of the second factor."""
        attached = second.attached
        return None if attached is None else self._enrolments.known(attached, (domain.id, key), strength)

    def is_open(self, domain: Domain, second: Standing, key: str) -> bool:
        """Return whether a survey must still ask about a user. This is the case if the provider has not answered yet.
        key: the case-folded name."""
        return self.known(domain, second, key) in (None, Reason.UNREACHABLE, Reason.RATE_LIMITED)

    def forget(self, domain: Domain) -> None:
        """Remove the cached enrolments of a domain, so that a survey asks about all users again."""
        self._enrolments.forget(domain.id, None)

    async def survey(self, domain: Domain, second: Standing, names: Sequence[tuple[str, str]]) -> int:
        """Ask the provider about users in the given order, for at most SURVEY_S seconds. Return the number of answers.

        names: pairs of a case-folded name and the name that a client has sent. The provider's rate limit is kept.
        """
        answered = 0

        async def look_up(attached: Attached, tenant_id: int, user: UserKey, name: str) -> None:
            nonlocal answered
            has_answered = await self._enrolments.survey(attached, tenant_id, user, name)
            answered += has_answered  # `answered` is read after the await, in which the other task may change it

        await self._look_up(domain, second, names, look_up, SURVEY_S)
        return answered

    def question_limit(self, domain: Domain, second: Standing) -> int:
        """Return how many users the provider may be asked about now."""
        if second.attached is None or second.away is not Reason.NONE:
            return 0
        if second.attached.name in OWN:
            return 1_000_000
        asked_at = self._asked_at.get((domain.id, second.attached.name), -REST_S)
        return 0 if trio.current_time() - asked_at < REST_S else MAX_ASKED

    async def enrolment_of(
        self, domain: Domain, second: Standing, key: str, name: str, strength: Strength = Strength.ANY
    ) -> Reason:
        """Return the enrolment of one user. Return ENROLMENT_UNKNOWN if the provider does not answer in time. Also
        return it if the provider was already asked about MAX_SINGLE users of the domain within the last minute.
        strength: the minimum strength of the second factor."""
        known = self.known(domain, second, key, strength)
        if known is not None or second.attached is None or second.away is not Reason.NONE:
            return known or Reason.ENROLMENT_UNKNOWN
        place = domain.id, second.attached.name
        lately = self._singles.setdefault(place, deque(maxlen=MAX_SINGLE))
        now = trio.current_time()
        if second.attached.name not in OWN and len(lately) == MAX_SINGLE and lately[0] > now - REST_S:
            return Reason.ENROLMENT_UNKNOWN
        lately.append(now)
        with trio.move_on_after(ASK_S), suppress(StoreError):
            user = (domain.id, key)
            return await self._enrolments.find_out(second.attached, domain.tenant_id, user, name, strength)
        return Reason.ENROLMENT_UNKNOWN

    async def ask(self, domain: Domain, second: Standing, names: Sequence[tuple[str, str]]) -> None:
        """Ask the provider about users in the given order, for at most ASK_S seconds. The answers are cached.

        names: pairs of a case-folded name and the name that a client has sent.
        """
        if second.attached is not None and names:
            self._asked_at[domain.id, second.attached.name] = trio.current_time()
        await self._look_up(domain, second, names, self._enrolments.find_out, ASK_S)

    async def _look_up(
        self, domain: Domain, second: Standing, names: Sequence[tuple[str, str]], look_up: LookUp, seconds: float
    ) -> None:
        """Look up users, AT_ONCE at a time, for at most `seconds`. If the store fails or the provider's circuit opens,
        the remaining users are not looked up."""
        left = iter(names)

        async def ask_in_turn(attached: Attached) -> None:
            for key, name in left:
                try:
                    await look_up(attached, domain.tenant_id, (domain.id, key), name)
                except StoreError:
                    return
                await trio.lowlevel.checkpoint()
                if attached.provider.is_open:
                    return

        if second.attached is None:
            return
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(ask_in_turn, second.attached)
