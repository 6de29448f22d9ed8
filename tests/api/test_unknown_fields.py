"""Fields that an operation does not have: refused by additions, ignored by the operations of the interface except for
near misses.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sallyport.base.spelling import Spellings
from sallyport.web.interface import LISTED
from tests.api.operations import OPERATIONS, Operation
from tests.api.test_odd_types import described
from tests.api.world import Tenant, World

__all__ = ["described"]

UNKNOWN = "zq7unknown"
ADDITIONS = [each for each in OPERATIONS if each.path not in LISTED]
INTERFACE = [each for each in OPERATIONS if each.path in LISTED]


def send(tenant: Tenant, operation: Operation, **fields: Any) -> httpx.Response:
    """Send a valid body with further fields."""
    body = tenant.scoped(**{**operation.fields(tenant.domain), **fields})
    return tenant.world.send(operation.method, operation.path, tenant.token, json=body)


def objects(described: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the name of each member of a body that is an object with known members, and whether it is an array. Octets
    in hexadecimal digits, `{"hex": ...}`, are a value and no such object.
    """
    for name, member in resolved(described, schema).get("properties", {}).items():
        for each in (member, *member.get("anyOf", ())):
            inner = resolved(described, each.get("items", each))
            if inner.get("type") == "object" and inner.get("properties", {}).keys() - {"hex"}:
                yield name, "items" in each


def resolved(described: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema, or the schema to which it refers."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = described["components"]["schemas"][name] if name else schema
    return found


@pytest.mark.parametrize("operation", ADDITIONS, ids=str)
def test_an_addition_refuses_unknown_fields(tenant: Tenant, described: dict[str, Any], operation: Operation) -> None:
    """An unknown field is answered with 400, also in an object within the body. The answer lists the known fields and
    does not repeat the unknown one.
    """
    sent = [{UNKNOWN: 1}]
    content = described["paths"][operation.path][operation.method.lower()]["requestBody"]["content"]
    for name, is_array in objects(described, content["application/json"]["schema"]):
        sent.append({name: [{UNKNOWN: 1}] if is_array else {UNKNOWN: 1}})
    for fields in sent:
        answer = send(tenant, operation, **fields)
        assert answer.status_code == 400, (fields, answer.text)
        assert UNKNOWN not in answer.text
        assert any("unknown field: the known fields are" in each["message"] for each in answer.json()["errors"])


@pytest.mark.parametrize("operation", INTERFACE, ids=str)
def test_an_operation_of_the_interface_ignores_unknown_fields(tenant: Tenant, operation: Operation) -> None:
    """An unknown field that resembles no known field changes nothing."""
    answer = send(tenant, operation, **{UNKNOWN: {"a": [1]}, "zq": 1})
    assert answer.status_code in operation.passes | ({403} if "admin" not in operation.roles else set()), answer.text


@pytest.mark.parametrize("operation", INTERFACE, ids=str)
def test_a_near_miss_is_refused(tenant: Tenant, described: dict[str, Any], operation: Operation) -> None:
    """A field in another case is answered with 400, which names the field, if the field itself is absent."""
    content = described["paths"][operation.path][operation.method.lower()]["requestBody"]["content"]
    schema = resolved(described, content["application/json"]["schema"])
    schema = resolved(described, schema.get("items", schema))
    fields = operation.fields(tenant.domain) | tenant.scoped()
    given = Spellings(fields)  # the body may have another spelling of the field
    missing = [name for name in schema["properties"] if len(name) >= 4 and not given.near(name)]
    for name in missing:
        answer = send(tenant, operation, **{name.swapcase(): 1})
        assert answer.status_code == 400, (name, answer.text)
        assert name in [each["field"].rpartition(".")[2] for each in answer.json()["errors"]], answer.text
        assert name.swapcase() not in answer.text


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        ("/ad/updateDomainEnforcement", {"enforcementMode": "enforce", "requireclean": True}, "requireClean"),
        ("/ad/updateDomainEnforcement", {"enforcementMode": "enforce", "require_clean": True}, "requireClean"),
        ("/ad/updateDomainEnforcement", {"enforcementMode": "enforce", "revertAfterMinute": 60}, "revertAfterMinutes"),
        ("/network_device/ListDevices", {"filter": {"filterby": "DEVICE_NAME", "value": "x"}}, "filter.filterBy"),
        ("/ad/SetMFAProvider", {"provider": "duo", "iKey": "x", "skey": "x", "host": "x"}, "ikey"),
        ("/ad/SetMFAProvider", {"provider": "totp", "timeoutSecond": 5}, "timeoutSeconds"),
        ("/ad/SetFirstFactor", {"firstFactor": "ldap", "ldap": {"server": ["ldap://x"]}}, "ldap.servers"),
        ("/ad/AddLoginRule", {"name": "r", "action": "block", "user": ["bob"]}, "users"),
        ("/ad/AddLoginRule", {"name": "r", "action": "block", "time": {"form": "8:00"}}, "time.from"),
        ("/network_device/AddClient", {"name": "n", "address": "203.0.113.9", "requiremessageauthenticator": "yes"},
         "requireMessageAuthenticator"),
    ],
)  # fmt: skip
def test_the_meant_field_is_named(tenant: Tenant, path: str, fields: dict[str, Any], named: str) -> None:
    """The error of a misspelled field names the field that was meant, and nothing is changed."""
    where = {} if path.endswith("AddClient") else {"domainId": tenant.domain}
    answer = tenant.world.post(path, tenant.token, json=tenant.scoped(**where, **fields))
    assert answer.status_code == 400
    found = {each["field"]: each["message"] for each in answer.json()["errors"]}
    assert found[named] == f"unknown field: did you mean {named.rpartition('.')[2]}?"
    (domain,) = tenant.ask("/ad/GetAllDomains")["domains"]
    assert domain["enforcementMode"] == "monitor"
    assert tenant.ask("/ad/ListLoginRules", domainId=tenant.domain)["rules"] == []


def test_a_form_is_judged_like_a_body(tenant: Tenant) -> None:
    """A near miss in a form is refused before the file is used; any other unknown field is ignored."""
    path = "/api/v1/integrations/directory/importLdif"

    def sent(**fields: str) -> httpx.Response:
        files = {"file": ("p.ldif", b"dn: uid=ann,dc=example\nobjectClass: inetOrgPerson\nuid: ann\n")}
        return tenant.world.post(path, tenant.token, data={"domainId": str(tenant.domain), **fields}, files=files)

    refused = sent(filename="p.ldif")
    assert refused.status_code == 400
    assert [each["field"] for each in refused.json()["errors"]] == ["fileName"]
    assert sent(zq7unknown="x").status_code == 200


def test_a_name_with_another_form_is_no_near_miss(tenant: Tenant) -> None:
    """Every list accepts pageId and pageNumber, and fields with two spellings in the interface accept both."""
    for name in ("pageId", "pageNumber"):
        assert tenant.ask("/ad/ListLockouts", domainId=tenant.domain, **{name: 1})["totalCount"] == 0
        assert tenant.refused("/ad/ListLockouts", domainId=tenant.domain, **{name: 0}) == (400, f"invalid {name}")
    made = {"domain_id": tenant.domain, "instance_name": "web", "os_id": 1, "public_ip": "", "private_ip": ""}
    tenant.ask("/api/v1/instances/addInstance", **made)


def test_many_unknown_fields_are_cheap(world: World, tenant: Tenant) -> None:
    """Only some unknown fields of an object are compared with the known ones, so a large body is refused at once."""
    many = {f"unknown{number}": 1 for number in range(60_000)}
    answer = world.post("/ad/GetAllDomains", tenant.token, json=tenant.scoped(**many))
    assert answer.status_code == 200
    refused = world.post("/ad/ListLockouts", tenant.token, json=tenant.scoped(domainId=tenant.domain, **many))
    assert refused.status_code == 400 and len(refused.content) < 2000


def test_the_description_says_which_bodies_are_closed(described: dict[str, Any]) -> None:
    """The body of an addition has additionalProperties false, and the body of an operation of the interface has not."""
    for operation in OPERATIONS:
        content = described["paths"][operation.path][operation.method.lower()]["requestBody"]["content"]
        schema = resolved(described, content["application/json"]["schema"])
        schema = resolved(described, schema.get("items", schema))
        assert (schema.get("additionalProperties") is False) == (operation.path not in LISTED), operation
