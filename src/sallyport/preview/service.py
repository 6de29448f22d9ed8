"""Decide recorded logins again. The result lists the users and devices that enforce mode would challenge or deny,
together with the reasons."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import trio

from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.text import fold
from sallyport.directory.principals import NOBODY, Membership
from sallyport.domains.bodies import Counts, DeviceImpact, Impact, RuleImpact, Survey, UserImpact
from sallyport.domains.domain import Domain, Effect, Fallback, FirstFactor, Mode
from sallyport.domains.enforcement import DEFAULT_DAYS
from sallyport.domains.service import Domains
from sallyport.inventory.clients.client import Client
from sallyport.inventory.devices.device import UNKNOWN
from sallyport.login.decision import decide
from sallyport.login.identity import kept
from sallyport.login.login import NAMELESS, Decision, Reason, Verdict
from sallyport.login.second.forecast import Standing
from sallyport.policy.rules.match import DomainRules, Facts, kind_of
from sallyport.policy.rules.rule import UNMATCHED, Action, Given, Kind, Rule
from sallyport.policy.rules.service import LoginRules
from sallyport.preview import repo
from sallyport.preview.enrolled import SecondFactors
from sallyport.preview.periods import Span, spans_of
from sallyport.preview.repo import Group, KnownDevice, Scopes
from sallyport.preview.tally import SEVERITY, TimeSlice, Worst
from sallyport.radius.password import Method
from sallyport.store.model import Store, Tx
from sallyport.store.snapshot import Configuration

DAY: Final = 86_400 * SECOND
SLICE_EVENTS: Final = 20_000  # events in one search of the store, which takes about 0.3 s; the limit is 10 s
SLICE_SPANS: Final = 500
AT_ONCE: Final = 2
MOST_SURVEYED: Final = 10_000
"""Maximum number of users in one survey request. The next request continues the survey."""
NO_CHALLENGES: Final = "the device has never answered a challenge"


class Proposed(Given, Protocol):
    """A login rule that is not stored."""

    @property
    def ruleId(self) -> int | None:  # noqa: N802  the interface's spelling
        """Id of the rule that would be changed; None for a new rule."""


class _User:
    """The logins of a user.

    variants: the different combinations of three values: the action of the rule, whether the device gives up before the
    user answers, and the authentication method.
    """

    __slots__ = ("exists", "last_at", "logins", "name", "variants")

    def __init__(self) -> None:
        self.name = ""
        self.logins = 0
        self.last_at = -1
        self.exists = False
        self.variants: set[tuple[Action, bool, str]] = set()


class _Decided:
    """The logins that a rule decides. users: the case-folded names of their users."""

    __slots__ = ("last_at", "logins", "users")

    def __init__(self) -> None:
        self.logins = 0
        self.users: set[str] = set()
        self.last_at = 0

    def note(self, group: Group) -> None:
        """Count the logins of a group."""
        self.logins += group.logins
        self.users.add(fold(group.user_name))
        self.last_at = max(self.last_at, group.last_at)


class _Traffic:
    """The recorded logins.

    since: the time from which they were read, in microseconds. users: by case-folded name. devices: by the device ids
    in events. actions: for each device, the combinations of a rule's action and an authentication method; the key is
    the device's current id. seen: the devices by their current id. members: the directory data of users by name, if
    rules compare these data. decided: the logins by the id of the rule that decides them.
    """

    def __init__(self, since: int) -> None:
        self.since = since
        self.users: dict[str, _User] = {}
        self.devices: dict[int, KnownDevice | None] = {}
        self.actions: dict[int, set[tuple[Action, str]]] = {}
        self.seen: dict[int, KnownDevice] = {}
        self.members: dict[str, Membership] = {}
        self.decided: dict[int | None, _Decided] = {}
        self.logins = 0

    def of_rule(self, rule_id: int | None) -> _Decided:
        """Return the logins that a rule decides. rule_id: None for the logins that no rule matches."""
        return self.decided.setdefault(rule_id, _Decided())


class Preview:
    """Previews of the impact of enforce mode.

    find_client: a function that returns the RADIUS client of a source address. It raises ValueError if the text is no
    address.
    """

    def __init__(
        self,
        store: Store,
        configuration: Configuration,
        domains: Domains,
        rules: LoginRules,
        second: SecondFactors,
        find_client: Callable[[str], Client | None],
        clock: Clock,
        *,
        slice_events: int = SLICE_EVENTS,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._domains = domains
        self._rules = rules
        self._second = second
        self._find_client = find_client
        self._clock = clock
        self._slice_events = slice_events
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
            traffic = await self._recorded(domain, rules, second, since, until, pairs)
            await self._ask(domain, second, traffic)
            second = self._second.of(domain)  # a look-up may have shown that the provider is unreachable
            terms = _Terms(domain, domain.fallback if fallback is None else Fallback(fallback), second)
            users, denied = await self._users(terms, traffic)
            devices, denied_devices = await _devices(terms, traffic)
            return Impact(
                users=users.kept(),
                devices=devices.kept(),
                rules=_rules(rules, traffic),
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
            traffic = await self._recorded(domain, rules, second, until - 1 - days * DAY, until)
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

    # --- recorded logins --------------------------------------------------------------------------------------

    async def _recorded(
        self, domain: Domain, own: Sequence[Rule], second: Standing, since: int, until: int, pairs: int = 0
    ) -> _Traffic:
        """Return all logins in a range of time, by user and by device, together with the action that the rules choose.
        own: the rules of the domain, including disabled ones. pairs: a limit as in `impact`. Each slice of time counts
        its pairs, because it decides them, even if another slice has the same ones."""
        traffic, time_slice = _Traffic(since), TimeSlice()
        enabled = [rule for rule in own if rule.definition.enabled]
        rules = await trio.to_thread.run_sync(DomainRules, enabled) if enabled else None
        is_local = domain.first_factor is FirstFactor.LOCAL  # a local user has one name
        scopes = Scopes(
            stations=any(rule.definition.stations for rule in enabled),
            service_types=any(rule.definition.service_types for rule in enabled),
            directory=any(
                rule.definition.groups or rule.definition.ous or (rule.definition.users and not is_local)
                for rule in enabled
            ),
            kinds=any(rule.definition.kinds for rule in enabled),
            methods=second.takes_no_code(Method.NONE),
        )
        first = await self._store.search(lambda tx: repo.first_at(tx, domain.id))
        begin = max(since, first)
        if not first or begin >= until:
            return traffic
        spans = await trio.to_thread.run_sync(spans_of, enabled, begin, until)
        moments = {span.period: span.at for span in spans}
        end, decided = until, 0
        while begin < end and not 0 < pairs <= decided:
            start = await self._begin_of_slice(domain, begin, end)
            for part in parts_of(spans, start, end):
                found = await self._groups(domain, part, scopes, traffic)
                decided += len(found)
                while found:  # groups are removed one by one, since freeing all at once would block the event loop
                    group = found.pop()
                    device = traffic.devices[group.device_id]
                    rule = None
                    if rules is not None:
                        member = traffic.members.get(group.user_name, NOBODY)
                        rule = rules.match(self._facts(domain, group, device, member, moments[group.period]))
                    action = UNMATCHED if rule is None else rule.action
                    _note(domain, traffic, group, device, action, gives_up=_gives_up(second, device))
                    traffic.of_rule(None if rule is None else rule.id).note(group)
                    await time_slice()
            end = start
        if end > begin:
            traffic.since = end
        return traffic

    async def _begin_of_slice(self, domain: Domain, since: int, until: int) -> int:
        number = self._slice_events
        return await self._store.search(lambda tx: repo.slice_begin(tx, domain.id, since, until, number))

    async def _groups(self, domain: Domain, spans: Sequence[Span], scopes: Scopes, traffic: _Traffic) -> list[Group]:
        def work(tx: Tx) -> tuple[list[Group], dict[int, KnownDevice | None], dict[str, Membership]]:
            found = repo.groups(tx, domain.id, spans, scopes)
            names = {group.user_name for group in found} - traffic.members.keys() if scopes.directory else ()
            members = {name: kept(tx, domain, name) for name in names}
            return found, repo.devices(tx, domain.id, found, traffic.devices), members

        found, devices, members = await self._store.search(work)
        traffic.devices.update(devices)
        traffic.members.update(members)
        return found

    def _facts(self, domain: Domain, group: Group, device: KnownDevice | None, member: Membership, at: int) -> Facts:
        """Return the facts that login rules would get for a live login. The login has the same values as the logins of
        the group."""
        return Facts(
            user=group.user_name,
            kind=Kind.MACHINE if group.machine else kind_of(group.user_name),
            groups=member.groups,
            ous=member.ous,
            client=self._client_name(domain, group.ip_address),
            source=group.ip_address,
            nas=group.client_ip,
            product=UNKNOWN if device is None else device.product,
            nas_product=UNKNOWN if device is None else device.nas_product,
            medium=UNKNOWN if device is None else device.medium,
            station=group.station,
            service_type=group.service_type,
            at=at,
            names=NAMELESS if domain.first_factor is FirstFactor.LOCAL else member.names,
        )

    def _client_name(self, domain: Domain, source: str) -> str:
        """Return the name of the RADIUS client that now has this source address. Return an empty text if there is
        none."""
        try:
            client = self._find_client(source)
        except ValueError:
            return ""
        return client.name if client is not None and client.tenant_id == domain.tenant_id else ""

    # --- their outcomes --------------------------------------------------------------------------------------

    async def _ask(self, domain: Domain, second: Standing, traffic: _Traffic) -> None:
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

    async def _users(self, terms: "_Terms", traffic: _Traffic) -> tuple[Worst[UserImpact], int]:
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


def _needs_factor(user: _User) -> bool:
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


async def _devices(terms: _Terms, traffic: _Traffic) -> tuple[Worst[DeviceImpact], int]:
    """Return the devices with the worst outcomes. Also return how many devices have logins that enforce mode would
    deny.

    Here each user counts as enrolled, because the list of users already shows missing enrolments.
    """
    worst, denied, time_slice = Worst[DeviceImpact](), 0, TimeSlice()
    for device_id, actions in traffic.actions.items():
        seen = traffic.seen[device_id]
        gives_up = _gives_up(terms.second, seen)
        decided = (
            terms.decide(Reason.NONE, action, terms.second.comes_to(Reason.ASKED, gives_up=gives_up, method=method))
            for action, method in actions
        )
        effect, reason = max(decided, key=_severity)
        if effect is Effect.CHALLENGE and seen.support == "no":
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


def _rules(rules: Sequence[Rule], traffic: _Traffic) -> list[RuleImpact]:
    """Return the logins by the rule that decides them, the most logins first."""
    known = {rule.id: rule for rule in rules}
    found = [
        RuleImpact(
            ruleId=rule_id,
            name="" if rule_id is None else known[rule_id].name,
            action=UNMATCHED if rule_id is None else known[rule_id].action,
            logins=decided.logins,
            users=len(decided.users),
            lastSeen=iso(decided.last_at),
        )
        for rule_id, decided in traffic.decided.items()
    ]
    return sorted(found, key=lambda each: (-each.logins, each.ruleId or 0))


def _severity(decided: tuple[Effect, str]) -> tuple[int, str]:
    """Return the sort key of an outcome. Equal outcomes are sorted by reason."""
    return SEVERITY[decided[0]], decided[1]


def _note(
    domain: Domain, traffic: _Traffic, group: Group, device: KnownDevice | None, action: Action, *, gives_up: bool
) -> None:
    key = fold(group.user_name)
    user = traffic.users.get(key)
    if user is None:
        user = traffic.users[key] = _User()
    traffic.logins += group.logins
    user.logins += group.logins
    user.exists = bool(group.exists) or domain.first_factor is not FirstFactor.LOCAL
    user.variants.add((action, gives_up, group.method))
    # If several spellings have the same last time, the choice is deterministic.
    user.last_at, user.name = max((user.last_at, user.name), (group.last_at, group.user_name))
    if device is not None and user.exists:
        traffic.seen[device.id] = device
        traffic.actions.setdefault(device.id, set()).add((action, group.method))


def parts_of(spans: Sequence[Span], begin: int, end: int) -> Iterator[Sequence[Span]]:
    """Yield the spans from `begin` to `end` (exclusive), in order of time, at most SLICE_SPANS at once. A span that
    begins before or ends after this time is cut. Times in microseconds."""
    pieces = [
        Span(span.period, max(begin, span.since), min(end, span.until), span.at)
        for span in spans
        if span.since < end and span.until > begin
    ]
    for at in range(0, len(pieces), SLICE_SPANS):
        yield pieces[at : at + SLICE_SPANS]


def _gives_up(second: Standing, device: KnownDevice | None) -> bool:
    """Return whether a device gives up before most users have answered. Return False if the device no longer exists."""
    return device is not None and second.gives_up(device.give_up_ms, takes_challenges=device.support == "yes")
