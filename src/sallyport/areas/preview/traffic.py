"""Read the recorded logins of a domain, by user and by device, together with the action that login rules choose."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypedDict

import trio

from sallyport.areas.clients.client import Client
from sallyport.areas.devices.rows import UNKNOWN
from sallyport.areas.devices.tagging import DeviceTags
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.principals import NOBODY, Membership
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.facts import claims_in
from sallyport.areas.login.identity import kept
from sallyport.areas.login.limit import interim_us
from sallyport.areas.login.login import NAMELESS
from sallyport.areas.login.second.forecast import Standing
from sallyport.areas.policy.roles.role import GivenRole
from sallyport.areas.policy.roles.service import Roles, product_of
from sallyport.areas.policy.rules.comparisons import method_in_rules
from sallyport.areas.policy.rules.conditions import CLAIMS
from sallyport.areas.policy.rules.facts import NO_CLAIMS, AccountKind, Facts, kind_of
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import Action, Rule
from sallyport.areas.preview import repo
from sallyport.areas.preview.enrolled import NO_RULE, Demand, Standings
from sallyport.areas.preview.periods import Span, spans_of
from sallyport.areas.preview.repo import Group, KnownDevice, Scopes
from sallyport.areas.preview.tally import TimeSlice
from sallyport.areas.sessions.parallel import interval_us
from sallyport.base.addresses import endpoint_address
from sallyport.base.tags import NO_TAGS, effective_tags
from sallyport.base.text import fold
from sallyport.radius.password import Method
from sallyport.store.model import Store, Tx

SLICE_EVENTS: Final = 20_000  # events in one search of the store, which takes about 0.3 s; the limit is 10 s
SLICE_SPANS: Final = 500
MAX_CHECKED: Final = 1000
"""Maximum number of a rule's devices whose interim updates are looked up."""
MAX_NAMED: Final = 100
_COMPARED_IN: Final[Mapping[str, frozenset[str]]] = {
    "station": frozenset({"stations", "addresses"}),
    "service_type": frozenset({"serviceTypes"}),
    "machine": frozenset({"kinds"}),
    "method": frozenset({"methods"}),
    "ssid": frozenset({"ssids"}),
    "port": frozenset({"ports"}),
    "realm": frozenset({"realms"}),
    "claimed": CLAIMS,
    "facts": frozenset({"addresses", "methods", "certificates", "attributes"}),
}
"""The columns of events, each with the conditions that compare it."""


class Recorded(TypedDict, total=False):
    """The column `facts` of an event."""

    address: str
    method: str
    certificates: list[str]
    attributes: dict[str, list[str]]


class User:
    """The logins of a user.

    variants: the different combinations of three values: the demand of the rule, whether the device gives up before the
    user answers, and the authentication method.
    """

    __slots__ = ("exists", "last_at", "logins", "name", "variants")

    def __init__(self) -> None:
        self.name = ""
        self.logins = 0
        self.last_at = -1
        self.exists = False
        self.variants: set[tuple[Demand, bool, str]] = set()


class Decided:
    """The logins that a rule decides. users: the case-folded names of their users. given: the numbers of logins by the
    product of the NAS and the role that it gets. devices: the attributes of the role by the ids of their devices, as in
    events. claimed: the number of logins that the rule does not exempt, because they match it only by claims of the
    sender."""

    __slots__ = ("claimed", "devices", "given", "last_at", "logins", "users")

    def __init__(self) -> None:
        self.logins = 0
        self.users: set[str] = set()
        self.given: Counter[tuple[str, GivenRole]] = Counter()
        self.devices: dict[int, bytes] = {}
        self.last_at = 0
        self.claimed = 0

    def note(self, group: Group, given: tuple[str, GivenRole] | None) -> None:
        """Count the logins of a group. given: the product of the NAS and the role that the logins get, or None."""
        if given is not None:
            self.given[given] += group.logins
        self.logins += group.logins
        self.users.add(fold(group.user_name))
        self.devices[group.device_id] = b"" if given is None else given[1].attributes
        self.last_at = max(self.last_at, group.last_at)


class Traffic:
    """The recorded logins.

    since: the time from which they were read, in microseconds. users: by case-folded name. devices: by the device ids
    in events. demands: for each device, the combinations of a rule's demand and an authentication method; the key is
    the device's current id. seen: the devices by their current id. members: the directory data of users by name, if
    rules compare these data. decided: the logins by the id of the rule that decides them.
    """

    def __init__(self, since: int) -> None:
        self.since = since
        self.users: dict[str, User] = {}
        self.devices: dict[int, KnownDevice | None] = {}
        self.demands: dict[int, set[tuple[Demand, str]]] = {}
        self.seen: dict[int, KnownDevice] = {}
        self.members: dict[str, Membership] = {}
        self.decided: dict[int | None, Decided] = {}
        self.logins = 0

    def of_rule(self, rule_id: int | None) -> Decided:
        """Return the logins that a rule decides. rule_id: None for the logins that no rule matches."""
        return self.decided.setdefault(rule_id, Decided())


class TrafficReader:
    """The reader of recorded logins.

    find_client: a function that returns the RADIUS client of a source address. It raises ValueError if the text is no
    address. device_tags: the tags of devices. slice_events: the number of events in one search of the store.
    """

    def __init__(
        self,
        store: Store,
        roles: Roles,
        find_client: Callable[[str], Client | None],
        device_tags: DeviceTags,
        *,
        slice_events: int = SLICE_EVENTS,
    ) -> None:
        self._store = store
        self._roles = roles
        self._find_client = find_client
        self._device_tags = device_tags
        self._slice_events = slice_events

    async def read(
        self, domain: Domain, own: Sequence[Rule], second: Standings, since: int, until: int, pairs: int = 0
    ) -> Traffic:
        """Return all logins in a range of time, by user and by device, together with the action that the rules choose.
        own: the rules of the domain, including disabled ones. second: has each provider that the rules name. pairs: a
        limit as in `Preview.impact`. Each slice of time counts its pairs, because it decides them, even if another
        slice has the same ones."""
        traffic, time_slice = Traffic(since), TimeSlice()
        enabled = [rule for rule in own if rule.definition.enabled]
        rules = await trio.to_thread.run_sync(DomainRules, enabled) if enabled else None
        is_local = domain.first_factor is FirstFactor.LOCAL  # a local user has one name
        compared = rules.compared if rules is not None else frozenset[str]()
        columns = {name for name, fields in _COMPARED_IN.items() if not compared.isdisjoint(fields)}
        if any(each.takes_no_code(Method.NONE) for each in second.values()):  # some methods cannot carry a code
            columns.add("method")
        scopes = Scopes(
            frozenset(columns),
            directory=not compared.isdisjoint(("groups", "ous"))
            or ("users" in compared and not is_local)
            or domain.first_factor is FirstFactor.WEB,
        )
        first = await self._store.search(lambda tx: repo.first_at(tx, domain.id))
        begin = max(since, first)
        if not first or begin >= until:
            return traffic
        spans = await trio.to_thread.run_sync(spans_of, enabled, begin, until)
        moments = {span.period: span.at for span in spans}
        demands: dict[int | None, Demand] = {None: NO_RULE, **{rule.id: Demand.of(rule) for rule in own}}
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
                        facts = self._facts(domain, group, device, member, moments[group.period])
                        rule = rules.match(facts)
                        if facts.claims and not compared.isdisjoint(facts.claims):
                            _note_claims(traffic, group, rule, rules.match(replace(facts, claims=NO_CLAIMS)))
                    demand = demands[None if rule is None else rule.id]
                    gives_up = gives_up_early(second[demand.provider], device, until)
                    _note(domain, traffic, group, device, demand, gives_up=gives_up)
                    given = self._given(domain, rule, group, device) if rule is not None and rule.role else None
                    traffic.of_rule(None if rule is None else rule.id).note(group, given)
                    await time_slice()
            end = start
        if end > begin:
            traffic.since = end
        return traffic

    async def without_interims(self, traffic: Traffic, rule: Rule, at: int) -> list[str]:
        """Return the names of the devices of a rule's logins at which a limit of parallel sessions is not applied, at
        most MAX_NAMED. at: the time in microseconds."""
        of_role = traffic.of_rule(rule.id).devices
        seen = ((traffic.devices.get(number), octets) for number, octets in of_role.items())
        found = {each.id: (each.device_name, octets) for each, octets in seen if each is not None}
        devices, own_us = sorted(found.items())[:MAX_CHECKED], interim_us(rule.attributes)

        def search(tx: Tx) -> list[str]:
            return [
                name
                for device_id, (name, octets) in devices
                if interval_us(tx, device_id, own_us or interim_us(octets), at) is None
            ]

        return (await self._store.search(search))[:MAX_NAMED]

    async def _begin_of_slice(self, domain: Domain, since: int, until: int) -> int:
        number = self._slice_events
        return await self._store.search(lambda tx: repo.slice_begin(tx, domain.id, since, until, number))

    async def _groups(self, domain: Domain, spans: Sequence[Span], scopes: Scopes, traffic: Traffic) -> list[Group]:
        def query(tx: Tx) -> tuple[list[Group], dict[int, KnownDevice | None], dict[str, Membership]]:
            found = repo.groups(tx, domain.id, spans, scopes)
            names = {group.user_name for group in found} - traffic.members.keys() if scopes.directory else ()
            members = {name: kept(tx, domain, name) for name in names}
            return found, repo.devices(tx, domain.id, found, traffic.devices), members

        found, devices, members = await self._store.search(query)
        traffic.devices.update(devices)
        traffic.members.update(members)
        return found

    def _facts(self, domain: Domain, group: Group, device: KnownDevice | None, member: Membership, at: int) -> Facts:
        """Return the facts that login rules would get for a live login. The login has the same values as the logins of
        the group."""
        more: Recorded = json.loads(group.facts) if group.facts else {}
        client = self._client(domain, group.ip_address)
        own = NO_TAGS if device is None else device.own_tags
        is_named = group.client_ip != group.ip_address or (device is not None and device.is_named)
        by_claim = self._device_tags.are_claimed(domain.id, group.ip_address, is_named=is_named)
        return Facts(
            user=group.user_name,
            kind=AccountKind.MACHINE if group.machine else kind_of(group.user_name),
            groups=member.groups,
            ous=member.ous,
            client="" if client is None else client.name,
            source=group.ip_address,
            nas=group.client_ip,
            product=UNKNOWN if device is None else device.product,
            nas_product=UNKNOWN if device is None else device.nas_product,
            medium=UNKNOWN if device is None else device.medium,
            station=group.station,
            service_type=group.service_type,
            at=at,
            names=NAMELESS if domain.first_factor is FirstFactor.LOCAL else member.names,
            ssid=group.ssid,
            port=group.port,
            realm=group.realm or "",
            method=more.get("method") or method_in_rules(group.method),
            address=more.get("address") or endpoint_address(group.station),
            certificates=tuple(more.get("certificates", ())),
            attributes={name: tuple(values) for name, values in more.get("attributes", {}).items()},
            tags=None if device is None else effective_tags(own, NO_TAGS if client is None else client.tags),
            claims=NO_CLAIMS if group.claimed == 0 else claims_in(domain, tags=by_claim),
        )

    def _client(self, domain: Domain, source: str) -> Client | None:
        try:
            client = self._find_client(source)
        except ValueError:
            return None
        return client if client is not None and client.tenant_id == domain.tenant_id else None

    def _given(self, domain: Domain, rule: Rule, group: Group, device: KnownDevice | None) -> tuple[str, GivenRole]:
        """Return the product of the NAS of a group, and what it gets for the role of a rule."""
        client = self._client(domain, group.ip_address)
        configured, inherited = ("", NO_TAGS) if client is None else (client.product, client.tags)
        product = product_of(UNKNOWN if device is None else device.nas_product, configured)
        tags = effective_tags(NO_TAGS if device is None else device.own_tags, inherited)
        return product or UNKNOWN, self._roles.given_to(domain.id, rule.role, product, tags)


def _note_claims(traffic: Traffic, group: Group, rule: Rule | None, unclaimed: Rule | None) -> None:
    """Count the logins that a rule would exempt if the facts of the request were no claims. rule: the rule that decides
    the logins. unclaimed: the rule that would decide them."""
    if unclaimed is not None and unclaimed.action is Action.ALLOW and (rule is None or rule.id != unclaimed.id):
        decided = traffic.of_rule(unclaimed.id)
        decided.claimed += group.logins
        decided.last_at = max(decided.last_at, group.last_at)


def _note(
    domain: Domain, traffic: Traffic, group: Group, device: KnownDevice | None, demand: Demand, *, gives_up: bool
) -> None:
    key = fold(group.user_name)
    user = traffic.users.get(key)
    if user is None:
        user = traffic.users[key] = User()
    traffic.logins += group.logins
    user.logins += group.logins
    user.exists = _exists(domain, group, traffic)
    user.variants.add((demand, gives_up, group.method))
    # If several spellings have the same last time, the choice is deterministic.
    user.last_at, user.name = max((user.last_at, user.name), (group.last_at, group.user_name))
    if device is not None and user.exists:
        traffic.seen[device.id] = device
        traffic.demands.setdefault(device.id, set()).add((demand, group.method))


def _exists(domain: Domain, group: Group, traffic: Traffic) -> bool:
    """Return whether the first factor may know the user of a group. With `web`, it is an active account of a cloud
    directory."""
    if domain.first_factor is FirstFactor.WEB:
        state = traffic.members.get(group.user_name, NOBODY).cloud
        return state is not None and state.status == Status.ACTIVE
    return bool(group.exists) or domain.first_factor is not FirstFactor.LOCAL


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


def gives_up_early(second: Standing, device: KnownDevice | None, now: int) -> bool:
    """Return whether a device gives up before most users have answered. Return False if the device no longer exists.
    now: the time in microseconds."""
    return device is not None and second.gives_up(device.learned, now)
