"""Evaluate a domain's rules for the facts of a login, without I/O.

When rules are loaded, the values of each scope become a set of case-folded names, or of stations and networks in
canonical form. Each scope becomes a condition. A condition is a function of the facts that returns True or False. If a
fact is missing, the function returns None. The docstring of the package explains the consequences.

A domain may have 1,000 rules with 1,000 values each, and a user may have 1,000 groups. There is one index over all
rules. To keep a login fast, each group, OU and address of the login is looked up in the index only once. The index
returns the rules that name the value. They are an integer in which each bit stands for a rule.
"""

import zoneinfo
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, TypeVar

from sallyport.areas.policy.rules.rule import DAYS, UNMATCHED, AccountKind, Action, Definition, Rule, Window, minutes
from sallyport.base.addresses import Network, parse_address, parse_network
from sallyport.base.clock import SECOND
from sallyport.base.mac import station_key
from sallyport.base.text import fold, fold_name, folded
from sallyport.radius.vendors import UNKNOWN

__all__ = ["UNMATCHED", "Action", "DomainRules", "Facts", "Rule", "network_of"]

Condition = Callable[["_Seen"], bool | None]
Names = frozenset[str]

_UNKNOWN: Final = frozenset({"", UNKNOWN.casefold()})
_STRICTNESS: Final = {Action.ALLOW: 0, Action.MFA_REQUIRED: 1, Action.BLOCK: 2}


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a login that rules compare. They are known after the first factor.

    user: the name without its realm. kind: the kind of account. names: all names of the user, case-folded, if a
    directory has several. groups, ous: the user's groups and OUs, case-folded, or None if they could not be read.
    client: the name of the RADIUS client. source: the sender's address. nas: NAS-IP-Address or NAS-IPv6-Address,
    otherwise the sender's address. product, nas_product: the products of the sender and of the NAS; `Unknown` or empty
    if unknown. medium: the medium of the NAS port; `Unknown` or empty if unknown. station: Calling-Station-Id; empty if
    absent. service_type: Service-Type; None if absent. at: the time in microseconds since 1970, UTC.
    """

    user: str
    kind: AccountKind
    groups: frozenset[str] | None
    ous: frozenset[str] | None
    client: str
    source: str
    nas: str
    product: str
    nas_product: str
    medium: str
    station: str
    service_type: int | None
    at: int
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one rule for a login.

    matches: whether the rule matches; None if a fact is missing. scope: the API name of the first scope that does not
    match or whose fact is missing. It is empty if all scopes match.
    """

    rule: Rule
    matches: bool | None
    scope: str


class DomainRules:
    """The enabled rules of a domain, in the order in which they are read. groups: the case-folded names of all groups
    that occur in these rules."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._index = index = _Index()
        in_order = sorted(rules, key=lambda rule: rule.place)
        ordered = [_Prepared(rule, 1 << number, index) for number, rule in enumerate(in_order)]
        self.groups: Collection[str] = index.groups.keys()
        self._others = tuple(each for each in ordered if not each.users)
        # Rules with users come first in the order. They are looked up by user, so that no loop over them is needed.
        self._of_user: dict[str, list[_Prepared]] = {}
        for each in ordered:
            for user in each.users:
                self._of_user.setdefault(user, []).append(each)
        self._all = tuple(ordered)

    def match(self, facts: Facts) -> Rule | None:
        """Return the rule that decides a login, or None if no rule matches. The method raises no errors.

        If a fact is missing, the result may be a rule that needs this fact. In this case the returned rule has no reply
        attributes.
        """
        seen = _Seen(facts, self._index)
        if not seen.user:
            return _first(self._all, seen)
        own = self._of_user.get(seen.user)
        if facts.names and self._of_user:  # a rule for one of a user's names applies to all names of this user
            each_name = (self._of_user.get(name, ()) for name in facts.names)
            own = sorted({*(own or ()), *chain.from_iterable(each_name)}, key=lambda each: each.rule.place)
        return _first((*own, *self._others) if own else self._others, seen)

    def explain(self, facts: Facts) -> list[Step]:
        """Return the result of each rule in the order of reading, up to the first rule that surely matches."""
        seen, steps = _Seen(facts, self._index), list[Step]()
        for each in self._all:
            steps.append(each.explain(seen))
            if steps[-1].matches:
                break
        return steps


class _Index:
    """An index from values to the rules of a domain that name these values. A set of rules is an integer in which each
    bit stands for a rule.

    groups, ous: the rules by the case-folded name of the group or OU. sender, nas: the rules by network. The key of the
    outer table is (IP version, number of host bits). The key of the inner table is the network's prefix.
    """

    __slots__ = ("groups", "nas", "ous", "sender")

    def __init__(self) -> None:
        self.groups: dict[str, int] = {}
        self.ous: dict[str, int] = {}
        self.sender: _Networks = {}
        self.nas: _Networks = {}


_Networks = dict[tuple[int, int], dict[int, int]]
Key = TypeVar("Key", str, int)


def _add(rules: dict[Key, int], key: Key, bit: int) -> None:
    rules[key] = rules[key] | bit if key in rules else bit  # names that occur in only one rule share an integer


def _add_network(networks: _Networks, network: Network, bit: int) -> None:
    shift = network.max_prefixlen - network.prefixlen
    _add(networks.setdefault((network.version, shift), {}), int(network.network_address) >> shift, bit)


def _naming(rules: dict[str, int], names: Names | None) -> int | None:
    """Return the rules, as bits, that name at least one of these groups or OUs. Return None if `names` is None."""
    if names is None:
        return None
    bits = 0
    for name in names if rules else ():
        bits |= rules.get(name, 0)
    return bits


def _holding(networks: _Networks, address: tuple[int, int] | None) -> int:
    """Return the rules, as bits, that name a network in which this address lies."""
    bits = 0
    if address is not None:
        version, number = address
        for (of, shift), rules in networks.items():
            if of == version:
                bits |= rules.get(number >> shift, 0)
    return bits


class _Seen:
    """The facts of a login in the form in which rules compare them. Each fact is computed when it is first used.

    groups, ous, sender, nas: the rules, as bits, that name the fact. For example, `groups` has the rules that name one
    of the user's groups.
    """

    def __init__(self, facts: Facts, index: _Index) -> None:
        self.facts = facts
        self._index = index
        self._moments: dict[str, datetime] = {}
        self.user = fold_name(facts.user)

    @cached_property
    def groups(self) -> int | None:
        return _naming(self._index.groups, self.facts.groups)

    @cached_property
    def ous(self) -> int | None:
        return _naming(self._index.ous, self.facts.ous)

    @cached_property
    def sender(self) -> int | None:
        """The rules that name the sender's address, as bits, or None if the address is unknown."""
        address = _address(self.facts.source)
        return None if address is None else _holding(self._index.sender, address)

    @cached_property
    def nas(self) -> int:
        return _holding(self._index.nas, _address(self.facts.nas))

    @cached_property
    def client(self) -> str:
        return fold(self.facts.client)

    @cached_property
    def station(self) -> str:
        return station_key(self.facts.station)

    @cached_property
    def medium(self) -> str:
        return self.facts.medium.casefold()

    @cached_property
    def products(self) -> tuple[str, str]:
        return self.facts.product.casefold(), self.facts.nas_product.casefold()

    def moment(self, zone: zoneinfo.ZoneInfo) -> datetime:
        """Return the time of the login in a time zone."""
        moment = self._moments.get(zone.key)
        if moment is None:
            moment = self._moments[zone.key] = datetime.fromtimestamp(self.facts.at // SECOND, zone)
        return moment


def kind_of(user: str) -> AccountKind:
    """Return the kind of account that a user name has. Names such as `host/NAME.DOMAIN` and `NAME$` belong to Windows
    computers."""
    name = fold_name(user)
    return AccountKind.MACHINE if name.endswith("$") or name.startswith("host/") else AccountKind.USER


class _Prepared:
    """A rule with its conditions, the cheap ones first. bare: a copy of the rule without reply attributes. It is used
    if a fact is missing."""

    __slots__ = ("bare", "conditions", "rule", "users")

    def __init__(self, rule: Rule, bit: int, index: _Index) -> None:
        self.rule = rule
        self.bare = replace(rule, attributes=b"")
        self.users = folded(rule.definition.users)
        self.conditions = dict(_conditions(rule.definition, self.users, bit, index))

    def matches(self, seen: _Seen) -> bool | None:
        """Return whether the rule matches. Return None if it may match, because a fact is missing."""
        sure: bool | None = True
        for condition in self.conditions.values():
            holds = condition(seen)
            if holds is False:
                return False
            if holds is None:
                sure = None
        return sure

    def explain(self, seen: _Seen) -> Step:
        """Return the result of `matches`, together with the scope that is the reason for the result."""
        doubt = ""
        for scope, condition in self.conditions.items():
            holds = condition(seen)
            if holds is False:
                return Step(self.rule, False, scope)
            doubt = doubt or ("" if holds else scope)
        return Step(self.rule, None if doubt else True, doubt)


def _first(rules: Sequence[_Prepared], seen: _Seen) -> Rule | None:
    """Return the first rule that certainly matches. If an earlier rule is stricter and may match, because a fact is
    missing, return the earlier rule instead."""
    least: Rule | None = None
    for each in rules:
        matches = each.matches(seen)
        if matches is False:
            continue
        action = each.rule.action
        stricter = least is None or _STRICTNESS[action] > _STRICTNESS[least.action]
        if matches:
            milder = least is not None and _STRICTNESS[action] < _STRICTNESS[least.action]
            return least if milder else each.rule
        if action is not Action.ALLOW and stricter:
            least = each.bare
    return least


def _conditions(kept: Definition, users: Names, bit: int, index: _Index) -> Iterable[tuple[str, Condition]]:
    """Yield the conditions of a rule by scope. Also enter the rule's groups, OUs and networks in the index.

    bit: the bit of this rule.
    """
    if users:
        yield "users", _user(users)
    if kept.kinds:
        kinds = frozenset(kept.kinds)
        yield "kinds", lambda seen: seen.facts.kind in kinds
    if kept.service_types:
        yield "serviceTypes", _service_type(frozenset(kept.service_types))
    if kept.media:
        yield "media", _medium(folded(kept.media))
    if kept.products:
        yield "products", _product(folded(kept.products))
    if kept.stations:
        yield "stations", _station(frozenset(map(station_key, kept.stations)))
    if kept.clients:
        yield "clients", _client(kept.clients, kept.action is Action.ALLOW, bit, index)
    if kept.groups:
        for name in folded(kept.groups):
            _add(index.groups, name, bit)
        yield "groups", lambda seen: None if seen.groups is None else bool(seen.groups & bit)
    if kept.ous:
        for name in folded(kept.ous):
            _add(index.ous, name, bit)
        yield "ous", lambda seen: None if seen.ous is None else bool(seen.ous & bit)
    if kept.time is not None:
        yield "time", _time(kept.time)


def _user(wanted: Names) -> Condition:
    def holds(seen: _Seen) -> bool | None:
        if not seen.user:
            return None
        return seen.user in wanted or not wanted.isdisjoint(seen.facts.names)

    return holds


def _service_type(wanted: frozenset[int]) -> Condition:
    return lambda seen: None if seen.facts.service_type is None else seen.facts.service_type in wanted


def _medium(wanted: Names) -> Condition:
    return lambda seen: None if seen.medium in _UNKNOWN else seen.medium in wanted


def _product(wanted: Names) -> Condition:
    def holds(seen: _Seen) -> bool | None:
        first, second = seen.products
        if first in wanted or second in wanted:
            return True
        return None if first in _UNKNOWN or second in _UNKNOWN else False

    return holds


def _station(wanted: Names) -> Condition:
    return lambda seen: seen.station in wanted if seen.station else None


def network_of(entry: str) -> Network | None:
    """Parse an entry of `clients` as a network or an address. Return None if it is a name."""
    try:
        return parse_network(entry)
    except ValueError:
        return None


def _client(entries: Sequence[str], exempts: bool, bit: int, index: _Index) -> Condition:
    """Return the condition for `clients`. It compares the sender's name and address, and the NAS address in the
    request.

    exempts: whether the rule is an `allow` rule. A network in an `allow` rule matches only the sender's address.
    Otherwise an external gateway would be exempt if it sent an internal NAS-IP-Address.
    """
    names = folded(tuple(entry for entry in entries if network_of(entry) is None))
    networks = [network for network in map(network_of, entries) if network is not None]
    for network in networks:
        _add_network(index.sender, network, bit)
        if not exempts or network.prefixlen == network.max_prefixlen:
            _add_network(index.nas, network, bit)

    def holds(seen: _Seen) -> bool | None:
        if names and seen.client in names:
            return True
        if networks and ((seen.sender or 0) | seen.nas) & bit:
            return True
        unknown = (bool(names) and not seen.client) or (bool(networks) and seen.sender is None)
        return None if unknown else False

    return holds


@lru_cache(4096)
def _address(text: str) -> tuple[int, int] | None:
    """Return (IP version, address as a number), or None if the text is not an address."""
    try:
        address = parse_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.version, int(address)


def _time(window: Window) -> Condition:
    """Return the condition for `time`. If this machine does not know the time zone, the condition always returns
    None."""
    try:
        zone = zoneinfo.ZoneInfo(window.timezone)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return lambda facts: None
    days = frozenset(map(DAYS.index, window.days)) or frozenset(range(len(DAYS)))
    start, until = minutes(window.start), minutes(window.until)

    def holds(seen: _Seen) -> bool:
        moment = seen.moment(zone)
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if start < until:
            return start <= minute < until and day in days
        if minute >= start:
            return day in days
        return minute < until and (day - 1) % len(DAYS) in days

    return holds
