"""The proof that the order and the meaning of NPS policies are kept: random policies are evaluated as NPS does it, and
by the rules that the import makes from them."""

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration import nps
from sallyport.areas.migration.translation import Options, Weight
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import UNMATCHED, Action, Definition, Rule
from sallyport.areas.policy.rules.translation import Translation
from tests.areas import dictionary
from tests.areas.migration import GUESTS, STAFF, export, policy, profile, rules
from tests.areas.policy.rules import facts

NAMES = Translation(dictionary())
MEDIA = {15: "Ethernet", 19: "Wireless", 5: "Virtual"}
METHODS = {1: "pap", 4: "mschapv2", 13: "eap-tls"}


@dataclass(frozen=True)
class Login:
    """A login. A value that is None is not in the request."""

    groups: frozenset[str]
    port_type: int | None
    service_type: int | None
    identifier: str | None
    station: str | None
    method: int

    def value(self, attribute: str) -> str | None:
        """Return the value of an attribute as NPS compares it."""
        values = {
            "NAS-Port-Type": self.port_type, "Service-Type": self.service_type, "NAS-Identifier": self.identifier,
            "Calling-Station-Id": self.station,
        }  # fmt: skip
        found = values[attribute]
        return None if found is None else str(found)


@dataclass(frozen=True)
class Policy:
    """A policy of NPS. methods: the permitted ones; none for all."""

    groups: tuple[str, ...]
    matches: tuple[tuple[str, str], ...]
    grants: bool
    enabled: bool
    methods: tuple[int, ...]

    def applies(self, login: Login) -> bool:
        """Return whether all conditions hold. A regular expression is searched, and case is ignored."""
        if self.groups and not login.groups.intersection(self.groups):
            return False
        for attribute, expression in self.matches:
            value = login.value(attribute)
            if value is None or not re.search(expression, value, re.IGNORECASE):
                return False
        return True


EXPRESSIONS = {
    "NAS-Port-Type": ["^19$", "^15$", "^(15|19)$"],
    "Service-Type": ["^2$", "^1$|^2$"],
    "NAS-Identifier": ["ap", "^ap-", "-1$", "^ap-1$", "^AP.1$", "^(ap-1|vpn)$", "a.*1", "^[a-z]+$", "\\d"],
    "Calling-Station-Id": ["^00-11-22-33-44-55$", "^00-11", "55$"],
}
POLICIES = st.builds(
    Policy,
    st.lists(st.sampled_from([STAFF, GUESTS]), max_size=2, unique=True).map(tuple),
    st.lists(
        st.sampled_from([(name, each) for name, own in EXPRESSIONS.items() for each in own]),
        max_size=2,
        unique_by=lambda each: each[0],
    ).map(tuple),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
    st.lists(st.sampled_from(list(METHODS)), max_size=2, unique=True).map(tuple),
)


def logins(*, complete: bool) -> st.SearchStrategy[Login]:
    """Draw logins. complete: whether each has all attributes."""
    absent = [] if complete else [None]
    return st.builds(
        Login,
        st.frozensets(st.sampled_from([STAFF, GUESTS])),
        st.sampled_from([*MEDIA, *absent]),
        st.sampled_from([1, 2, *absent]),
        st.sampled_from(["ap-1", "AP-2", "vpn", "xap-1y", *absent]),
        st.sampled_from(["00-11-22-33-44-55", "00-11-99-33-44-55", *absent]),
        st.sampled_from(list(METHODS)),
    )


def admitted_by_nps(policies: list[Policy], login: Login) -> bool:
    """Return whether NPS admits a login: the first policy that applies decides."""
    for each in policies:
        if each.enabled and each.applies(login):
            return each.grants and (not each.methods or login.method in each.methods)
    return False


def imported(policies: list[Policy]) -> tuple[DomainRules, bool]:
    """Return the enabled rules of an import, and whether all policies were expressed."""
    numbers = {13: 5}
    elements, profiles = [], []
    for number, each in enumerate(policies, 1):
        name = f"policy {number}"
        constraints = [f'NTGROUPS("{";".join(each.groups)}")'] if each.groups else []
        constraints += [f'MATCH("{attribute}={expression}")' for attribute, expression in each.matches]
        elements.append(policy(name, number, constraints, Policy_Enabled=int(each.enabled)))
        methods = {"msNPAuthenticationType2": [numbers.get(one, one) for one in each.methods]} if each.methods else {}
        types = {"msNPAllowedEapType": "0d" + "0" * 30} if 13 in each.methods else {}
        profiles.append(profile(name, grants=each.grants, **methods, **types))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "nps.xml"
        path.write_text(export(policies=elements, profiles=profiles))
        found = nps.translate(path, Options("corp"))
    made = [rule(number, each) for number, each in enumerate(rules(found), 1)]
    enabled = [each for each in made if each.definition.enabled]
    undecided = found.named(Weight.UNDECIDED)
    disabled = [each for each in found.named(Weight.DISABLED) if "on the old server" not in each.text]
    return DomainRules([] if undecided else enabled), not undecided and not disabled


def rule(number: int, item: Item) -> Rule:
    """Return the stored rule of an object."""
    fields = {name: value for name, value in item.fields.items() if name != "domain"}
    body = RuleFields.model_validate(fields)
    conditions = {name: NAMES.condition(name, entries) for name, entries in body.conditions().items()}
    definition = Definition("", UNMATCHED).changed(body.given(), conditions)
    return Rule(number, 1, definition.name, definition.action, b"", definition, is_listed=True)


def admitted_here(own: DomainRules, login: Login) -> bool:
    """Return whether the rules admit a login."""
    known = facts(
        groups=frozenset(each.casefold() for each in login.groups),
        medium=MEDIA[login.port_type] if login.port_type is not None else "",
        service_type=login.service_type,
        station=login.station or "",
        method=METHODS[login.method],
        attributes={
            name: (value,)
            for name in ("NAS-Identifier", "Calling-Station-Id")
            if (value := login.value(name)) is not None
        },
    )
    found = own.match(known)
    return found is not None and found.action is Action.ALLOW


@settings(max_examples=300, deadline=None)
@given(st.lists(POLICIES, max_size=5), st.lists(logins(complete=True), min_size=1, max_size=8))
def test_rules_decide_as_the_policies(policies: list[Policy], given_logins: list[Login]) -> None:
    """If all policies are expressed, each login with all attributes is decided as by NPS."""
    own, is_whole = imported(policies)
    for login in given_logins if is_whole else ():
        assert admitted_here(own, login) is admitted_by_nps(policies, login)


def test_a_refusal_by_a_profile_is_not_undone() -> None:
    """A policy that cannot be expressed refuses a method. A policy behind it that permits this method needs a decision;
    one that does not permit it needs none."""
    first = Policy((), (("NAS-Identifier", "\\d"),), True, True, (4,))
    own, _ = imported([first, Policy((), (), True, True, (1,))])
    assert not admitted_here(own, Login(frozenset(), 19, 2, "ap-1", None, 1))
    own, _ = imported([first, Policy((), (), True, True, (4,))])
    assert admitted_here(own, Login(frozenset(), 19, 2, "ap-1", None, 4))


@settings(max_examples=300, deadline=None)
@given(st.lists(POLICIES, max_size=5), st.lists(logins(complete=False), min_size=1, max_size=8))
def test_rules_are_never_wider_than_the_policies(policies: list[Policy], given_logins: list[Login]) -> None:
    """A login that NPS refuses is not admitted, also if attributes are missing or policies could not be expressed."""
    own, _ = imported(policies)
    for login in given_logins:
        assert not admitted_here(own, login) or admitted_by_nps(policies, login)
