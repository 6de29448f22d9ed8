"""Evaluate a domain's rules for the facts of a login, without I/O, in some microseconds. The module `conditions` has
the conditions of rules."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from sallyport.areas.policy.rules.conditions import CLAIMS, CONDITIONS, time_condition
from sallyport.areas.policy.rules.facts import AccountKind, Facts, Preparation, Seen, Test, user_names
from sallyport.areas.policy.rules.index import Index
from sallyport.areas.policy.rules.rule import Action, Definition, Rule
from sallyport.radius.attributes import NAS_PORT_TYPE, SERVICE_TYPE, VENDOR_SPECIFIC

UNKNOWN_STATION: Final = AccountKind.UNKNOWN
_BY_RANK: Final = sorted(CONDITIONS, key=lambda each: each.rank)


MAX_KEPT: Final = 256
MAX_OCTETS: Final = 512
"""Maximum number of results that a domain's rules keep, and of octets of a request that such a result belongs to."""
Result = tuple[Rule | None, str | None]
"""The rule that decides a login, and the facts that its event records."""


_OF_EACH_LOGIN: Final = frozenset({"users", "groups", "ous", "stations", "addresses", "time"})
"""Conditions about facts that almost each login has for itself: each user has other groups."""
_READ: Final = {"media": (NAS_PORT_TYPE,), "serviceTypes": (SERVICE_TYPE,), "ssids": (NAS_PORT_TYPE,)}
"""The attributes of a request whose octets decide a condition. The other facts have their own fields in `Reading`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a domain's rules read of a login.

    is_shared: whether many logins have the same result, so that it is kept. It is not if rules compare attributes of
    vendors: each login has other values in Vendor-Specific, and some are credentials. unread: the attributes of the
    request whose octets the rules do not read. The other fields: whether they read the SSID or the port, the address
    and the products of the NAS, the RADIUS client, the kind of account, the realm, the tags, and facts that may be only
    claims.
    """

    is_shared: bool
    unread: frozenset[int]
    network: bool
    device: bool
    client: bool
    kind: bool
    realm: bool
    tags: bool
    claims: bool


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one rule for a login.

    matches: whether the rule matches; None if a fact is missing. scope: the API name of the first condition that does
    not match or whose fact is missing. It is empty if all conditions match. missing: the API names of all conditions
    whose facts are missing, if `matches` is None.
    """

    rule: Rule
    matches: bool | None
    scope: str
    missing: tuple[str, ...] = ()


class DomainRules:
    """The enabled rules of a domain, in the order in which they are read. groups: the case-folded names of all groups
    that occur in these rules. compared: the fields of all conditions that these rules have. attributes: the names of
    the attributes that these rules compare. compares_devices: whether a rule compares facts of a device of Entra ID.
    providers: the names of the MFA providers that these rules name. reading: the result of `read`, or None before the
    first login. results: the kept results, by a key for the facts."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._index = index = Index()
        in_order = sorted(rules, key=lambda rule: rule.sort_key)
        ordered = [_Prepared(rule, number, index) for number, rule in enumerate(in_order)]
        self.groups: Collection[str] = index.groups.keys()
        self.compares_devices = any(fact.startswith("device=") for fact in index.certificates)
        self.attributes = frozenset(index.attributes)
        self.providers = tuple(sorted({rule.definition.provider for rule in in_order} - {""}))
        self.compared = frozenset(field for rule in in_order for field in rule.definition.scopes)
        self._others = tuple(each for each in ordered if not each.users)
        # Rules with users are looked up by user, so that no loop over them is needed. They come first in the order,
        # unless the domain reads its rules as listed.
        self._is_listed = any(rule.is_listed for rule in in_order)
        self._of_user: dict[str, list[_Prepared]] = {}
        for each in ordered:
            for user in each.users:
                self._of_user.setdefault(user, []).append(each)
        self._all = tuple(ordered)
        self.reading: Reading | None = None
        self.results: dict[object, Result] = {}
        self._of_unknown = tuple(each for each in ordered if _is_for_unknown(each.rule))

    def match(self, facts: Facts) -> Rule | None:
        """Return the rule that decides a login, or None if no rule matches. The method raises no errors.

        If a fact is missing, the result may be a rule that needs this fact. In this case the returned rule has neither
        reply attributes nor a role.
        """
        seen = Seen(facts, self._index)
        if facts.kind is UNKNOWN_STATION:
            return _first(self._of_unknown, seen)
        if not seen.user:
            return _first(self._all, seen)
        own = self._of_user.get(seen.user)
        if facts.names and self._of_user:  # a rule for one of a user's names applies to all names of this user
            each_name = (self._of_user.get(name, ()) for name in facts.names)
            own = sorted({*(own or ()), *chain.from_iterable(each_name)}, key=_position)
        if not own:
            return _first(self._others, seen)
        read = (*own, *self._others)
        return _first(sorted(read, key=_position) if self._is_listed else read, seen)

    def read(self, types: frozenset[int]) -> Reading:
        """Return what these rules read of a login. types: the types of the attributes in `attributes`."""
        if self.reading is None:
            compared = self.compared
            read = types.union(*(_READ.get(each, ()) for each in compared))
            self.reading = Reading(
                is_shared=VENDOR_SPECIFIC not in types and compared.isdisjoint(_OF_EACH_LOGIN),
                unread=frozenset(range(256)) - read,
                network=not compared.isdisjoint({"ssids", "ports"}),
                device=not compared.isdisjoint({"products", "clients"}),
                client="clients" in compared,
                kind="kinds" in compared,
                realm="realms" in compared,
                tags="tags" in compared,
                claims=not compared.isdisjoint(CLAIMS),
            )
        return self.reading

    def keep(self, key: object, result: Result) -> None:
        """Keep a result for logins with the same facts. key: a key for the facts."""
        if len(self.results) >= MAX_KEPT:
            self.results.clear()
        self.results[key] = result

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
    and role. It is used if a fact is missing. strictness: see `Definition.strictness`. position: the position in the
    order in which rules are read, from 0."""

    __slots__ = ("bare", "only", "position", "rule", "strictness", "tests", "users")

    def __init__(self, rule: Rule, position: int, index: Index) -> None:
        self.rule = rule
        self.position = position
        self.bare = replace(rule, attributes=b"", role="")
        self.strictness = rule.definition.strictness
        self.users = user_names(map(str, rule.definition.values("users")))
        self.tests = dict(_tests(rule.definition, Preparation(index, 1 << position, rule.action is Action.ALLOW)))
        self.only = next(iter(self.tests.values())) if len(self.tests) == 1 else None

    def matches(self, seen: Seen, *, only_surely: bool) -> bool | None:
        """Return whether the rule matches. Return None if it may match, because a fact is missing. only_surely: whether
        the result may be None as soon as the rule does not surely match, because the caller treats None as False."""
        sure: bool | None = True
        for test in self.tests.values():
            holds = test(seen)
            if holds is False or (holds is None and only_surely):
                return holds
            if holds is None:
                sure = None
        return sure

    def explain(self, seen: Seen) -> Step:
        """Return the result of `matches`, together with the condition that is the reason for the result."""
        missing = list[str]()
        for field, test in self.tests.items():
            holds = test(seen)
            if holds is False:
                return Step(self.rule, False, field)
            if holds is None:
                missing.append(field)
        return Step(self.rule, None, missing[0], tuple(missing)) if missing else Step(self.rule, True, "")


def _position(rule: _Prepared) -> int:
    return rule.position


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
    strictest = 0
    for each in rules:
        is_stricter = each.strictness > strictest
        matches = each.only(seen) if each.only is not None else each.matches(seen, only_surely=not is_stricter)
        if matches is False:
            continue
        if matches:
            return least if each.strictness < strictest else each.rule
        if is_stricter:
            least, strictest = each.bare, each.strictness
    return least
