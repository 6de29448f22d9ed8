"""Recorded logins, decided once more: who would be challenged or denied if the domain enforced, and why."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import trio

from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.text import fold
from sallyport.directory.principals import NOBODY, Membership
from sallyport.domains.domain import Domain, Fallback, FirstFactor, Mode
from sallyport.domains.impact import DEFAULT_DAYS, Counts, DeviceImpact, Effect, Impact, UserImpact
from sallyport.domains.service import Domains
from sallyport.inventory.clients.client import Client
from sallyport.inventory.devices.device import UNKNOWN
from sallyport.login.decision import decide
from sallyport.login.identity import kept
from sallyport.login.login import NAMELESS, Decision, Reason, Verdict
from sallyport.login.second.forecast import Standing
from sallyport.policy.rules.match import Facts, kind_of
from sallyport.policy.rules.rule import UNMATCHED, Action, Kind
from sallyport.policy.rules.service import LoginRules
from sallyport.preview import repo
from sallyport.preview.enrolled import SecondFactors
from sallyport.preview.periods import Span, spans_of
from sallyport.preview.repo import Group, Looked, Seen
from sallyport.preview.tally import SEVERITY, Breath, Worst
from sallyport.radius.method import Method
from sallyport.store.model import Store, Tx
from sallyport.store.snapshot import Configuration

DAY: Final = 86_400 * SECOND
SLICE_EVENTS: Final = 100_000  # in one search of the store: a second at most, of the ten that it may take
SLICE_SPANS: Final = 500
AT_ONCE: Final = 2
NO_CHALLENGES: Final = "the device has never answered a challenge"


class _User:
    """A user's logins. ways: what the rules do with them, whether their device gives up, and by which method they
    came."""

    __slots__ = ("exists", "last_at", "logins", "name", "ways")

    def __init__(self) -> None:
        self.name = ""
        self.logins = 0
        self.last_at = -1
        self.exists = False
        self.ways: set[tuple[Action, bool, str]] = set()


class _Traffic:
    """What was recorded. devices: by the ids of events; actions: with their methods, by the ids of the inventory;
    members: by name, where rules look at what directories say."""

    def __init__(self) -> None:
        self.users: dict[str, _User] = {}
        self.devices: dict[int, Seen | None] = {}
        self.actions: dict[int, set[tuple[Action, str]]] = {}
        self.seen: dict[int, Seen] = {}
        self.members: dict[str, Membership] = {}
        self.logins = 0


class Preview:
    """Tells what enforcing would do. find_client: the RADIUS client of a source address (ValueError: it is none)."""

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
        self._limit = trio.CapacityLimiter(AT_ONCE)  # each may hold a million users

    async def impact(self, domain_id: int, *, days: int = DEFAULT_DAYS, fallback: str | None = None) -> Impact:
        """What enforcing would do to the logins of the last days. fallback: in the place of the domain's own.

        A user who is not in the local directory any more is `reject`, `unknown user`: that is what the next login
        meets, and a list that left the name out would not explain the recorded logins. It is no consequence of
        enforcing, though, so it is not counted as denied. A device that is not in the inventory any more is not
        named: what it comes back as is not known. StoreError: it would take too long.
        """
        async with self._limit:
            domain, version = self._domains.table.by_id[domain_id], self._configuration.version
            until = self._clock() + 1
            since = until - 1 - days * DAY
            second = self._second.of(domain)
            traffic = await self._recorded(domain, second, since, until)
            await self._ask(domain, second, traffic)
            second = self._second.of(domain)  # who was asked may have shown that it is away
            told = _Told(domain, domain.fallback if fallback is None else Fallback(fallback), second)
            users, denied = await self._users(told, traffic)
            devices, denied_devices = await _devices(told, traffic)
            return Impact(
                users=users.kept(),
                devices=devices.kept(),
                counts=Counts(users=users.tally(), devices=devices.tally(), denied=denied + denied_devices),
                logins=traffic.logins,
                since=iso(since),
                until=iso(until - 1),
                policyVersion=version,
            )

    # --- what was recorded ------------------------------------------------------------------------------------

    async def _recorded(self, domain: Domain, second: Standing, since: int, until: int) -> _Traffic:
        """Every login of the time, by user and by device, with what the rules do with it."""
        rules, traffic, breathe = self._rules.of(domain.id), _Traffic(), Breath()
        enabled = [rule for rule in self._rules.all_of(domain.id) if rule.definition.enabled]
        is_local = domain.first_factor is FirstFactor.LOCAL  # whose users have one name
        looked = Looked(
            stations=any(rule.definition.stations for rule in enabled),
            service_types=any(rule.definition.service_types for rule in enabled),
            directory=any(
                rule.definition.groups or rule.definition.ous or (rule.definition.users and not is_local)
                for rule in enabled
            ),
            kinds=any(rule.definition.kinds for rule in enabled),
            methods=second.takes_no_code(Method.NONE),
        )
        total, first = await self._store.search(lambda tx: repo.extent(tx, domain.id))
        begin = max(since, first)
        if not first or begin >= until:
            return traffic
        longest = (until - begin) // max(1, -(-total // self._slice_events))
        spans = await trio.to_thread.run_sync(spans_of, enabled, begin, until)
        moments = {span.period: span.at for span in spans}
        for part in parts_of(spans, max(SECOND, longest)):
            found = await self._groups(domain, part, looked, traffic)
            while found:  # taken out one by one: to free all of them at once would hold the event loop
                group, action = found.pop(), UNMATCHED
                device = traffic.devices[group.device_id]
                if rules is not None:
                    rule = rules.match(
                        self._facts(
                            domain, group, device, traffic.members.get(group.user_name, NOBODY), moments[group.period]
                        )
                    )
                    action = UNMATCHED if rule is None else rule.action
                _note(domain, traffic, group, device, action, gives_up=_gives_up(second, device))
                await breathe()
        return traffic

    async def _groups(self, domain: Domain, spans: Sequence[Span], looked: Looked, traffic: _Traffic) -> list[Group]:
        def work(tx: Tx) -> tuple[list[Group], dict[int, Seen | None], dict[str, Membership]]:
            found = repo.groups(tx, domain.id, spans, looked)
            names = {group.user_name for group in found} - traffic.members.keys() if looked.directory else ()
            members = {name: kept(tx, domain, name) for name in names}
            return found, repo.devices(tx, domain.id, found, traffic.devices), members

        found, devices, members = await self._store.search(work)
        traffic.devices.update(devices)
        traffic.members.update(members)
        return found

    def _facts(self, domain: Domain, group: Group, device: Seen | None, member: Membership, at: int) -> Facts:
        """What the live path would tell the rules of this login (pipeline)."""
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
        """Of the RADIUS client that sends from there now; empty where there is none."""
        try:
            client = self._find_client(source)
        except ValueError:
            return ""
        return client.name if client is not None and client.tenant_id == domain.tenant_id else ""

    # --- what becomes of it -----------------------------------------------------------------------------------

    async def _ask(self, domain: Domain, second: Standing, traffic: _Traffic) -> None:
        """Find out about the enrolment of those who log in most and of whom nothing is known."""
        number, breathe = self._second.worth_asking(domain, second), Breath()
        if not number:
            return
        unknown: Worst[tuple[str, str]] = Worst(number)
        for key, user in traffic.users.items():
            needed = user.exists and any(action is Action.MFA_REQUIRED for action, *_ in user.ways)
            if needed and self._second.known(domain, second, key) is None:
                unknown.add(Effect.UNKNOWN, user.logins, (key, user.name))
            await breathe()
        await self._second.ask(domain, second, unknown.kept())

    async def _users(self, told: "_Told", traffic: _Traffic) -> tuple[Worst[UserImpact], int]:
        """Every user, and how many of them enforcing would deny. They are taken out of the traffic."""
        worst, denied, breathe = Worst[UserImpact](), 0, Breath()
        while traffic.users:
            key, user = traffic.users.popitem()
            enrolment = self._second.known(told.domain, told.second, key) or Reason.ENROLMENT_UNKNOWN
            first = Reason.NONE if user.exists else Reason.UNKNOWN_USER
            decided = [
                told.decide(first, action, told.second.comes_to(enrolment, gives_up=gives_up, method=method))
                for action, gives_up, method in user.ways
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
            await breathe()
        return worst, denied


class _Told:
    """What decides beside the login itself."""

    def __init__(self, domain: Domain, fallback: Fallback, second: Standing) -> None:
        self.domain = domain
        self.fallback = fallback
        self.second = second

    def decide(self, first: Reason, action: Action, second: Reason) -> tuple[Effect, str]:
        """What enforce mode applies to such a login, and why."""
        decision = decide(first, action, second, Mode.ENFORCE, self.fallback)
        return effect_of(decision), decision.reason.value


async def _devices(told: _Told, traffic: _Traffic) -> tuple[Worst[DeviceImpact], int]:
    """Every device, and how many of them deny: whoever logs in, taken as enrolled, since users have their own list."""
    worst, denied, breathe = Worst[DeviceImpact](), 0, Breath()
    for device_id, actions in traffic.actions.items():
        seen = traffic.seen[device_id]
        gives_up = _gives_up(told.second, seen)
        decided = (
            told.decide(Reason.NONE, action, told.second.comes_to(Reason.ASKED, gives_up=gives_up, method=method))
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
        await breathe()
    return worst, denied


def effect_of(decision: Decision) -> Effect:
    """What becomes of a login, where it is known."""
    if decision.reason is Reason.ENROLMENT_UNKNOWN and decision.applied is Verdict.CHALLENGE:
        return Effect.UNKNOWN
    return Effect(decision.applied.value)


def _severity(decided: tuple[Effect, str]) -> tuple[int, str]:
    """Among equals the same one each time."""
    return SEVERITY[decided[0]], decided[1]


def _note(
    domain: Domain, traffic: _Traffic, group: Group, device: Seen | None, action: Action, *, gives_up: bool
) -> None:
    key = fold(group.user_name)
    user = traffic.users.get(key)
    if user is None:
        user = traffic.users[key] = _User()
    traffic.logins += group.logins
    user.logins += group.logins
    user.exists = bool(group.exists) or domain.first_factor is not FirstFactor.LOCAL
    user.ways.add((action, gives_up, group.method))
    # Among names that were seen last at the same time it is the same one each time.
    user.last_at, user.name = max((user.last_at, user.name), (group.last_at, group.user_name))
    if device is not None and user.exists:
        traffic.seen[device.id] = device
        traffic.actions.setdefault(device.id, set()).add((action, group.method))


def parts_of(spans: Sequence[Span], longest: int) -> Iterator[list[Span]]:
    """Spans in order, so many at a time that one search of the store may look at them; long ones in pieces.

    longest: of a part, in microseconds.
    """
    pieces = (
        Span(span.period, begin, min(begin + longest, span.until), span.at)
        for span in spans
        for begin in range(span.since, span.until, longest)
    )
    part: list[Span] = []
    for piece in pieces:
        length = sum(each.until - each.since for each in part) if part else 0
        if part and (len(part) >= SLICE_SPANS or length + piece.until - piece.since > longest):
            yield part
            part = []
        part.append(piece)
    if part:
        yield part


def _gives_up(second: Standing, device: Seen | None) -> bool:
    """Whether a device waits for less than users take; one that is gone from the inventory is not judged."""
    return device is not None and second.gives_up(device.give_up_ms, takes_challenges=device.support == "yes")
