"""The conditions of login rules.

Each entry of `CONDITIONS` is one condition: the fact of a login that it compares, how it compares, and how the API, the
command line and the console show it. The time of day is a condition too, but no list of values (`time_condition`).

When rules are loaded, the values of a condition become a set of case-folded names, or of stations and networks in
canonical form, and the condition becomes a function of the facts. It returns True or False, or None if a fact is
missing. The docstring of the package explains the consequences.
"""

import zoneinfo
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Final

from sallyport.areas.policy.rules.index import (
    Index,
    add_name,
    add_network,
    address_of,
    holding,
    naming,
    network_of,
)
from sallyport.areas.policy.rules.window import DAYS, Window, minutes
from sallyport.base.clock import SECOND, iso
from sallyport.base.mac import station_key
from sallyport.base.text import fold, fold_name, folded
from sallyport.radius.vendors import MEDIA, UNKNOWN

_UNKNOWN: Final = frozenset({"", UNKNOWN.casefold()})
_COMMON_MEDIA: Final = ("Ethernet", "Wireless", "Virtual")

Values = tuple[str | int, ...]
"""The values of a condition in a rule. Only Service-Types are numbers."""


class AccountKind(StrEnum):
    """A kind of account: a person, a computer with its own account or certificate, a station that is admitted by its
    MAC address, or a station that asks for that and is not on the list of its domain."""

    USER = "user"
    MACHINE = "machine"
    STATION = "station"
    UNKNOWN = "unknown"


def kind_of(user: str) -> AccountKind:
    """Return the kind of account that a user name has. Names such as `host/NAME.DOMAIN` and `NAME$` belong to Windows
    computers."""
    name = fold_name(user)
    return AccountKind.MACHINE if name.endswith("$") or name.startswith("host/") else AccountKind.USER


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
class Preparation:
    """What the preparation of a rule's conditions needs.

    bit: the bit of the rule in the index. exempts: whether the rule is an `allow` rule.
    """

    index: Index
    bit: int
    exempts: bool


class Seen:
    """The facts of a login in the form in which rules compare them. Each fact is computed when it is first used.

    groups, ous, sender, nas: the rules, as bits, that name the fact. For example, `groups` has the rules that name one
    of the user's groups.
    """

    def __init__(self, facts: Facts, index: Index) -> None:
        self.facts = facts
        self._index = index
        self._moments: dict[str, datetime] = {}
        self.user = fold_name(facts.user)

    @cached_property
    def groups(self) -> int | None:
        return naming(self._index.groups, self.facts.groups)

    @cached_property
    def ous(self) -> int | None:
        return naming(self._index.ous, self.facts.ous)

    @cached_property
    def sender(self) -> int | None:
        """The rules that name the sender's address, as bits, or None if the address is unknown."""
        address = address_of(self.facts.source)
        return None if address is None else holding(self._index.sender, address)

    @cached_property
    def nas(self) -> int:
        return holding(self._index.nas, address_of(self.facts.nas))

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


Test = Callable[[Seen], bool | None]
"""Whether a login has one of a condition's values; None if the fact is missing."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of login rules: a list of values, one of which the login must have. An empty list is no condition.

    field: the name in the API, in stored rules and in the audit trail. option: the option of the command line for one
    value. word: a word for the condition before its values. title, hint: the label and a hint in the console's form.
    choices: the values with their labels, if the form offers a choice. rank: conditions with a lower rank are tested
    first, because they cost less. prepare: returns the test of the values. has: returns the values of a login as texts,
    or None if they could not be read. may_be_none: whether a login may surely have no value.
    """

    field: str
    option: str
    description: str
    word: str
    title: str
    rank: int
    prepare: Callable[[Values, Preparation], Test]
    has: Callable[[Facts], Iterable[str] | None]
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    may_be_none: bool = False


def _texts(values: Values) -> tuple[str, ...]:
    return tuple(map(str, values))


def _users(values: Values, _: Preparation) -> Test:
    wanted = folded(_texts(values))

    def holds(seen: Seen) -> bool | None:
        if not seen.user:
            return None
        return seen.user in wanted or not wanted.isdisjoint(seen.facts.names)

    return holds


def _groups(values: Values, prepared: Preparation) -> Test:
    bit = prepared.bit
    for name in folded(_texts(values)):
        add_name(prepared.index.groups, name, bit)
    return lambda seen: None if seen.groups is None else bool(seen.groups & bit)


def _ous(values: Values, prepared: Preparation) -> Test:
    bit = prepared.bit
    for name in folded(_texts(values)):
        add_name(prepared.index.ous, name, bit)
    return lambda seen: None if seen.ous is None else bool(seen.ous & bit)


def _kinds(values: Values, _: Preparation) -> Test:
    wanted = frozenset(values)
    return lambda seen: seen.facts.kind in wanted


def _service_types(values: Values, _: Preparation) -> Test:
    wanted = frozenset(values)
    return lambda seen: None if seen.facts.service_type is None else seen.facts.service_type in wanted


def _media(values: Values, _: Preparation) -> Test:
    wanted = folded(_texts(values))
    return lambda seen: None if seen.medium in _UNKNOWN else seen.medium in wanted


def _products(values: Values, _: Preparation) -> Test:
    wanted = folded(_texts(values))

    def holds(seen: Seen) -> bool | None:
        first, second = seen.products
        if first in wanted or second in wanted:
            return True
        return None if first in _UNKNOWN or second in _UNKNOWN else False

    return holds


def _stations(values: Values, _: Preparation) -> Test:
    wanted = frozenset(map(station_key, _texts(values)))
    return lambda seen: seen.station in wanted if seen.station else None


def _clients(values: Values, prepared: Preparation) -> Test:
    """Return the test of `clients`. It compares the sender's name and address, and the NAS address in the request.

    A network in an `allow` rule matches only the sender's address. Otherwise an external gateway would be exempt if it
    sent an internal NAS-IP-Address.
    """
    entries, index, bit = _texts(values), prepared.index, prepared.bit
    names = folded(tuple(entry for entry in entries if network_of(entry) is None))
    networks = [network for network in map(network_of, entries) if network is not None]
    for network in networks:
        add_network(index.sender, network, bit)
        if not prepared.exempts or network.prefixlen == network.max_prefixlen:
            add_network(index.nas, network, bit)

    def holds(seen: Seen) -> bool | None:
        if names and seen.client in names:
            return True
        if networks and ((seen.sender or 0) | seen.nas) & bit:
            return True
        unknown = (bool(names) and not seen.client) or (bool(networks) and seen.sender is None)
        return None if unknown else False

    return holds


CONDITIONS: Final = (
    Condition(
        "users",
        "user",
        "User names without a realm. An empty list matches every user.",
        "user",
        "Users",
        1,
        _users,
        lambda facts: (facts.user,),
        hint="One name on each line, without a realm.",
    ),
    Condition(
        "groups",
        "group",
        "Names of groups that the user belongs to. An empty list matches every user.",
        "group",
        "Groups of the user",
        8,
        _groups,
        lambda facts: None if facts.groups is None else sorted(facts.groups),
        hint="Nested groups count too.",
        may_be_none=True,
    ),
    Condition(
        "ous",
        "ou",
        "Organizational units of the user. An empty list matches every user.",
        "unit",
        "Organizational units of the user",
        9,
        _ous,
        lambda facts: None if facts.ous is None else sorted(facts.ous),
        may_be_none=True,
    ),
    Condition(
        "kinds",
        "kind",
        "Kinds of account: a person, a computer, a station by its MAC address, or a station that is not on the list of "
        "MAC addresses. An empty list matches all; a station that is not on the list is admitted only by a rule that "
        "names its kind.",
        "kind",
        "Kinds of account",
        2,
        _kinds,
        lambda facts: (facts.kind.value,),
        choices=(
            ("user", "Person"),
            ("machine", "Computer account"),
            ("station", "Bypass station"),
            ("unknown", "Unknown station"),
        ),
    ),
    Condition(
        "clients",
        "client",
        "RADIUS clients by name, or senders and NAS by address or network (CIDR). An empty list matches all.",
        "client",
        "RADIUS clients",
        7,
        _clients,
        lambda facts: (facts.client, facts.source, facts.nas),
        hint="Names, addresses or networks, such as 192.0.2.0/24.",
    ),
    Condition(
        "products",
        "product",
        "Products of the sender or of the NAS, as ListDevices names them. An empty list matches all.",
        "product",
        "Products",
        5,
        _products,
        lambda facts: (facts.product, facts.nas_product),
        hint="As the devices page names them, such as Cisco ISE.",
    ),
    Condition(
        "media",
        "medium",
        "Media of the NAS port, such as Ethernet, Wireless or Virtual. An empty list matches all.",
        "medium",
        "Media of the port",
        4,
        _media,
        lambda facts: (facts.medium,),
        choices=tuple((name, name) for name in (*_COMMON_MEDIA, *sorted({*MEDIA.values()} - {*_COMMON_MEDIA}))),
    ),
    Condition(
        "stations",
        "station",
        "Calling-Station-Ids; a MAC address may be in any notation. An empty list matches all.",
        "station",
        "Stations (Calling-Station-Id)",
        6,
        _stations,
        lambda facts: (facts.station,),
        hint="A MAC address in any notation.",
    ),
    Condition(
        "serviceTypes",
        "service-type",
        "Service-Types by name or number (RFC 2865 section 5.6). An empty list matches all.",
        "Service-Type",
        "Service-Types",
        3,
        _service_types,
        lambda facts: () if facts.service_type is None else (str(facts.service_type),),
        hint="Names or numbers, such as Login or Framed.",
    ),
)
"""All conditions with a list of values, in the order in which a rule shows them."""


# --- the time of day --------------------------------------------------------------------------------------------------


def time_condition(window: Window) -> Test:
    """Return the test of a rule's time. If this machine does not know the time zone, the test always returns None."""
    try:
        zone = zoneinfo.ZoneInfo(window.timezone)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return lambda facts: None
    days = frozenset(map(DAYS.index, window.days)) or frozenset(range(len(DAYS)))
    start, until = minutes(window.start), minutes(window.until)

    def holds(seen: Seen) -> bool:
        moment = seen.moment(zone)
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if start < until:
            return start <= minute < until and day in days
        if minute >= start:
            return day in days
        return minute < until and (day - 1) % len(DAYS) in days

    return holds


def shown_values(facts: Facts, field: str, most: int) -> str:
    """Return what a login has for a condition, as a text for an admin.

    field: the field of the condition, `time`, or empty; the result is then empty too. most: the maximum number of
    values in the text.
    """
    if not field:
        return ""
    if field == "time":
        return iso(facts.at)
    condition = next(each for each in CONDITIONS if each.field == field)
    values = condition.has(facts)
    shown = [value for value in dict.fromkeys(values or ()) if value]
    if not shown:
        return "none" if values is not None and condition.may_be_none else "not known"
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
