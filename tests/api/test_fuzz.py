"""Each operation is called with valid and invalid bodies that schemathesis generates from /openapi.json. No answer is a
5xx, and each answer has the described form. The bodies are generated without randomness and are not stored.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import BaseSchema, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sallyport.radius.packet import ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, encode_request
from tests.api.operations import OPERATIONS, READER, Operation
from tests.api.world import PASSWORD, SECRET, Tenant, World
from tests.areas.dynamic.nas import ack, thread_nas
from tests.areas.sessions.records import octets
from tests.radius_client import RadiusClient

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BODIES, BODIES_OF_READERS = 35, 15  # an operation that only reads has fewer ways to fail
FEW, ALL = 1, None  # number of generated fields; the others have valid values. With ALL a body is rarely valid
FUZZING = settings(
    derandomize=True,
    database=None,
    deadline=None,
    # No shrinking: a smaller body would reach a service that earlier bodies have changed.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

Known = dict[str, Any]


@pytest.fixture(scope="module")
def description(world: World) -> BaseSchema:
    """Return the API description of the service."""
    return schemathesis.openapi.from_dict(world.http.get("/openapi.json").json())


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_any_body(world: World, tenant: Tenant, description: BaseSchema, operation: Operation) -> None:
    """A body with any number of valid fields is accepted or refused in the described form."""
    statuses = set()
    described = description[operation.path][operation.method]
    cases = st.one_of([described.as_strategy(mode) for mode in GenerationMode])
    with inhabited(world, tenant) as ids:
        scope = {name: ids[name] for name in ("orgId", "tenantId", "domainId", "domainIds")}
        passing = with_known(tenant.scoped(**operation.fields(tenant.domain)), ids)
        nothing: Known = {}
        right = st.sampled_from(
            (
                (ids, passing, FEW),
                (ids, passing, ALL),
                (ids, nothing, ALL),
                (scope, nothing, ALL),
                (nothing, nothing, ALL),
            )
        )

        @settings(FUZZING, max_examples=BODIES_OF_READERS if operation.roles >= READER else BODIES)
        @given(cases, right)
        def fuzz(case: Case, right: tuple[Known, Known, int | None]) -> None:
            known, enough, most = right
            body = with_known(case.body, known)
            entries = body if isinstance(body, list) else [body]
            whole = [
                {**dict(islice(each.items(), most)), **enough} if isinstance(each, dict) else each for each in entries
            ]
            case.body = whole if isinstance(body, list) else whole[0]
            answer = send(world, case, tenant.token)
            case.validate_response(answer, checks=CHECKS)
            assert answer.is_success or answer.json()["code"] == answer.status_code
            statuses.add(answer.status_code)

        fuzz()
    assert not operation.roles or statuses - {400, 403}, "no body passed the checks that all operations share"


def with_known(body: Any, known: Known) -> Any:
    """Return the body in which fields with a known value have that value, at any depth."""
    if isinstance(body, dict):
        return {name: known[name] if name in known else with_known(value, known) for name, value in body.items()}
    return [with_known(each, known) for each in body] if isinstance(body, list) else body


def send(world: World, case: Case, token: str) -> httpx.Response:
    """Return the answer to a generated case."""
    if case.body is NOT_SET or isinstance(case.body, bytes):
        content = case.body or b""
    else:
        content = json.dumps(case.body).encode()
    return world.send(case.method, case.path, token, content=content, headers={"content-type": "application/json"})


@contextmanager
def inhabited(world: World, tenant: Tenant) -> Iterator[Known]:
    """Give the tenant one object of each kind and a NAS that answers. Yield the values of these objects by field
    name.
    """
    address, domain = world.address(), {"domainId": tenant.domain}
    with thread_nas(ack, address) as nas:
        client = tenant.ask(
            "/network_device/AddClient", name="c", address=address, secret=SECRET, coaPort=nas.port, **domain
        )
        with world.service.radius(SECRET, source=address) as logins:
            assert logins.login("ann", PASSWORD, NAS_IDENTIFIER=b"wlc-1", CALLING_STATION_ID=b"02-00-00-00-00-01") == 2
        with RadiusClient(world.service.ports.acct, SECRET, source=address) as records:
            start = octets(1, USER_NAME="ann", NAS_IDENTIFIER="wlc-1", CALLING_STATION_ID="02-00-00-00-00-01")
            request = encode_request(ACCOUNTING_REQUEST, 1, records.secret, start)
            assert records.exchange(request)[0] == ACCOUNTING_RESPONSE
        (device,) = tenant.devices()
        (session,) = tenant.ask("/network_device/ListSessions", **domain)["sessions"]
        user = tenant.ask("/api/v1/endpointUsers/addEpmUserInfo", userName="bob", **domain)["userId"]
        instance = tenant.ask("/api/v1/instances/addInstance", instanceName="i", **domain)["instanceId"]
        group = tenant.ask("/api/v1/instanceGroup/addInstanceGroup", groupName="g", **domain)["instanceId"]
        tenant.ask("/api/v1/instances/addPasswordPolicy", policyName="p")
        (policy,) = tenant.ask("/api/v1/instances/listAllPasswordPolicy")["passwordPolicies"]
        rule = tenant.ask("/ad/AddLoginRule", name="r", action="mfa_required", **domain)
        tenant.ask("/api/v1/endpointUsers/enrolTotp", userName="ann", **domain)
        yield {
            "orgId": tenant.org,
            "tenantId": tenant.number,
            "domainId": tenant.domain,
            "domainIds": [tenant.domain],
            "clientId": client["clientId"],
            "deviceId": device["device_id"],
            "sessionId": session["sessionId"],
            "ruleId": rule["ruleId"],
            "userId": user,
            "epmUserId": user,
            "userIds": [user],
            "userName": "ann",
            "instanceId": instance,
            "machineId": instance,
            "instanceIds": [instance],
            "machineIds": [instance],
            "groupId": group,
            "id": group,
            "policyId": policy["policyId"],
            "credPolicyId": policy["policyId"],
            "caCertificate": "",  # no generated text is equal to one of these
            "pageId": 1,
            "pageSize": 10,
        }
