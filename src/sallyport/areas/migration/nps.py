"""Network Policy Server (NPS): the XML of `netsh nps export` and `Export-NpsConfiguration`.

The names of elements are display names with other characters than letters and digits replaced, in the language of
Windows. So a name is read from the attribute `name`. The file has all shared secrets in clear text.

NPS reads the network policies by msNPSequence. The first one whose conditions all hold decides: its profile grants or
denies. A login that the profile does not permit, for example by its method, is rejected; no further policy is read. So
a grant with such constraints becomes a rule that allows, and behind it one that blocks, with the same conditions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.nps_clients import NpsImport, below, clients_of_file, container
from sallyport.areas.migration.nps_policy import (
    ALWAYS,
    ClientOfFile,
    Conditions,
    add_constraint,
    add_match,
    conditions_of,
)
from sallyport.areas.migration.nps_profile import Profile, read_profile
from sallyport.areas.migration.nps_proxy import REQUESTS, Checked, RequestPolicies, read_requests
from sallyport.areas.migration.translation import (
    FIRST_PRIORITY,
    INCOMPLETE,
    OTHERWISE,
    STEP,
    Decision,
    Finding,
    Options,
    Translation,
    UniqueNames,
    Weight,
    last_rule,
    listed_domain,
    with_fields,
)
from sallyport.areas.migration.xml import Element, read
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON

SERVICE: Final = "Microsoft_Internet_Authentication_Service"
LAST: Final = "NPS: no policy matches"
_SETTINGS: Final = frozenset(
    {
        *("registryKeys", "Auditors", "RequestHandlers", "Microsoft_Protocol_Surrogate", "NAP", "SHVs", "Quarantine"),
    }
)
"""Parts of an export that describe NPS itself. One finding names them."""
_FORMAT: Final = frozenset(
    {
        *("_locDefinition", "Version", "TemplatesTimestamp", "SDO_Schema", "SystemInfo", "Description", "Component_Id"),
        *("Component_Prog_Id", "Opaque_Data"),
    }
)
"""Parts of the format, and texts of the console of NPS."""


def translate(path: Path, options: Options) -> Translation:
    """Read an export. Raises Invalid if the file is not an export of NPS, or too large; OSError."""
    root = read(path)
    service = next((each for each in below(root, 2) if each.tag == SERVICE), None)
    if service is None:
        raise Invalid(f"the file has no element {SERVICE}: export NPS with `netsh nps export`")
    found = NpsImport(path.name, options)
    _settings(found, root)
    requests = read_requests(service, options, found.source)
    found.findings += requests.findings
    domains = [options.domain, *(each.name for each in requests.items if each.kind == "domain")]
    clients, of_file = clients_of_file(found, root, service, domains)
    own = listed_domain(options, found.source)
    found.items += [with_fields(own, realms=requests.realms) if requests.realms else own, *requests.items, *clients]
    _policies(found, service, of_file, requests)
    _rest(found, root)
    return Translation(found.items, found.findings)


# --- network policies -------------------------------------------------------------------------------------------------


def _policies(found: NpsImport, service: Element, clients: Sequence[ClientOfFile], requests: RequestPolicies) -> None:
    """Add the rules of the network policies, and the last rule."""
    profiles = {each.name: each for each in _children(container(service, "RadiusProfiles"))}
    policies = sorted(_children(container(service, "NetworkPolicy")), key=_sequence)
    names, number = UniqueNames(), 0
    read_ = [_Policy(found, element, profiles, clients) for element in policies]
    for policy in read_:
        policy.limit_methods(requests.checked)
    admits = not _are_refused(found, requests.difference(clients))
    for position, (element, each) in enumerate(zip(policies, read_, strict=True), 1):
        for rule in each.rules(read_[position:]):
            if rule["action"] == "allow" and not admits:
                rule["enabled"] = False
            name = names.take(str(rule["name"]))
            fields = {**rule, "name": name, "domain": found.options.domain, "priority": FIRST_PRIORITY + number * STEP}
            found.items.append(Item("rule", name, fields, found.at(element)))
            number += 1
    found.items.append(last_rule(found.options.domain, names.take(LAST), FIRST_PRIORITY + number * STEP, found.source))


def _are_refused(found: NpsImport, requests: str) -> bool:
    """Return whether the admin has decided to enable no rule that allows. requests: those that login rules would
    decide, but network policies do not; empty if there are none."""
    if not requests:
        return False
    decision = found.options.decisions.get(REQUESTS)
    text = f"the rules would also decide {requests}"
    if decision is None:
        weight = Weight.UNDECIDED
        text += (
            f". Decide with --decide '{REQUESTS}=skip', if this is intended, or --decide '{REQUESTS}=block', which "
            "disables the rules that allow, until you have completed them"
        )
    elif decision is Decision.SKIP:
        weight, text = Weight.NOTE, f"{text}, as decided"
    else:
        weight, text = Weight.DISABLED, f"{text}, so those that allow are disabled, as decided"
    found.findings.append(Finding(weight, REQUESTS, found.source, text))
    return decision is Decision.BLOCK


def _children(box: Element | None) -> list[Element]:
    return [] if box is None else box.children


def _sequence(policy: Element) -> int:
    text = next((each.value("msNPSequence") for each in policy.children if each.tag == "Properties"), "")
    return int(text) if text.isdecimal() else 1 << 31


class _Policy:
    """A network policy with its profile."""

    def __init__(
        self, found: NpsImport, element: Element, profiles: dict[str, Element], clients: Sequence[ClientOfFile]
    ) -> None:
        self._found = found
        self._element = element
        self._clients = clients
        self._timezone = found.options.timezone
        element.is_read = True
        properties = element.child("Properties") or Element("Properties", {}, element.line)
        self._is_enabled = properties.value("Policy_Enabled") not in ("0", "false")
        constraints = [each.text for each in properties.all("msNPConstraint") if each.text]
        self._base = conditions_of(constraints, clients, self._timezone)
        source = properties.value("Policy_SourceTag") or "0"
        if source != "0":
            self._base.problems.append(f"it is only for the type of server {source} (Policy_SourceTag)")
        for tag in ("Opaque_Data", "Template_Guid"):
            properties.value(tag)
        self._profile = self._read_profile(properties.value("msNPAction"), profiles)

    def limit_methods(self, requests: Sequence[Checked]) -> None:
        """Keep only methods that the connection request policies permit too which permit methods in place of this
        policy."""
        for each in requests:
            other = conditions_of(each.constraints, self._clients, self._timezone)
            own, theirs = ({*conditions.fields.get("clients", ())} for conditions in (self._base, other))
            if each.methods is None or (own and theirs and not own & theirs):
                continue
            present = self._profile.methods
            kept = [*each.methods] if present is None else [method for method in present if method in each.methods]
            if not self._profile.grants or (kept == present and not {*each.methods} - {*kept}):
                continue
            self._profile.methods = kept
            self._note(Weight.NOTE, f"admits only methods that the connection request policy {each.name} permits too")
            if not kept:
                self._profile.problems.append(f"it permits no method that {each.name} permits")

    def _read_profile(self, name: str, profiles: dict[str, Element]) -> Profile:
        """Return the profile of the policy's name, or else the one that msNPAction names: after a policy was renamed,
        msNPAction still has the former name, which another policy may have now."""
        element = profiles.get(self._element.name) or profiles.get(name)
        if element is None:
            return Profile(problems=[f"its profile {name[:100]!r} is not in the file"])
        element.is_read = True
        properties = element.child("Properties")
        return read_profile(properties) if properties is not None else Profile(problems=["its profile is empty"])

    def rules(self, later: Sequence["_Policy"]) -> list[dict[str, JSON]]:
        """Return the fields of the rules for this policy, in their order, without domain and priority. later: the
        policies behind it."""
        if not self._profile.grants and self._profile.problems and self._profile.problems[0].startswith("its profile"):
            self._base.problems += self._profile.problems
        for note in self._base.notes:
            self._note(Weight.NOTE, note)
        if not self._is_enabled:
            self._note(Weight.DISABLED, "the policy is disabled on the old server")
        return self._grant(later) if self._profile.grants else self._deny()

    def _note(self, weight: Weight, text: str) -> None:
        self._found.find(weight, self._element, text)

    def _grant(self, later: Sequence["_Policy"]) -> list[dict[str, JSON]]:
        base, narrow = self._base, self._narrow()
        problems = [*base.problems, *narrow.problems, *self._profile.problems]
        if self._profile.has_dial_in and not self._found.options.ignores_dial_in:
            problems.append(
                "the dial-in permission of the user's account decides first (msIgnoreUserDialinProperties is not set): "
                "give --no-dial-in-permissions if no account has one"
            )
        enabled = self._is_enabled and not problems
        for problem in problems if self._is_enabled else ():
            self._note(Weight.DISABLED, problem)
        lacks = bool(base.problems or narrow.problems or self._profile.problems)
        allows = self._rules("allow", self._element.name + INCOMPLETE * lacks, narrow, enabled=enabled)
        replies: list[JSON] = [{"name": name, "value": value} for name, value in self._profile.replies]
        for each in allows:
            each.update({"vlan": self._profile.vlan, "replyAttributes": replies} if replies else {})
            each.update({"vlan": self._profile.vlan} if self._profile.vlan else {})
        if base.problems:
            return [*allows, *self._refusals(later)]
        is_narrow = narrow.fields != base.fields or narrow.times != base.times
        if not is_narrow and (enabled or not self._is_enabled):
            return allows
        name = f"{self._element.name}{OTHERWISE}"
        return [*allows, *self._rules("block", name, base, enabled=self._is_enabled)]

    def _refusals(self, later: Sequence["_Policy"]) -> list[dict[str, JSON]]:
        """Return the rules for the logins that the profile refuses, if the conditions cannot be expressed. A decision
        is needed if a policy behind it may admit these logins."""
        if not self._is_enabled or not any(self._refuses_more_than(each) for each in later):
            return []
        name = self._element.name
        decision = self._found.options.decisions.get(name)
        if decision is Decision.BLOCK:
            self._note(Weight.NOTE, "blocks more than on the old server, as decided")
            return self._rules("block", f"{name}{OTHERWISE}", self._base, enabled=True)
        if decision is None:
            self._note(
                Weight.UNDECIDED,
                "the policy refuses logins by its profile, and a policy behind it may admit them. Decide with --decide "
                f"'{name}=block', which blocks what its other conditions select, or --decide '{name}=skip'",
            )
        return []

    def _refuses_more_than(self, other: "_Policy") -> bool:
        """Return whether another policy that grants may admit a login that the profile of this policy refuses."""
        if not other._is_enabled or not other._profile.grants:
            return False
        own, theirs = self._profile.methods, other._profile.methods
        return bool(
            self._profile.limits
            or self._profile.windows
            or (self._profile.has_dial_in and not self._found.options.ignores_dial_in)
            or (own is not None and (theirs is None or not set(theirs) <= set(own)))
        )

    def _narrow(self) -> Conditions:
        """Return the conditions together with the constraints of the profile."""
        base, profile = self._base, self._profile
        narrow = Conditions({name: [*values] for name, values in base.fields.items()}, [*base.times])
        if profile.methods:
            narrow.put("methods", profile.methods, "the permitted methods")
        for attribute, expression in profile.limits:
            add_match(narrow, attribute, expression, self._clients)
        for text in profile.windows:
            add_constraint(narrow, f'TIMEOFDAY("{text}")', self._clients, self._timezone)
        return narrow

    def _deny(self) -> list[dict[str, JSON]]:
        base, decision = self._base, self._found.options.decisions.get(self._element.name)
        if self._profile.has_dial_in and self._is_enabled:
            self._note(Weight.NOTE, "blocks users whose account has the dial-in permission too")
        for problem in self._profile.problems:
            if problem not in base.problems:
                self._note(Weight.LEFT_OUT, problem)
        if base.problems and self._is_enabled:
            problem = "; ".join(base.problems)
            if decision is None:
                name = self._element.name
                self._note(
                    Weight.UNDECIDED,
                    f"the policy denies access, but {problem}. Decide with --decide '{name}=block', which blocks what "
                    f"its other conditions select, or --decide '{name}=skip', which leaves it out",
                )
            elif decision is Decision.SKIP:
                self._note(Weight.LEFT_OUT, f"the policy denies access, and is left out as decided: {problem}")
                return []
            else:
                self._note(Weight.NOTE, f"blocks more than on the old server, as decided: {problem}")
        return self._rules("block", self._element.name, base, enabled=self._is_enabled)

    def _rules(self, action: str, name: str, conditions: Conditions, *, enabled: bool) -> list[dict[str, JSON]]:
        """Return one rule for each time at which the conditions apply."""
        rules = list[dict[str, JSON]]()
        for time in conditions.times:
            rule: dict[str, JSON] = {"name": name, "action": action, "enabled": enabled}
            rule |= {key: list[JSON](values) for key, values in conditions.fields.items()}
            if time is not ALWAYS and time:
                rule["time"] = time
            if not conditions.fields and not time:
                rule["everyone"] = True
            rules.append(rule)
        return rules


# --- what is left -----------------------------------------------------------------------------------------------------


def _settings(found: NpsImport, root: Element) -> None:
    """Add one finding for all parts of the file that describe NPS itself."""
    parts = [each for each in below(root, 6) if each.tag in _SETTINGS and _has_content(each)]
    for each in parts:
        each.mark()
    for each in below(root, 8):
        if each.tag in _FORMAT:
            each.mark()
    if parts:
        names = ", ".join(dict.fromkeys(each.tag for each in parts))
        found.find(
            Weight.LEFT_OUT, parts[0], f"parts that describe NPS itself, such as its log and components: {names}"
        )


def _rest(found: NpsImport, root: Element) -> None:
    """Add a finding for each element that was not used. Elements that only hold others are used with them."""
    waiting = list(root.unread())
    while waiting:
        element = waiting.pop()
        is_box = element.tag in ("Children", "Properties") or element.tag.startswith(SERVICE)
        if is_box or any(each.is_read for each in element.children):
            waiting += element.unread()
        elif _has_content(element):
            found.find(Weight.LEFT_OUT, element, "the element has no place in Sallyport")
    found.findings.sort(key=lambda each: int(each.source.rpartition(":")[2]) if ":" in each.source else 0)


def _has_content(element: Element) -> bool:
    """Return whether an element has a text, or an element with one below it."""
    return bool(element.text) or any(_has_content(each) for each in element.children)
