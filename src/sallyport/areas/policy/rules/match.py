"""Evaluate a domain's rules for the facts of a login, without I/O, in some microseconds. The module `conditions` has
the conditions of rules."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from operator import attrgetter
from typing import Final

from sallyport.areas.policy.rules.conditions import CONDITIONS, time_condition
from sallyport.areas.policy.rules.facts import AccountKind, Facts, Preparation, Seen, Test
from sallyport.areas.policy.rules.index import Index
from sallyport.areas.policy.rules.rule import Action, Definition, Rule
from sallyport.base.text import folded

_STRICTNESS: Final = {Action.ALLOW: 0, Action.MFA_REQUIRED: 1, Action.BLOCK: 2}
UNKNOWN_STATION: Final = AccountKind.UNKNOWN
_BY_RANK: Final = sorted(CONDITIONS, key=lambda each: each.rank)


MOST_KNOWN: Final = 256
"""Maximum number of results that a domain's rules keep."""
_FACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kinds": ("kind",),
    "clients": ("client", "source", "nas"),
    "products": ("product", "nas_product"),
    "media": ("medium",),
    "serviceTypes": ("service_type",),
    "ssids": ("ssid", "medium"),
    "tags": ("tags",),
    "ports": ("port",),
    "methods": ("method",),
    "certificates": ("certificates",),
    "attributes": (),
    "realms": ("realm",),
    "addresses": ("address",),
}
"""The facts that a condition compares. If a domain's rules have only these conditions, many logins have the same facts,
and the result for these facts is kept. Each user has other groups, and each station has another address. So rules about
them, and about the time, are evaluated for each login."""


class _Unknown(Enum):
    UNKNOWN = 0


_UNKNOWN: Final = _Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one rule for a login.

    matches: whether the rule matches; None if a fact is missing. scope: the API name of the first condition that does
    not match or whose fact is missing. It is empty if all conditions match.
    """

    rule: Rule
    matches: bool | None
    scope: str


class DomainRules:
    """The enabled rules of a domain, in the order in which they are read. groups: the case-folded names of all groups
    that occur in these rules. compared: the fields of all conditions that these rules have. attributes: the names of
    the attributes that these rules compare."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._index = index = Index()
        in_order = sorted(rules, key=lambda rule: rule.place)
        ordered = [_Prepared(rule, 1 << number, index) for number, rule in enumerate(in_order)]
        self.groups: Collection[str] = index.groups.keys()
        self.attributes = frozenset(index.attributes)
        self.compared = frozenset(field for rule in in_order for field, _ in rule.definition.conditions)
        self._others = tuple(each for each in ordered if not each.users)
        # Rules with users come first in the order. They are looked up by user, so that no loop over them is needed.
        self._of_user: dict[str, list[_Prepared]] = {}
        for each in ordered:
            for user in each.users:
                self._of_user.setdefault(user, []).append(each)
        self._all = tuple(ordered)
        names = [name for field in sorted(self.compared) for name in _FACTS.get(field, ())]
        is_repeated = self.compared <= _FACTS.keys() and all(rule.definition.time is None for rule in in_order)
        self._known_by = attrgetter(*dict.fromkeys([*names, "claims", "kind"])) if is_repeated else None
        self._known: dict[object, Rule | None] = {}
        self._of_unknown = tuple(each for each in ordered if _is_for_unknown(each.rule))

    def match(self, facts: Facts) -> Rule | None:
        """Return the rule that decides a login, or None if no rule matches. The method raises no errors.

        If a fact is missing, the result may be a rule that needs this fact. In this case the returned rule has neither
        reply attributes nor a role.
        """
        if self._known_by is None:
            return self._match(facts)
        key = self._known_by(facts), tuple(facts.attributes.items()) if facts.attributes else ()
        found = self._known.get(key, _UNKNOWN)
        if isinstance(found, _Unknown):
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._match(facts)
        return found

    def _match(self, facts: Facts) -> Rule | None:
        seen = Seen(facts, self._index)
        if facts.kind is UNKNOWN_STATION:
            return _first(self._of_unknown, seen)
        if not seen.user:
            return _first(self._all, seen)
        own = self._of_user.get(seen.user)
        if facts.names and self._of_user:  # a rule for one of a user's names applies to all names of this user
            each_name = (self._of_user.get(name, ()) for name in facts.names)
            own = sorted({*(own or ()), *chain.from_iterable(each_name)}, key=lambda each: each.rule.place)
        return _first((*own, *self._others) if own else self._others, seen)

    def explain(self, facts: Facts) -> list[Step]:
        """Return the result of each rule in the order of reading, up to the first rule that surely matches."""
        seen, steps = Seen(facts, self._index), list[Step]()
        for each in self._of_unknown if facts.kind is UNKNOWN_STATION else self._all:
            steps.append(each.explain(seen))
            if steps[-1].matches:
                break
        return steps


class _Prepared:
    """A rule with the tests of its conditions, the cheap ones first. bare: a copy of the rule without reply attributes
    and role. It is used if a fact is missing."""

    __slots__ = ("bare", "only", "rule", "tests", "users")

    def __init__(self, rule: Rule, bit: int, index: Index) -> None:
        self.rule = rule
        self.bare = replace(rule, attributes=b"", role="")
        self.users = folded(tuple(map(str, rule.definition.values("users"))))
        self.tests = dict(_tests(rule.definition, Preparation(index, bit, rule.action is Action.ALLOW)))
        self.only = next(iter(self.tests.values())) if len(self.tests) == 1 else None

    def matches(self, seen: Seen) -> bool | None:
        """Return whether the rule matches. Return None if it may match, because a fact is missing."""
        sure: bool | None = True
        for test in self.tests.values():
            holds = test(seen)
            if holds is False:
                return False
            if holds is None:
                sure = None
        return sure

    def explain(self, seen: Seen) -> Step:
        """Return the result of `matches`, together with the condition that is the reason for the result."""
        doubt = ""
        for field, test in self.tests.items():
            holds = test(seen)
            if holds is False:
                return Step(self.rule, False, field)
            doubt = doubt or ("" if holds else field)
        return Step(self.rule, None if doubt else True, doubt)


def _is_for_unknown(rule: Rule) -> bool:
    """Return whether a rule is read for stations that are on no list: it names their kind, or it blocks. Otherwise a
    rule for everyone would admit invented addresses, or would hide the rule that is meant for them."""
    return rule.action is Action.BLOCK or UNKNOWN_STATION in rule.definition.values("kinds")


def _tests(definition: Definition, prepared: Preparation) -> Iterable[tuple[str, Test]]:
    """Yield the tests of a rule by the field of the condition."""
    for each in _BY_RANK:
        if values := definition.values(each.field):
            test = each.prepare(values, prepared)
            yield each.field, _unless_claimed(each.field, test) if prepared.exempts and each.is_claim else test
    if definition.time is not None:
        yield "time", time_condition(definition.time)


def _unless_claimed(field: str, test: Test) -> Test:
    """Return a test for an `allow` rule. If the fact is only a claim of the sender, it is as good as missing."""

    def holds(seen: Seen) -> bool | None:
        found = test(seen)
        return None if found and field in seen.facts.claims else found

    return holds


def _first(rules: Sequence[_Prepared], seen: Seen) -> Rule | None:
    """Return the first rule that certainly matches. If an earlier rule is stricter and may match, because a fact is
    missing, return the earlier rule instead."""
    least: Rule | None = None
    for each in rules:
        matches = each.only(seen) if each.only is not None else each.matches(seen)
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
