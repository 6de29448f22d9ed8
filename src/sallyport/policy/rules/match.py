"""Evaluation of a domain's rules for the facts of a login, without I/O.

The values of a scope are prepared once, as sets of case-folded names, and of stations and networks in canonical form. A
condition is a function of the facts that returns True, False, or None if it cannot be evaluated; the docstring of the
package describes the effect of None.

A domain may have 1,000 rules with 1,000 entries each, and a user may have 1,000 groups. Therefore the groups, OUs and
addresses of a login are looked up only once. For each of them, an index contains the rules that name it, as the bits of
an integer.
"""

import re
import zoneinfo
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, TypeVar

from sallyport.base.addresses import Network, parse_address, parse_network
from sallyport.base.clock import SECOND
from sallyport.base.text import fold, fold_name, folded
from sallyport.policy.rules.rule import DAYS, UNMATCHED, Action, Definition, Kind, Rule, Window, minutes
from sallyport.vendors import UNKNOWN

__all__ = ["UNMATCHED", "Action", "DomainRules", "Facts", "Rule", "network_of", "station_key"]

Condition = Callable[["_Seen"], bool | None]
Names = frozenset[str]

_UNKNOWN: Final = frozenset({"", UNKNOWN.casefold()})
_MAC: Final = re.compile(
    r"[0-9a-f]{12}|[0-9a-f]{2}(?:([-:. ])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}"
    r"|[0-9a-f]{4}([-:.])[0-9a-f]{4}\2[0-9a-f]{4}|[0-9a-f]{6}[-:.][0-9a-f]{6}"
)
_STRICTNESS: Final = {Action.ALLOW: 0, Action.MFA_REQUIRED: 1, Action.BLOCK: 2}


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a login that rules compare, after its first factor.

    user: the name without its realm. kind: the kind of the account. names: all names of the user, case-folded, if the
    user has several names in a directory. groups, ous: groups and OUs of the user, case-folded; None if they could not
    be read. client: name of the RADIUS client. source: address of the sender. nas: NAS-IP-Address or NAS-IPv6-Address,
    else the source. product, nas_product: products of the sender and of the NAS, `Unknown` or empty if not known.
    medium: `Unknown` or empty if not known. station: Calling-Station-Id, empty if absent. service_type: None if absent.
    at: microseconds since 1970, UTC.
    """

    user: str
    kind: Kind
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
    """The result of one rule for a login. matches: whether the rule matches; None if a fact is missing.

    scope: API name of the first scope that does not match or cannot be evaluated; empty if all match.
    """

    rule: Rule
    matches: bool | None
    scope: str


class DomainRules:
    """The enabled rules of a domain, in their order. groups: all groups in these rules, case-folded."""

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
        """Return the rule that decides; None if no rule matches. It does no I/O and raises no errors.

        If a fact is missing and the rule only may match, it is returned without reply attributes.
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
        """Return the result of each rule in the order of `match`, up to the first rule that surely matches."""
        seen, steps = _Seen(facts, self._index), list[Step]()
        for each in self._all:
            steps.append(each.explain(seen))
            if steps[-1].matches:
                break
        return steps


class _Index:
    """An index from scope entries to the rules of a domain that contain them; the rules are bits of an integer.

    groups, ous: by case-folded name. sender, nas: networks, by (IP version, number of host bits), then by prefix.
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
    """Return the rules that contain one of a user's groups or OUs, as bits. Return None if the groups or OUs are not
    known."""
    if names is None:
        return None
    bits = 0
    for name in names if rules else ():
        bits |= rules.get(name, 0)
    return bits


def _holding(networks: _Networks, address: tuple[int, int] | None) -> int:
    """Return the rules with a network that contains the address, as bits."""
    bits = 0
    if address is not None:
        version, number = address
        for (of, shift), rules in networks.items():
            if of == version:
                bits |= rules.get(number >> shift, 0)
    return bits


class _Seen:
    """The facts of a login, in the form that is compared. Each of them is computed on first use.

    groups, ous, sender, nas: the rules that contain them, as bits.
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
        """Rules that contain the sender's address, as bits; None if the address is not known."""
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


def kind_of(user: str) -> Kind:
    """Return the kind of account of a name. A Windows computer logs in as `host/NAME.DOMAIN` or `NAME$`."""
    name = fold_name(user)
    return Kind.MACHINE if name.endswith("$") or name.startswith("host/") else Kind.USER


def station_key(station: str) -> str:
    """Return a Calling-Station-Id for comparison: a MAC address as 12 hex digits, other text case-folded."""
    text = station.strip().casefold()
    return re.sub("[-:. ]", "", text) if _MAC.fullmatch(text) else text


class _Prepared:
    """A rule and its conditions, cheap ones first. bare: the rule without reply attributes."""

    __slots__ = ("bare", "conditions", "rule", "users")

    def __init__(self, rule: Rule, bit: int, index: _Index) -> None:
        self.rule = rule
        self.bare = replace(rule, attributes=b"")
        self.users = folded(rule.definition.users)
        self.conditions = dict(_conditions(rule.definition, self.users, bit, index))

    def matches(self, seen: _Seen) -> bool | None:
        """Return whether the rule matches; None if it may match, because a fact is missing."""
        sure: bool | None = True
        for condition in self.conditions.values():
            holds = condition(seen)
            if holds is False:
                return False
            if holds is None:
                sure = None
        return sure

    def explain(self, seen: _Seen) -> Step:
        """Return the result of `matches`, and the scope that caused it."""
        doubt = ""
        for scope, condition in self.conditions.items():
            holds = condition(seen)
            if holds is False:
                return Step(self.rule, False, scope)
            doubt = doubt or ("" if holds else scope)
        return Step(self.rule, None if doubt else True, doubt)


def _first(rules: Sequence[_Prepared], seen: _Seen) -> Rule | None:
    """Return the first rule that surely matches, or a stricter rule before it that may match."""
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
    """Yield the conditions of a rule with their scopes. Also add the rule's groups, OUs and networks to the index under
    the rule's bit."""
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
    """Return the network or single address in an entry of `clients`; None if the entry is a name."""
    try:
        return parse_network(entry)
    except ValueError:
        return None


def _client(entries: Sequence[str], exempts: bool, bit: int, index: _Index) -> Condition:
    """Return the condition for `clients`: the sender's name or address, or the address of the NAS in the request.

    In an `allow` rule (`exempts`), a network matches the sender's address only. Otherwise an external gateway that
    sends its internal address as NAS-IP-Address would be exempt as if it were an internal device.
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
    """Return the version and number of an address, or None if the text is not an address."""
    try:
        address = parse_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.version, int(address)


def _time(window: Window) -> Condition:
    """Return the condition for `time`. It cannot be evaluated if this machine does not know the time zone."""
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
