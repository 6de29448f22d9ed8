"""Tests of setting and removing roles, and of the choice of a set for a NAS."""

import json

import pytest

from sallyport.areas.policy.roles.bodies import SetRole
from sallyport.areas.policy.roles.role import (
    MAX_ROLES,
    MAX_SET_OCTETS,
    MAX_SETS,
    GivenRole,
    ReplySet,
    Role,
    RoleSource,
    read,
    written,
)
from sallyport.areas.policy.roles.service import MAX_NAMED
from sallyport.areas.policy.roles.templates import TEMPLATES
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import Reply
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.radius.vendors import PRODUCTS
from tests.areas import Areas
from tests.areas.configuration.test_apply import engine_of, items
from tests.areas.policy.rules import facts

VLAN_20 = bytes.fromhex("40060000000d4106000000065104") + b"20"
SCOPE = {"orgId": 1, "tenantId": 1, "domainId": 1, "role": "staff"}
FILTER = ReplySet(reply_attributes=(Reply("Filter-Id", "staff"),))
ARUBA = ReplySet("Aruba Wireless", reply_attributes=(Reply("Aruba-User-Role", "staff"),))


async def set_staff(areas: Areas) -> None:
    """Set the role staff: a VLAN by default, and a role of its own for Aruba."""
    await areas.roles.set(areas.domain, "staff", ReplySet(vlan="20"))
    await areas.roles.set(areas.domain, "Staff", ARUBA)


def rule(**given: object) -> RuleFields:
    """Return the fields of a rule, as in a request body."""
    return RuleFields.model_validate({"name": "r", "action": "allow", "everyone": True, **given})


async def test_a_change_reads_the_sets_of_changed_roles_only(areas: Areas) -> None:
    """The other roles stay the same objects. Two changes at the same time are two changes."""
    await set_staff(areas)
    await areas.roles.set(areas.domain, "admins", ARUBA)
    staff, admins = (areas.roles.present(areas.domain, name) for name in ("staff", "admins"))
    for vlan in ("30", "40"):
        await areas.roles.set(areas.domain, "staff", ReplySet(vlan=vlan))
    assert areas.roles.present(areas.domain, "admins") is admins
    assert areas.roles.present(areas.domain, "staff") != staff
    assert areas.roles.given_to(areas.domain, "staff", "").attributes == VLAN_20[:-2] + b"40"


async def test_a_product_gets_its_set_and_others_the_default(areas: Areas) -> None:
    """The choice is the same after a restart. A role without a default set sends nothing to other products."""
    await set_staff(areas)
    await areas.roles.set(areas.domain, "admins", ARUBA)
    later = Areas(areas.store, areas.clock)
    await later.configuration.reload()
    aruba = bytes.fromhex("1a0d000039e7 01 07".replace(" ", "")) + b"staff"
    for roles in (areas.roles, later.roles):
        given = [roles.given_to(areas.domain, "staff", product) for product in ("Aruba Wireless", "Cisco IOS", "")]
        assert given == [
            GivenRole("staff", RoleSource.PRODUCT, aruba),
            *[GivenRole("staff", RoleSource.DEFAULT, VLAN_20)] * 2,
        ]
        assert roles.given_to(areas.domain, "admins", "Cisco IOS") == GivenRole("admins", RoleSource.NONE)
        assert roles.given_to(areas.domain, "gone", "Cisco IOS") == GivenRole("gone", RoleSource.NONE)


async def test_a_set_is_replaced_as_a_whole(areas: Areas) -> None:
    """The name of a role keeps its first spelling, and other sets are kept."""
    await set_staff(areas)
    await areas.roles.set(areas.domain, "STAFF", FILTER)
    role = areas.roles.present(areas.domain, "sTaFF")
    assert (role.name, [each.key for each in role.sets]) == ("staff", [("", ""), ("", "aruba wireless")])
    assert role.sets[0].attributes == b"\x0b\x07staff"
    assert read(written(role.sets)) == list(role.sets)


async def test_a_role_of_a_rule_is_not_removed(areas: Areas) -> None:
    """The error names the rules, also disabled ones. After the last rule is changed, the role is removed, and no other
    one."""
    await set_staff(areas)
    await areas.roles.set(areas.domain, "guests", FILTER)
    first = await areas.rules.add(areas.domain, rule(name="one", role="STAFF"))
    second = await areas.rules.add(areas.domain, rule(name="two", role="staff", enabled=False))
    with pytest.raises(Conflict, match=f"the role staff is used by rule {first} one, rule {second} two"):
        await areas.roles.remove(areas.domain, "staff")
    assert await areas.roles.uses(areas.domain) == {"staff": [f"rule {first} one", f"rule {second} two"]}
    assert [each.definition.role for each in areas.rules.all_of(areas.domain)] == ["staff", "staff"]
    await areas.rules.delete(areas.domain, [first])
    await areas.rules.update(areas.domain, second, RuleFields(role=""))
    await areas.roles.remove(areas.domain, "Staff")
    assert list(areas.roles.of(areas.domain)) == ["guests"]


@pytest.mark.parametrize(("number", "end"), [(MAX_NAMED, "n: change"), (MAX_NAMED + 1, "n and 1 more: change")])
async def test_the_names_of_a_few_users_are_in_the_error(areas: Areas, number: int, end: str) -> None:
    """If there are more, the error has their number."""
    await set_staff(areas)
    for _ in range(number):
        await areas.rules.add(areas.domain, rule(name="n", role="staff"))
    with pytest.raises(Conflict, match=f"rule {MAX_NAMED} {end} them first"):
        await areas.roles.remove(areas.domain, "staff")


async def test_a_file_has_one_set_for_each_product(areas: Areas) -> None:
    """The error names the field. Nothing is changed."""
    fields = {"domain": "corp", "role": "staff", "sets": [{"vlan": "1"}, {"tag": "a=b"}, {"tag": "A=b"}]}
    with pytest.raises(Invalid, match=r": sets must have one set for each product, tag, and default$"):
        await engine_of(areas).run(areas.tenant, items([("role", fields)]))
    assert not areas.roles.of(areas.domain)


async def test_a_tag_of_the_nas_comes_before_its_product(areas: Areas) -> None:
    """A beginning of a value selects the hierarchy. If several tags have a set, the longest decides. A tag and a
    product in one set are refused."""
    await set_staff(areas)
    for tag in ("site=Berlin", "site=berlin/floor 2", "role=lab"):
        await areas.roles.set(areas.domain, "staff", ReplySet(tag=tag, vlan=str(len(tag))))

    def source(*tags: str) -> tuple[str, bytes]:
        given = areas.roles.given_to(areas.domain, "staff", "Aruba Wireless", tags)
        return given.source, given.attributes[-2:]

    assert source("site=Berlin/Floor 2") == ("tag", b"19")
    assert source("role=lab", "site=Berlin/Floor 3") == ("tag", b"11")
    assert source("site=Berlin Mitte") == source() == ("product", b"ff")
    with pytest.raises(ValueError, match="give product or tag, not both"):
        SetRole.model_validate({**SCOPE, "product": "Cisco IOS", "tag": "site=Berlin"})
    await areas.roles.remove(areas.domain, "staff", ReplySet(tag="SITE=BERLIN/FLOOR 2").key)
    assert source("site=Berlin/Floor 2") == ("tag", b"11")


async def test_a_single_set_is_removed(areas: Areas) -> None:
    await set_staff(areas)
    await areas.roles.remove(areas.domain, "staff", ARUBA.key)
    assert areas.roles.given_to(areas.domain, "staff", "Aruba Wireless").source is RoleSource.DEFAULT
    with pytest.raises(NotFound, match="the role staff has no such set"):
        await areas.roles.remove(areas.domain, "staff", ARUBA.key)
    with pytest.raises(NotFound, match="role not found"):
        await areas.roles.remove(areas.domain, "stuff")


async def test_a_rule_needs_an_existing_role(areas: Areas) -> None:
    """A role of another domain does not exist. A refused rule is not stored."""
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.roles.set(other, "staff", FILTER)
    await areas.roles.set(areas.domain, "guests", FILTER)
    with pytest.raises(Invalid) as refused:
        await areas.rules.add(areas.domain, rule(role="staff"))
    (wrong,) = refused.value.fields
    assert (wrong.field, wrong.message) == ("role", "must be a role of the domain; existing: guests")
    assert areas.rules.all_of(areas.domain) == ()


async def test_a_rule_that_matches_for_lack_of_a_fact_gives_no_role(areas: Areas) -> None:
    """The rule still blocks or requires a second factor, but it has neither attributes nor a role."""
    await set_staff(areas)
    fields = {"action": "mfa_required", "everyone": False, "stations": ["020000000001"], "role": "staff"}
    await areas.rules.add(areas.domain, rule(**fields, vlan="9"))
    own = areas.rules.of(areas.domain)
    assert own is not None
    known, unknown = own.match(facts(station="02-00-00-00-00-01")), own.match(facts(station=""))
    assert known is not None and unknown is not None and known.id == unknown.id
    assert (known.role, unknown.role, unknown.attributes) == ("staff", "", b"")


async def test_changes_are_in_the_audit_trail(areas: Areas) -> None:
    """Each entry has the sets that have changed, by what selects them, before and after the change."""
    await set_staff(areas)
    await areas.roles.set(areas.domain, "staff", FILTER)
    await areas.roles.set(areas.domain, "staff", ReplySet(tag="a=b"))
    await areas.roles.remove(areas.domain, "staff", ARUBA.key)
    await areas.roles.remove(areas.domain, "staff")
    sql = "select action, target, changes from audit_trail where action like 'role.%' order by id"
    rows = [
        (action, target, json.loads(str(changes)))
        for action, target, changes in await areas.store.read(lambda tx: list(tx.rows(sql)))
    ]
    default, aruba, own, tagged = (each.as_json() for each in (ReplySet(vlan="20"), ARUBA, FILTER, ReplySet(tag="a=b")))
    assert own["replyAttributes"] == [{"name": "Filter-Id", "value": "staff"}]
    assert rows == [
        ("role.set", "role staff", {"default": [None, default]}),
        ("role.set", "role staff", {"Aruba Wireless": [None, aruba]}),
        ("role.set", "role staff", {"default": [default, own]}),
        ("role.set", "role staff", {"a=b": [None, tagged]}),
        ("role.set", "role staff", {"Aruba Wireless": [aruba, None]}),
        ("role.remove", "role staff", {"default": [own, None], "a=b": [tagged, None]}),
    ]


async def test_a_removed_domain_takes_its_roles_along(areas: Areas) -> None:
    branch = await areas.domains.add(areas.tenant, "branch")
    await areas.roles.set(branch, "staff", FILTER)
    await areas.rules.add(branch, rule(role="staff"))
    await areas.removal.remove(branch)
    await areas.removal.erase()
    assert not await areas.store.read(lambda tx: list(tx.rows("select id from login_roles")))


async def test_the_limits_of_roles(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A domain has limited roles, a role has limited sets, and a set has limited octets."""
    long = ReplySet(reply_attributes=(Reply("Filter-Id", "x" * 250),) * (MAX_SET_OCTETS // 252 + 1))
    with pytest.raises(Invalid, match=f"entry 5 must fit into {MAX_SET_OCTETS} octets"):
        await areas.roles.set(areas.domain, "long", long)
    monkeypatch.setattr("sallyport.areas.policy.roles.repo.MAX_ROLES", 2)
    for name in ("one", "two"):
        await areas.roles.set(areas.domain, name, FILTER)
    with pytest.raises(Conflict, match="a domain has at most 2 roles"):
        await areas.roles.set(areas.domain, "three", FILTER)
    await areas.roles.set(areas.domain, "two", ARUBA)
    monkeypatch.setattr("sallyport.areas.policy.roles.service.MAX_SETS", 2)
    with pytest.raises(Conflict, match="a role has at most 2 sets"):
        await areas.roles.set(areas.domain, "two", ReplySet("Cisco IOS", vlan="3"))
    monkeypatch.setattr("sallyport.areas.policy.roles.repo.MAX_CHARACTERS", 400)
    with pytest.raises(Conflict, match="the roles of a domain have at most 400 characters"):
        await areas.roles.set(areas.domain, "two", ReplySet(reply_attributes=(Reply("Filter-Id", "x" * 250),)))
    assert len(areas.roles.present(areas.domain, "two").sets) == 2
    assert (MAX_ROLES, MAX_SETS) == (200, 100)


@pytest.mark.parametrize("product", TEMPLATES)
async def test_a_template_can_be_sent(areas: Areas, product: str) -> None:
    """Each template names a known product, and its attributes are in the dictionary. If a product expects the name of a
    role, the form says what the product needs of this name."""
    assert product in PRODUCTS
    template = TEMPLATES[product]
    octets = areas.roles.translation.replies("20" if template.takes_vlan else "", template.replies("staff"))
    assert b"staff" in octets or not template.attribute
    assert bool(template.needs) is bool(template.attribute)


def test_a_template_needs_a_product() -> None:
    """The error names the products with a template. A product may be written in any case, and need not be known."""
    assert SetRole.model_validate({**SCOPE, "product": "Acme AP"}).product == "Acme AP"
    assert SetRole.model_validate({**SCOPE, "product": "cisco ios"}).product == "Cisco IOS"
    for wrong in ({"template": True}, {"template": True, "product": "pam_radius"}):
        with pytest.raises(ValueError, match="Aruba Wireless, Cisco"):
            SetRole.model_validate({**SCOPE, **wrong})


def test_an_empty_set_differs_from_no_set() -> None:
    role = Role(1, "staff", (FILTER, ReplySet("pam_radius")))
    assert role.given("pam_radius") == GivenRole("staff", RoleSource.PRODUCT)
    assert role.without(("", "pam_radius")).given("pam_radius").source is RoleSource.DEFAULT
