"""The rules of a domain against the facts of a login, without I/O.

What a scope compares is prepared once: names without case, stations and networks in one form, each as a set. A
condition is a function of the facts that says True, False, or None: it cannot be judged. What follows from None is
told in the package's docstring.
"""

import re
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Final

from sallyport.base.addresses import Network, parse_address, parse_network
from sallyport.base.clock import SECOND
from sallyport.base.text import fold, fold_name, folded
from sallyport.login.rules.model import DAYS, UNMATCHED, Action, Definition, Kind, Rule, Window, minutes
from sallyport.vendors import UNKNOWN

__all__ = ["UNMATCHED", "Action", "DomainRules", "Facts", "Rule", "network_of", "station_key"]

Condition = Callable[["Facts"], bool | None]
Names = frozenset[str]

_UNKNOWN: Final = frozenset({"", UNKNOWN.casefold()})
_MAC: Final = re.compile(
    r"[0-9a-f]{12}|[0-9a-f]{2}(?:([-:. ])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}"
    r"|[0-9a-f]{4}([-:.])[0-9a-f]{4}\2[0-9a-f]{4}|[0-9a-f]{6}[-:.][0-9a-f]{6}"
)
_STRICTNESS: Final = {Action.ALLOW: 0, Action.MFA_REQUIRED: 1, Action.BLOCK: 2}


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules look at in a login that passed its first factor.

    user: without its realm; kind: whose name it is; names: all names of somebody whom a directory knows by several,
    without case. groups, ous: of the user, without case; None where they could not be read.
    client: the RADIUS client's name; source: the address of the sender; nas: the NAS-IP-Address or its like, else the
    source. product, nas_product: of the sender and of the NAS, `Unknown` or empty where nobody knows; medium: likewise.
    station: Calling-Station-Id, empty where it is absent. service_type: None where it is absent. at: microseconds since
    1970, UTC.
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


class DomainRules:
    """The enabled rules of a domain, in their order. groups: all that they name, without case."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        ordered = [_Prepared(rule) for rule in sorted(rules, key=lambda rule: rule.place)]
        self.groups = frozenset[str]().union(*(each.groups for each in ordered))
        self._others = tuple(each for each in ordered if not each.users)
        # A user's own rules stand first, so that they are looked up instead of walked through.
        self._of_user: dict[str, list[_Prepared]] = {}
        for each in ordered:
            for user in each.users:
                self._of_user.setdefault(user, []).append(each)
        self._all = tuple(ordered)

    def match(self, facts: Facts) -> Rule | None:
        """The rule that decides; None where no rule matches. Never waits and never raises.

        Where it only may match, because something is not known of the login, it comes without reply attributes.
        """
        user = fold_name(facts.user)
        if not user:
            return _first(self._all, facts)
        own = self._of_user.get(user)
        if facts.names and self._of_user:  # what counts for one of somebody's names counts for all
            each_name = (self._of_user.get(name, ()) for name in facts.names)
            own = sorted({*(own or ()), *chain.from_iterable(each_name)}, key=lambda each: each.rule.place)
        return _first((*own, *self._others) if own else self._others, facts)


def kind_of(user: str) -> Kind:
    """Whose name this is: a Windows computer logs in as `host/NAME.DOMAIN` or by its account `NAME$`."""
    name = fold_name(user)
    return Kind.MACHINE if name.endswith("$") or name.startswith("host/") else Kind.USER


def station_key(station: str) -> str:
    """A station in the form that is compared: a MAC address as 12 hex digits however it was written, other text
    without case."""
    text = station.strip().casefold()
    return re.sub("[-:. ]", "", text) if _MAC.fullmatch(text) else text


class _Prepared:
    """A rule and its conditions, the cheap ones first. bare: the rule where it only may match."""

    __slots__ = ("bare", "conditions", "groups", "rule", "users")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.bare = replace(rule, attributes=b"")
        self.users = folded(rule.definition.users)
        self.groups = folded(rule.definition.groups)
        self.conditions = tuple(_conditions(rule.definition, self.users, self.groups))

    def matches(self, facts: Facts) -> bool | None:
        """None: it may match."""
        sure: bool | None = True
        for condition in self.conditions:
            holds = condition(facts)
            if holds is False:
                return False
            if holds is None:
                sure = None
        return sure


def _first(rules: Sequence[_Prepared], facts: Facts) -> Rule | None:
    """The first that surely matches, or a stricter one before it that may."""
    least: Rule | None = None
    for each in rules:
        matches = each.matches(facts)
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


def _conditions(kept: Definition, users: Names, groups: Names) -> Iterable[Condition]:
    if users:
        yield _user(users)
    if kept.kinds:
        kinds = frozenset(kept.kinds)
        yield lambda facts: facts.kind in kinds
    if kept.serviceTypes:
        yield _service_type(frozenset(kept.serviceTypes))
    if kept.media:
        yield _medium(folded(kept.media))
    if kept.products:
        yield _product(folded(kept.products))
    if kept.stations:
        yield _station(frozenset(map(station_key, kept.stations)))
    if kept.clients:
        yield _client(kept.clients, kept.action is Action.ALLOW)
    if groups:
        yield lambda facts: None if facts.groups is None else not groups.isdisjoint(facts.groups)
    if kept.ous:
        ous = folded(kept.ous)
        yield lambda facts: None if facts.ous is None else not ous.isdisjoint(facts.ous)
    if kept.time is not None:
        yield _time(kept.time)


def _user(wanted: Names) -> Condition:
    def holds(facts: Facts) -> bool | None:
        user = fold_name(facts.user)
        if not user:
            return None
        return user in wanted or not wanted.isdisjoint(facts.names)

    return holds


def _service_type(wanted: frozenset[int]) -> Condition:
    return lambda facts: None if facts.service_type is None else facts.service_type in wanted


def _medium(wanted: Names) -> Condition:
    def holds(facts: Facts) -> bool | None:
        medium = facts.medium.casefold()
        return None if medium in _UNKNOWN else medium in wanted

    return holds


def _product(wanted: Names) -> Condition:
    def holds(facts: Facts) -> bool | None:
        products = (facts.product.casefold(), facts.nas_product.casefold())
        if any(product in wanted for product in products):
            return True
        return None if any(product in _UNKNOWN for product in products) else False

    return holds


def _station(wanted: Names) -> Condition:
    def holds(facts: Facts) -> bool | None:
        key = station_key(facts.station)
        return key in wanted if key else None

    return holds


def network_of(entry: str) -> Network | None:
    """Return the network or single address of an entry of `clients`, or None if the entry is a name."""
    try:
        return parse_network(entry)
    except ValueError:
        return None


def _client(entries: Sequence[str], exempts: bool) -> Condition:
    """By name or address of the sender, or by the address of the NAS that the request names.

    A rule that allows takes a range for the sender alone: a gateway outside that gives its inside address as
    NAS-IP-Address would be exempt together with the machines inside.
    """
    names = folded(tuple(entry for entry in entries if network_of(entry) is None))
    networks = [network for network in map(network_of, entries) if network is not None]
    single = [network for network in networks if network.prefixlen == network.max_prefixlen]
    of_sender, of_nas = _Ranges(networks), _Ranges(single if exempts else networks)

    def holds(facts: Facts) -> bool | None:
        if names and fold(facts.client) in names:
            return True
        source = _address(facts.source) if networks else None
        if networks and (of_sender.hold(source) or of_nas.hold(_address(facts.nas))):
            return True
        unknown = (bool(names) and not facts.client) or (bool(networks) and source is None)
        return None if unknown else False

    return holds


class _Ranges:
    """Networks by their length, so that an address is looked up once for each length that occurs."""

    def __init__(self, networks: Iterable[Network]) -> None:
        by_shift: dict[tuple[int, int], set[int]] = {}
        for network in networks:
            shift = network.max_prefixlen - network.prefixlen
            by_shift.setdefault((network.version, shift), set()).add(int(network.network_address) >> shift)
        self._by_shift = tuple((version, shift, frozenset(held)) for (version, shift), held in by_shift.items())

    def hold(self, address: tuple[int, int] | None) -> bool:
        if address is None:
            return False
        version, number = address
        for of, shift, held in self._by_shift:  # noqa: SIM110  a generator would cost more than all else here
            if of == version and number >> shift in held:
                return True
        return False


@lru_cache(4096)
def _address(text: str) -> tuple[int, int] | None:
    """Return the version and number of an address, or None if the text is not an address."""
    try:
        address = parse_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.version, int(address)


def _time(window: Window) -> Condition:
    """A zone that this machine does not know cannot be judged."""
    try:
        zone = zoneinfo.ZoneInfo(window.timezone)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return lambda facts: None
    days = frozenset(map(DAYS.index, window.days)) or frozenset(range(len(DAYS)))
    start, until = minutes(window.start), minutes(window.until)

    def holds(facts: Facts) -> bool:
        moment = datetime.fromtimestamp(facts.at // SECOND, zone)
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if start < until:
            return start <= minute < until and day in days
        if minute >= start:
            return day in days
        return minute < until and (day - 1) % len(DAYS) in days

    return holds
