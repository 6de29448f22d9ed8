"""Tests that compare the matcher with a plain reference that evaluates every rule."""

import ipaddress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from sallyport.areas.policy.rules.facts import Facts
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import Action, Definition, Rule
from sallyport.areas.policy.rules.window import DAYS, minutes
from tests.areas.policy.rules import NOON, rule

HARDNESS = ["allow", "mfa_required", "block"]
SCOPES = ["users", "groups", "ous"]
UNKNOWN = ["", "Unknown"]


def texts(kept: Definition, field: str) -> list[str]:
    """Return the values of a condition."""
    return [str(each) for each in kept.values(field)]


def about_user(rule: Rule, facts: Facts) -> list[bool | None]:
    """Return whether the scopes of the identity match, or None if this is unknown."""
    kept = rule.definition
    said: list[bool | None] = []
    if texts(kept, "users"):
        names = {facts.user.lower(), *facts.names}
        said.append(any(each.lower() in names for each in texts(kept, "users")) if facts.user else None)
    for wanted, held in ((texts(kept, "groups"), facts.groups), (texts(kept, "ous"), facts.ous)):
        if wanted:
            said.append(None if held is None else any(a.lower() == b.lower() for a in wanted for b in held))
    return said


def about_client(rule: Rule, facts: Facts) -> bool | None:
    """Return whether `clients` matches, or None if this is unknown."""
    unknown = False
    for entry in texts(rule.definition, "clients"):
        if entry[0].isdigit():
            network = ipaddress.ip_network(entry)
            asked = [facts.source] if rule.action == "allow" and "/" in entry else [facts.source, facts.nas]
            if any(address and ipaddress.ip_address(address) in network for address in asked):
                return True
            unknown = unknown or not facts.source
        elif facts.client.lower() == entry.lower():
            return True
        else:
            unknown = unknown or not facts.client
    return None if unknown else False


def about_device(rule: Rule, facts: Facts) -> list[bool | None]:
    """Return whether the scopes of the device match, or None if this is unknown."""
    kept = rule.definition
    said: list[bool | None] = []
    if texts(kept, "clients"):
        said.append(about_client(rule, facts))
    if texts(kept, "products"):
        seen = [facts.product, facts.nas_product]
        hit = any(a.lower() == b.lower() for a in seen for b in texts(kept, "products"))
        said.append(hit or (None if any(each in UNKNOWN for each in seen) else False))
    if texts(kept, "media"):
        said.append(None if facts.medium in UNKNOWN else facts.medium in texts(kept, "media"))
    if texts(kept, "stations"):
        bare = [
            each.translate(str.maketrans("", "", "-:.")).upper() for each in (facts.station, *texts(kept, "stations"))
        ]
        said.append(bare[0] in bare[1:] if facts.station else None)
    if kept.values("serviceTypes"):
        said.append(None if facts.service_type is None else facts.service_type in kept.values("serviceTypes"))
    return said


def within(rule: Rule, facts: Facts) -> bool:
    """Return whether the minute of the week is in the list of the window's minutes."""
    window = rule.definition.time
    if window is None:
        return True
    moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=facts.at)).astimezone(ZoneInfo(window.timezone))
    start, until = minutes(window.start), minutes(window.until)
    length = until - start if until > start else until - start + 1440
    minute_of_week = moment.weekday() * 1440 + moment.hour * 60 + moment.minute
    begins = [DAYS.index(day) * 1440 + start for day in window.days or DAYS]
    return any((minute_of_week - begin) % (7 * 1440) < length for begin in begins)


def state(rule: Rule, facts: Facts) -> str:
    """Return whether the rule matches: no, may or yes."""
    kinds = rule.definition.values("kinds")
    said = [*about_user(rule, facts), *about_device(rule, facts), within(rule, facts), not kinds or facts.kind in kinds]
    if False in said:
        return "no"
    return "may" if None in said else "yes"


def read(rules: list[Rule], facts: Facts) -> list[Rule]:
    """Return the rules that are read for a login. For an unknown station, these are the rules that name its kind, and
    the rules that block."""
    if facts.kind != "unknown":
        return rules
    return [each for each in rules if each.action == "block" or "unknown" in each.definition.values("kinds")]


def reference(rules: list[Rule], facts: Facts) -> tuple[int, bytes] | None:
    """Return the ID and the reply attributes of the rule that decides."""
    order = sorted(read(rules, facts), key=lambda each: each.id)
    order.sort(key=lambda each: each.definition.priority)
    if not any(each.is_listed for each in order):
        order.sort(key=lambda each: min([at for at, scope in enumerate(SCOPES) if each.definition.values(scope)] + [3]))
    states = [state(each, facts) for each in order]
    end = states.index("yes") if "yes" in states else len(order)
    doubtful = [each for each, how in zip(order[:end], states, strict=False) if how == "may" and each.action != "allow"]
    hardest = max(doubtful, key=lambda each: HARDNESS.index(each.action), default=None)
    if end < len(order):
        sure = order[end]
        if hardest is None or HARDNESS.index(sure.action) >= HARDNESS.index(hardest.action):
            return sure.id, sure.attributes
    return None if hardest is None else (hardest.id, b"")


def some(*values: object) -> st.SearchStrategy[list[object]]:
    """Draw few entries from few values, and mostly none, so that rules often match logins."""
    return st.one_of(st.just([]), st.lists(st.sampled_from(values), max_size=2))


WINDOWS = st.builds(
    lambda days, ends, zone: {"days": days, "from": ends[0], "until": ends[1], "timezone": zone},
    st.lists(st.sampled_from(DAYS), max_size=3, unique=True),
    st.lists(
        st.sampled_from(["00:00", "06:00", "11:59", "12:00", "12:01", "23:59"]), min_size=2, max_size=2, unique=True
    ),
    st.sampled_from(["UTC", "Asia/Kathmandu", "America/New_York"]),
)
KEPT = st.fixed_dictionaries(
    {
        "priority": st.integers(0, 2),
        "users": some("ann", "Bob"),
        "kinds": some("user", "unknown"),
        "groups": some("Staff", "guests"),
        "ous": some("sales", "IT"),
        "clients": some("vpn", "10.0.0.1", "10.0.0.0/8", "192.0.2.0/30"),
        "products": some("Cisco ISE", "hostapd"),
        "media": some("Ethernet", "Wireless"),
        "stations": some("aa-bb-cc-dd-ee-ff", "0011.2233.4455"),
        "serviceTypes": some(1, 2),
        "time": st.one_of(st.none(), WINDOWS),
    }
)
FACTS = st.builds(
    Facts,
    user=st.sampled_from(["ann", "BOB", "carl", ""]),
    groups=st.one_of(st.none(), st.frozensets(st.sampled_from(["staff", "guests", "other"]))),
    ous=st.one_of(st.none(), st.frozensets(st.sampled_from(["sales", "it"]))),
    client=st.sampled_from(["VPN", "wifi", ""]),
    source=st.sampled_from(["10.0.0.1", "10.7.7.7", "192.0.2.1", "203.0.113.9", ""]),
    nas=st.sampled_from(["10.0.0.1", "10.7.7.7", "192.0.2.1", "203.0.113.9"]),
    product=st.sampled_from(["Cisco ISE", "Microsoft NPS", "Unknown", ""]),
    nas_product=st.sampled_from(["hostapd", "Microsoft NPS", "Unknown"]),
    medium=st.sampled_from(["Ethernet", "Virtual", "Unknown", ""]),
    station=st.sampled_from(["AABB.CCDD.EEFF", "00:11:22:33:44:55", "00-11-22-33-44-66", ""]),
    service_type=st.sampled_from([None, 1, 3]),
    names=st.frozensets(st.sampled_from(["ann", "bob", "dora"])),
    at=st.integers(0, 14 * 1440).map(lambda minute: NOON + minute * 60_000_000 + 59_999_999),
)


@settings(max_examples=800)
@given(st.lists(st.tuples(st.sampled_from(list(Action)), KEPT), max_size=6), FACTS, st.booleans())
def test_the_matcher_agrees_with_the_reference(
    drawn: list[tuple[str, dict[str, object]]], facts: Facts, is_listed: bool
) -> None:
    """For any rules in any order and any login, the matcher and the reference return the same rule and the same reply
    attributes, in both orders of reading."""
    rules = [rule(id, action, bytes((id,)), is_listed=is_listed, **kept) for id, (action, kept) in enumerate(drawn, 1)]
    found = DomainRules(reversed(rules)).match(facts)
    assert (None if found is None else (found.id, found.attributes)) == reference(rules, facts)


@settings(max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(list(Action)), KEPT), max_size=6), FACTS)
def test_the_explanation_has_each_evaluated_rule(drawn: list[tuple[str, dict[str, object]]], facts: Facts) -> None:
    """The explanation lists each rule up to the first one that certainly matches.

    It has the state of each rule, and the scope that does not certainly match.
    """
    rules = [rule(id, action, **kept) for id, (action, kept) in enumerate(drawn, 1)]
    steps = DomainRules(rules).explain(facts)
    states = {True: "yes", False: "no", None: "may"}
    in_order = sorted(read(rules, facts), key=lambda each: each.sort_key)
    assert [step.rule for step in steps] == in_order[: len(steps)]
    assert [states[step.matches] for step in steps] == [state(step.rule, facts) for step in steps]
    assert all(bool(step.scope) is not step.matches for step in steps if step.matches is not None)
    assert not any(step.matches for step in steps[:-1])
    assert len(steps) == len(in_order) or steps[-1].matches


@settings(max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(list(Action)), KEPT), max_size=6), FACTS)
def test_a_missing_fact_never_helps(drawn: list[tuple[str, dict[str, object]]], facts: Facts) -> None:
    """A login without station and Service-Type is treated as strictly as the strictest values of them would be."""
    rules = DomainRules(rule(id, action, **kept) for id, (action, kept) in enumerate(drawn, 1))

    def hardness(**changed: object) -> int:
        found = rules.match(_with(facts, **changed))
        return HARDNESS.index("mfa_required" if found is None else found.action)

    hidden = hardness(station="", service_type=None)
    assert hidden >= max(
        hardness(station=station, service_type=kind)
        for station in ("aabbccddeeff", "001122334455", "other")
        for kind in (1, 2, 3)
    )


def _with(facts: Facts, **changed: object) -> Facts:
    return Facts(**{**{name: getattr(facts, name) for name in Facts.__slots__}, **changed})  # type: ignore[arg-type]
