"""The conditions of login rules.

Each entry of `CONDITIONS` is one condition: the fact of a login that it compares, how it compares, and how the API, the
command line and the console show it. The time of day is a condition too, but no list of values (`time_condition`).

When rules are loaded, the values of a condition become a set of case-folded names, of stations and networks in
canonical form, or of patterns, and the condition becomes a function of the facts. It returns True or False, or None if
a fact is missing. The docstring of the package explains the consequences.
"""

import zoneinfo
from typing import Final

from sallyport.areas.policy.rules import comparisons
from sallyport.areas.policy.rules.comparisons import METHODS
from sallyport.areas.policy.rules.facts import Condition, Facts, Seen, Test
from sallyport.areas.policy.rules.window import DAYS, Window, minutes
from sallyport.base.clock import iso
from sallyport.radius.vendors import MEDIA

_COMMON_MEDIA: Final = ("Ethernet", "Wireless", "Virtual")


CONDITIONS: Final = (
    Condition(
        field="users",
        option="user",
        description=(
            "User names without a realm. A MAC address in any notation is the name of a station. An empty list matches "
            "every user."
        ),
        word="user",
        title="Users",
        rank=1,
        prepare=comparisons.users,
        has=lambda facts: (facts.user,),
        hint="One name on each line, without a realm.",
    ),
    Condition(
        field="groups",
        option="group",
        description="Names of groups that the user belongs to. An empty list matches every user.",
        word="group",
        title="Groups of the user",
        rank=8,
        prepare=comparisons.groups,
        has=lambda facts: None if facts.groups is None else sorted(facts.groups),
        hint="Nested groups count too.",
        may_be_none=True,
    ),
    Condition(
        field="ous",
        option="ou",
        description="Organizational units of the user. An empty list matches every user.",
        word="unit",
        title="Organizational units of the user",
        rank=9,
        prepare=comparisons.ous,
        has=lambda facts: None if facts.ous is None else sorted(facts.ous),
        may_be_none=True,
    ),
    Condition(
        field="kinds",
        option="kind",
        description=(
            "Kinds of account: a person, a computer, a station by its MAC address, or a station that is not on the "
            "list of MAC addresses. An empty list matches all; a station that is not on the list is admitted only by a "
            "rule that names its kind."
        ),
        word="kind",
        title="Kinds of account",
        rank=2,
        prepare=comparisons.kinds,
        has=lambda facts: (facts.kind.value,),
        choices=(
            ("user", "Person"),
            ("machine", "Computer account"),
            ("station", "Bypass station"),
            ("unknown", "Unknown station"),
        ),
    ),
    Condition(
        field="clients",
        option="client",
        description=(
            "RADIUS clients by name, or senders and NAS by address or network (CIDR). An empty list matches all."
        ),
        word="client",
        title="RADIUS clients",
        rank=7,
        prepare=comparisons.clients,
        has=lambda facts: (facts.client, facts.source, facts.nas),
        hint="Names, addresses or networks, such as 192.0.2.0/24.",
    ),
    Condition(
        field="products",
        option="product",
        description="Products of the sender or of the NAS, as ListDevices names them. An empty list matches all.",
        word="product",
        title="Products",
        rank=5,
        prepare=comparisons.products,
        has=lambda facts: (facts.product, facts.nas_product),
        hint="As the devices page names them, such as Cisco ISE.",
    ),
    Condition(
        field="media",
        option="medium",
        description="Media of the NAS port, such as Ethernet, Wireless or Virtual. An empty list matches all.",
        word="medium",
        title="Media of the port",
        rank=4,
        prepare=comparisons.media,
        has=lambda facts: (facts.medium,),
        choices=tuple((name, name) for name in (*_COMMON_MEDIA, *sorted({*MEDIA.values()} - {*_COMMON_MEDIA}))),
    ),
    Condition(
        field="stations",
        option="station",
        description="Calling-Station-Ids; a MAC address may be in any notation. An empty list matches all.",
        word="station",
        title="Stations (Calling-Station-Id)",
        rank=6,
        prepare=comparisons.stations,
        has=lambda facts: (facts.station,),
        hint="A MAC address in any notation.",
    ),
    Condition(
        field="serviceTypes",
        option="service-type",
        description="Service-Types by name or number (RFC 2865 section 5.6). An empty list matches all.",
        word="Service-Type",
        title="Service-Types",
        rank=3,
        prepare=comparisons.service_types,
        has=lambda facts: () if facts.service_type is None else (str(facts.service_type),),
        hint="Names or numbers, such as Login or Framed.",
    ),
    Condition(
        field="ssids",
        option="ssid",
        description="SSIDs, from a vendor's attribute or from Called-Station-Id. An empty list matches all.",
        word="SSID",
        title="SSIDs",
        rank=4,
        prepare=comparisons.ssids,
        has=lambda facts: (facts.ssid,),
        hint="One SSID on each line.",
        may_be_none=True,
        asked="SSID of the wireless network.",
        is_claim=True,
    ),
    Condition(
        field="tags",
        option="tag",
        description=(
            "Tags KEY=VALUE of the device or its RADIUS client. A value selects the values below it too: site=Berlin "
            "selects site=Berlin/Floor 2. An empty list matches all."
        ),
        word="tag",
        title="Tags of the device",
        rank=6,
        prepare=comparisons.tags,
        has=lambda facts: facts.tags,
        hint="KEY=VALUE on each line, such as site=Berlin.",
        may_be_none=True,
        asked="Tags KEY=VALUE of the device, in place of those in the inventory.",
        asks_several=True,
        is_claim=True,
    ),
    Condition(
        field="ports",
        option="port",
        description="Ports (NAS-Port-Id). * matches any characters, ? matches one. An empty list matches all.",
        word="port",
        title="Ports (NAS-Port-Id)",
        rank=6,
        prepare=comparisons.ports,
        has=lambda facts: (facts.port,),
        hint="Such as GigabitEthernet1/0/*.",
        asked="Port of the NAS (NAS-Port-Id).",
        is_claim=True,
    ),
    Condition(
        field="methods",
        option="method",
        description=(
            "Authentication methods, such as pap, eap-tls, peap-mschapv2 or mab. eap, peap and ttls include all their "
            "inner methods. An empty list matches all."
        ),
        word="method",
        title="Authentication methods",
        rank=3,
        prepare=comparisons.methods,
        has=comparisons.method_shown,
        choices=tuple(METHODS.items()),
        asked="Authentication method, such as peap-mschapv2. Default: pap.",
        is_claim=True,
    ),
    Condition(
        field="certificates",
        option="certificate",
        description=(
            "Facts KEY=VALUE of the client certificate of EAP-TLS. The keys are issuer (a distinguished name or its "
            "common name), template, eku, san, sid and authority (the domain's authority that has signed it). The key "
            "device has facts of the device of Entra ID that the certificate names: compliant or noncompliant, managed "
            "or unmanaged, joined, hybrid-joined or registered. An empty list matches all."
        ),
        word="certificate",
        title="Client certificate",
        rank=8,
        prepare=comparisons.certificates,
        has=lambda facts: facts.certificates,
        hint="KEY=VALUE on each line, with the key issuer, template, eku, san, sid, authority or device.",
        asked="Facts KEY=VALUE of the client certificate.",
        asks_several=True,
    ),
    Condition(
        field="attributes",
        option="attribute",
        description=(
            "Attributes of the request: NAME=VALUE, or NAME~PATTERN with * for any characters and ? for one. An empty "
            "list matches all."
        ),
        word="attribute",
        title="Attributes of the request",
        rank=8,
        prepare=comparisons.attributes,
        has=comparisons.attribute_facts,
        hint="NAME=VALUE or NAME~PATTERN on each line, such as NAS-Identifier~ap-*.",
        asked="Attributes NAME=VALUE of the request.",
        asks_several=True,
        is_claim=True,
    ),
    Condition(
        field="realms",
        option="realm",
        description="Realms of the user name, as the user has typed it. An empty list matches all.",
        word="realm",
        title="Realms of the user name",
        rank=3,
        prepare=comparisons.realms,
        has=lambda facts: (facts.realm,),
        hint="Such as partner.example; a name without a realm lacks this fact.",
    ),
    Condition(
        field="addresses",
        option="address",
        description=(
            "Addresses or networks (CIDR) of the user's endpoint, from Calling-Station-Id or Tunnel-Client-Endpoint. "
            "An empty list matches all."
        ),
        word="address",
        title="Addresses of the endpoint",
        rank=7,
        prepare=comparisons.addresses,
        has=lambda facts: (facts.address,),
        hint="Such as 198.51.100.0/24. VPN gateways send the address.",
        asked="IP address of the user's endpoint (Tunnel-Client-Endpoint).",
        is_claim=True,
    ),
)
"""All conditions with a list of values, in the order in which a rule shows them."""
CLAIMS: Final = frozenset(each.field for each in CONDITIONS if each.is_claim)
"""Conditions whose facts may be only claims of the sender."""


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
