"""Decide recorded logins again. The result lists the users and devices that enforce mode would challenge or deny,
together with the reasons."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol

import trio

from sallyport.areas.domains.bodies import Counts, DeviceImpact, Impact, RoleImpact, RuleImpact, Survey, UserImpact
from sallyport.areas.domains.domain import WEB, Domain, Effect, Fallback, Mode
from sallyport.areas.domains.enforcement import DEFAULT_DAYS
from sallyport.areas.domains.service import Domains
from sallyport.areas.login.decision import action_in, decide
from sallyport.areas.login.login import Decision, Reason, Verdict
from sallyport.areas.policy.rules.rule import UNMATCHED, Given, Rule
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.preview.enrolled import Demand, SecondFactors, Standings
from sallyport.areas.preview.tally import SEVERITY, TimeSlice, Worst
from sallyport.areas.preview.traffic import Traffic, TrafficReader, User, gives_up_early
from sallyport.base.clock import SECOND, Clock, iso
from sallyport.radius.password import TYPED
from sallyport.store.snapshot import Configuration

DAY: Final = 86_400 * SECOND
AT_ONCE: Final = 2
MAX_SURVEYED: Final = 10_000
"""Maximum number of users in one survey request. The next request continues the survey."""
GETS_LINK: Final = f"{Reason.NOT_ENROLLED.value}: the challenge shows an enrolment link"
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
            rules = (
                self._rules.all_of(domain.id)
                if proposed is None
                else await self._rules.with_proposed(domain.id, proposed.ruleId, proposed)
            )
            second = self._second.standings(domain, rules)
            traffic = await self._traffic.read(domain, rules, second, since, until, pairs)
            await self._ask(domain, second, traffic)
            second = self._second.standings(domain, rules)  # a look-up may have shown that a provider is unreachable
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
        """Ask the providers about users of recent logins, for some seconds. Raises StoreError if the survey would take
        too long.

        The next call continues the survey. again: whether to ask also about users whose enrolment is known.
        """
        domain = self._domains.table.present(domain_id)
        if again:
            self._second.forget(domain)
        async with self._limit:
            until, time_slice = self._clock() + 1, TimeSlice()
            rules = self._rules.all_of(domain.id)
            second = self._second.standings(domain, rules)
            traffic = await self._traffic.read(domain, rules, second, until - 1 - days * DAY, until)
            total, left, asked = 0, 0, {name: Worst[tuple[str, str]](MAX_SURVEYED) for name in second}
            for key, user in traffic.users.items():
                wanted = _providers_needed(user)
                total += bool(wanted)
                for name in wanted:
                    if self._second.is_open(domain, second[name], key):
                        left += 1
                        asked[name].add(Effect.UNKNOWN, user.logins, (key, user.name))
                await time_slice()
            del traffic

        async def ask(name: str) -> None:
            nonlocal left
            answered = await self._second.survey(domain, second[name], asked[name].kept())
            left -= answered  # `left` is read after the await, in which another task may change it

        await _each(ask, second)
        return Survey(users=total, left=left)

    # --- their outcomes --------------------------------------------------------------------------------------

    async def _ask(self, domain: Domain, second: Standings, traffic: Traffic) -> None:
        """Ask the providers about users whose enrolment is unknown. Ask about the users with the most logins first."""
        limits = {name: self._second.question_limit(domain, each) for name, each in second.items()}
        unknown = {name: Worst[tuple[str, str]](number) for name, number in limits.items() if number}
        if not unknown:
            return
        time_slice = TimeSlice()
        for key, user in traffic.users.items():
            for name in _providers_needed(user):
                if name in unknown and self._second.known(domain, second[name], key) is None:
                    unknown[name].add(Effect.UNKNOWN, user.logins, (key, user.name))
            await time_slice()

        async def ask(name: str) -> None:
            await self._second.ask(domain, second[name], unknown[name].kept())

        await _each(ask, unknown)

    async def _users(self, terms: "_Terms", traffic: Traffic) -> tuple[Worst[UserImpact], int]:
        """Return the users with the worst outcomes, and the number of users that enforce mode would deny. The users are
        removed from `traffic`, to free memory."""
        worst, denied, time_slice = Worst[UserImpact](), 0, TimeSlice()
        while traffic.users:
            key, user = traffic.users.popitem()
            first = Reason.NONE if user.exists else Reason.UNKNOWN_USER
            decided = list[tuple[Effect, str]]()
            for demand, gives_up, method in user.variants:
                second = terms.second[demand.provider]
                known = self._second.known(terms.domain, second, key, demand.strength)
                enrolment = known or Reason.ENROLMENT_UNKNOWN
                decided.append(terms.decide(first, demand, enrolment, gives_up=gives_up, method=method))
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


def _providers_needed(user: User) -> set[str]:
    """Return the names of the providers that a user's logins ask; empty if they need no second factor."""
    return {demand.provider for demand, *_ in user.variants if demand.asks} if user.exists else set()


async def _each(ask: Callable[[str], Awaitable[None]], names: Iterable[str]) -> None:
    """Ask several providers at the same time."""
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(ask, name)


class _Terms:
    """The conditions under which recorded logins are decided again."""

    def __init__(self, domain: Domain, fallback: Fallback, second: Standings) -> None:
        self.domain = domain
        self.fallback = Fallback.DENY if domain.first_factor is WEB else fallback
        self.second = second

    def decide(
        self, first: Reason, demand: Demand, enrolment: Reason, *, gives_up: bool, method: str
    ) -> tuple[Effect, str]:
        """Return the outcome of a login in enforce mode, and the reason for it. The parameters are those of
        `Standing.comes_to`."""
        standing = self.second[demand.provider]
        second = standing.comes_to(enrolment, gives_up=gives_up, method=method, strength=demand.strength)
        decision = decide(first, action_in(self.domain, demand.action), second, Mode.ENFORCE, self.fallback)
        is_helped = decision.reason is Reason.NOT_ENROLLED and method in TYPED and standing.shows_links
        return effect_of(decision), GETS_LINK if is_helped else decision.reason.value


async def _devices(terms: _Terms, traffic: Traffic, now: int) -> tuple[Worst[DeviceImpact], int]:
    """Return the devices with the worst outcomes. Also return how many devices have logins that enforce mode would
    deny.

    Here each user counts as enrolled, because the list of users already shows missing enrolments. now: the time in
    microseconds.
    """
    worst, denied, time_slice = Worst[DeviceImpact](), 0, TimeSlice()
    for device_id, demands in traffic.demands.items():
        seen = traffic.seen[device_id]
        gives_up = {name: gives_up_early(each, seen, now) for name, each in terms.second.items()}
        decided = (
            terms.decide(Reason.NONE, demand, Reason.ASKED, gives_up=gives_up[demand.provider], method=method)
            for demand, method in demands
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
