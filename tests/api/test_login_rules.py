"""/ad/ListLoginRules, AddLoginRule, UpdateLoginRule and DeleteLoginRule."""

from typing import Any

import pytest

from tests.api.world import PASSWORD, Tenant, World

LIST = "/ad/ListLoginRules"
ADD = "/ad/AddLoginRule"
UPDATE = "/ad/UpdateLoginRule"
DELETE = "/ad/DeleteLoginRule"
NOT_FOUND = (404, "rule not found")
ACCEPT, REJECT = 2, 3
FILTER_ID = 11


SCOPES = {"users", "groups", "ous", "kinds", "clients", "products", "media", "stations", "serviceTypes", "time"}


def add(tenant: Tenant, name: str = "r", action: str = "block", **fields: Any) -> int:
    """Add a rule to the tenant's domain and return its id. A rule that blocks everyone is confirmed."""
    confirmed = {"everyone": True} if action == "block" and SCOPES.isdisjoint(fields) else {}
    answer = tenant.ask(ADD, **{"domainId": tenant.domain, "name": name, "action": action, **confirmed, **fields})
    rule_id = answer.pop("ruleId")
    assert isinstance(answer.pop("warnings"), list)
    assert answer == {"code": 200, "status": "Success", "message": "rule added"}
    assert isinstance(rule_id, int)
    return rule_id


def listed(tenant: Tenant, **fields: Any) -> list[dict[str, Any]]:
    """Return the rules of the tenant's domain."""
    answer = tenant.ask(LIST, **{"domainId": tenant.domain, **fields})
    assert set(answer) == {"rules", "totalCount"}
    rules: list[dict[str, Any]] = answer["rules"]
    return rules


def test_the_fields_of_a_rule(tenant: Tenant) -> None:
    """A rule has the given values, and defaults for the other fields. Service-Types are given by name, media in the
    words of the inventory.
    """
    plain = add(tenant)
    full = add(
        tenant, "Night", "MFA_required", priority="5", enabled="yes", users="Bob", groups=["Staff"], ous=["OU=x,DC=y"],
        kinds="machine",
        clients=["vpn", "192.0.2.0/24"], products=["Cisco ISE"], media=["19"], stations=["AA-BB-CC-DD-EE-FF"],
        serviceTypes=["Framed", 1], ssids="Corp", ports=["Gi1/0/*"], methods=["EAP-PEAP-MSCHAPv2", "peap-mschapv2"],
        realms=["corp.example"], tags=["Site=Berlin"], certificates=["EKU=clientAuth"],
        attributes=["nas-identifier ~ ap-*", "NAS-Port-Type=19"], addresses=["198.51.100.7/24", "::ffff:192.0.2.1"],
        vlan=20,
        replyAttributes=[{"name": "Filter-Id", "value": "staff"}],
        maxSessions="2", overLimit="End-Oldest",
        time={"days": ["Mon"], "from": "22:00", "until": "6:00", "timezone": "Europe/Berlin"},
    )  # fmt: skip
    assert listed(tenant) == [
        {
            "ruleId": plain, "domainId": tenant.domain, "position": 2, "name": "r", "action": "block", "priority": 100,
            "enabled": True, "users": [], "groups": [], "ous": [], "kinds": [], "clients": [], "products": [],
            "media": [],
            "stations": [], "serviceTypes": [], "ssids": [], "tags": [], "ports": [], "methods": [], "certificates": [],
            "attributes": [], "realms": [], "addresses": [],
            "time": None, "vlan": "", "replyAttributes": [], "exemptsAll": False,
            "encoded": "", "role": "", "maxSessions": 0, "overLimit": "reject",
            "provider": "", "strength": "any",
        },
        {
            "ruleId": full, "domainId": tenant.domain, "position": 1, "name": "Night", "action": "mfa_required",
            "priority": 5, "enabled": True, "users": ["Bob"], "groups": ["Staff"], "ous": ["OU=x,DC=y"],
            "kinds": ["machine"],
            "clients": ["vpn", "192.0.2.0/24"], "products": ["Cisco ISE"], "media": ["Wireless"],
            "stations": ["AA-BB-CC-DD-EE-FF"], "serviceTypes": ["Framed-User", "Login-User"],
            "ssids": ["Corp"], "ports": ["Gi1/0/*"], "methods": ["peap-mschapv2"], "realms": ["corp.example"],
            "tags": ["site=Berlin"], "certificates": ["eku=clientAuth"],
            "attributes": ["NAS-Identifier~ap-*", "NAS-Port-Type=Wireless-802.11"],
            "addresses": ["198.51.100.0/24", "192.0.2.1"],
            "time": {"days": ["mon"], "from": "22:00", "until": "06:00", "timezone": "Europe/Berlin"}, "vlan": "20",
            "replyAttributes": [{"name": "Filter-Id", "value": "staff"}],
            "exemptsAll": False, "encoded": "40060000000d410600000006510432300b077374616666", "role": "",
            "maxSessions": 2, "overLimit": "end_oldest", "provider": "", "strength": "any",
        },
    ]  # fmt: skip


def test_rules_are_paged(world: World, tenant: Tenant) -> None:
    """Rules are ordered by id, with 10 on a page by default. A case-insensitive search matches their names. Only rules
    of this domain are listed.
    """
    ids = [add(tenant, f"Rule {number}", priority=100 - number) for number in range(12)]
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    theirs = add(tenant, "Rule of the branch", domainId=branch)
    assert [len(listed(tenant)), tenant.ask(LIST, domainId=tenant.domain)["totalCount"]] == [10, 12]
    third = listed(tenant)[2]
    assert listed(tenant, ruleId=third["ruleId"]) == [third]
    assert listed(tenant.world.tenant("other"), ruleId=third["ruleId"]) == []
    assert [each["ruleId"] for page in (1, 2, 3, 4) for each in listed(tenant, pageId=page, pageSize=4)] == ids
    assert [each["position"] for each in listed(tenant, pageSize=2)] == [12, 11]
    assert [each["name"] for each in listed(tenant, search="RULE 1")] == ["Rule 1", "Rule 10", "Rule 11"]
    assert [each["ruleId"] for each in listed(tenant, domainId=branch)] == [theirs]


def test_an_update_keeps_and_clears(tenant: Tenant) -> None:
    """An absent field and null keep the stored value, an empty list or text clears it, and a given list replaces it."""
    rule = add(tenant, users=["ann"], groups=["g"], stations=["x"], time={"days": ["sun"]}, vlan="20")
    answer = tenant.ask(UPDATE, domainId=tenant.domain, ruleId=str(rule), name="m", action=None, enabled=False)
    assert answer == {"code": 200, "status": "Success", "message": "rule updated", "warnings": []}
    (kept,) = listed(tenant)
    assert (kept["name"], kept["action"], kept["enabled"], kept["users"], kept["vlan"]) == (
        "m", "block", False, ["ann"], "20",
    )  # fmt: skip
    assert kept["time"] == {"days": ["sun"], "from": "00:00", "until": "24:00", "timezone": "UTC"}
    tenant.ask(
        UPDATE, domainId=tenant.domain, ruleId=rule, users=["bob", "carl"], groups=[], stations="", time="", vlan=""
    )
    (cleared,) = listed(tenant)
    assert (cleared["users"], cleared["groups"], cleared["stations"]) == (["bob", "carl"], [], [])
    assert (cleared["time"], cleared["vlan"], cleared["encoded"]) == (None, "", "")


def test_rules_are_deleted(tenant: Tenant) -> None:
    """One rule or several are deleted. If one of them is unknown, none is deleted."""
    one, two, three = (add(tenant) for _ in range(3))
    answer = tenant.ask(DELETE, domainId=tenant.domain, ruleId=one)
    assert answer == {"code": 200, "status": "Success", "message": "1 rule deleted"}
    assert tenant.refused(DELETE, domainId=tenant.domain, ruleId=[two, one]) == NOT_FOUND
    assert [each["ruleId"] for each in listed(tenant)] == [two, three]
    assert tenant.ask(DELETE, domainId=tenant.domain, ruleId=[two, str(three)])["message"] == "2 rules deleted"
    assert listed(tenant) == []


@pytest.mark.parametrize("path", [UPDATE, DELETE])
def test_another_domains_rules(world: World, tenant: Tenant, path: str) -> None:
    """A rule of another domain or tenant is answered with 404 and stays unchanged."""
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    other = world.tenant()
    theirs, branchs = add(other), add(tenant, domainId=branch)
    for rule in (theirs, branchs, 10**9, 0, -1):
        assert tenant.refused(path, domainId=tenant.domain, ruleId=rule) == NOT_FOUND
    assert tenant.refused(path, domainId=tenant.domain) == (400, "missing ruleId")
    for value in ("x", True, 2**63, {}):
        assert tenant.refused(path, domainId=tenant.domain, ruleId=value) == (400, "invalid ruleId")
    assert [each["name"] for each in (*listed(other), *listed(tenant, domainId=branch))] == ["r", "r"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": None}, "invalid name"),
        ({"name": ""}, "invalid name"),
        ({"action": "hunter2"}, "invalid action"),
        ({"action": ""}, "invalid action"),
        ({"priority": "hunter2"}, "invalid priority"),
        ({"enabled": "hunter2"}, "invalid enabled"),
        ({"users": ["x"] * 1001}, "invalid users"),
        ({"groups": [{"hunter2": 1}]}, "invalid groups"),
        (
            {"clients": ["hunter2/33"]},
            "invalid clients: entry 1 must be a name, an address, or a network such as 192.0.2.0/24",
        ),
        (
            {"serviceTypes": ["hunter2"]},
            "invalid serviceTypes: entry 1 must be a Service-Type, as a name such as Login or as a number",
        ),
        ({"media": ["hunter2"]}, "invalid media: entry 1 must be a medium such as Ethernet, Wireless or Virtual"),
        (
            {"methods": ["pap", "hunter2"]},
            "invalid methods: entry 2 must be a method such as pap, eap-tls or peap-mschapv2",
        ),
        (
            {"tags": ["hunter2"]},
            "invalid tags: entry 1 must be KEY=VALUE, with a key of 1 to 32 letters (a to z), digits, `-`, `_` and `.`",
        ),
        (
            {"certificates": ["hunter2=x"]},
            "invalid certificates: entry 1 must be KEY=VALUE with one of the keys issuer, template, eku, san, sid, "
            "authority, device",
        ),
        ({"attributes": ["hunter2"]}, "invalid attributes: entry 1 must be NAME=VALUE or NAME~PATTERN"),
        (
            {"attributes": ["NAS-Port=hunter2"]},
            "invalid attributes: entry 1 has no value of the type integer of NAS-Port",
        ),
        (
            {"attributes": ["User-Password=hunter2"]},
            "invalid attributes: entry 1 names User-Password, which a rule cannot compare",
        ),
        (
            {"attributes": [f"Attr-26.9.{number}=x" for number in range(20, 29)]},
            "invalid attributes: must name at most 8 different attributes",
        ),
        (
            {"addresses": ["hunter2"]},
            "invalid addresses: entry 1 must be an address, or a network such as 192.0.2.0/24",
        ),
        ({"time": {"timezone": "hunter2"}}, "invalid timezone"),
        ({"time": {"from": "hunter2"}}, "invalid from"),
        ({"time": {"days": ["hunter2"]}}, "invalid days"),
        ({"time": {"from": "08:00", "until": "08:00"}}, "invalid time"),
        ({"vlan": "4095"}, "invalid vlan"),
        ({"replyAttributes": [{"name": "Class"}]}, "missing value"),
        (
            {"replyAttributes": [{"name": "Class", "value": "a"}, {"name": "Session-Timeout", "value": "hunter2"}]},
            "invalid replyAttributes: entry 2: the value of Session-Timeout is of type integer, 1 to 253 octets",
        ),
        (
            {"replyAttributes": [{"name": "State", "value": "hunter2"}]},
            "invalid replyAttributes: entry 1: a rule or role cannot set State",
        ),
    ],
)
def test_malformed_rules_are_refused(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A malformed rule is refused and not stored. The error names the field and the entry, but no value."""
    given = {"domainId": tenant.domain, "name": "r", "action": "block", **fields}
    assert tenant.refused(ADD, **given) == (400, text)
    assert listed(tenant) == []
    rule = add(tenant)
    if fields.get("name", "") is not None:
        assert tenant.refused(UPDATE, **{**given, "ruleId": rule}) == (400, text)
    assert [each["action"] for each in listed(tenant)] == ["block"]


@pytest.mark.parametrize("name", ["name", "action"])
def test_a_rule_needs_a_name_and_an_action(tenant: Tenant, name: str) -> None:
    given = {"domainId": tenant.domain, "name": "r", "action": "block"}
    del given[name]
    assert tenant.refused(ADD, **given) == (400, f"missing {name}")


NO_SCOPE = (
    400,
    "the rule would admit everyone without a second factor: give a scope such as users, groups or clients, or confirm "
    "it with everyone: true",
)


def test_an_exemption_of_everyone_is_confirmed(tenant: Tenant) -> None:
    """A rule that allows logins and has no scope needs `everyone: true`. This also holds if an update removes the last
    scope or enables the rule. A confirmed rule needs no second confirmation.
    """
    given = {"domainId": tenant.domain, "name": "all", "action": "allow"}
    assert tenant.refused(ADD, **given) == NO_SCOPE
    assert tenant.refused(ADD, **given, enabled=False, users=[], kinds="", time="") == NO_SCOPE
    assert listed(tenant) == []
    rule = add(tenant, "all", "allow", everyone="yes", enabled=False)
    change = {"domainId": tenant.domain, "ruleId": rule}
    tenant.ask(UPDATE, **change, name="everybody")
    assert tenant.refused(UPDATE, **change, enabled=True) == NO_SCOPE
    tenant.ask(UPDATE, **change, enabled=True, everyone=True)
    tenant.ask(UPDATE, **change, priority=7)
    assert [(each["name"], each["priority"], each["exemptsAll"]) for each in listed(tenant)] == [("everybody", 7, True)]
    tenant.ask(UPDATE, **change, users=["ann"])
    assert tenant.refused(UPDATE, **change, users="") == NO_SCOPE
    tenant.ask(UPDATE, **change, users="", media="19")
    tenant.ask(UPDATE, **change, media="", everyone=True)
    tenant.ask(UPDATE, **change, action="mfa_required")
    assert tenant.refused(UPDATE, **change, action="allow") == NO_SCOPE


def test_a_block_of_everyone_is_confirmed(tenant: Tenant) -> None:
    """A rule that blocks logins and has no scope needs `everyone: true`, as a rule that allows them does. The
    confirmation of the one action is none of the other.
    """
    given = {"domainId": tenant.domain, "name": "all", "action": "block"}
    blocks = (400, NO_SCOPE[1].replace("admit everyone without a second factor", "block every login of the domain"))
    assert tenant.refused(ADD, **given) == tenant.refused(ADD, **given, users="", kinds=[]) == blocks
    assert listed(tenant) == []
    rule = add(tenant, "all", "allow", everyone=True)
    change = {"domainId": tenant.domain, "ruleId": rule}
    assert tenant.refused(UPDATE, **change, action="block") == blocks
    tenant.ask(UPDATE, **change, action="block", everyone=True)
    tenant.ask(UPDATE, **change, priority=7)
    assert tenant.refused(UPDATE, **change, action="allow") == NO_SCOPE


def test_everyone_and_a_scope_contradict(tenant: Tenant) -> None:
    """A request that has both `everyone` and a scope is refused, and the error names the scopes."""
    given = {"domainId": tenant.domain, "name": "all", "action": "allow", "everyone": True}
    status, text = tenant.refused(ADD, **given, users=["ann"], time={"days": ["sun"]})
    assert status == 400 and "this rule has the scopes users, time; omit everyone" in text
    rule = add(tenant, "some", "allow", groups=["g"])
    assert "groups" in tenant.refused(UPDATE, domainId=tenant.domain, ruleId=rule, everyone=True)[1]


def test_unknown_names_are_a_warning(world: World, tenant: Tenant) -> None:
    """Each user, group or client that the domain does not have causes a warning with the entry and the nearest name of
    the same tenant. The rule is stored. Addresses, and known names in any letter case, cause no warning.
    """
    other = world.tenant()
    for of, name in ((tenant, "Printers"), (other, "Nursess")):
        fields = {"domainId": of.domain, "groupName": name, "status": "Active"}
        of.ask("/api/v1/instanceGroup/addInstanceGroup", **fields)
    tenant.user("rosalind")
    other.user("rosalin")
    world.service.add_client("vpn-west", "198.51.100.7", org=tenant.org, tenant=tenant.number)
    names = {
        "users": ["ROSALIND", "rosalin", "zed"], "groups": ["printers", "printer", "Nurses"],
        "clients": ["VPN-west", "vpn-wset", "192.0.2.0/24"],
    }  # fmt: skip
    warnings = [
        "users: entry 2: no such user in this domain yet; nearest: rosalind",
        "users: entry 3: no such user in this domain yet",
        "groups: entry 2: no such group in this domain yet; nearest: Printers",
        "groups: entry 3: no such group in this domain yet",
        "clients: entry 2: no such RADIUS client in this tenant yet; nearest: vpn-west",
    ]
    made = tenant.ask(ADD, domainId=tenant.domain, name="r", action="block", **names)
    assert made["warnings"] == warnings
    changed = tenant.ask(UPDATE, domainId=tenant.domain, ruleId=made["ruleId"], **names)
    assert changed["warnings"] == warnings
    assert tenant.ask(UPDATE, domainId=tenant.domain, ruleId=made["ruleId"], name="x")["warnings"] == []
    assert listed(tenant)[0]["groups"] == names["groups"]


def test_warnings_are_bounded(tenant: Tenant) -> None:
    """For a thousand unknown names of the largest size, the answer has 20 warnings and the number of the others."""
    users = [f"{number:04}" + "é" * 251 for number in range(1000)]
    warnings = tenant.ask(ADD, domainId=tenant.domain, name="r", action="block", users=users)["warnings"]
    assert (len(warnings), warnings[-1]) == (21, "users: 980 more entries do not exist yet")


def test_names_that_another_server_knows_are_no_warning(tenant: Tenant) -> None:
    """If a directory checks the passwords of a domain without an import, unknown names cause no warning."""
    ldap = {"servers": ["ldaps://ldap.example.com"], "baseDN": "dc=example,dc=com"}
    tenant.ask("/ad/SetFirstFactor", domainId=tenant.domain, firstFactor="ldap", ldap=ldap)
    fields = {"users": ["zed"], "groups": ["g"]}
    assert tenant.ask(ADD, domainId=tenant.domain, name="r", action="block", **fields)["warnings"] == []


def test_a_login_is_tested(world: World, tenant: Tenant) -> None:
    """The answer has the rules up to and including the deciding one, and the outcome of each step of the login."""
    first, second = add(tenant, "bobs", users=["bob"]), add(tenant, "all", "mfa_required")
    asked = {"domainId": tenant.domain, "user": "ANN", "at": "2026-01-05T23:00:00Z"}
    answer = tenant.ask("/ad/TestLoginRules", **asked, token=tenant.role("auditor"))
    assert answer == {
        "code": 200, "status": "Success", "message": f"rule {second} decides: mfa_required", "user": "ANN",
        "domainName": answer["domainName"],
        "rules": [
            {
                "position": 1, "ruleId": first, "name": "bobs", "action": "block", "result": "differs",
                "scope": "users", "has": "ANN",
            },
            {
                "position": 2, "ruleId": second, "name": "all", "action": "mfa_required", "result": "decides",
                "scope": "", "has": "",
            },
        ],
        "ruleId": second, "action": "mfa_required", "bypass": False, "lockedOut": False, "firstFactor": "local",
        "firstFactorReason": "", "secondFactor": "", "secondFactorReason": "no provider",
        "enforcementMode": "monitor", "fallbackAction": "deny", "decision": "reject", "appliedDecision": "accept",
        "reason": "no provider", "openPrompts": [], "warnings": [], "role": "", "roleSource": "", "attributes": [],
        "maxSessions": 0, "parallelSessions": None, "sessionLimit": "", "strength": "any",
    }  # fmt: skip
    other, theirs = world.tenant(), world.address()
    world.service.add_client("theirs", theirs, org=other.org, tenant=other.number)
    for client in ("theirs", theirs, "nothing"):
        status, text = tenant.refused("/ad/TestLoginRules", **asked, client=client)
        assert (status, text.partition(":")[0]) == (404, "RADIUS client not found")


def test_a_test_of_the_largest_size(tenant: Tenant) -> None:
    """A test with 200 names that are slow to compare is answered. A test with more names is refused."""
    names = [f"{number:04}" + "\u0301" * 251 for number in range(200)]
    answer = tenant.ask("/ad/TestLoginRules", domainId=tenant.domain, user="\u0301" * 64, groups=names, ous=names)
    assert answer["firstFactorReason"] == "unknown user"
    refused = tenant.refused("/ad/TestLoginRules", domainId=tenant.domain, user="ann", groups=[*names, "x"])
    assert refused == (400, "invalid groups")


def test_a_rule_holds_for_the_next_login(tenant: Tenant) -> None:
    """A new, changed or removed rule applies to the next login.

    In an enforcing domain without a provider, a login is accepted only if a rule allows it, with the reply attributes
    of the rule. A request that lacks the attribute of the rule is not exempted.
    """
    tenant.ask("/ad/updateDomainEnforcement", domainId=tenant.domain, enforcementMode="enforce")
    with tenant.nas() as nas:

        def login(**attributes: bytes) -> tuple[int, bytes | None]:
            code, first = nas.exchange(nas.packet("ann", PASSWORD, **attributes))
            return code, first.get(FILTER_ID)

        framed = {"SERVICE_TYPE": (2).to_bytes(4)}
        assert login() == (REJECT, None)
        rule = add(
            tenant, action="allow", users=["ANN"], serviceTypes=["Framed"],
            replyAttributes=[{"name": "Filter-Id", "value": "staff"}],
        )  # fmt: skip
        assert [login(**framed), login()] == [(ACCEPT, b"staff"), (REJECT, None)]
        block = add(tenant, users=["ann"], priority=1, stations=["aabb.ccdd.eeff"])
        station = {"CALLING_STATION_ID": b"AA-BB-CC-DD-EE-FF"}
        assert login(**framed, **station)[0] == login(**framed)[0] == REJECT
        assert login(**framed, CALLING_STATION_ID=b"AA-BB-CC-DD-EE-00") == (ACCEPT, b"staff")
        tenant.ask(UPDATE, domainId=tenant.domain, ruleId=block, enabled=False)
        assert login(**framed, **station) == (ACCEPT, b"staff")
        tenant.ask(DELETE, domainId=tenant.domain, ruleId=rule)
        assert login(**framed) == (REJECT, None)


def test_reply_attributes_in_both_modes(tenant: Tenant) -> None:
    """In monitor mode the reply attributes of a rule are sent, and its block is not applied. A reject has no reply
    attributes.
    """
    add(tenant, action="block", replyAttributes=[{"name": "Filter-Id", "value": "quarantine"}])
    with tenant.nas() as nas:
        code, first = nas.exchange(nas.packet("ann", PASSWORD))
        assert (code, first.get(FILTER_ID)) == (ACCEPT, b"quarantine")
        tenant.ask("/ad/updateDomainEnforcement", domainId=tenant.domain, enforcementMode="enforce")
        code, first = nas.exchange(nas.packet("ann", PASSWORD))
        assert (code, FILTER_ID in first) == (REJECT, False)
