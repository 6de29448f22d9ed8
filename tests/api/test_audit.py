"""/api/v1/audit/list: the changes in a tenant, and the actors that made them."""

import json
import re
from typing import Any

import pytest

from tests.api.world import Tenant, World, problem

LIST = "/api/v1/audit/list"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
MODE = "/ad/updateDomainEnforcement"
HIDDEN = "hunter2-is-what-nobody-may-see"


def listed(tenant: Tenant, **fields: Any) -> list[dict[str, Any]]:
    """Return all matching entries."""
    answer = tenant.ask(LIST, **{"pageSize": 1000, **fields})
    assert answer["totalCount"] == len(answer["entries"])
    found: list[dict[str, Any]] = answer["entries"]
    return found


def enforce(tenant: Tenant, mode: str = "enforce") -> None:
    """Set the mode of the tenant's domain."""
    tenant.ask(MODE, domainId=tenant.domain, enforcementMode=mode)


def test_the_fields_of_an_entry(world: World, tenant: Tenant) -> None:
    """An entry has exactly the documented fields and types. The actor is the name of the token."""
    made = world.service.call("token.create", org=tenant.org, tenant=tenant.number, role="admin", name="ops")
    body = tenant.scoped(domainId=tenant.domain, enforcementMode="enforce")
    changed = world.post(MODE, made["token"], json=body, headers={"X-Request-Id": "change-4711"})
    assert changed.headers["x-request-id"] == "change-4711"
    answer = tenant.ask(LIST, pageSize=1)
    entry = answer["entries"][0]
    assert isinstance(entry.pop("auditId"), int)
    assert TIME.fullmatch(entry.pop("time"))
    assert entry == {
        "actorKind": "token", "actor": "ops", "tokenId": made["id"], "action": "domain.mode",
        "target": f"domain {tenant.domain} corp", "domainId": tenant.domain,
        "changes": {"enforcementMode": ["monitor", "enforce"]}, "requestId": changed.headers["x-request-id"],
    }  # fmt: skip
    assert answer == {
        "code": 200, "status": "Success", "message": f"{answer['totalCount']} entries",
        "totalCount": answer["totalCount"], "entries": answer["entries"],
    }  # fmt: skip


def test_newest_first_in_pages(tenant: Tenant) -> None:
    """Each entry is on exactly one page, newest first, and every page has the total. A page past the end is empty."""
    for mode in ("enforce", "monitor") * 3:
        enforce(tenant, mode)
    every = listed(tenant)
    assert [entry["auditId"] for entry in every] == sorted((entry["auditId"] for entry in every), reverse=True)
    pages = [tenant.ask(LIST, pageId=number, pageSize=4) for number in range(1, 5)]
    assert [entry for page in pages for entry in page["entries"]] == every[:16]
    assert {page["totalCount"] for page in pages} == {len(every)}
    assert tenant.ask(LIST, pageId=2**50, pageSize=1000)["entries"] == []


def test_filters(tenant: Tenant) -> None:
    """Entries are filtered by domain, action, actor, search text and time. An empty text does not filter."""
    other = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    enforce(tenant)
    newest, added, *_ = every = listed(tenant)
    assert listed(tenant, domainId=other) == [added]
    assert listed(tenant, action="domain.mode") == [newest]
    assert listed(tenant, action="domain") == []
    assert listed(tenant, search="BRANCH") == [added]
    assert listed(tenant, search=newest["requestId"]) == [newest]
    assert [entry["action"] for entry in listed(tenant, actor="admin", domainId=other)] == ["domain.add"]
    assert listed(tenant, **{"from": newest["time"]}) == [newest]
    assert listed(tenant, **{"to": newest["time"], "from": added["time"]}) == [added]
    assert listed(tenant, **{"to": "", "from": "", "search": "", "action": "", "actor": ""}) == every


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"from": HIDDEN}, "invalid from"),
        ({"to": "2026-13-01"}, "invalid to"),
        ({"pageSize": 1001}, "invalid pageSize"),
        ({"pageSize": 0}, "invalid pageSize"),
        ({"pageId": 0}, "invalid pageId"),
        ({"search": "x" * 256}, "invalid search"),
        ({"action": ["a"]}, "invalid action"),
        ({"domainId": "x"}, "invalid domainId"),
    ],
)
def test_malformed_filters(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A malformed filter is answered with 400. The message names the field but not the value."""
    assert tenant.refused(LIST, **fields) == (400, text)


def test_a_tenant_sees_its_own(world: World, tenant: Tenant) -> None:
    """A tenant sees no entry of another tenant or of the installation. A domain of another tenant is answered with
    403.
    """
    other = world.tenant()
    enforce(other)
    world.service.ok("db", "backup", f"audit-{tenant.org}.db")
    own = listed(tenant)
    assert not [entry for entry in own if "backup" in entry["action"] or entry["domainId"] == other.domain]
    assert listed(tenant, search=f"domain {other.domain} ") == []
    for domain in (other.domain, 0, 2**70):
        assert tenant.refused(LIST, domainId=domain) == (403, "domain not in tenant")
    assert problem(world.post(LIST, tenant.token, json={"orgId": other.org, "tenantId": 7})) == (403, "scope mismatch")


def test_the_token_selects_the_tenant(world: World, tenant: Tenant) -> None:
    """orgId and tenantId may be omitted, and the token may be sent as Bearer."""
    answer = world.post(LIST, None, json={}, headers={"authorization": f"Bearer {tenant.token}"})
    assert answer.json() == tenant.ask(LIST)


def test_a_failed_operation_has_no_entry(tenant: Tenant) -> None:
    """A failed operation has no audit entry."""
    auditor = tenant.role("auditor")
    before = listed(tenant)
    assert tenant.refused("/ad/AddDomain", domainName="corp")[0] == 409
    assert tenant.refused("/ad/DeleteMFAProvider", domainId=tenant.domain)[0] == 404
    assert tenant.refused(MODE, token=auditor, domainId=tenant.domain, enforcementMode="enforce")[0] == 403
    assert tenant.refused(MODE, domainId=tenant.domain, enforcementMode="sometimes")[0] == 400
    assert listed(tenant) == before


def test_secrets_are_hidden(tenant: Tenant) -> None:
    """A changed secret is named as a changed field, and its value is hidden."""
    client = tenant.ask("/network_device/AddClient", name="nps", address=tenant.world.address(), secret=HIDDEN)
    tenant.ask("/network_device/UpdateClient", clientId=client["clientId"], secret=f"{HIDDEN}-2")
    tenant.ask(
        "/ad/SetMFAProvider", domainId=tenant.domain, provider="webhook", url="https://h.example/", secret=HIDDEN
    )
    entries = listed(tenant)
    assert [entry["action"] for entry in entries[:3]] == ["provider.set", "client.update", "client.add"]
    assert [entry["changes"]["secret"] for entry in entries[:3]] == [
        [None, "********"], ["********", "********"], [None, "********"],
    ]  # fmt: skip
    assert "hunter2" not in json.dumps(entries)
    assert tenant.token not in json.dumps(entries)
