"""Tests of how rules match the facts of a login."""

import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from sallyport.areas.policy.rules.facts import kind_of
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import Action
from sallyport.base.clock import from_iso
from sallyport.base.mac import station_key
from tests.areas.policy.rules import facts, matched, rule

ACTIONS = pytest.mark.parametrize("action", list(Action))


@ACTIONS
@pytest.mark.parametrize(
    ("scope", "other"),
    [
        ({"users": ["bob", "ANN"]}, {"user": "carl"}),
        ({"users": ["straße"]}, {"user": "ann"}),
        ({"groups": ["admins", "STAFF"]}, {"groups": frozenset({"guests"})}),
        ({"groups": ["staff"]}, {"groups": frozenset()}),
        ({"ous": ["ou=sales,dc=CORP"]}, {"ous": frozenset({"ou=it,dc=corp"})}),
        ({"clients": ["VPN"]}, {"client": "vpn2"}),
        ({"clients": ["192.0.2.1"]}, {"source": "192.0.2.2", "nas": "192.0.2.2"}),
        ({"clients": ["10.0.0.0/8", "192.0.2.0/24"]}, {"source": "192.0.3.1", "nas": "192.0.3.1"}),
        ({"products": ["cisco ise"]}, {"product": "Microsoft NPS"}),
        ({"products": ["Cisco IOS"]}, {"nas_product": "Aruba Wireless"}),
        ({"media": ["ethernet"]}, {"medium": "Wireless"}),
        ({"stations": ["aabb.ccdd.eeff"]}, {"station": "AA-BB-CC-DD-EE-FE"}),
        ({"serviceTypes": [1, 2]}, {"service_type": 6}),
        ({"time": {"from": "11:00", "until": "13:00"}}, {"at": from_iso("2026-01-07T13:00:00Z")}),
    ],
)
def test_each_scope_matches_any_of_its_entries(action: str, scope: dict[str, object], other: dict[str, object]) -> None:
    """The comparison is case-insensitive. Another value does not match."""
    only = rule(1, action, **scope)
    known = facts(user="STRASSE") if scope == {"users": ["straße"]} else facts()
    assert matched(known, only) == 1
    assert matched(facts(**other), only) == 0


def test_every_scope_must_match() -> None:
    """An empty list is not a condition."""
    both = rule(users=["ann"], media=["Ethernet"], groups=[], stations=[])
    assert matched(facts(), both) == 1
    assert matched(facts(medium="Wireless"), both) == matched(facts(user="bob"), both) == 0
    assert matched(facts(), rule()) == 1


ABSENT = pytest.mark.parametrize(
    ("scope", "absent"),
    [
        ({"users": ["ann"]}, {"user": ""}),
        ({"groups": ["x"]}, {"groups": None}),
        ({"ous": ["x"]}, {"ous": None}),
        ({"clients": ["x"]}, {"client": ""}),
        ({"clients": ["198.51.100.0/24"]}, {"source": ""}),
        ({"products": ["x"]}, {"product": "Unknown", "nas_product": "Unknown"}),
        ({"products": ["x"]}, {"nas_product": ""}),
        ({"media": ["Wireless"]}, {"medium": "Unknown"}),
        ({"media": ["Wireless"]}, {"medium": ""}),
        ({"stations": ["x"]}, {"station": ""}),
        ({"stations": ["x"]}, {"station": "  "}),
        ({"serviceTypes": [1]}, {"service_type": None}),
        ({"time": {"from": "01:00", "until": "02:00", "timezone": "Nowhere/None"}}, {}),
    ],
)


@ABSENT
def test_a_missing_fact_is_no_exemption(scope: dict[str, object], absent: dict[str, object]) -> None:
    """If a fact is missing, rules that block or require a second factor apply, and rules that allow do not apply."""
    known = facts(**absent)
    assert matched(known, rule(1, "block", **scope)) == 1
    assert matched(known, rule(1, "mfa_required", **scope)) == 1
    assert matched(known, rule(1, "allow", **scope)) == 0


@ABSENT
def test_a_missing_fact_does_not_turn_a_block_into_a_prompt(
    scope: dict[str, object], absent: dict[str, object]
) -> None:
    """A rule that may match sets a minimum: a later rule that is stricter decides, and a later rule that is milder does
    not."""
    may = rule(1, "mfa_required", b"grant", priority=1, **scope)
    known = facts(**absent)
    assert matched(known, may, rule(2, "block", priority=2)) == 2
    assert matched(known, may, rule(2, "allow", priority=2)) == 1


@ABSENT
def test_a_missing_fact_gives_no_reply_attributes(scope: dict[str, object], absent: dict[str, object]) -> None:
    """The reply attributes come from the rule that certainly matches, if there is one."""
    may = rule(1, "mfa_required", b"the admins' VLAN", priority=1, **scope)
    found = DomainRules([may]).match(facts(**absent))
    assert found is not None and (found.id, found.attributes) == (1, b"")
    found = DomainRules([may, rule(2, "mfa_required", b"guests", priority=2)]).match(facts(**absent))
    assert found is not None and (found.id, found.attributes) == (2, b"guests")


def test_a_login_without_facts_costs_one_test_for_each_further_rule() -> None:
    """If a rule may match, a rule that is not stricter matters only if it surely matches. So its other conditions are
    not compared after the first missing fact."""
    scopes: dict[str, object] = {"groups": ["x"], "ous": ["x"], "stations": ["x"], "ports": ["x"], "addresses": ["::1"]}
    rules = DomainRules(rule(number, "mfa_required", priority=number, **scopes) for number in range(1000))
    known = facts(groups=None, ous=None, station="")
    calls = 0

    def count(_frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = rules.match(known)
    finally:
        sys.setprofile(before)
    assert found is not None and found.id == 0
    assert calls < 2_100


def test_one_scope_that_does_not_match_excludes_the_rule() -> None:
    """If one scope does not match, the rule does not match, whatever facts are missing."""
    assert matched(facts(groups=None, medium="Wireless"), rule(1, "block", groups=["x"], media=["Ethernet"])) == 0


def test_the_most_specific_identity_comes_first() -> None:
    """Rules are ordered by identity (users, groups, OUs, then all others), then by priority, then by ID."""
    everybody = rule(1, priority=0)
    unit = rule(2, ous=["OU=Sales,DC=corp"], priority=1)
    group = rule(3, groups=["staff"], priority=2)
    user, later, last = (rule(id, users=["ann"], priority=priority) for id, priority in ((7, 3), (6, 4), (8, 4)))
    rules = [last, everybody, later, unit, group, user]
    order = []
    while rules:
        order.append(matched(facts(), *rules))
        rules = [each for each in rules if each.id != order[-1]]
    assert order == [7, 6, 8, 3, 2, 1]


def test_a_rule_that_names_users_and_groups_is_as_specific_as_users() -> None:
    """Both scopes must match."""
    narrow = rule(1, users=["ann"], groups=["staff"], priority=9)
    assert matched(facts(), rule(2, users=["ann"], priority=10), narrow, rule(3, groups=["staff"])) == 1


def test_an_exempting_range_is_compared_with_the_source() -> None:
    """If a gateway outside sends an inside address, an inside range does not exempt it, but a rule with exactly that
    address does. A rule that blocks applies to the sent address, whether the rule has a range or the address."""
    outside = facts(source="203.0.113.1", nas="10.0.0.1")
    assert matched(outside, rule(1, "allow", clients=["10.0.0.0/8"])) == 0
    assert matched(outside, rule(1, "block", clients=["10.0.0.0/8"])) == 1
    assert matched(outside, rule(1, "allow", clients=["10.0.0.1"])) == 1


def test_addresses_of_both_families_match() -> None:
    """An IPv6 address matches by its network, with or without a zone. An IPv4-mapped address matches as IPv4."""
    six = rule(clients=["2001:db8::/32", "fe80::1"])
    assert [matched(facts(source=each, nas=each), six) for each in ("2001:db8::7", "fe80::1%eth0", "::1")] == [1, 1, 0]
    assert matched(facts(source="::ffff:192.0.2.7", nas=""), rule(clients=["192.0.2.0/24"])) == 1


@pytest.mark.parametrize("form", ["::ffff:192.0.2.7", "::FFFF:C000:0200/120"])
def test_an_ipv4_mapped_client_is_one_of_ipv4(form: str) -> None:
    """A rule may have an IPv4-mapped address or network."""
    assert matched(facts(source="192.0.2.7", nas=""), rule(clients=[form])) == 1


@pytest.mark.parametrize(
    "text",
    [
        "AA-BB-CC-DD-EE-FF", "aa:bb:cc:dd:ee:ff", "aabb.ccdd.eeff", "AABBCCDDEEFF", "aabbcc-ddeeff", " aabb-ccdd-eeff ",
        "AA BB CC DD EE FF",
    ],
)  # fmt: skip
def test_a_mac_address_matches_in_any_notation(text: str) -> None:
    assert station_key(text) == "aabbccddeeff"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("AA-BB-CC-DD-EE-FF:corp", "aa-bb-cc-dd-ee-ff:corp"),
        ("AA-BB:CC-DD-EE-FF", "aa-bb:cc-dd-ee-ff"),
        ("111.112.113.114", "111.112.113.114"),
        ("+49 171 1234567", "+49 171 1234567"),
        ("Laptop-7", "laptop-7"),
    ],
)
def test_other_station_names_match_without_case(text: str, key: str) -> None:
    assert station_key(text) == key


NIGHT = {"days": ["mon", "fri"], "from": "22:00", "until": "06:00", "timezone": "Europe/Berlin"}
DAY = {"days": ["mon", "fri"], "from": "08:00", "until": "24:00", "timezone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("time", "at", "within"),
    [
        (NIGHT, "2026-01-05T21:00:00Z", True),  # Monday 22:00 in Berlin
        (NIGHT, "2026-01-05T20:59:59.999999Z", False),
        (NIGHT, "2026-01-06T04:59:59Z", True),  # Tuesday 05:59, begun on Monday
        (NIGHT, "2026-01-06T05:00:00Z", False),
        (NIGHT, "2026-01-06T21:00:00Z", False),  # Tuesday night
        (NIGHT, "2026-01-05T03:00:00Z", False),  # Monday 04:00, begun on Sunday
        (NIGHT, "2026-07-06T20:00:00Z", True),  # Monday 22:00 in summer
        (NIGHT, "2026-07-06T19:59:00Z", False),
        (DAY, "2026-01-09T22:59:00Z", True),
        (DAY, "2026-01-09T23:00:00Z", False),  # Saturday in Berlin
        (DAY, "2026-01-09T06:59:00Z", False),
        ({"days": ["sun"]}, "2026-01-04T00:00:00Z", True),
        ({"days": ["sun"]}, "2026-01-05T00:00:00Z", False),
        ({"from": "23:00", "until": "01:00"}, "2026-01-05T00:30:00Z", True),
    ],
)
def test_times_of_day(time: dict[str, object], at: str, within: bool) -> None:
    """A window includes its first minute and excludes its last minute, in its time zone, in summer and in winter.

    A night belongs to the day on which it begins.
    """
    assert matched(facts(at=from_iso(at)), rule(1, "allow", time=time)) == int(within)


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ("ann", "user"),
        ("host/pc1.corp.example", "machine"),
        ("HOST/pc1", "machine"),
        ("PC1$", "machine"),
        ("$x", "user"),
    ],
)
def test_people_and_computers(user: str, kind: str) -> None:
    """A Windows computer is recognized by its name. A rule with `kinds` applies only to the given kind."""
    machines = rule(1, kinds=["machine"])
    assert kind_of(user) == kind
    assert matched(facts(user=user, kind=kind_of(user)), machines) == (1 if kind == "machine" else 0)
    assert matched(facts(kind="station"), rule(2, kinds=["user", "machine"]), rule(3, kinds=["station"])) == 3


class CountedNames(frozenset[str]):
    """A collection of names that counts how often the complete collection is read."""

    count = 0

    def __iter__(self) -> Iterator[str]:
        self.count += 1
        return super().__iter__()


def test_a_users_groups_are_looked_up_once() -> None:
    """Each group is looked up once in a login, and not once for each rule that has groups or units."""
    rules = DomainRules(rule(number, groups=[f"g{number}", "shared"], ous=["ou=x"]) for number in range(1, 101))
    groups, ous = CountedNames({"shared", "g1"}), CountedNames({"ou=y"})
    assert rules.match(facts(groups=groups, ous=ous)) is None
    assert (groups.count, ous.count) == (1, 1)


def test_rules_share_groups_and_networks() -> None:
    """If several rules have the same group or overlapping networks, the first rule in order decides."""
    several = [
        rule(1, Action.BLOCK, groups=["guests"]),
        rule(2, groups=["staff", "guests"], clients=["198.51.100.0/24"]),
        rule(3, groups=["staff"], clients=["192.0.2.0/24"]),
        rule(4, Action.BLOCK, clients=["192.0.0.0/16"]),
    ]
    known = {"source": "192.0.2.1", "nas": "203.0.113.1"}
    assert matched(facts(groups=frozenset({"staff"}), **known), *several) == 3
    assert matched(facts(groups=frozenset({"staff", "guests"}), **known), *several) == 1
    assert matched(facts(groups=frozenset({"staff"}), source="198.51.100.1", nas="192.0.2.1"), *several) == 2
    assert matched(facts(groups=frozenset(), **known), *several) == 4


@pytest.mark.parametrize("named", ["aabb.ccdd.eeff", "AA-BB-CC-DD-EE-FF", "aabbccddeeff"])
@pytest.mark.parametrize("sent", ["aa:bb:cc:dd:ee:ff", "AABBCCDDEEFF"])
@pytest.mark.parametrize("kind", ["station", "unknown"])
def test_the_name_of_a_station_matches_in_any_notation(named: str, sent: str, kind: str) -> None:
    """Access points write it differently. A person with such a name is somebody else, unless it is written the same."""
    only = rule(users=[named], kinds=["station", "unknown", "user"])
    assert matched(facts(user=sent, kind=kind), only) == 1
    assert matched(facts(user="aa:bb:cc:dd:ee:00", kind=kind), only) == 0
    assert matched(facts(user=sent), only) == int(named.lower() == sent.lower())
    assert matched(facts(user=named), only) == 1


def test_the_groups_of_a_domain() -> None:
    """The rules of a domain list all groups that they name. Names that differ only in case are listed once."""
    rules = DomainRules([rule(1, groups=["Staff", "STRASSE"]), rule(2, users=["ann"]), rule(3, groups=["straße"])])
    assert rules.groups == {"staff", "strasse"}
    assert DomainRules([rule(1)]).groups == frozenset()
