"""/ad/PreviewEnforcement, and its use by updateDomainEnforcement."""

from typing import Any

import pytest

from tests.api.world import PASSWORD, Tenant, World, problem

PREVIEW = "/ad/PreviewEnforcement"
UPDATE = "/ad/updateDomainEnforcement"
NO_PROVIDER = "no provider"


def switch(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    """Call updateDomainEnforcement on the tenant's domain."""
    answer: dict[str, Any] = tenant.ask(UPDATE, domainId=tenant.domain, **fields)
    return answer


def entry(tenant: Tenant) -> dict[str, Any]:
    """Return the entry of the domain in GetAllDomains."""
    found: dict[str, Any] = tenant.ask("/ad/GetAllDomains")["domains"][0]
    return found


def test_a_domain_without_logins(tenant: Tenant) -> None:
    """A domain without logins has no affected users. The default range of the preview is 30 days."""
    answer = tenant.ask(PREVIEW, domainId=tenant.domain)
    fields = {"users", "devices", "rules", "counts", "logins", "from", "to", "isWhole", "policyVersion"}
    assert set(answer) == fields
    assert (answer["users"], answer["devices"], answer["logins"]) == ([], [], 0)
    none = {"accept": 0, "challenge": 0, "reject": 0, "unknown": 0}
    assert answer["counts"] == {"users": none, "devices": none, "denied": 0}
    assert answer["from"] < answer["to"]


def test_the_impact_by_name(tenant: Tenant) -> None:
    """The preview lists each user that passed the first factor, with the outcome and the device.

    It lists no other user.
    """
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, name="a", action="allow", users=["bob"])
    tenant.user("bob")
    with tenant.nas() as nas:
        for user, password in (("ann", PASSWORD), ("ANN", PASSWORD), ("bob", PASSWORD), ("bob", "x"), ("eve", "x")):
            nas.login(user, password, NAS_IDENTIFIER=b"vpn-1")
    answer = tenant.ask(PREVIEW, domainId=tenant.domain, days="1")
    (device,) = tenant.devices()
    outcomes = [(each["user"], each["outcome"], each["reason"], each["logins"]) for each in answer["users"]]
    assert outcomes == [("ANN", "reject", NO_PROVIDER, 2), ("bob", "accept", "", 1)]
    assert answer["devices"] == [
        {"device_id": device["device_id"], "device_name": "vpn-1", "outcome": "reject", "reason": NO_PROVIDER}
    ]
    assert [(each["name"], each["action"], each["logins"], each["users"]) for each in answer["rules"]] == [
        ("", "mfa_required", 2, 1), ("a", "allow", 1, 1),
    ]  # fmt: skip
    assert (answer["logins"], answer["counts"]["denied"]) == (3, 2)
    assert answer["users"][0]["lastSeen"].endswith("Z")
    version = answer["policyVersion"]
    tenant.ask("/ad/AddLoginRule", domainId=tenant.domain, name="b", action="allow", users=["ann"])
    later = tenant.ask(PREVIEW, domainId=tenant.domain)
    assert later["policyVersion"] > version
    assert [each["outcome"] for each in later["users"]] == ["accept", "accept"]


def test_the_impact_with_another_fallback(tenant: Tenant) -> None:
    """A given fallbackAction replaces that of the domain in the preview, and is not stored."""
    tenant.device("vpn")
    assert tenant.ask(PREVIEW, domainId=tenant.domain)["counts"]["denied"] > 0
    allowing = tenant.ask(PREVIEW, domainId=tenant.domain, fallbackAction="allow")
    assert allowing["counts"]["denied"] == 0
    assert entry(tenant)["fallbackAction"] == "deny"
    wrong = tenant.refused(PREVIEW, domainId=tenant.domain, fallbackAction="maybe")
    assert wrong == (400, "invalid fallbackAction")


@pytest.mark.parametrize("days", [0, 366, -1, "x", "", 1.5, True, 2**70])
def test_malformed_days(tenant: Tenant, days: object) -> None:
    """The number of days must be 1 to 365."""
    assert tenant.refused(PREVIEW, domainId=tenant.domain, days=days) == (400, "invalid days")


def test_another_domain_is_not_looked_at(world: World, tenant: Tenant) -> None:
    """The preview uses no login of another domain or tenant, even if users or devices have the same names."""
    other = world.tenant()
    tenant.device("vpn")
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    for who, domain in ((other, other.domain), (tenant, branch)):
        answer = who.ask(PREVIEW, domainId=domain)
        assert (answer["users"], answer["devices"], answer["logins"]) == ([], [], 0)
    assert other.refused(PREVIEW, domainId=tenant.domain) == (403, "domain not in tenant")


def test_enforcing_answers_with_its_impact(tenant: Tenant) -> None:
    """A change to enforce mode returns the impact without names. A change to monitor mode returns no impact."""
    tenant.device("vpn")
    preview = switch(tenant, enforcementMode="enforce", fallbackAction="allow")["preview"]
    assert set(preview) == {"counts", "logins", "from", "to"}
    assert (preview["logins"], preview["counts"]["users"]["accept"], preview["counts"]["denied"]) == (1, 1, 0)
    assert switch(tenant, enforcementMode="monitor")["preview"] is None


def test_a_switch_that_must_deny_no_user(tenant: Tenant) -> None:
    """With requireClean, a change that would deny users or devices is answered with 409 and a list of them, and changes
    nothing.

    With another fallback it succeeds.
    """
    tenant.device("vpn")
    fields = {"domainId": tenant.domain, "enforcementMode": "enforce", "requireClean": "true"}
    answer = tenant.world.post(UPDATE, tenant.token, json=tenant.scoped(**fields))
    body = answer.json()
    assert (answer.status_code, body["code"], set(body)) == (409, 409, {"error", "code", "users", "devices"})
    assert body["error"] == "enforcing would deny 2 users or devices"
    assert [(each["user"], each["reason"]) for each in body["users"]] == [("ann", NO_PROVIDER)]
    assert [each["device_name"] for each in body["devices"]] == ["vpn"]
    assert (entry(tenant)["enforcementMode"], entry(tenant)["fallbackAction"]) == ("monitor", "deny")
    tenant.ask(UPDATE, **{**fields, "fallbackAction": "allow", "requireClean": True})
    assert (entry(tenant)["enforcementMode"], entry(tenant)["fallbackAction"]) == ("enforce", "allow")


def test_a_mode_for_a_time(tenant: Tenant) -> None:
    """A temporary change of the mode returns its end time, and the list of domains has this time too.

    A confirmation keeps the mode, and so does a change without a duration. A repeated confirmation is not an error.
    """
    for confirm in (
        {"confirm": True},
        {"enforcementMode": "enforce"},
        {"enforcementMode": "enforce", "confirm": "yes"},
    ):
        ends = switch(tenant, enforcementMode="enforce", revertAfterMinutes="10")["revertsAt"]
        assert ends.endswith("Z")
        assert (entry(tenant)["revertsAt"], entry(tenant)["enforcementMode"]) == (ends, "enforce")
        for _ in range(2):
            answer = switch(tenant, **confirm)
            assert (answer["revertsAt"], answer["enforcementMode"]) == ("", "enforce")
        assert entry(tenant)["revertsAt"] == ""
        switch(tenant, enforcementMode="monitor")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"enforcementMode": "enforce", "revertAfterMinutes": 0}, "invalid revertAfterMinutes"),
        ({"enforcementMode": "enforce", "revertAfterMinutes": 10_081}, "invalid revertAfterMinutes"),
        ({"enforcementMode": "enforce", "revertAfterMinutes": "soon"}, "invalid revertAfterMinutes"),
        ({"enforcementMode": "enforce", "requireClean": "maybe"}, "invalid requireClean"),
        ({"confirm": "maybe"}, "invalid confirm"),
        ({"confirm": False}, "missing enforcementMode"),
        ({"confirm": True, "revertAfterMinutes": 5}, "revertAfterMinutes and confirm exclude each other"),
        ({"revertAfterMinutes": 5}, "missing enforcementMode"),
    ],
)
def test_malformed_switches(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A malformed request does not change the mode."""
    answer = tenant.world.post(UPDATE, tenant.token, json=tenant.scoped(domainId=tenant.domain, **fields))
    assert problem(answer) == (400, text)
    assert (entry(tenant)["enforcementMode"], entry(tenant)["revertsAt"]) == ("monitor", "")


def test_enrolments_are_looked_up(tenant: Tenant) -> None:
    """The preview counts the users that need a second factor, and how many of them are not enrolled."""
    tenant.device("vpn")
    asked = {"domainId": tenant.domain, "again": True}
    assert tenant.ask("/ad/CheckEnrolments", **asked) == {"users": 1, "left": 1}
    tenant.ask("/ad/SetMFAProvider", domainId=tenant.domain, provider="totp")
    assert tenant.ask("/ad/CheckEnrolments", **asked) == {"users": 1, "left": 0}
