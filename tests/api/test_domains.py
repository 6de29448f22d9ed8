"""/ad/GetAllDomains, /ad/AddDomain and /ad/updateDomainEnforcement."""

from typing import Any

import pytest

from sallyport.areas.domains.bodies import DomainEntry, DomainList
from tests.api.world import PASSWORD, Tenant, World

ALL = "/ad/GetAllDomains"
ADD = "/ad/AddDomain"
UPDATE = "/ad/updateDomainEnforcement"
REMOVE = "/ad/RemoveDomain"
WARNING = "this domain has no MFA provider: its fallback ({}) applies to every login"


def domains(tenant: Tenant, **fields: Any) -> list[dict[str, Any]]:
    """Return the tenant's domains."""
    listed: list[dict[str, Any]] = tenant.ask(ALL, **fields)["domains"]
    return listed


def test_the_list_matches_its_model(tenant: Tenant) -> None:
    """Each entry has the fields of `DomainEntry` in the same order, with values of the declared types."""
    answer = tenant.ask(ALL)
    assert DomainList.model_validate(answer).model_dump(mode="json") == answer
    assert list(answer["domains"][0]) == list(DomainEntry.model_fields)


def test_the_fields_of_a_domain(world: World, tenant: Tenant) -> None:
    """A domain has the fields of the interface and the additional ones. The list contains only domains of the tenant,
    ordered by id.
    """
    world.tenant("theirs")
    answer = tenant.ask(ADD, domainName="branch")
    added = answer.pop("domainId")
    assert isinstance(added, int)
    assert answer == {"code": 200, "status": "Success", "message": "domain added", "warnings": []}
    additions = {
        "fallbackAction": "deny", "firstFactor": "local", "realms": [], "revertsAt": "", "disconnectOnRevoke": False,
        "breakGlass": "", "directoryName": "", "issuerName": "", "unknownStations": "reject",
        "ruleOrder": "identity", "directoryMaxAgeHours": 24, "staleDirectoryAction": "deny", "certificateNames": "any",
        "lockOnNotMe": False, "rememberHours": 0, "warnings": [],
    }  # fmt: skip
    assert tenant.ask(ALL) == {
        "domains": [
            {"domainId": number, "domainName": name, "enforcementMode": "monitor", "status": "active", **additions}
            for number, name in ((tenant.domain, "corp"), (added, "branch"))
        ],
        "totalCount": 2,
    }


def test_all_fields_of_a_domain(tenant: Tenant) -> None:
    """Modes, actions and factors are accepted in any letter case, and unknown fields are ignored.

    A domain that enforces without a provider causes a warning.
    """
    added = tenant.ask(
        ADD, domainName="Zürich", directoryName="ad.example", enforcementMode="Enforcing", fallbackAction="ALLOW",
        firstFactor="None", realms=["zh.example", "ZH"], status="inactive",
        disconnectOnRevoke="yes",
    )  # fmt: skip
    assert added["warnings"] == ["this domain has no MFA provider: its fallback (allow) applies to every login"]
    assert domains(tenant)[1] == {
        "domainId": added["domainId"], "domainName": "Zürich", "enforcementMode": "enforce", "status": "active",
        "fallbackAction": "allow", "firstFactor": "none", "realms": ["zh.example", "ZH"],
        "revertsAt": "",
        "breakGlass": "",
        "disconnectOnRevoke": True,
        "directoryName": "ad.example",
        "issuerName": "",
        "unknownStations": "reject",
        "ruleOrder": "identity",
        "directoryMaxAgeHours": 24,
        "staleDirectoryAction": "deny", "certificateNames": "any",
        "lockOnNotMe": False, "rememberHours": 0,
        "warnings": added["warnings"],
    }  # fmt: skip


def test_pages_of_domains(tenant: Tenant) -> None:
    """A page has 10 domains by default and at most 100. Each domain is on one page. The total counts the domains of the
    tenant.
    """
    for number in range(12):
        tenant.ask(ADD, domainName=f"d{number}")
    assert (len(domains(tenant)), tenant.ask(ALL)["totalCount"]) == (10, 13)
    names = [each["domainName"] for page in (1, 2, 3, 4) for each in domains(tenant, pageId=page, pageSize=5)]
    assert names == ["corp", *(f"d{number}" for number in range(12))]
    assert len(domains(tenant, pageSize="100")) == 13


def test_names_and_realms_are_taken_once(world: World, tenant: Tenant) -> None:
    """A name or realm that the tenant already has, in any letter case, is answered with 409. Another tenant may have
    it.
    """
    tenant.ask(ADD, domainName="branch", realms=["branch.example"])
    for fields in (
        {"domainName": "corp"}, {"domainName": "CORP"}, {"domainName": "Branch.Example"},
        {"domainName": "x", "realms": ["corp"]}, {"domainName": "x", "realms": ["y", "BRANCH.EXAMPLE"]},
    ):  # fmt: skip
        assert tenant.refused(ADD, **fields)[0] == 409, fields
    assert [each["domainName"] for each in domains(tenant)] == ["corp", "branch"]
    world.tenant().ask(ADD, domainName="branch", realms=["branch.example"])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "missing domainName"),
        ({"domainName": ""}, "invalid domainName"),
        ({"domainName": "x" * 256}, "invalid domainName"),
        ({"domainName": "a\nb"}, "invalid domainName"),
        ({"domainName": ["hunter2"]}, "invalid domainName"),
        ({"domainName": "d", "enforcementMode": "hunter2"}, "invalid enforcementMode"),
        ({"domainName": "d", "enforcementMode": ""}, "invalid enforcementMode"),
        ({"domainName": "d", "fallbackAction": "hunter2"}, "invalid fallbackAction"),
        ({"domainName": "d", "firstFactor": "hunter2"}, "invalid firstFactor"),
        ({"domainName": "d", "realms": "hunter2"}, "invalid realms"),
        ({"domainName": "d", "realms": [""]}, "invalid realms"),
        ({"domainName": "d", "realms": ["b.example", "a@b"]}, "invalid realms"),
        ({"domainName": "d", "realms": ["a\\b"]}, "invalid realms"),
        ({"domainName": "d", "realms": [" b"]}, "invalid realms"),
        ({"domainName": " "}, "invalid domainName"),
        ({"domainName": "d", "realms": ["x"] * 65}, "invalid realms"),
    ],
)
def test_malformed_domains_are_refused(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A malformed domain is refused and not added. The error names the field but not its value."""
    assert tenant.refused(ADD, **fields) == (400, text)
    assert len(domains(tenant)) == 1


@pytest.mark.parametrize("name", ["domainId", "adId"])
def test_switching_a_domain(tenant: Tenant, name: str) -> None:
    """The answer has the stored mode, and a warning if there is no provider.

    The fallback action stays the same unless it is given.
    """
    branch = tenant.ask(ADD, domainName="branch")["domainId"]
    steps: list[tuple[dict[str, str], str, str, list[str]]] = [
        ({"enforcementMode": "enforcing"}, "enforce", "deny", [WARNING.format("deny")]),
        ({"enforcementMode": "Enforce", "fallbackAction": "Allow"}, "enforce", "allow", [WARNING.format("allow")]),
        ({"enforcementMode": "MONITORING"}, "monitor", "allow", []),
    ]
    for fields, mode, fallback, warnings in steps:
        answer = tenant.ask(UPDATE, **fields, **{name: str(tenant.domain)})
        assert bool(answer.pop("preview")) is (mode == "enforce")
        assert answer == {
            "code": 200, "status": "Success", "message": f"the domain is in {mode} mode", "domainId": tenant.domain,
            "domainName": "corp",
            "enforcementMode": mode, "fallbackAction": fallback, "warnings": warnings, "revertsAt": "",
            "breakGlass": "",
        }  # fmt: skip
        first, second = domains(tenant)
        assert (first["enforcementMode"], first["fallbackAction"]) == (mode, fallback)
        assert (second["domainId"], second["enforcementMode"]) == (branch, "monitor")


def test_a_switch_holds_for_the_next_request(tenant: Tenant) -> None:
    """In enforce mode the decision is applied, and in monitor mode it is only recorded. Both reject a wrong
    password.
    """
    with tenant.nas() as nas:
        for mode, answer in (("enforce", 3), ("monitor", 2)):
            tenant.ask(UPDATE, domainId=tenant.domain, enforcementMode=mode)
            assert [nas.login("ann", password) for password in (PASSWORD, "wrong")] == [answer, 3]
    events = tenant.ask("/ad/GetAuthLog", domainId=tenant.domain)["events"]
    assert [(each["decision"], each["appliedDecision"], each["wouldHaveBeen"]) for each in events] == [
        ("reject", "reject", "reject"), ("reject", "accept", "reject"),
        ("reject", "reject", ""), ("reject", "reject", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "missing enforcementMode"),
        ({"enforcementMode": "hunter2"}, "invalid enforcementMode"),
        ({"enforcementMode": None}, "invalid enforcementMode"),
        ({"enforcementMode": True}, "invalid enforcementMode"),
        ({"enforcementMode": "enforce", "fallbackAction": "hunter2"}, "invalid fallbackAction"),
    ],
)
def test_malformed_modes(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A request with a malformed mode changes no mode."""
    assert tenant.refused(UPDATE, domainId=tenant.domain, **fields) == (400, text)
    assert domains(tenant)[0]["enforcementMode"] == "monitor"


def test_only_an_admin_of_the_tenant_may_switch(world: World, tenant: Tenant) -> None:
    """Only an admin of the tenant may change the mode of a domain, under either name of the field.

    An operator of the tenant and an admin of another tenant may not.
    """
    other = world.tenant()
    for name in ("domainId", "adId"):
        fields = {name: tenant.domain, "enforcementMode": "enforce"}
        assert tenant.refused(UPDATE, token=tenant.role("operator"), **fields) == (403, "role not allowed")
        assert other.refused(UPDATE, **fields) == (403, "domain not in tenant")
    assert domains(tenant)[0]["enforcementMode"] == "monitor"


def test_an_operators_domain_has_the_default_trust(tenant: Tenant) -> None:
    """An operator may only add a domain that has the default mode, fallback and first factor."""
    operator = tenant.role("operator")
    for field, value in (("enforcementMode", "enforce"), ("fallbackAction", "allow"), ("firstFactor", "none")):
        refused = tenant.refused(ADD, token=operator, domainName="a", **{field: value})
        assert refused == (403, "role not allowed"), field
    defaults = {"enforcementMode": "monitoring", "fallbackAction": "DENY", "firstFactor": "Local"}
    tenant.ask(ADD, token=operator, domainName="b", **defaults)
    tenant.ask(ADD, domainName="c", enforcementMode="enforcing")
    assert [(each["domainName"], each["enforcementMode"]) for each in domains(tenant)[1:]] == [
        ("b", "monitor"), ("c", "enforce"),
    ]  # fmt: skip


def test_a_domain_is_removed(world: World, tenant: Tenant) -> None:
    """`dryRun` lists the data that a removal deletes.

    The name of a removed domain can be used again. Another tenant cannot remove the domain.
    """
    branch = tenant.ask(ADD, domainName="branch")["domainId"]
    assert world.tenant("theirs").refused(REMOVE, domainId=branch)[0] == 403
    tenant.user("ann", domain=branch)
    listed = tenant.ask(REMOVE, domainId=branch, dryRun=True)
    assert (listed["domainName"], listed["deleted"]) == ("branch", [{"kind": "endpoint users", "count": 1}])
    assert tenant.ask(REMOVE, domainId=branch)["deleted"] == listed["deleted"]
    assert tenant.refused(REMOVE, domainId=branch)[0] == 403
    assert [each["domainName"] for each in domains(tenant)] == ["corp"]
    assert tenant.ask(ADD, domainName="branch")["domainId"] != branch
