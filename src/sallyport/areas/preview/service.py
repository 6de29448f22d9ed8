"""Decide recorded logins again. The result lists the users and devices that enforce mode would challenge or deny,
together with the reasons."""

from collections.abc import Sequence
from typing import Final, Protocol

import trio

from sallyport.areas.domains.bodies import Counts, DeviceImpact, Impact, RoleImpact, RuleImpact, Survey, UserImpact
from sallyport.areas.domains.domain import Domain, Effect, Fallback, Mode
from sallyport.areas.domains.enforcement import DEFAULT_DAYS
from sallyport.areas.domains.service import Domains
from sallyport.areas.login.decision import decide
from sallyport.areas.login.login import Decision, Reason, Verdict
from sallyport.areas.login.second.forecast import Standing
from sallyport.areas.policy.rules.rule import UNMATCHED, Action, Given, Rule
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.preview.enrolled import SecondFactors
from sallyport.areas.preview.tally import SEVERITY, TimeSlice, Worst
from sallyport.areas.preview.traffic import Traffic, TrafficReader, User, gives_up_early
from sallyport.base.clock import SECOND, Clock, iso
from sallyport.store.snapshot import Configuration

DAY: Final = 86_400 * SECOND
AT_ONCE: Final = 2
MOST_SURVEYED: Final = 10_000
"""Maximum number of users in one survey request. The next request continues the survey."""
NO_CHALLENGES: Final = "the device has never answered a challenge"


class Proposed(Given, Protocol):
    """A login rule that is not stored."""

    @property
    def ruleId(self) -> int | None:  # noqa: N802  the interface's spelling
        """Id of the rule that would be changed; None for a new rule."""


class Preview:
    """Previews of the impact of enforce mode."""

    def __init__(
        self,
        traffic: TrafficReader,
        configuration: Configuration,
        domains: Domains,
        rules: LoginRules,
        second: SecondFactors,
        clock: Clock,
    ) -> None:
        self._traffic = traffic
        self._configuration = configuration
        self._domains = domains
        self._rules = rules
        self._second = second
        self._clock = clock
        self._limit = trio.CapacityLimiter(AT_ONCE)  # each may have a million users in memory

    async def impact(
        self,
        domain_id: int,
        *,
        days: int = DEFAULT_DAYS,
        fallback: str | None = None,
        proposed: Proposed | None = None,
        pairs: int = 0,
    ) -> Impact:
        """Return the impact that enforce mode would have had on the logins of the last days. Raises StoreError if the
        preview would take too long.

        If a user no longer exists in the domain, the user is listed as `reject`, `unknown user`, because the user's
        next login will have this result. The user does not count as denied, because enforce mode is not the cause. If a
        device is no longer in the inventory, it is left out, because nothing is known about its next registration.

        fallback: the action to use instead of the fallback action of the domain. proposed: a login rule that is not
        stored. The preview decides as if this rule were added or changed. Raises NotFound; raises Invalid if the rule
        is not valid. pairs: about how many pairs of a user and a device are decided, with the newest logins first; 0
        for all logins.
        """
        async with self._limit:
            domain, version = self._domains.table.present(domain_id), self._configuration.version
            until = self._clock() + 1
            since = until - 1 - days * DAY
            second = self._second.of(domain)
            rules = (
                self._rules.all_of(domain.id)
                if proposed is None
                else self._rules.with_proposed(domain.id, proposed.ruleId, proposed)
            )
            traffic = await self._traffic.read(domain, rules, second, since, until, pairs)
            await self._ask(domain, second, traffic)
            second = self._second.of(domain)  # a look-up may have shown that the provider is unreachable
            terms = _Terms(domain, domain.fallback if fallback is None else Fallback(fallback), second)
            users, denied = await self._users(terms, traffic)
            devices, denied_devices = await _devices(terms, traffic, until)
            return Impact(
                users=users.kept(),
                devices=devices.kept(),
                rules=await self._of_rules(rules, traffic, until),
                counts=Counts(users=users.tally(), devices=devices.tally(), denied=denied + denied_devices),
                logins=traffic.logins,
                since=iso(traffic.since),
                until=iso(until - 1),
                isWhole=traffic.since == since,
                policyVersion=version,
            )

    async def survey(self, domain_id: int, *, days: int = DEFAULT_DAYS, again: bool = False) -> Survey:
        """Ask the provider about users of recent logins, for some seconds. Raises StoreError if the survey would take
        too long.

        The next call continues the survey. again: whether to ask also about users whose enrolment is known.
        """
        domain = self._domains.table.present(domain_id)
        if again:
            self._second.forget(domain)
        async with self._limit:
            until, second, time_slice = self._clock() + 1, self._second.of(domain), TimeSlice()
            rules = self._rules.all_of(domain.id)
            traffic = await self._traffic.read(domain, rules, second, until - 1 - days * DAY, until)
            total, open_, asked = 0, 0, Worst[tuple[str, str]](MOST_SURVEYED)
            for key, user in traffic.users.items():
                if _needs_factor(user):
                    total += 1
                    if self._second.is_open(domain, second, key):
                        open_ += 1
                        asked.add(Effect.UNKNOWN, user.logins, (key, user.name))
                await time_slice()
            del traffic
        answered = await self._second.survey(domain, second, asked.kept())
        return Survey(users=total, left=open_ - answered)

    # --- their outcomes --------------------------------------------------------------------------------------

    async def _ask(self, domain: Domain, second: Standing, traffic: Traffic) -> None:
        """Ask the provider about users whose enrolment is unknown. Ask about the users with the most logins first."""
        number, time_slice = self._second.question_limit(domain, second), TimeSlice()
        if not number:
            return
        unknown: Worst[tuple[str, str]] = Worst(number)
        for key, user in traffic.users.items():
            if _needs_factor(user) and self._second.known(domain, second, key) is None:
                unknown.add(Effect.UNKNOWN, user.logins, (key, user.name))
            await time_slice()
        await self._second.ask(domain, second, unknown.kept())

    async def _users(self, terms: "_Terms", traffic: Traffic) -> tuple[Worst[UserImpact], int]:
        """Return the users with the worst outcomes, and the number of users that enforce mode would deny. The users are
        removed from `traffic`, to free memory."""
        worst, denied, time_slice = Worst[UserImpact](), 0, TimeSlice()
        while traffic.users:
            key, user = traffic.users.popitem()
            enrolment = self._second.known(terms.domain, terms.second, key) or Reason.ENROLMENT_UNKNOWN
            first = Reason.NONE if user.exists else Reason.UNKNOWN_USER
            decided = [
                terms.decide(first, action, terms.second.comes_to(enrolment, gives_up=gives_up, method=method))
                for action, gives_up, method in user.variants
            ]
            effect, reason = max(decided, key=_severity)
            denied += effect is Effect.REJECT and user.exists
            worst.add(
                effect,
                user.logins,
                UserImpact(
                    user=user.name,
                    outcome=effect,
                    reason=reason,
                    logins=user.logins,
                    lastSeen=iso(user.last_at),
                    gone=not user.exists,
                ),
            )
            await time_slice()
        return worst, denied

    async def _of_rules(self, rules: Sequence[Rule], traffic: Traffic, now: int) -> list[RuleImpact]:
        """Return the logins by the rule that decides them, the most logins first. now: the time in microseconds."""
        known, found = {rule.id: rule for rule in rules}, list[RuleImpact]()
        for rule_id, decided in traffic.decided.items():
            rule = None if rule_id is None else known[rule_id]
            limit = 0 if rule is None else rule.definition.max_sessions
            found.append(
                RuleImpact(
                    ruleId=rule_id,
                    name="" if rule is None else rule.name,
                    action=UNMATCHED if rule is None else rule.action,
                    logins=decided.logins,
                    users=len(decided.users),
                    lastSeen=iso(decided.last_at),
                    claimed=decided.claimed,
                    role="" if rule is None else rule.definition.role,
                    roleSets=[
                        RoleImpact(product=product, source=given.source.value, logins=number)
                        for (product, given), number in decided.given.most_common()
                    ],
                    maxSessions=limit,
                    unlimitedDevices=await self._traffic.without_interims(traffic, rule, now) if rule and limit else [],
                )
            )
        return sorted(found, key=lambda each: (-each.logins, each.ruleId or 0))


def _needs_factor(user: User) -> bool:
    return user.exists and any(action is Action.MFA_REQUIRED for action, *_ in user.variants)


class _Terms:
    """The conditions under which recorded logins are decided again."""

    def __init__(self, domain: Domain, fallback: Fallback, second: Standing) -> None:
        self.domain = domain
        self.fallback = fallback
        self.second = second

    def decide(self, first: Reason, action: Action, second: Reason) -> tuple[Effect, str]:
        """Return the outcome of a login in enforce mode, and the reason for it."""
        decision = decide(first, action, second, Mode.ENFORCE, self.fallback)
        return effect_of(decision), decision.reason.value


async def _devices(terms: _Terms, traffic: Traffic, now: int) -> tuple[Worst[DeviceImpact], int]:
    """Return the devices with the worst outcomes. Also return how many devices have logins that enforce mode would
    deny.

    Here each user counts as enrolled, because the list of users already shows missing enrolments. now: the time in
    microseconds.
    """
    worst, denied, time_slice = Worst[DeviceImpact](), 0, TimeSlice()
    for device_id, actions in traffic.actions.items():
        seen = traffic.seen[device_id]
        gives_up = gives_up_early(terms.second, seen, now)
        decided = (
            terms.decide(Reason.NONE, action, terms.second.comes_to(Reason.ASKED, gives_up=gives_up, method=method))
            for action, method in actions
        )
        effect, reason = max(decided, key=_severity)
        if effect is Effect.CHALLENGE and seen.learned.challenge_support(now) == "no":
            reason = NO_CHALLENGES
        denied += effect is Effect.REJECT
        worst.add(
            effect,
            0,
            DeviceImpact(device_id=device_id, device_name=seen.device_name, outcome=effect, reason=reason),
        )
        await time_slice()
    return worst, denied


def effect_of(decision: Decision) -> Effect:
    """Return the outcome of a decision. The outcome is UNKNOWN if it depends on an unknown enrolment."""
    if decision.reason is Reason.ENROLMENT_UNKNOWN and decision.applied is Verdict.CHALLENGE:
        return Effect.UNKNOWN
    return Effect(decision.applied.value)


def _severity(decided: tuple[Effect, str]) -> tuple[int, str]:
    """Return the sort key of an outcome. Equal outcomes are sorted by reason."""
    return SEVERITY[decided[0]], decided[1]
