"""Tests of adding, changing and removing login rules."""

import json
from dataclasses import replace

import pytest

from sallyport.areas.domains.domain import RuleOrder
from sallyport.areas.domains.repo import Update
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import MAX_RULES, UNMATCHED, Action, Definition
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.base.errors import Conflict, Invalid, NotFound
from tests.areas import Areas, dictionary
from tests.areas.policy.rules import facts


def fields(**given: object) -> RuleFields:
    """Return the fields of a rule, as in a request body. Without a scope, the rule is confirmed."""
    confirmed = {} if given.keys() & {"users", "groups", "media", "time", "clients", "kinds"} else {"everyone": True}
    return RuleFields.model_validate({"name": "r", "action": "block", **confirmed, **given})


def change(**given: object) -> RuleFields:
    """Return the fields of an update, as in a request body."""
    return RuleFields.model_validate(given)


def test_without_a_matching_rule_a_second_factor_is_required() -> None:
    assert UNMATCHED is Action.MFA_REQUIRED


async def test_a_domain_without_enabled_rules_has_no_matcher(areas: Areas) -> None:
    """A domain that has only disabled rules has no matcher, and neither has an unknown domain."""
    assert areas.rules.of(areas.domain) is areas.rules.of(99) is None
    rule = await areas.rules.add(areas.domain, fields(enabled=False))
    assert areas.rules.of(areas.domain) is None
    assert [each.id for each in areas.rules.all_of(areas.domain)] == [rule]
    await areas.rules.update(areas.domain, rule, change(enabled=True, everyone=True))
    assert areas.rules.of(areas.domain) is not None
    await areas.rules.delete(areas.domain, [rule])
    assert areas.rules.of(areas.domain) is None


async def test_a_change_applies_at_once(areas: Areas) -> None:
    """A rule that is added, changed or removed affects only its domain. It has the same effect after a restart."""
    other = await areas.domains.add(areas.tenant, "branch")
    rule = await areas.rules.add(
        areas.domain, fields(users=["ANN"], vlan=20, replyAttributes=[{"name": "Class", "value": 7}])
    )
    later = Areas(areas.store, areas.clock)
    await later.configuration.reload()
    for each in (areas.rules, later.rules):
        own = each.of(areas.domain)
        assert own is not None and each.of(other) is None
        found = own.match(facts())
        assert found is not None and (found.id, found.name, found.action) == (rule, "r", "block")
        assert found.attributes == bytes.fromhex("40060000000d410600000006510432301903") + b"7"
    await areas.rules.update(areas.domain, rule, change(action="allow", users=["bob"]))
    own = areas.rules.of(areas.domain)
    assert own is not None and own.match(facts()) is None
    found = own.match(facts(user="Bob"))
    assert found is not None and found.action is Action.ALLOW


async def test_an_update_keeps_missing_fields(areas: Areas) -> None:
    """An empty list or an empty text clears a field. A time window that excludes nothing clears it too."""
    window = {"days": ["Monday", "tue"], "from": "8:00", "until": "18:00", "timezone": "Europe/Berlin"}
    rule = await areas.rules.add(
        areas.domain,
        fields(
            users="ann", groups=["g"], serviceTypes=["Login"], media=["wireless-802.11"], time=window, vlan="guests"
        ),
    )
    (before,) = areas.rules.all_of(areas.domain)
    assert before.definition.values("users") == ("ann",)
    assert (before.definition.values("serviceTypes"), before.definition.values("media")) == ((1,), ("Wireless",))
    kept = before.definition.time
    assert kept is not None and (kept.days, kept.start, kept.timezone) == (("mon", "tue"), "08:00", "Europe/Berlin")
    await areas.rules.update(areas.domain, rule, change(priority="7"))
    (after,) = areas.rules.all_of(areas.domain)
    assert after.definition == replace(before.definition, priority=7)
    assert after.attributes == before.attributes
    await areas.rules.update(
        areas.domain, rule, change(users=[], groups="", serviceTypes=[], media=[], time="", vlan="", everyone=True)
    )
    (cleared,) = areas.rules.all_of(areas.domain)
    assert cleared.definition == Definition("r", Action.BLOCK, 7)
    assert cleared.attributes == b""


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"replyAttributes": [{"name": "Tunnel-Type", "value": "VLAN"}]}, id="attribute of the VLAN"),
        pytest.param({"replyAttributes": [{"name": "State", "value": "x"}], "vlan": ""}, id="refused attribute"),
        pytest.param({"vlan": "4095"}, id="VLAN"),
        pytest.param({"clients": ["10.0.0.0/33"]}, id="network"),
        pytest.param({"serviceTypes": ["none"]}, id="Service-Type"),
        pytest.param({"media": ["none"]}, id="medium"),
    ],
)
async def test_a_refused_change_changes_nothing(areas: Areas, given: dict[str, object]) -> None:
    """If a change is refused, the stored rule still decides."""
    rule = await areas.rules.add(areas.domain, fields(vlan="20"))
    before = list(areas.rules.all_of(areas.domain))
    with pytest.raises(Invalid):
        await areas.rules.update(areas.domain, rule, change(**given))
    assert list(areas.rules.all_of(areas.domain)) == before


async def test_a_rule_of_another_domain_is_not_found(areas: Areas) -> None:
    """A rule of another domain can be neither changed nor removed. A request removes all of its rules or none."""
    other = await areas.domains.add(areas.tenant, "branch")
    theirs, mine = await areas.rules.add(other, fields()), await areas.rules.add(areas.domain, fields())
    for rule in (theirs, 99, 0):
        with pytest.raises(NotFound):
            await areas.rules.update(areas.domain, rule, change(name="mine"))
        with pytest.raises(NotFound):
            await areas.rules.delete(areas.domain, [mine, rule])
    assert [each.name for each in (*areas.rules.all_of(other), *areas.rules.all_of(areas.domain))] == ["r", "r"]
    assert await areas.rules.delete(areas.domain, [mine, mine]) == 1
    assert areas.rules.all_of(areas.domain) == ()


async def test_a_domain_has_at_most_a_thousand_rules(areas: Areas) -> None:
    """A rule beyond the limit raises Conflict. Another domain can still add a rule."""
    definition = json.dumps(Definition("r", Action.ALLOW).as_json())
    await areas.store.write(
        lambda tx: tx.insert(
            "login_rules",
            (
                "domain_id",
                "name",
                "priority",
                "enabled",
                "action",
                "definition",
                "attributes",
                "created_at",
                "updated_at",
            ),
            [(areas.domain, "r", 1, 1, "allow", definition, b"", 0, 0) for _ in range(MAX_RULES)],
        )
    )
    await areas.configuration.reload()
    assert len(areas.rules.all_of(areas.domain)) == MAX_RULES
    with pytest.raises(Conflict):
        await areas.rules.add(areas.domain, fields())
    assert await areas.rules.add(await areas.domains.add(areas.tenant, "branch"), fields())


async def test_the_rules_of_a_domain_are_bounded_in_all(areas: Areas) -> None:
    """The rules of all tenants are in memory, so their total length is limited.

    A rule beyond the limit raises Conflict and is not stored.
    """
    long = [f"{number:0250}" for number in range(1000)]
    everything = dict.fromkeys(("users", "groups", "ous", "products", "stations"), long)
    kept = 0
    with pytest.raises(Conflict, match="characters in all"):
        while kept < 20:
            await areas.rules.add(areas.domain, fields(**everything))
            kept += 1
    assert len(areas.rules.all_of(areas.domain)) == kept == 1
    small = await areas.rules.add(areas.domain, fields())
    with pytest.raises(Conflict):
        await areas.rules.update(areas.domain, small, change(**everything))
    assert areas.rules.all_of(areas.domain)[-1].definition.values("users") == ()


async def test_unchanged_rules_are_not_prepared_again(areas: Areas) -> None:
    """A change of one domain, or of other parts of the configuration, keeps the rules of the other domains in
    memory."""
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.rules.add(areas.domain, fields())
    before = areas.rules.of(areas.domain)
    await areas.rules.add(other, fields())
    assert areas.rules.of(areas.domain) is before
    await areas.rules.add(areas.domain, fields(name="second"))
    assert areas.rules.of(areas.domain) is not before


async def test_stored_reply_attributes_do_not_depend_on_the_dictionary(areas: Areas) -> None:
    """The encoded octets are stored together with the names.

    Therefore the service sends the same octets even if it starts with other dictionaries.
    """
    await areas.rules.add(areas.domain, fields(replyAttributes=[{"name": "Filter-Id", "value": "x"}]))
    later = LoginRules(areas.configuration, dictionary(), areas.clock, areas.roles.check)
    await areas.configuration.reload()
    (kept,) = later.all_of(areas.domain)
    assert kept.attributes == b"\x0b\x03x"


async def test_a_rule_for_everyone_is_confirmed(areas: Areas) -> None:
    """A rule that decides every login is confirmed when it begins to do so: as a new one, without its last scope, with
    another action, or when it is enabled. A rule that already does so may change otherwise."""
    rules, domain = areas.rules, areas.domain
    with pytest.raises(Invalid, match="would block every login"):
        await rules.add(domain, change(name="r", action="block"))
    with pytest.raises(Invalid, match="this rule has the scopes users, time; omit everyone"):
        await rules.add(domain, change(name="r", action="allow", users=["a"], time={"until": "8:00"}, everyone=True))
    rule = await rules.add(domain, fields(users=["ann"]))
    steps = (
        ({"users": []}, False),
        ({"users": [], "everyone": True}, True),
        ({"priority": 3}, True),
        ({"action": "allow"}, False),
        ({"action": "mfa_required"}, True),
        ({"action": "allow"}, False),
        ({"action": "allow", "everyone": True}, True),
        ({"enabled": False}, True),
        ({"name": "new"}, True),
        ({"enabled": True}, False),
        ({"enabled": True, "everyone": True}, True),
    )
    for given, is_done in steps:
        try:
            await rules.update(domain, rule, change(**given))
        except Invalid as refused:
            assert [each.field for each in refused.errors] == ["everyone"] and not is_done, given
        else:
            assert is_done, given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"action": "allow", "everyone": True}, True),
        ({"action": "allow", "users": ["ann"]}, False),
        ({"action": "allow", "time": {"until": "8:00"}}, False),
        ({"action": "block", "everyone": True}, False),
        ({"action": "mfa_required"}, False),
    ],
)
async def test_a_rule_that_exempts_all_is_marked(areas: Areas, given: dict[str, object], expected: bool) -> None:
    """Only an `allow` rule without a condition has `exemptsAll`, which `sallyport doctor` warns about."""
    await areas.rules.add(areas.domain, change(name="r", **given))
    (kept,) = areas.rules.all_of(areas.domain)
    assert kept.definition.exempts_all is expected


async def test_changes_are_in_the_audit_trail(areas: Areas) -> None:
    """Each entry names the rule, and has the fields that have changed, before and after the change."""
    rule = await areas.rules.add(areas.domain, fields(users=["ann"]))
    await areas.rules.update(areas.domain, rule, change(name="new", priority=7))
    await areas.rules.update(areas.domain, rule, change(priority=7))
    await areas.rules.delete(areas.domain, [rule])
    sql = "select action, target, changes from audit_trail where action like 'rule.%' order by id"
    rows = await areas.store.read(lambda tx: list(tx.rows(sql)))
    assert [(action, target) for action, target, _ in rows] == [
        ("rule.add", f"rule {rule} r"),
        ("rule.update", f"rule {rule} r"),
        ("rule.delete", f"rule {rule} new"),
    ]
    added, updated, deleted = (json.loads(str(changes)) for *_, changes in rows)
    assert (added["users"], deleted["users"]) == ([None, ["ann"]], [["ann"], None])
    assert updated == {"name": ["r", "new"], "priority": [100, 7]}


async def order(areas: Areas) -> str:
    """Return the names of the domain's rules in the order in which they are read."""
    return "".join(each.name for each in sorted(areas.rules.all_of(areas.domain), key=lambda rule: rule.sort_key))


async def test_a_rule_moves_before_another(areas: Areas) -> None:
    """A rule is read directly before another rule from then on, and the order of the other rules stays. Only the
    priorities that must change are changed, and each change is in the audit trail."""
    ids = {name: await areas.rules.add(areas.domain, fields(name=name)) for name in "abcd"}
    await areas.rules.add(areas.domain, fields(name="u", users=["ann"]))
    assert await order(areas) == "uabcd"
    for rule, before, expected in (("c", "b", "uacbd"), ("d", "a", "udacb"), ("a", "d", "uadcb"), ("b", "c", "uadbc")):
        await areas.rules.update(areas.domain, ids[rule], change(), before=ids[before])
        assert await order(areas) == expected
    assert {rule.definition.priority for rule in areas.rules.all_of(areas.domain)} <= {100, 101, 102, 103}
    sql = "select count(*) from audit_trail where action = 'rule.update'"
    before = await areas.store.read(lambda tx: tx.value(int, sql))
    await areas.rules.update(areas.domain, ids["b"], change(), before=ids["c"])
    assert await areas.store.read(lambda tx: tx.value(int, sql)) == before


async def test_a_domain_reads_its_rules_as_listed(areas: Areas) -> None:
    """With ruleOrder `listed`, the priority alone counts from the next login on, and a rule moves before any other. The
    former order returns with `identity`."""
    first = await areas.rules.add(areas.domain, fields(name="a", action="block", media=["Ethernet"], priority=1))
    await areas.rules.add(areas.domain, fields(name="u", users=["ann"], priority=2))
    await areas.rules.add(areas.domain, fields(name="z", priority=3))
    known = facts(medium="Ethernet")

    def decides() -> str:
        rules = areas.rules.of(areas.domain)
        found = rules.match(known) if rules else None
        return found.name if found else ""

    assert (await order(areas), decides()) == ("uaz", "u")
    await areas.domains.update(areas.domain, Update(settings={"rule_order": RuleOrder.LISTED}))
    assert (await order(areas), decides()) == ("auz", "a")
    last = areas.rules.all_of(areas.domain)[-1].id
    await areas.rules.update(areas.domain, last, change(), before=first)
    assert (await order(areas), decides()) == ("zau", "z")
    proposed = await areas.rules.with_proposed(areas.domain, None, fields(name="new", users=["ann"], priority=9))
    assert [rule.name for rule in sorted(proposed, key=lambda rule: rule.sort_key)] == ["z", "a", "u", "new"]
    await areas.domains.update(areas.domain, Update(settings={"rule_order": RuleOrder.IDENTITY}))
    assert (await order(areas), decides()) == ("uza", "u")


async def test_a_rule_moves_only_among_rules_of_its_kind(areas: Areas) -> None:
    """A rule cannot be read before a rule of another kind of identity, itself, or a rule of another domain. A priority
    cannot exceed its maximum."""
    other = await areas.domains.add(areas.tenant, "branch")
    theirs = await areas.rules.add(other, fields())
    plain = await areas.rules.add(areas.domain, fields(priority=1_000_000))
    last = await areas.rules.add(areas.domain, fields(priority=1_000_000))
    of_user = await areas.rules.add(areas.domain, fields(users=["ann"]))
    for before in (of_user, plain, theirs, 99):
        with pytest.raises(Invalid, match="before must be another rule"):
            await areas.rules.update(areas.domain, plain, change(), before=before)
    with pytest.raises(Invalid, match="smaller priorities"):
        await areas.rules.update(areas.domain, last, change(), before=plain)
