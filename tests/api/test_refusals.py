"""The refusals that all operations share: their order and their texts. One test compares the declarations of all
operations. The other tests use one operation of each kind, because all operations share the checks.
"""

from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from sallyport.service.operations import gate_of, operations
from sallyport.web.bodies import Body
from sallyport.web.scope import Role
from tests.api.operations import FORMS, OPERATIONS, READER, Operation
from tests.api.world import Tenant, World, problem
from tests.areas import Areas

SAMPLES = [
    each
    for each in OPERATIONS
    if str(each)
    in {
        "POST /network_device/ListDevices",  # orgId, tenantId and domainId
        "POST /network_device/AddClient",  # domains are optional
        "POST /ad/AddDomain",  # no domainId
        "POST /api/v1/importUsers",  # an array of bodies, and domainID
        "PUT /api/v1/instances/updateAuthType",
        "DELETE /api/v1/endpointUsers/deleteEpmUser",
        "POST /api/v1/agent/report",  # for agents; numbers are numbers
        "POST /api/v1/walletService/pollCredentials",  # for wallets too
    }
]
"""One operation of each kind."""
EVERY = pytest.mark.parametrize("operation", SAMPLES, ids=str)
IN_DOMAIN = pytest.mark.parametrize("operation", [each for each in SAMPLES if each.in_domain], ids=str)
HUMAN_OR_WALLET = {Role.ADMIN, Role.OPERATOR, Role.AUDITOR, Role.WALLET}
IMPORT_USERS = "/api/v1/importUsers"
SCOPE_MISMATCH = (403, "scope mismatch")
FOREIGN = (403, "domain not in tenant")
NOT_ALLOWED = (403, "role not allowed")


def send(world: World, operation: Operation, token: str | None, **request: Any) -> httpx.Response:
    """Call an operation with a token. request: the json=, content= or headers= argument of httpx."""
    return world.send(operation.method, operation.path, token, **request)


def refused(tenant: Tenant, operation: Operation, *, token: str | None = None, **fields: Any) -> tuple[int, str]:
    """Call an operation that must be refused, and return the status and the text of its error body. Check that the
    error body has no other field.
    """
    return problem(send(tenant.world, operation, token or tenant.token, json=tenant.scoped(**fields)))


async def test_every_operation_has_a_gate_roles_and_a_body(areas: Areas) -> None:
    """Each declared operation is in the list of these tests, uses the common checks, and admits the listed roles.

    Its body passes orgId, tenantId and domainId to these checks.
    """
    gate = gate_of(areas.app)
    listed = {(each.method, each.path): each for each in (*OPERATIONS, *FORMS)}
    declared = {
        (operation.method, path): operation
        for area in operations(areas.app, gate)
        for operation in area.all
        for path in operation.paths
    }
    assert declared.keys() == listed.keys()
    for key, operation in declared.items():
        expected = listed[key]
        keys = operation.roles - HUMAN_OR_WALLET
        assert operation.gate is gate, key
        assert (operation.roles - keys, bool(keys)) == (expected.roles, expected.by_key), key
        (model,) = get_args(operation.body) or (operation.body,)
        assert issubclass(model, Body), key
        body = model.model_validate({"orgId": 5, "tenantId": 6, **expected.fields(7)})
        assert tuple(body.claimed_domains()) == ((7,) if expected.in_domain else ()), key
        if expected.scoped:
            assert body.claimed_scope() == (5, 6), key


def test_every_operation_is_served_and_tested(world: World) -> None:
    """The service answers at the path of each listed operation, and another file of tests has the path."""
    described = world.http.get("/openapi.json").json()["paths"]
    answering = [(method.upper(), path) for path, methods in described.items() for method in methods]
    assert sorted(answering) == sorted((operation.method, operation.path) for operation in (*OPERATIONS, *FORMS))
    lists = {Path(__file__), Path(__file__).with_name("operations.py")}
    tests = [path.read_text() for path in Path(__file__).parent.glob("*.py") if path not in lists]
    named = {operation.path for operation in (*OPERATIONS, *FORMS) if any(operation.path in text for text in tests)}
    assert named == set(described)


@EVERY
def test_no_token(world: World, tenant: Tenant, operation: Operation) -> None:
    """A missing or empty header is answered with 401 `missing token`, whatever the body contains.

    Under /api/v1 the token may also be sent as Bearer. Any other header is not read.
    """
    bearer = {"authorization": f"Bearer {tenant.token}"}
    for token, headers in ((None, {}), ("", {}), (None, bearer if operation.scoped else {"authorization": "Basic x"})):
        for content in (b"", b"no JSON", b"{}"):
            answer = send(world, operation, token, content=content, headers=headers)
            assert problem(answer) == (401, "missing token")


@EVERY
def test_an_invalid_token(world: World, tenant: Tenant, operation: Operation) -> None:
    """An unknown, altered or revoked token is answered with 401 `invalid token`. The token is checked before the
    body.
    """
    made = world.service.call("token.create", org=tenant.org, tenant=tenant.number)
    assert send(world, operation, made["token"], json=[]).status_code == 400
    world.service.call("token.revoke", token=str(made["id"]))
    for token in ("x", "sp_unknown", tenant.token[:-1], f"{tenant.token}x", made["token"]):
        assert problem(send(world, operation, token, content=b"no JSON")) == (401, "invalid token")


@EVERY
def test_a_malformed_body(world: World, tenant: Tenant, operation: Operation) -> None:
    """A request is answered with 400 if its body is not a JSON object or has a missing or malformed orgId or tenantId.
    The message names the field but never the value.
    """
    token = tenant.token
    assert problem(send(world, operation, token, json=[])) == (400, "invalid body")
    for content in (b"", b"no JSON", b'{"orgId": 1', b'{"orgId": 1}\xff'):
        answer = send(world, operation, token, content=content, headers={"content-type": "application/json"})
        assert problem(answer) == (400, "invalid JSON")
    good = tenant.scoped(**operation.fields(tenant.domain))
    for name in ("orgId", "tenantId") if operation.scoped else ():
        without = {key: value for key, value in good.items() if key != name}
        assert problem(send(world, operation, token, json=without)) == (400, f"missing {name}")
        for value in ("hunter2", "", None, True, 1.5, [1], {}):
            answer = send(world, operation, token, json={**good, name: value})
            assert problem(answer) == (400, f"invalid {name}")


@EVERY
def test_other_content_types_methods_and_sizes(world: World, tenant: Tenant, operation: Operation) -> None:
    """Another content type is answered with 415, another method is answered with 405, and a body over 1 MiB is answered
    with 413, each with an error body.
    """
    token = tenant.token
    answer = send(world, operation, token, content=b"{}", headers={"content-type": "text/plain"})
    assert problem(answer)[0] == 415
    large = {"orgId": tenant.org, "tenantId": tenant.number, "search": "x" * (1 << 20)}
    assert problem(send(world, operation, token, json=large))[0] == 413
    answering = {each.method for each in OPERATIONS if each.path == operation.path}
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - answering:
        answer = world.http.request(method, operation.path, headers={"x-authorization": token})
        assert problem(answer) == (405, "method not allowed")
        assert answer.headers["allow"] == ", ".join(sorted(answering))


@EVERY
def test_another_scope(world: World, tenant: Tenant, operation: Operation) -> None:
    """An orgId or tenantId that does not match the token is answered with 403 `scope mismatch`, whether or not that
    tenant exists.
    """
    other = world.tenant()
    fields = operation.fields(tenant.domain)
    for scope in (
        {"orgId": other.org},
        {"tenantId": tenant.number + 1},
        {"orgId": 0},
        {"orgId": -1, "tenantId": 2**70},
        {"orgId": str(other.org)},
    ):
        assert refused(tenant, operation, **fields, **scope) == SCOPE_MISMATCH


@IN_DOMAIN
def test_another_tenants_domain(world: World, tenant: Tenant, operation: Operation) -> None:
    """A domainId of another tenant or organization is answered with 403 `domain not in tenant`, and so is an unknown
    domainId.
    """
    for domain in (world.tenant().domain, 1, 10**9, 0, -1, 2**70, str(world.tenant().domain)):
        assert refused(tenant, operation, **{**operation.body, "domainId": domain}) == FOREIGN


@IN_DOMAIN
def test_a_missing_domain(tenant: Tenant, operation: Operation) -> None:
    """A missing domainId is refused, except by the operations for RADIUS clients, where it is optional.

    A malformed one is always refused.
    """
    if not operation.path.endswith("Client"):
        name = "domainID" if operation.path == IMPORT_USERS else "domainId"
        assert refused(tenant, operation, **operation.body) == (400, f"missing {name}")
    for domain in ("hunter2", True, 1.5, {}):
        status, text = refused(tenant, operation, **{**operation.body, "domainId": domain})
        assert (status, text) == (400, "invalid domainId")


@EVERY
@pytest.mark.parametrize("role", sorted(READER))
def test_roles(tenant: Tenant, operation: Operation, role: str) -> None:
    """Each allowed role may call the operation. Any other role is answered with 403 `role not allowed`."""
    answer = send(tenant.world, operation, tenant.role(role), json=tenant.scoped(**operation.fields(tenant.domain)))
    if role in operation.roles:
        assert answer.status_code in operation.passes
    else:
        assert problem(answer) == NOT_ALLOWED


@EVERY
def test_the_order_of_checks(world: World, tenant: Tenant, operation: Operation) -> None:
    """Token, body, scope, domain and role are checked in this order, and the first error is reported."""
    fields = {**operation.fields(world.tenant().domain), "orgId": tenant.org + 1}
    auditor = tenant.role("auditor")
    assert refused(tenant, operation, token=auditor, **{**fields, "tenantId": "x"}) == (400, "invalid tenantId")
    assert refused(tenant, operation, token=auditor, **fields) == SCOPE_MISMATCH
    del fields["orgId"]
    if operation.in_domain:
        assert refused(tenant, operation, token=auditor, **fields) == FOREIGN
    if "auditor" not in operation.roles:
        assert refused(tenant, operation, token=auditor, **operation.fields(tenant.domain)) == NOT_ALLOWED


@EVERY
def test_numbers_may_be_strings(world: World, tenant: Tenant, operation: Operation) -> None:
    """Numbers may be sent as strings."""
    fields = tenant.scoped(**operation.fields(tenant.domain))
    numbers = {name: str(value) for name, value in fields.items() if isinstance(value, int) and not operation.strict}
    answer = send(world, operation, tenant.token, json={**fields, **numbers})
    if "admin" in operation.roles:
        assert answer.status_code in operation.passes
    else:
        assert problem(answer) == NOT_ALLOWED


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/ad/listLoginRules", "/ad/ListLoginRules"),
        ("/ad/ListLoginRule", "/ad/ListLoginRules"),
        ("/ad/ListDevices", "/network_device/ListDevices"),
        ("/network_device/ListDevices/", "/network_device/ListDevices"),
        ("/api/v1/instances/List", "/api/v1/instances/list"),
        ("/api/v1/instances/addinstances", "/api/v1/instances/addInstance"),
    ],
)
def test_a_misspelled_path(world: World, tenant: Tenant, path: str, meant: str) -> None:
    """The answer to a path in another case, with one wrong letter, or below another prefix names the path of an
    operation. The token is not checked, as for any unknown path.
    """
    for token in (tenant.token, None):
        assert problem(world.post(path, token, json={})) == (404, f"no such path; did you mean {meant}?")


def test_unknown_paths(world: World, tenant: Tenant) -> None:
    """A request is answered with 404 if its path does not exist, differs in letter case, or has one more slash. The
    error body has the form for the prefix of the path.
    """
    for path in ("/ad/", "/ad/GetAllDomains/x", "/ad/nothing", f"/ad/{'ListLockouts' * 50}"):
        assert problem(world.post(path, tenant.token, json={})) == (404, "no such path")
    other = world.post("/api/v1/none", tenant.token, json={})
    assert (other.status_code, other.json()) == (
        404, {"code": 404, "status": "Failure", "message": "no such path"},
    )  # fmt: skip
