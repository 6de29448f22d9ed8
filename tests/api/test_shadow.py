"""The operations about shadow logins."""

from typing import Any

import pytest

from tests.api.world import Tenant

RECORD, COMPARE, DELETE = "/ad/RecordShadowLogins", "/ad/CompareShadowLogins", "/ad/DeleteShadowLogins"
LOGIN: dict[str, Any] = {"at": "2026-11-23T08:00:00Z", "user": "ann", "answer": "accept", "client": "192.0.2.1"}


def test_logins_are_recorded_compared_and_deleted(tenant: Tenant) -> None:
    """The answer has the number of logins with each result, the causes with examples, and the logins themselves."""
    refused = {"answer": "reject", "cause": "policy", "reason": "48: no network policy matches", "place": "a.log:7"}
    known = {"attributes": ["NAS-IP-Address=10.0.0.1", "Calling-Station-Id=02-00-00-00-00-01"], "method": "mschapv2"}
    logins = [{**LOGIN, **known}, {**LOGIN, **known, "user": "eve", **refused}]
    assert tenant.ask(RECORD, domainId=tenant.domain, logins=logins)["recorded"] == 2
    assert tenant.ask(RECORD, domainId=tenant.domain, logins=logins)["recorded"] == 0
    found = tenant.ask(COMPARE, domainId=tenant.domain)
    assert (found["logins"], found["differing"]) == (2, 1)
    assert found["counts"] == {"same": 1, "stricter": 1, "laxer": 0, "reply": 0, "unknown": 0}
    (group,) = found["groups"]
    assert (group["result"], group["reason"], group["logins"]) == ("stricter", "no RADIUS client has this address", 1)
    assert group["examples"] == found["cases"]
    assert [(each["user"], each["station"], each["device"]) for each in found["cases"]] == [
        ("ann", "02-00-00-00-00-01", "10.0.0.1")
    ]
    assert tenant.ask(COMPARE, domainId=tenant.domain, device="198.51.100.1")["logins"] == 0
    assert tenant.ask(COMPARE, domainId=tenant.domain, result="same")["cases"][0]["oldReason"] == refused["reason"]
    assert tenant.ask(DELETE, domainId=tenant.domain)["deleted"] == 2
    assert tenant.ask(COMPARE, domainId=tenant.domain)["logins"] == 0


def test_the_last_report_is_kept(tenant: Tenant) -> None:
    """With `kept`, the answer is the last one to the same question. New logins, and their deletion, drop it."""
    tenant.ask(RECORD, domainId=tenant.domain, logins=[LOGIN])
    first = tenant.ask(COMPARE, domainId=tenant.domain)
    assert tenant.ask(COMPARE, domainId=tenant.domain, kept=True) == first
    again = tenant.ask(COMPARE, domainId=tenant.domain)
    assert again["decidedAt"] > first["decidedAt"]
    assert tenant.ask(COMPARE, domainId=tenant.domain, kept=True) == again
    assert tenant.ask(COMPARE, domainId=tenant.domain, kept=True, user="bob")["logins"] == 0
    tenant.ask(RECORD, domainId=tenant.domain, logins=[{**LOGIN, "user": "bob"}])
    assert tenant.ask(COMPARE, domainId=tenant.domain, kept=True)["logins"] == 2
    tenant.ask(DELETE, domainId=tenant.domain)
    assert tenant.ask(COMPARE, domainId=tenant.domain, kept=True)["logins"] == 0
    assert tenant.world.tenant().refused(COMPARE, domainId=tenant.domain, kept=True)[0] == 403


@pytest.mark.parametrize("path", [RECORD, COMPARE, DELETE])
def test_another_tenants_shadow_logins(tenant: Tenant, path: str) -> None:
    """A tenant can neither add, see nor delete shadow logins of another tenant."""
    other = tenant.world.tenant()
    fields = {"logins": [LOGIN]} if path == RECORD else {}
    assert other.refused(path, domainId=tenant.domain, **fields) == (403, "domain not in tenant")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"at": "yesterday"}, "invalid at"),
        ({"answer": "challenge"}, "invalid answer"),
        ({"cause": "weather"}, "invalid cause"),
        ({"attributes": ["A=1"] * 41}, "invalid attributes"),
        ({"user": ""}, "invalid user"),
    ],
)
def test_a_wrong_record(tenant: Tenant, wrong: dict[str, object], message: str) -> None:
    """An error names the field, and nothing is recorded."""
    status, text = tenant.refused(RECORD, domainId=tenant.domain, logins=[LOGIN, {**LOGIN, **wrong}])
    assert (status, text) == (400, message)
    assert tenant.ask(COMPARE, domainId=tenant.domain)["logins"] == 0
