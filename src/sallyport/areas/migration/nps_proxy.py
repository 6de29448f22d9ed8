"""The connection request policies of NPS (`Proxy_Policies`): who checks the requests of a realm.

A policy that forwards a realm to a group of RADIUS servers becomes a domain with this realm. Its first factor is set by
hand, because files have no secrets of upstream servers. NPS reads no network policy for forwarded requests, so the
domain gets a rule that allows what the upstream servers accept.

NPS reads network policies only for requests that a connection request policy lets it check itself. Login rules are read
for all requests. So an export in which this makes a difference needs a decision, under the name REQUESTS. The same
holds for a policy that rewrites names, unless it only removes realms (`nps_names`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.nps_names import Rewriting, rewriting_of
from sallyport.areas.migration.nps_pattern import Inexpressible, values_of
from sallyport.areas.migration.nps_policy import ALWAYS, ClientOfFile, conditions_of
from sallyport.areas.migration.nps_profile import methods_of
from sallyport.areas.migration.translation import FIRST_PRIORITY, Finding, Options, Weight, last_rule
from sallyport.areas.migration.xml import Element
from sallyport.base.text import fold

WINDOWS: Final = "1"
RADIUS: Final = "2"
REQUESTS: Final = "connection request policies"
_OVERRIDE: Final = "msOverrideRAPAuth"
_ON: Final = ("1", "true")
_READ: Final = frozenset(
    {
        *("msAuthProviderType", "msAuthProviderName", "Opaque_Data", "msManipulationTarget", "msManipulationRule"),
        *(_OVERRIDE, "msNPAuthenticationType2", "msNPAllowedEapType"),
    }
)


@dataclass(frozen=True, slots=True)
class Checked:
    """A connection request policy whose requests NPS checks itself, by its network policies. methods: those that it
    permits in place of the methods of network policies; None if it leaves them."""

    name: str
    constraints: Sequence[str]
    methods: Sequence[str] | None


def read_requests(service: Element, options: Options, source: str) -> "RequestPolicies":
    """Return the connection request policies: the domains of forwarded realms with their rules, and the findings."""
    found = RequestPolicies(options, source)
    boxes = service.child("Children")
    if boxes is None:
        return found
    profiles = {each.name: each for each in _children(boxes, "Proxy_Profiles")}
    found.servers(_children(boxes, "RADIUS_Server_Groups"))
    for policy in sorted(_children(boxes, "Proxy_Policies"), key=_sequence):
        found.read(policy, profiles)
    return found


def _children(boxes: Element, tag: str) -> list[Element]:
    box = boxes.child(tag)
    inner = box.child("Children") if box is not None else None
    return [] if inner is None else inner.children


def _sequence(policy: Element) -> int:
    text = next((each.value("msNPSequence") for each in policy.children if each.tag == "Properties"), "")
    return int(text) if text.isdecimal() else 1 << 31


class RequestPolicies:
    """The connection request policies of a file. checked: those whose requests NPS checks itself, in their order.
    realms: those that are removed from the names of users of the domain that gets the rules."""

    def __init__(self, options: Options, source: str) -> None:
        self._options = options
        self._source = source
        self._servers: dict[str, list[str]] = {}
        self._is_over = False
        self._count = 0
        self._forwarding: list[str] = []
        self._rewriting: list[str] = []
        self._realms = {fold(options.domain)}
        self.realms: list[str] = []
        self.checked: list[Checked] = []
        self.items: list[Item] = []
        self.findings: list[Finding] = []

    def _find(self, weight: Weight, element: Element, text: str) -> None:
        self.findings.append(Finding(weight, element.name, f"{self._source}:{element.line}", text))

    def servers(self, groups: Sequence[Element]) -> None:
        """Read the addresses of the groups of upstream servers. Their secrets are not used."""
        for group in groups:
            waiting, addresses = [group], list[str]()
            while waiting:
                element = waiting.pop()
                addresses += [each.text for each in element.children if each.tag == "Address"]
                waiting += element.children
            group.mark()
            self._servers[group.name] = addresses
            self._find(
                Weight.LEFT_OUT,
                group,
                f"upstream servers {', '.join(addresses) or 'without an address'} with their secrets: set them as the "
                "first factor of a domain (sallyport domain first-factor)",
            )

    def read(self, policy: Element, profiles: dict[str, Element]) -> None:
        """Read a policy. Conditions other than a realm are findings."""
        properties = policy.child("Properties") or Element("Properties", {}, policy.line)
        named = properties.value("msNPAction")
        profile = profiles.get(policy.name) or profiles.get(named)
        for each in (policy, profile):
            if each is not None:
                each.is_read = True
        settings = profile.child("Properties") if profile is not None else None
        provider = settings.value("msAuthProviderType") if settings is not None else ""
        group = settings.value("msAuthProviderName") if settings is not None else ""
        extra = _others(settings) if settings is not None else []
        self._count += 1
        for tag in ("Template_Guid", "msNPSequence"):
            properties.value(tag)
        if properties.value("Policy_SourceTag") not in ("", "0"):
            extra.append("Policy_SourceTag")
        if properties.value("Policy_Enabled") in ("0", "false"):
            self._find(Weight.LEFT_OUT, policy, "the connection request policy is disabled on the old server")
            return
        if extra:
            self._find(Weight.LEFT_OUT, policy, f"the settings {', '.join(extra)} of the connection request policy")
        constraints = [each.text for each in properties.all("msNPConstraint") if each.text]
        realms = _realms(constraints)
        if self._is_over:
            self._find(Weight.NOTE, policy, "is never read, because a policy before it applies to every request")
        elif provider == RADIUS and realms and not self._realms & {fold(each) for each in realms}:
            self._add_domain(policy, realms, self._servers.get(group, []))
            if rewriting_of(settings) != Rewriting():
                text = "the rules that rewrite names: the servers get the names as they were sent"
                self._find(Weight.LEFT_OUT, policy, text)
        elif provider == WINDOWS:
            self._is_over = all(_is_always(each) for each in constraints)
            methods = methods_of(settings) if settings is not None and settings.value(_OVERRIDE) in _ON else None
            self.checked.append(Checked(policy.name, constraints, methods))
            self._add_realms(policy, settings, realms)
            self._find(Weight.NOTE, policy, f"requests are checked by the domain {self._options.domain}")
        else:
            if provider == RADIUS:
                self._forwarding.append(policy.name)
            self._find(
                Weight.LEFT_OUT,
                policy,
                f"the connection request policy (provider {provider or 'unknown'}, group {group or 'none'}) "
                f"with the conditions {'; '.join(constraints)[:300] or 'none'}",
            )

    def difference(self, clients: Sequence[ClientOfFile]) -> str:
        """Return which requests the rules would decide, but the network policies do not; empty if there are none."""
        parts = list[str]()
        if self._forwarding:
            parts.append(f"those that {', '.join(self._forwarding)[:200]} would forward")
        if self._rewriting:
            parts.append(f"those whose names {', '.join(self._rewriting)[:200]} would rewrite")
        if self._count and not self._is_over and not {each.name for each in clients} <= self._covered(clients):
            parts.append("those that no connection request policy selects, which NPS refuses")
        return " and ".join(parts)

    def _covered(self, clients: Sequence[ClientOfFile]) -> set[str]:
        """Return the names of the clients all of whose requests NPS checks itself."""
        found = set[str]()
        for each in self.checked:
            conditions = conditions_of([text for text in each.constraints if not _is_always(text)], clients, "UTC")
            if conditions.fields.keys() == {"clients"} and not conditions.problems and conditions.times == [ALWAYS]:
                found |= {*conditions.fields["clients"]}
        return found

    def _add_realms(self, policy: Element, settings: Element | None, own: Sequence[str]) -> None:
        """Add the realms that a policy only removes from user names. own: the realms that are its condition."""
        rewriting = rewriting_of(settings)
        selects = {fold(each) for each in own}
        is_whole = self._is_over or not {fold(each) for each in rewriting.realms} - selects
        if rewriting.others:
            self._rewriting.append(policy.name)
            self._find(Weight.NOTE, policy, f"rewrites names, which Sallyport does not: {'; '.join(rewriting.others)}")
        elif rewriting.realms and is_whole:
            new = [each for each in rewriting.realms if fold(each) not in self._realms]
            self._realms |= {fold(each) for each in new}
            self.realms += new
            text = f"removes the realms {', '.join(rewriting.realms)[:300]}, as the domain that has them does"
            self._find(Weight.NOTE, policy, text)
        if rewriting.removes_all or (rewriting.realms and not is_whole and not rewriting.others):
            text = (
                "removes realms from names. Logins with another realm than those of the domain are refused until the "
                "domain has it (sallyport domain set --realm)"
            )
            self._find(Weight.LEFT_OUT, policy, text)

    def _add_domain(self, policy: Element, realms: list[str], servers: Sequence[str]) -> None:
        self._realms |= {fold(each) for each in realms}
        name, source = realms[0], f"{self._source}:{policy.line}"
        fields = {"domainName": name, "realms": realms[1:], "ruleOrder": "listed"}
        self.items.append(Item("domain", name, fields, source))
        rule = last_rule(name, "forwarded by NPS", FIRST_PRIORITY, source)
        self.items.append(Item("rule", rule.name, {**rule.fields, "action": "allow"}, source))
        self._find(
            Weight.NOTE,
            policy,
            f"becomes the domain {name}, without a second factor. Until its first factor is set to the servers "
            f"{', '.join(servers) or 'of NPS'}, its logins fail",
        )


def _others(settings: Element) -> list[str]:
    """Return the names of settings of a profile that are not imported, and mark all settings as read."""
    for each in settings.children:
        each.is_read = True
    names = dict.fromkeys(each.tag for each in settings.children if each.text)
    return [name for name in names if name not in _READ and "Guid" not in name]


def _is_always(constraint: str) -> bool:
    return constraint.startswith("TIMEOFDAY(") and constraint.count("00:00-24:00") == 7


def _realms(constraints: Sequence[str]) -> list[str]:
    """Return the realms if the only condition is about the end of User-Name, such as `@corp\\.example$`."""
    others = [each for each in constraints if not _is_always(each)]
    if len(others) != 1 or not others[0].startswith('MATCH("User-Name=') or not others[0].endswith('")'):
        return []
    try:
        values = values_of(others[0].removeprefix('MATCH("User-Name=').removesuffix('")'))
    except Inexpressible:
        return []
    found = list[str]()
    for value in values:
        if value.is_pattern and value.text.startswith("*@") and not set("*?") & set(value.text[2:]):
            found.append(value.text[2:])  # *@realm
        elif value.is_pattern and value.text.endswith("\\*") and not set("*?") & set(value.text[:-2]):
            found.append(value.text[:-2])  # REALM\*
        else:
            return []
    return found
