"""The conditions of login rules.

Each entry of `CONDITIONS` is one condition: the fact of a login that it compares, how it compares, and how the API, the
command line and the console show it. The time of day is a condition too, but no list of values (`time_condition`).

When rules are loaded, the values of a condition become a set of case-folded names, of stations and networks in
canonical form, or of patterns, and the condition becomes a function of the facts. It returns True or False, or None if
a fact is missing. The docstring of the package explains the consequences.
"""

import zoneinfo
from typing import Final

from sallyport.areas.policy.rules import requested
from sallyport.areas.policy.rules.facts import Condition, Facts, Preparation, Seen, Test, Values
from sallyport.areas.policy.rules.index import add_network, network_of
from sallyport.areas.policy.rules.patterns import add_name
from sallyport.areas.policy.rules.requested import METHODS, WITHOUT_MEDIUM, texts_of
from sallyport.areas.policy.rules.window import DAYS, Window, minutes
from sallyport.base.clock import iso
from sallyport.base.mac import station_key
from sallyport.base.text import folded
from sallyport.radius.vendors import MEDIA

_COMMON_MEDIA: Final = ("Ethernet", "Wireless", "Virtual")


def _users(values: Values, _: Preparation) -> Test:
    wanted = folded(texts_of(values))

    def holds(seen: Seen) -> bool | None:
        if not seen.user:
            return None
        return seen.user in wanted or not wanted.isdisjoint(seen.facts.names)

    return holds


def _groups(values: Values, prepared: Preparation) -> Test:
    bit = prepared.bit
    for name in folded(texts_of(values)):
        add_name(prepared.index.groups, name, bit)
    return lambda seen: None if seen.groups is None else bool(seen.groups & bit)


def _ous(values: Values, prepared: Preparation) -> Test:
    bit = prepared.bit
    for name in folded(texts_of(values)):
        add_name(prepared.index.ous, name, bit)
    return lambda seen: None if seen.ous is None else bool(seen.ous & bit)


def _kinds(values: Values, _: Preparation) -> Test:
    wanted = frozenset(values)
    return lambda seen: seen.facts.kind in wanted


def _service_types(values: Values, _: Preparation) -> Test:
    wanted = frozenset(values)
    return lambda seen: None if seen.facts.service_type is None else seen.facts.service_type in wanted


def _media(values: Values, _: Preparation) -> Test:
    wanted = folded(texts_of(values))
    return lambda seen: None if seen.medium in WITHOUT_MEDIUM else seen.medium in wanted


def _products(values: Values, _: Preparation) -> Test:
    wanted = folded(texts_of(values))

    def holds(seen: Seen) -> bool | None:
        first, second = seen.products
        if first in wanted or second in wanted:
            return True
        return None if first in WITHOUT_MEDIUM or second in WITHOUT_MEDIUM else False

    return holds


def _stations(values: Values, _: Preparation) -> Test:
    wanted = frozenset(map(station_key, texts_of(values)))
    return lambda seen: seen.station in wanted if seen.station else None


def _clients(values: Values, prepared: Preparation) -> Test:
    """Return the test of `clients`. It compares the sender's name and address, and the NAS address in the request.

    A network in an `allow` rule matches only the sender's address. Otherwise an external gateway would be exempt if it
    sent an internal NAS-IP-Address.
    """
    entries, index, bit = texts_of(values), prepared.index, prepared.bit
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
    Condition(
        "ssids",
        "ssid",
        "SSIDs, from a vendor's attribute or from Called-Station-Id. An empty list matches all.",
        "SSID",
        "SSIDs",
        4,
        requested.ssids,
        lambda facts: (facts.ssid,),
        hint="One SSID on each line.",
        may_be_none=True,
        asked="SSID of the wireless network.",
        is_claim=True,
    ),
    Condition(
        "tags",
        "tag",
        "Tags KEY=VALUE of the device or its RADIUS client. A value selects the values below it too: site=Berlin "
        "selects site=Berlin/Floor 2. An empty list matches all.",
        "tag",
        "Tags of the device",
        6,
        requested.tags,
        lambda facts: facts.tags,
        hint="KEY=VALUE on each line, such as site=Berlin.",
        may_be_none=True,
        asked="Tags KEY=VALUE of the device, in place of those in the inventory.",
        asks_several=True,
        is_claim=True,
    ),
    Condition(
        "ports",
        "port",
        "Ports (NAS-Port-Id). * matches any characters, ? matches one. An empty list matches all.",
        "port",
        "Ports (NAS-Port-Id)",
        6,
        requested.ports,
        lambda facts: (facts.port,),
        hint="Such as GigabitEthernet1/0/*.",
        asked="Port of the NAS (NAS-Port-Id).",
        is_claim=True,
    ),
    Condition(
        "methods",
        "method",
        "Authentication methods, such as pap, eap-tls, peap-mschapv2 or mab. eap, peap and ttls include all their "
        "inner methods. An empty list matches all.",
        "method",
        "Authentication methods",
        3,
        requested.methods,
        requested.method_shown,
        choices=tuple(METHODS.items()),
        asked="Authentication method, such as peap-mschapv2. Default: pap.",
        is_claim=True,
    ),
    Condition(
        "certificates",
        "certificate",
        "Facts KEY=VALUE of the client certificate of EAP-TLS. The keys are issuer (a distinguished name or its common "
        "name), template, eku, san and sid. An empty list matches all.",
        "certificate",
        "Client certificate",
        8,
        requested.certificates,
        lambda facts: facts.certificates,
        hint="KEY=VALUE on each line, with the key issuer, template, eku, san or sid.",
        asked="Facts KEY=VALUE of the client certificate.",
        asks_several=True,
    ),
    Condition(
        "attributes",
        "attribute",
        "Attributes of the request: NAME=VALUE, or NAME~PATTERN with * for any characters and ? for one. An empty list "
        "matches all.",
        "attribute",
        "Attributes of the request",
        8,
        requested.attributes,
        requested.attribute_facts,
        hint="NAME=VALUE or NAME~PATTERN on each line, such as NAS-Identifier~ap-*.",
        asked="Attributes NAME=VALUE of the request.",
        asks_several=True,
        is_claim=True,
    ),
    Condition(
        "realms",
        "realm",
        "Realms of the user name, as the user has typed it. An empty list matches all.",
        "realm",
        "Realms of the user name",
        3,
        requested.realms,
        lambda facts: (facts.realm,),
        hint="Such as partner.example; a name without a realm lacks this fact.",
    ),
    Condition(
        "addresses",
        "address",
        "Addresses or networks (CIDR) of the user's endpoint, from Calling-Station-Id or Tunnel-Client-Endpoint. An "
        "empty list matches all.",
        "address",
        "Addresses of the endpoint",
        7,
        requested.addresses,
        lambda facts: (facts.address,),
        hint="Such as 198.51.100.0/24. VPN gateways send the address.",
        asked="IP address of the user's endpoint (Tunnel-Client-Endpoint).",
        is_claim=True,
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


CLAIMED: Final = " (a claim of the sender)"


def shown_values(facts: Facts, field: str, most: int) -> str:
    """Return what a login has for a condition, as a text for an admin.

    field: the field of the condition, `time`, or empty; the result is then empty too. most: the maximum number of
    values in the text. The text says if the values are only claims of the sender.
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
    return ", ".join(shown[:most]) + more + (CLAIMED if field in facts.claims else "")
