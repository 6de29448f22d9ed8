"""The connection request policies of NPS (`Proxy_Policies`): who checks the requests of a realm.

A policy that forwards a realm to a group of RADIUS servers becomes a domain with this realm. Its first factor is set by
hand, because files have no secrets of upstream servers. NPS reads no network policy for forwarded requests, so the
domain gets a rule that allows what the upstream servers accept.
"""

from collections.abc import Sequence
from typing import Final

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.nps_pattern import Inexpressible, values_of
from sallyport.areas.migration.translation import FIRST_PRIORITY, Finding, Options, Weight, last_rule
from sallyport.areas.migration.xml import Element

WINDOWS: Final = "1"
RADIUS: Final = "2"


def proxy_domains(service: Element, options: Options, source: str) -> tuple[Sequence[Item], Sequence[Finding]]:
    """Return the domains of forwarded realms with their rules, and the findings."""
    found = _Proxies(options, source)
    boxes = service.child("Children")
    if boxes is None:
        return [], []
    profiles = {each.name: each for each in _children(boxes, "Proxy_Profiles")}
    found.servers(_children(boxes, "RADIUS_Server_Groups"))
    for policy in sorted(_children(boxes, "Proxy_Policies"), key=_sequence):
        found.read(policy, profiles)
    return found.items, found.findings


def _children(boxes: Element, tag: str) -> list[Element]:
    box = boxes.child(tag)
    inner = box.child("Children") if box is not None else None
    return [] if inner is None else inner.children


def _sequence(policy: Element) -> int:
    text = next((each.value("msNPSequence") for each in policy.children if each.tag == "Properties"), "")
    return int(text) if text.isdecimal() else 1 << 31


class _Proxies:
    def __init__(self, options: Options, source: str) -> None:
        self._options = options
        self._source = source
        self._servers: dict[str, list[str]] = {}
        self._is_over = False
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
        extra = list[str]()
        if settings is not None:
            read = ("msAuthProviderType", "msAuthProviderName", "Opaque_Data", "msManipulationTarget")
            extra = [
                each.tag for each in settings.children if each.tag not in read and each.text and "Guid" not in each.tag
            ]
            for each in settings.children:
                each.is_read = True
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
        elif provider == RADIUS and realms:
            self._add_domain(policy, realms, self._servers.get(group, []))
        elif provider == WINDOWS and all(_is_always(each) for each in constraints):
            self._is_over = True
            self._find(Weight.NOTE, policy, f"requests are checked by the domain {self._options.domain}")
        else:
            self._find(
                Weight.LEFT_OUT,
                policy,
                f"the connection request policy (provider {provider or 'unknown'}, group {group or 'none'}) "
                f"with the conditions {'; '.join(constraints)[:300] or 'none'}",
            )

    def _add_domain(self, policy: Element, realms: list[str], servers: Sequence[str]) -> None:
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
