"""API keys of agents: create, list, revoke, exchange and renew."""

import re
import tomllib
from typing import Any

import httpx
import pytest

from sallyport.base.secret import new_key, token_hash
from tests.api.world import Tenant, World, problem

CREATE = "/api/v1/agent/createKey"
LIST = "/api/v1/agent/listKeys"
REVOKE = "/api/v1/agent/revokeKey"
EXCHANGE = "/api/v1/agent/exchangeKey"
RENEW = "/api/v1/agent/renewKey"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def create(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    """Create an enrolment key of the tenant's domain."""
    made: dict[str, Any] = tenant.ask(CREATE, domainId=tenant.domain, **fields)
    return made


def listed(tenant: Tenant) -> list[dict[str, Any]]:
    """Return the keys of the tenant's domain."""
    answer = tenant.ask(LIST, domainId=tenant.domain, pageSize=1000)
    assert answer["totalCount"] == len(answer["keys"])
    found: list[dict[str, Any]] = answer["keys"]
    return found


def exchange(world: World, key: str, own: str, **fields: Any) -> httpx.Response:
    """Exchange an enrolment key for an agent's own key."""
    return world.post(EXCHANGE, key, json={"keyHash": token_hash(own), **fields})


def test_a_key_is_shown_once(tenant: Tenant) -> None:
    """The answer has the documented fields and types. The list has its own documented fields and never the key."""
    made = create(tenant, name="web servers", uses="20", expiresAt="2090-01-01T00:00:00Z")
    assert made == {
        "code": 200, "status": "Success", "message": made["message"], "keyId": made["keyId"],
        "apiKey": made["apiKey"], "expiresAt": "2090-01-01T00:00:00.000000Z", "configuration": made["configuration"],
    }  # fmt: skip
    assert isinstance(made["keyId"], int) and made["apiKey"].startswith("spk_")
    (entry,) = listed(tenant)
    assert TIME.fullmatch(entry.pop("createdAt"))
    assert entry == {
        "keyId": made["keyId"], "name": "web servers", "kind": "enrolment", "agent": "endpoint",
        "domainId": tenant.domain, "instanceId": None, "status": "active", "uses": 20, "used": 0,
        "expiresAt": "2090-01-01T00:00:00.000000Z", "lastSeen": None,
    }  # fmt: skip


def test_the_file_of_a_directory_agent(tenant: Tenant) -> None:
    """The agent's file contains all values of the domain's first factor or of the body. It does not contain the secret
    of the account.
    """
    ldap = {"servers": ["ldaps://dc1.example"], "baseDN": "dc=a", "bindDN": "cn=a", "bindPassword": "hunter2"}
    tenant.ask("/ad/SetFirstFactor", domainId=tenant.domain, firstFactor="ldap", ldap=ldap)
    made = create(tenant, agent="directory", baseDN="dc=b")
    text = tomllib.loads(made["configuration"])
    assert (text["enrolment_key"], text["service"]) == (made["apiKey"], str(tenant.world.http.base_url).rstrip("/"))
    found = {name: text["directory"][name] for name in ("domain", "name", "servers", "base_dn", "bind_dn")}
    assert found == {
        "domain": tenant.domain, "name": "corp", "servers": ["ldaps://dc1.example"], "base_dn": "dc=b",
        "bind_dn": "cn=a",
    }  # fmt: skip
    assert text["directory"]["bind_secret"] == ""
    assert "hunter2" not in made["configuration"]
    assert "endpoint" in tomllib.loads(create(tenant)["configuration"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uses", 0), ("uses", -1), ("uses", 10**9), ("uses", "hunter2"), ("instanceId", "hunter2"),
        ("name", "x" * 65), ("name", "a\nb"), ("expiresAt", "hunter2"), ("expiresAt", "2001-01-01"),
        ("agent", "hunter2"),
    ],
)  # fmt: skip
def test_malformed_keys(world: World, tenant: Tenant, field: str, value: object) -> None:
    """A malformed field is answered with 400. The message names the field but not its value."""
    answer = world.post(CREATE, tenant.token, json={"domainId": tenant.domain, field: value})
    assert problem(answer) == (400, f"invalid {field}")
    assert "hunter2" not in answer.text
    assert listed(tenant) == []


def test_an_instance_of_another_tenant(world: World, tenant: Tenant) -> None:
    """Another tenant's instance is answered with 404."""
    other = world.tenant()
    there = other.ask("/api/v1/instances/addInstance", domainId=other.domain, instanceName="web1")["instanceId"]
    assert tenant.refused(CREATE, domainId=tenant.domain, instanceId=there) == (404, "instance not found")


def test_from_enrolment_to_renewal(world: World, tenant: Tenant) -> None:
    """An agent registers the hash of its own key, and the key is also accepted as Bearer.

    A renewed key replaces the old one when it is first used.
    """
    there = tenant.ask("/api/v1/instances/addInstance", domainId=tenant.domain, instanceName="web1")["instanceId"]
    made = create(tenant, instanceId=int(there), name="web1")
    first, second = new_key(), new_key()
    for _ in range(2):
        answer = exchange(world, made["apiKey"], first)
        assert answer.status_code == 200, answer.text
    kept = answer.json()
    assert kept == {
        "code": 200, "status": "Success", "message": kept["message"], "keyId": kept["keyId"],
        "domainId": tenant.domain, "instanceId": int(there), "expiresAt": kept["expiresAt"],
        "renewAt": kept["renewAt"], "now": kept["now"],
    }  # fmt: skip
    assert kept["now"] < kept["renewAt"] < kept["expiresAt"]
    bearer = {"authorization": f"Bearer {first}"}
    assert world.post(RENEW, None, headers=bearer, json={"keyHash": token_hash(second)}).status_code == 200
    assert world.post(RENEW, second, json={"keyHash": token_hash(new_key())}).status_code == 200
    assert problem(world.post(RENEW, first, json={})) == (401, "invalid token")
    assert [each["kind"] for each in listed(tenant)] == ["enrolment", "own", "own"]


def test_a_revoked_key(world: World, tenant: Tenant) -> None:
    """A revoked enrolment key is refused with the reason.

    Agents that enrolled with it continue. A key of another tenant is answered with 404.
    """
    made, own = create(tenant, agent="directory"), new_key()
    assert exchange(world, made["apiKey"], own).status_code == 200
    other = world.tenant()
    assert other.refused(REVOKE, domainId=other.domain, keyId=made["keyId"]) == (404, "API key not found")
    for _ in range(2):
        assert tenant.ask(REVOKE, domainId=tenant.domain, keyId=made["keyId"])["message"] == "API key revoked"
    assert problem(exchange(world, made["apiKey"], new_key())) == (401, "invalid token")
    assert world.post(RENEW, own, json={"keyHash": token_hash(new_key())}).status_code == 200
    assert [each["status"] for each in listed(tenant)] == ["revoked", "active", "active"]


@pytest.mark.parametrize("path", ["/network_device/ListDevices", "/api/v1/instances/list"])
def test_keys_do_nothing_else(world: World, tenant: Tenant, path: str) -> None:
    """An operation that takes an access token refuses an enrolment key and an agent's own key."""
    made, own = create(tenant, agent="directory")["apiKey"], new_key()
    assert exchange(world, made, own).status_code == 200
    for key in (made, own):
        answer = world.post(path, key, json=tenant.scoped(domainId=tenant.domain))
        assert problem(answer) == (403, "role not allowed")


def test_a_hash_is_a_hash(world: World, tenant: Tenant) -> None:
    """A key hash must have 64 hex digits in lower case."""
    made, own = create(tenant, agent="directory")["apiKey"], new_key()
    for value in (own, token_hash(own).upper(), token_hash(own)[1:], "", None, 1, [token_hash(own)]):
        answer = world.post(EXCHANGE, made, json={"keyHash": value})
        assert problem(answer) == (400, "invalid keyHash")
        assert own not in answer.text
    assert [each["kind"] for each in listed(tenant)] == ["enrolment"]
