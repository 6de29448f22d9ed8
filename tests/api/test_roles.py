"""The operations of roles, tested with real logins from devices of different products."""

import pytest

from sallyport.radius.attributes import VENDOR_SPECIFIC, push_vendor_attribute
from tests.api.world import PASSWORD, Tenant
from tests.radius_client import RadiusClient

SET, LIST, SHOW, REMOVE = "/ad/SetRole", "/ad/ListRoles", "/ad/ShowRole", "/ad/RemoveRole"
ACCEPT = 2
FILTER_ID, TUNNEL_GROUP = 11, 81
OF_ARUBA = push_vendor_attribute(14823, 5, b"corp")
OF_IOS = push_vendor_attribute(9, 1, b"audit-session-id=1")
VLAN_20 = ["Tunnel-Type = VLAN", "Tunnel-Medium-Type = IEEE-802", "Tunnel-Private-Group-Id = 20"]


def set_role(tenant: Tenant, role: str = "staff", **fields: object) -> None:
    """Set a role of the tenant's domain."""
    tenant.ask(SET, domainId=tenant.domain, role=role, **fields)


def attributes(nas: RadiusClient, extra: bytes) -> dict[int, bytes]:
    """Log ann in from a device that sends further attributes, and return the attributes of the Access-Accept."""
    name = f"device {len(extra)}".encode()
    code, first = nas.exchange(nas.packet("ann", PASSWORD, NAS_IDENTIFIER=name, extra=extra))
    assert code == ACCEPT
    return first


def test_the_same_rule_gives_each_product_its_own_attributes(tenant: Tenant) -> None:
    """A switch gets a VLAN, an access point of Aruba a role, and a Meraki a Filter-Id. A product without a set gets the
    default set, which the event names. The product that is configured for a client counts if its requests show none.
    """
    set_role(tenant, vlan="20")
    set_role(tenant, product="Aruba Wireless", template=True)
    set_role(tenant, product="cisco meraki", replyAttributes=[{"name": "Filter-Id", "value": "employees"}])
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, name="all", action="allow", everyone=True, role="STAFF")
    with tenant.nas() as switch, tenant.nas(product="Cisco Meraki") as meraki:
        assert attributes(switch, OF_ARUBA)[VENDOR_SPECIFIC] == bytes.fromhex("000039e7 01 07") + b"staff"
        assert attributes(switch, OF_IOS)[TUNNEL_GROUP] == b"20"
        assert attributes(meraki, b"")[FILTER_ID] == b"employees"
    events = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=3)["events"]
    assert [(each["role"], each["roleSource"], each["attributes"]) for each in events] == [
        ("staff", "product", ["Filter-Id = employees"]),
        ("staff", "default", VLAN_20),
        ("staff", "product", ["Aruba-User-Role = staff"]),
    ]


def test_the_tags_of_a_device_choose_the_set(tenant: Tenant) -> None:
    """A device takes over the tags of its RADIUS client. The login, the test and the preview agree."""
    set_role(tenant, vlan="20")
    set_role(tenant, tag="site=Berlin", vlan="30")
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, name="all", action="allow", everyone=True, role="staff")
    with tenant.nas(name="core", tags=["site=Berlin/Floor 2"]) as nas:
        assert attributes(nas, OF_IOS)[TUNNEL_GROUP] == b"30"
        tested = tenant.ask("/ad/TestLoginRules", domainId=tenant.domain, user="ann", client="core")
        assert (tested["roleSource"], tested["attributes"][-1]) == ("tag", "Tunnel-Private-Group-Id = 30")
        (rule,) = tenant.ask("/ad/PreviewEnforcement", domainId=tenant.domain)["rules"]
        assert rule["roleSets"] == [{"product": "Cisco IOS", "source": "tag", "logins": 1}]
        (device,) = tenant.devices()
        fields = {"deviceId": device["device_id"], "tags": ["site=Bonn"]}
        tenant.ask("/network_device/UpdateDevice", domainId=tenant.domain, **fields)
        assert attributes(nas, OF_IOS)[TUNNEL_GROUP] == b"20"
        tested = tenant.ask("/ad/TestLoginRules", domainId=tenant.domain, user="ann", client="core")
        assert tested["roleSource"] == "default"
    tenant.ask(REMOVE, domainId=tenant.domain, role="staff", tag="site=berlin")
    assert len(tenant.ask(SHOW, domainId=tenant.domain, role="staff")["sets"]) == 1


def test_a_role_without_a_default_set(tenant: Tenant) -> None:
    """Nothing of the role is sent to other products; the rule's own attributes are. The event and the test say so."""
    set_role(tenant, product="Aruba Wireless", template=True, vlan="20")
    own = [{"name": "Filter-Id", "value": "own"}, {"name": "Tunnel-Private-Group-Id", "value": "30"}]
    rule = {"name": "all", "action": "allow", "everyone": True, "role": "staff", "replyAttributes": own}
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, **rule)
    with tenant.nas(name="nas") as nas:
        sent = attributes(nas, OF_IOS)
        assert (sent[FILTER_ID], sent[TUNNEL_GROUP], VENDOR_SPECIFIC in sent) == (b"own", b"30", False)
        sent = attributes(nas, OF_ARUBA)
        assert (sent[FILTER_ID], sent[TUNNEL_GROUP], VENDOR_SPECIFIC in sent) == (b"own", b"30", True)
    aruba, ios = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=2)["events"]
    assert (aruba["roleSource"], ios["roleSource"]) == ("product", "none")
    tested = tenant.ask("/ad/TestLoginRules", domainId=tenant.domain, user="ann")
    assert (tested["role"], tested["roleSource"]) == ("staff", "none")
    assert tested["warnings"] == ["the role staff has no set for this NAS and no default set, so nothing of it is sent"]
    assert tested["attributes"] == ["Filter-Id = own", "Tunnel-Private-Group-Id = 30"]


def test_a_change_applies_to_the_next_login(tenant: Tenant) -> None:
    """A changed role applies without a change of the rule. A rejected login gets no role."""
    set_role(tenant, vlan="20")
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, name="all", action="allow", everyone=True, role="staff")
    with tenant.nas() as nas:
        assert attributes(nas, b"")[TUNNEL_GROUP] == b"20"
        set_role(tenant, vlan="21")
        assert attributes(nas, b"")[TUNNEL_GROUP] == b"21"
        (rule,) = tenant.ask("/ad/ListLoginRules", domainId=tenant.domain)["rules"]
        used = f"the role staff is used by rule {rule['ruleId']} all: change them first"
        assert tenant.refused(REMOVE, domainId=tenant.domain, role="staff") == (409, used)
        tenant.ask("/ad/UpdateLoginRule", domainId=tenant.domain, ruleId=rule["ruleId"], action="block", everyone=True)
        tenant.ask("/ad/updateDomainEnforcement", domainId=tenant.domain, enforcementMode="enforce")
        assert nas.login("ann", PASSWORD) == 3
    (event,) = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain, pageSize=1)["events"]
    assert (event["rule"], event["role"], event["roleSource"]) == ("all", "", "")


def test_the_preview_counts_the_products_of_a_role(tenant: Tenant) -> None:
    """The recorded logins are decided with a rule that is not stored, and the products without a set are named."""
    set_role(tenant, product="Aruba Wireless", template=True)
    with tenant.nas() as nas:
        for extra in (OF_ARUBA, OF_ARUBA, OF_IOS):
            attributes(nas, extra)
    proposed = {"name": "all", "action": "allow", "role": "staff"}
    impact = tenant.ask("/ad/PreviewEnforcement", domainId=tenant.domain, rule=proposed)
    (rule,) = impact["rules"]
    assert rule["role"] == "staff"
    assert rule["roleSets"] == [
        {"product": "Aruba Wireless", "source": "product", "logins": 2},
        {"product": "Cisco IOS", "source": "none", "logins": 1},
    ]


def test_roles_are_listed_shown_and_removed(tenant: Tenant) -> None:
    """A list has the sets of each role, the default set first. A set or a whole role is removed."""
    set_role(tenant, vlan="20")
    set_role(tenant, product="Cisco IOS", template=True)
    set_role(tenant, "guests")
    answer = tenant.ask(LIST, domainId=tenant.domain)
    assert (answer["totalCount"], [each["role"] for each in answer["roles"]]) == (2, ["guests", "staff"])
    staff = tenant.ask(SHOW, domainId=tenant.domain, role="Staff")
    assert staff == answer["roles"][1] == {
        "role": "staff",
        "domainId": tenant.domain,
        "sets": [
            {"product": "", "tag": "", "vlan": "20", "replyAttributes": [], "source": "default", "attributes": VLAN_20},
            {
                "product": "Cisco IOS", "tag": "", "vlan": "", "source": "product",
                "replyAttributes": [{"name": "Filter-Id", "value": "staff.in"}],
                "attributes": ["Filter-Id = staff.in"],
            },
        ],
        "usedBy": [],
    }  # fmt: skip
    tenant.ask(REMOVE, domainId=tenant.domain, role="staff", product="Cisco IOS")
    assert len(tenant.ask(SHOW, domainId=tenant.domain, role="staff")["sets"]) == 1
    tenant.ask(REMOVE, domainId=tenant.domain, role="staff")
    assert tenant.refused(SHOW, domainId=tenant.domain, role="staff") == (404, "role not found")
    assert [each["role"] for each in tenant.ask(LIST, domainId=tenant.domain, search="GUEST")["roles"]] == ["guests"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"role": " "}, "invalid role", id="a blank name"),
        pytest.param({"role": "x" * 65}, "invalid role", id="a long name"),
        pytest.param({"vlan": "4095"}, "invalid vlan", id="an impossible VLAN"),
        pytest.param({"tag": "Berlin"}, "invalid tag", id="a tag without a key"),
        pytest.param({"template": True}, None, id="a template without a product"),
        pytest.param(
            {"replyAttributes": [{"name": "State", "value": "x"}]},
            "invalid replyAttributes: entry 1: a rule or role cannot set State",
            id="an attribute of the service",
        ),
        pytest.param(
            {"replyAttributes": [{"name": "Cisco-AVPair", "value": "psk=secret"}] * 300},
            None,
            id="too many octets",
        ),
    ],
)
def test_invalid_sets(tenant: Tenant, fields: dict[str, object], message: str | None) -> None:
    """A refused set is not stored, and the error names the field."""
    status, text = tenant.refused(SET, **{"domainId": tenant.domain, "role": "staff", **fields})
    assert status == 400 and (text == message if message else "product that has one" in text or "octets" in text)
    assert tenant.ask(LIST, domainId=tenant.domain) == {"roles": [], "totalCount": 0}


@pytest.mark.parametrize("path", [SET, LIST, SHOW, REMOVE])
def test_another_tenants_roles(tenant: Tenant, path: str) -> None:
    """A tenant can neither read nor change the roles of another tenant, and a rule cannot name them."""
    set_role(tenant)
    other = tenant.world.tenant()
    fields = {} if path == LIST else {"role": "staff"}
    assert other.refused(path, domainId=tenant.domain, **fields) == (403, "domain not in tenant")
    rule = {"name": "r", "action": "allow", "users": ["ann"], "role": "staff"}
    assert other.refused("/ad/AddLoginRule", domainId=other.domain, **rule) == (400, "invalid role")
