"""`errors` in the body of a refusal: the wrong fields in the spelling of the interface, with the accepted values."""

from typing import Any

import pytest

from tests.api.holders import Holder
from tests.api.world import Tenant, World

IMPORT_USERS = "/api/v1/importUsers"
IMPORT_LDIF = "/api/v1/integrations/directory/importLdif"
LIST_DEVICES = "/network_device/ListDevices"
BODY = "body"


def errors(tenant: Tenant, path: str, **request: Any) -> dict[str, str]:
    """Send a body that must be refused, and return its errors by field."""
    answer = tenant.world.post(path, tenant.token, **request)
    assert answer.status_code == 400, answer.text
    return {each["field"]: each["message"] for each in answer.json()["errors"]}


@pytest.mark.parametrize("path", [LIST_DEVICES, IMPORT_USERS, "/api/v1/agent/report"])
@pytest.mark.parametrize("content", ["{", "[", "", "\x00"], ids=["object", "array", "empty", "control character"])
def test_json_syntax(tenant: Tenant, path: str, content: str) -> None:
    """For any operation, a body that is not JSON is reported as a whole."""
    headers = {"content-type": "application/json"}
    assert errors(tenant, path, content=content, headers=headers) == {BODY: "must be valid JSON"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (IMPORT_USERS, {"ldapHost": "dc1.example.com", "baseDN": "dc=example"}, "domainID"),
        (IMPORT_USERS, [{"ldapHost": "dc1.example.com", "baseDN": "dc=example"}], "0.domainID"),
        ("/api/v1/saveDirectoryConfig", [{"directoryName": "d"}], "0.domainId"),
        ("/api/v1/getImportStatus", [{}], "0.DirectoryName"),
        ("/api/v1/instances/addInstance", {"instanceName": "i"}, "domainId"),
        ("/api/v1/instances/updatePasswordPolicy", [{"policyName": "p"}], "0.policyId"),
        ("/api/v1/endpointUsers/deleteEpmUser", {"epmUsers": [{}]}, "epmUsers.0.epmUserId"),
        ("/ad/updateDomainEnforcement", {"enforcementMode": "monitor"}, "domainId"),
    ],
    ids=["object", "array", "domainId", "DirectoryName", "two spellings", "policyId", "inner object", "adId"],
)
def test_a_missing_field(tenant: Tenant, path: str, body: Any, field: str) -> None:
    """A missing field is named in the spelling that the interface has for the operation."""
    scope = tenant.scoped()
    sent = [{**scope, **each} for each in body] if isinstance(body, list) else {**scope, **body}
    method = "DELETE" if "delete" in path else "POST"
    answer = tenant.world.send(method, path, tenant.token, json=sent)
    assert answer.status_code == 400
    assert field in [each["field"] for each in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("path", "most"),
    [(IMPORT_USERS, 100), ("/api/v1/instances/updatePasswordPolicy", 200)],
    ids=["import", "policy"],
)
def test_an_empty_array(tenant: Tenant, path: str, most: int) -> None:
    """An array of the wrong length is reported as a whole, with the accepted lengths."""
    assert errors(tenant, path, json=[]) == {BODY: f"must be an array of 1 to {most} entries"}


@pytest.mark.parametrize(
    ("fields", "files", "named"),
    [
        ({}, {"file": ("p.ldif", b"")}, "domainId"),
        ({"domainId": "x"}, {"file": ("p.ldif", b"")}, "domainId"),
        ({"domainId": "{domain}"}, {"other": ("p.ldif", b"")}, "file"),
    ],
    ids=["missing field", "wrong field", "missing file"],
)
def test_a_wrong_form_field_is_named(tenant: Tenant, fields: dict[str, str], files: dict[str, Any], named: str) -> None:
    """A field of a form is named like a field of a JSON body."""
    data = {name: value.format(domain=tenant.domain) for name, value in fields.items()}
    assert list(errors(tenant, IMPORT_LDIF, data=data, files=files)) == [named]


def test_a_form_that_is_cut_off(tenant: Tenant) -> None:
    """A form that lacks its last boundary is reported as a whole."""
    headers = {"content-type": "multipart/form-data; boundary=b"}
    assert errors(tenant, IMPORT_LDIF, content=b"--b\r\n", headers=headers) == {BODY: "incomplete body"}


@pytest.mark.parametrize(
    ("path", "body", "field", "accepted"),
    [
        (LIST_DEVICES, {"pageSize": 101}, "pageSize", "must be a whole number from 1 to 100"),
        (LIST_DEVICES, {"pageSize": "many"}, "pageSize", "must be a whole number from 1 to 100"),
        ("/ad/GetAuthLog", {"cursor": "x"}, "cursor", "must be the cursor of an earlier answer of this operation"),
        ("/ad/updateDomainEnforcement", {"enforcementMode": "off"}, "enforcementMode", "must be monitor or enforce"),
        ("/ad/updateDomainEnforcement", {}, "enforcementMode", "is missing: give monitor or enforce"),
        (
            "/ad/SetMFAProvider",
            {"provider": "x"},
            "provider",
            "duo, okta, own, privacyidea, radius, totp, wallet, webhook",
        ),
        (
            "/api/v1/endpointUsers/listAllEpmUsers",
            {"filter": {"filterBy": "colour", "value": "x"}},
            "filter.filterBy",
            "userName, userId",
        ),
        (
            "/api/v1/endpointUsers/listAllEpmUsers",
            {"filter": {"filterBy": "assign", "value": "x"}},
            "filter.value",
            "must be true or false",
        ),
        ("/api/v1/did/createIssuerDid", {"method": "ion"}, "method", "must be key, jwk or web"),
        ("/api/v1/did/createHolderDid", {"method": "key", "publicKeyJwk": {}}, "publicKeyJwk", "curve"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("/") else "",
)
def test_a_wrong_value(tenant: Tenant, path: str, body: dict[str, Any], field: str, accepted: str) -> None:
    """The error for a field with a closed set or a range lists the accepted values."""
    found = errors(tenant, path, json=tenant.scoped(domainId=tenant.domain, **body))
    assert list(found) == [field]
    assert accepted in found[field]


def test_the_texts_of_the_interface_stay(tenant: Tenant) -> None:
    """The error is exactly `invalid filterBy`, and the body has only `error` and `code`."""
    wanted = {"filterBy": "colour", "value": "x"}
    answer = tenant.world.post(LIST_DEVICES, tenant.token, json=tenant.scoped(domainId=tenant.domain, filter=wanted))
    assert answer.json() == {"error": "invalid filterBy", "code": 400}


def test_a_wrong_presentation(holder: Holder) -> None:
    """An invalid presentation is an error of the field `presentation`."""
    tenant = holder.tenant
    tenant.ask("/api/v1/instances/addInstance", domainId=tenant.domain, instanceName="server")
    tenant.ask("/api/v1/verifierService/issuePR", issuerDid=holder.issuer, holderDid=holder.did, endpoint="server")
    number = holder.poll()["presentationRequestId"]
    body = tenant.scoped(**holder.own(presentationRequestId=number), presentation="a.b.c")
    assert list(errors(tenant, "/api/v1/walletService/submitPresentation", json=body)) == ["presentation"]


def test_an_unknown_field(tenant: Tenant) -> None:
    """If an operation refuses unknown fields, the error does not repeat the name of the unknown field."""
    fields = {"domainId": tenant.domain, "firstFactor": "ldap", "ldap": {"zq7marker": 1}}
    found = errors(tenant, "/ad/SetFirstFactor", json=tenant.scoped(**fields))
    (message,) = found.values()
    assert message.startswith("unknown field: the known fields are servers, baseDN,")
    assert "zq7marker" not in message


def test_a_broken_schema(holder: Holder) -> None:
    """In an error in a JSON Schema, the path omits names that the caller has chosen."""
    schema = {"type": "object", "properties": {"zq7marker": {"type": "zq7marker"}}}
    body = {"author": holder.issuer, "name": "n", "schema": schema}
    found = errors(holder.tenant, "/api/v1/schema/createSchema", json=body)
    assert found == {"schema": "the schema breaks the rules of its draft at /properties/*/type"}


@pytest.mark.parametrize("fields", [{"domainName": "ZQ7marker"}, {"domainName": "new", "realms": ["zq7marker"]}])
def test_a_taken_name(tenant: Tenant, fields: dict[str, Any]) -> None:
    """If a name or realm is refused because another domain has it, the refusal does not repeat it."""
    first = tenant.ask("/ad/AddDomain", domainName="zq7marker")["domainId"]
    status, text = tenant.refused("/ad/AddDomain", **fields)
    which = "entry 1 of realms" if "realms" in fields else "the name"
    assert (status, text) == (409, f"{which} belongs to domain {first}: choose another one")


def test_the_description_has_errors(world: World) -> None:
    """The API description has `errors` in both kinds of error bodies."""
    schemas = world.http.get("/openapi.json").json()["components"]["schemas"]
    assert {"errors"} <= set(schemas["Problem"]["properties"]) & set(schemas["RadiusProblem"]["properties"])


@pytest.mark.parametrize(
    ("path", "fields", "field"),
    [
        ("/ad/SetFirstFactor", {"firstFactor": "ldap", "ldap": {}}, "ldap"),
        ("/ad/SetFirstFactor", {"firstFactor": "radius", "radius": {"servers": [{}]}}, "radius"),
        ("/ad/SetMFAProvider", {"provider": "duo"}, BODY),
    ],
    ids=["object", "inner object", "fields of a provider"],
)
def test_an_object_with_many_members(tenant: Tenant, path: str, fields: dict[str, Any], field: str) -> None:
    """A free-form object has at most 500 members, including those of inner objects. The error names none of them."""
    innermost = fields.get("ldap", fields)
    innermost = fields["radius"]["servers"][0] if "radius" in fields else innermost
    innermost.update({f"unknown{number}": 0 for number in range(501)})
    found = errors(tenant, path, json=tenant.scoped(domainId=tenant.domain, **fields))
    assert found == {field: "must have at most 500 members, including the members of inner objects and arrays"}


@pytest.mark.parametrize(
    ("path", "field"),
    [("/network_device/DeleteDevice", "deviceId"), ("/ad/DeleteLoginRule", "ruleId")],
    ids=["devices", "login rules"],
)
def test_many_deletions_in_one_request(tenant: Tenant, path: str, field: str) -> None:
    """One request deletes at most 200 devices or login rules, because logins wait for its transaction."""
    found = errors(tenant, path, json=tenant.scoped(domainId=tenant.domain, **{field: list(range(201))}))
    assert list(found) == [field] and "at most 200 entries" in found[field]
