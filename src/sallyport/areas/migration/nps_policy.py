"""The conditions of NPS policies (`msNPConstraint`), as conditions of login rules.

All conditions of a policy must hold. Each is one of `MATCH("ATTRIBUTE=EXPRESSION")`, `TIMEOFDAY("DAY FROM-UNTIL; ...")`
with the days 0 (Sunday) to 6, and `NTGROUPS`, `USERNTGROUPS` or `MACHINENTGROUPS("SID;SID")`, of which one must hold.
A condition that login rules cannot express is a problem of the policy.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.areas.migration.nps_pattern import Inexpressible, Value, matches, numbers_of, values_of
from sallyport.base.mac import mac_key
from sallyport.base.wire import JSON

_CALL: Final = re.compile(r'\s*([A-Z]+)\s*\(\s*"(.*)"\s*\)\s*', re.DOTALL)
_SID: Final = re.compile(r"S-1-[0-9]+(-[0-9]+)+", re.IGNORECASE)
_DAY: Final = re.compile(r"\s*([0-6])((?:\s+[0-9]{1,2}:[0-9]{2}-[0-9]{1,2}:[0-9]{2}[,]?)*)\s*")
_RANGE: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_GROUPS: Final = {"NTGROUPS": "", "USERNTGROUPS": "user", "MACHINENTGROUPS": "machine"}
_METHODS: Final = {1: ["pap"], 2: ["chap"], 3: ["mschap"], 4: ["mschapv2"], 5: ["eap"], 11: ["peap"]}
_MEDIA: Final = {5: "Virtual", 15: "Ethernet", 19: "Wireless"}
"""NAS-Port-Types whose medium is the same in Sallyport (RFC 2865 section 5.41)."""
_CLIENT: Final = {"Client-IP-Address", "Client-Friendly-Name", "Client-Vendor", "Client-IPv6-Address"}
_NAMES: Final = {"NAS-IPv4-Address": "NAS-IP-Address", "NAS-IPv6-Address": "NAS-IPv6-Address"}
_SSID: Final = re.compile(r"(?:\^?\.\*)?:([^:\\^$.|?*+()\[\]{}]+)\$")
ALWAYS: Final[dict[str, JSON]] = {}


@dataclass(frozen=True, slots=True)
class ClientOfFile:
    """A RADIUS client of the file, for conditions about clients. vendor: the IANA number of its vendor, as text."""

    name: str
    address: str
    vendor: str


@dataclass(slots=True)
class Conditions:
    """The conditions of a policy.

    fields: the conditions of a rule by field, except the time. times: the times at which it applies, as fields of
    rules; one rule is made for each. problems: what cannot be expressed. notes: what differs a little.
    """

    fields: dict[str, list[str]] = field(default_factory=dict)
    times: list[dict[str, JSON]] = field(default_factory=lambda: [ALWAYS])
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put(self, name: str, values: Sequence[str], what: str) -> None:
        """Set a condition. A second one for the same field must also hold, so it keeps only values that both have."""
        if name not in self.fields:
            self.fields[name] = list(dict.fromkeys(values))
            return
        both = [each for each in self.fields[name] if each in values]
        if both:
            self.fields[name] = both
        else:
            self.problems.append(f"{what}: a rule cannot require it beside another condition of the same kind")

    def put_attribute(self, name: str, values: Sequence[Value], what: str) -> None:
        """Set a condition on any attribute. Several values of a rule are alternatives, so it has one attribute."""
        if "attributes" in self.fields:
            self.problems.append(f"{what}: a rule cannot require two attributes at once")
            return
        self.put("attributes", [f"{name}{'~' if each.is_pattern else '='}{each.text}" for each in values], what)


def conditions_of(constraints: Iterable[str], clients: Sequence[ClientOfFile], timezone: str) -> Conditions:
    """Return the conditions in the texts of `msNPConstraint`. timezone: of the old server; empty if unknown."""
    found = Conditions()
    for text in constraints:
        add_constraint(found, text, clients, timezone)
    return found


def add_constraint(found: Conditions, text: str, clients: Sequence[ClientOfFile], timezone: str) -> None:
    """Add one condition."""
    call = _CALL.fullmatch(text)
    name, argument = (call[1], call[2]) if call else ("", "")
    if name in _GROUPS:
        _add_groups(found, name, argument)
    elif name == "TIMEOFDAY":
        add_times(found, argument, timezone)
    elif name == "MATCH" and "=" in argument:
        attribute, _, expression = argument.partition("=")
        add_match(found, attribute.strip(), expression, clients)
    else:
        found.problems.append(f"the condition {text[:200]} is not known")


def _add_groups(found: Conditions, name: str, argument: str) -> None:
    sids = [each.strip().upper() for each in re.split("[;,]", argument) if each.strip()]
    if not sids or not all(_SID.fullmatch(each) for each in sids):
        found.problems.append(f"{name}: the groups are not SIDs")
        return
    if "groups" in found.fields:
        found.problems.append(f"{name}: a rule cannot require two groups at once")
        return
    found.put("groups", sids, name)
    if _GROUPS[name]:
        found.put("kinds", [_GROUPS[name]], name)


# --- the time ---------------------------------------------------------------------------------------------------------


def add_times(found: Conditions, argument: str, timezone: str) -> None:
    """Add the times of TIMEOFDAY."""
    days = dict[tuple[str, str], list[str]]()
    for text in filter(str.strip, argument.split(";")):
        day = _DAY.fullmatch(text)
        if day is None:
            found.problems.append(f"TIMEOFDAY: {text.strip()[:60]!r} is not understood")
            return
        for start_h, start_m, end_h, end_m in _RANGE.findall(day[2]):
            start, end = f"{int(start_h):02}:{start_m}", f"{int(end_h):02}:{end_m}"
            days.setdefault((start, "24:00" if end == "00:00" else end), []).append(_DAYS[int(day[1])])
    if days == {("00:00", "24:00"): [*_DAYS]} or (len(days) == 1 and len(set(days.get(("00:00", "24:00"), ()))) == 7):
        return
    if found.times != [ALWAYS]:
        found.problems.append("TIMEOFDAY: a rule cannot have two times at once")
    elif not timezone:
        found.problems.append("TIMEOFDAY: the file does not have the time zone of the server; give it with --timezone")
    elif not days:
        found.problems.append("TIMEOFDAY: no time is permitted")
    else:
        found.times = [
            {"days": list[JSON](own), "from": start, "until": end, "timezone": timezone}
            for (start, end), own in days.items()
        ]


# --- attributes -------------------------------------------------------------------------------------------------------


def add_match(found: Conditions, attribute: str, expression: str, clients: Sequence[ClientOfFile]) -> None:
    """Add `MATCH("ATTRIBUTE=EXPRESSION")`."""
    what = f"{attribute}={expression[:200]}"
    try:
        values = values_of(expression)
    except Inexpressible as error:
        found.problems.append(f"the regular expression {what} {error}")
        return
    numbers = numbers_of(expression)
    if attribute in _CLIENT:
        _add_clients(found, attribute, values, clients, what)
    elif attribute == "NAS-Port-Type" and numbers is not None and all(each in _MEDIA for each in numbers):
        found.put("media", [_MEDIA[each] for each in numbers], what)
        if 19 in numbers:
            found.notes.append("NAS-Port-Type 19 is the medium Wireless, which 18 (Wireless - Other) has too")
    elif attribute == "Service-Type" and numbers is not None:
        found.put("serviceTypes", [str(each) for each in numbers], what)
    elif attribute == "NAS-Port-Id":
        found.put("ports", [each.text for each in values], what)
    elif attribute == "Authentication-Type" and numbers is not None and all(each in _METHODS for each in numbers):
        found.put("methods", [method for each in numbers for method in _METHODS[each]], what)
    elif attribute == "Called-Station-Id" and (ssid := _SSID.fullmatch(expression)):
        found.put("ssids", [ssid[1]], what)
        found.notes.append(f"{what} is the SSID {ssid[1]}, also if a vendor's attribute has it")
    elif attribute == "Calling-Station-Id" and all(not each.is_pattern and mac_key(each.text) for each in values):
        found.put("stations", [each.text for each in values], what)
    else:
        found.put_attribute(_NAMES.get(attribute, attribute), values, what)


def _add_clients(
    found: Conditions, attribute: str, values: Sequence[Value], clients: Sequence[ClientOfFile], what: str
) -> None:
    """Add a condition on the RADIUS client, by the names of the clients of the file that it selects."""

    def fact(client: ClientOfFile) -> str:
        if attribute == "Client-Friendly-Name":
            return client.name
        return client.vendor if attribute == "Client-Vendor" else client.address

    if attribute.startswith("Client-IP"):
        if ranges := ", ".join(each.name for each in clients if "/" in each.address):
            found.notes.append(f"{what}: the clients {ranges[:200]} are networks, and are not selected")
        clients = [each for each in clients if "/" not in each.address]
    names = [each.name for each in clients if any(matches(value, fact(each)) for value in values)]
    if not names:
        found.problems.append(f"{what}: no RADIUS client of the file is selected")
        return
    found.put("clients", names, what)
