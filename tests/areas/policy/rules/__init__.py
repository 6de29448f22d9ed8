"""Tests of sallyport.areas.policy.rules. The helpers `rule` and `facts` fill in values that a test does not give."""

import json
from collections.abc import Mapping

from sallyport.areas.policy.rules.facts import Facts
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import Action, Definition, Rule
from sallyport.areas.policy.rules.window import Window
from sallyport.base.clock import from_iso

NOON = from_iso("2026-01-07T12:00:00Z")  # a Wednesday
KNOWN: Mapping[str, object] = {
    "user": "ann",
    "kind": "user",
    "groups": frozenset({"staff"}),
    "ous": frozenset({"ou=sales,dc=corp"}),
    "client": "vpn",
    "source": "192.0.2.1",
    "nas": "192.0.2.1",
    "product": "Cisco ISE",
    "nas_product": "Cisco IOS",
    "medium": "Ethernet",
    "station": "AA-BB-CC-DD-EE-FF",
    "service_type": 2,
    "at": NOON,
}


def facts(**other: object) -> Facts:
    """Return the facts of a login. All of them are known, except those that the test changes."""
    return Facts(**{**KNOWN, **other})  # type: ignore[arg-type]


def rule(
    id: int = 1, action: str = "mfa_required", reply: bytes = b"", *, is_listed: bool = False, **kept: object
) -> Rule:
    """Return a rule with the given values. reply: its encoded reply attributes."""
    if isinstance(time := kept.get("time"), dict):
        kept["time"] = {**Window().as_json(), **time}
    definition = Definition.parse(json.dumps({**Definition(f"rule {id}", Action(action)).as_json(), **kept}))
    return Rule(id, 1, definition.name, Action(action), reply, definition, is_listed=is_listed)


def matched(known: Facts, *rules: Rule) -> int:
    """Return the ID of the rule that decides, or 0 if no rule decides."""
    found = DomainRules(rules).match(known)
    return 0 if found is None else found.id
