"""Endpoint agents over HTTP: registration, states and settings."""

import base64
import threading
from typing import Any

import httpx
import pytest

from sallyport.agentwire.state import State
from sallyport.base.secret import new_key, token_hash
from sallyport.base.sha512crypt import matches
from tests.api.hosts import (
    ADD,
    AGENTS,
    DISCOVERED,
    DRIFT,
    GET_PASSWORD,
    GET_SETTINGS,
    INSTANCES,
    ORDER,
    PRIVILEGES,
    REPORT,
    REPORTS,
    ROTATE_STATE_KEY,
    ROTATION,
    SET_SETTINGS,
    STATE,
    STATUS,
    TAKE_OVER,
    Host,
    add_user,
    ask_about,
    assign,
    enrolment_key,
)
from tests.api.world import Tenant, World, problem

# --- registration --------------------------------------------------------------------------------------------------


def test_empty_fields_of_a_registration(tenant: Tenant) -> None:
    """An empty text and null are accepted and clear nothing. If a field is empty, the value under its other spelling is
    used.
    """
    key = enrolment_key(tenant)
    made = tenant.ask(ADD[0], machineKey=key, instanceName="blank", osId=1, publicIp="192.0.2.7")
    for blank in ("", None):
        body = {"machineKey": key, "instanceName": "blank", "machineId": blank, "publicIpAddress": blank}
        again = tenant.ask(ADD[0], **body, osId=blank, privateIp=blank, publicIp="192.0.2.8")
        assert again["instanceId"] == made["instanceId"]


@pytest.mark.parametrize("path", ADD)
def test_an_operator_registers_a_machine(tenant: Tenant, path: str) -> None:
    """An operator adds an instance with the sample body of the interface. In the answer, instanceId and code are
    strings.
    """
    body = {"instanceName": "web-1", "osId": 1, "publicIp": "203.0.113.7", "privateIp": "10.0.0.7"}
    made = tenant.ask(path, domainId=tenant.domain, **body)
    assert made["instanceId"].isdecimal()
    assert made["code"] == "200"
    assert made["message"]
    (entry,) = tenant.ask(INSTANCES, domainId=tenant.domain)["instances"]
    assert (entry["instanceName"], entry["osName"], entry["publicIp"], entry["privateIp"], entry["status"]) == (
        "web-1", "Linux", "203.0.113.7", "10.0.0.7", "Inactive",
    )  # fmt: skip


@pytest.mark.parametrize("path", ADD)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"instanceName": "web-1", "privateIp": "10.0.0.8"}, id="named"),
        pytest.param({"instanceName": "WEB-1"}, id="in another case"),
        pytest.param({"privateIp": "10.0.0.7", "publicIp": "203.0.113.8"}, id="by an address"),
        pytest.param({"instanceName": "web-1", "machineId": "one"}, id="with the id of its machine"),
    ],
)
def test_a_taken_name_is_a_conflict_for_an_access_token(tenant: Tenant, path: str, body: dict[str, str]) -> None:
    """If the name is taken, a request with an access token gets 409 and changes nothing. Only a request with a key
    returns the existing machine.
    """
    key = enrolment_key(tenant)
    for fields in ({"instanceName": "web-1", "machineId": "one"}, {"privateIpAddress": "10.0.0.7", "machineId": "two"}):
        tenant.ask(path, machineKey=key, osId=1, **fields)
    before = tenant.ask(INSTANCES, domainId=tenant.domain)
    status, message = tenant.refused(path, domainId=tenant.domain, osId=1, **body)
    assert (status, message) == (409, "the domain already has an instance with this name: choose another name")
    assert tenant.ask(INSTANCES, domainId=tenant.domain) == before
    again = tenant.ask(path, **{"machineKey": key, "osId": 1, **body, "machineId": "one"})
    assert again["message"] == "machine known"


def test_a_machine_registers_itself(world: World, tenant: Tenant) -> None:
    """A machine that registers with a machineKey and without a name is named after its address.

    When it registers again it keeps its instance. Another machine behind the same address gets another instance.
    """
    key = enrolment_key(tenant)
    body = {"machineKey": key, "osId": 1, "publicIpAddress": "", "privateIpAddress": "10.0.0.7"}
    ids = [
        world.post(ADD[0], None, json={**body, "machineId": machine}).json()["instanceId"]
        for machine in ("one", "one", "another")
    ]
    assert ids[0] == ids[1] != ids[2]
    names = [each["instanceName"] for each in tenant.ask(INSTANCES, domainId=tenant.domain)["instances"]]
    assert names == ["10.0.0.7", "10.0.0.7 another"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (400, "missing instanceName")),
        ({"publicIp": "hunter2"}, (400, "invalid publicIp")),
        ({"osId": "hunter2"}, (400, "invalid osId")),
        ({"instanceName": "a\nb"}, (400, "invalid instanceName")),
        ({"machineKey": "spk_hunter2"}, (401, "invalid token")),
    ],
)
def test_malformed_registrations(tenant: Tenant, fields: dict[str, Any], expected: tuple[int, str]) -> None:
    """A malformed field is answered with 400 and an invalid key is answered with 401. The message does not repeat the
    value.
    """
    assert tenant.refused(ADD[0], domainId=tenant.domain, **fields) == expected


def test_a_key_of_one_instance(world: World, tenant: Tenant) -> None:
    """A key of an instance registers that instance under any name.

    A key of the domain cannot take over an instance that has an agent.
    """
    made = tenant.ask("/api/v1/instances/addInstance", domainId=tenant.domain, instanceName="db")
    key = enrolment_key(tenant, instanceId=int(made["instanceId"]))
    host = Host.enrol(tenant, "called otherwise", key)
    assert host.instance == int(made["instanceId"])
    assert host.poll() is not None
    thief, own = enrolment_key(tenant), new_key()
    world.post(ADD[0], thief, json={"instanceName": "db", "machineId": "machine called otherwise"})
    answer = world.post(
        "/api/v1/agent/exchangeKey", thief, json={"keyHash": token_hash(own), "instanceId": host.instance}
    )
    assert answer.status_code == 409
    assert host.send(STATE).status_code == 200


# --- states --------------------------------------------------------------------------------------------------------


def test_the_state_of_a_machine(tenant: Tenant, host: Host) -> None:
    """A state is signed for its machine and contains the assigned users.

    The instance is Active from the first poll of its agent on.
    """
    assert [each["status"] for each in tenant.ask(AGENTS, domainId=tenant.domain)["agents"]] == ["Inactive"]
    first = host.poll()
    assert first is not None
    assert first.users == ()
    assert host.poll() is None
    assign(tenant, host, add_user(tenant, "bob", password="hunter2", privilegedUser="yes"))
    state = host.poll()
    assert state is not None
    (bob,) = state.users
    assert (bob.name, bob.privileged) == ("bob", True)
    assert matches(b"hunter2", bob.password_hash)
    (agent,) = tenant.ask(AGENTS, domainId=tenant.domain, status="Active")["agents"]
    assert (agent["instanceName"], agent["hostName"], agent["upToDate"]) == ("web", "web.example.org", False)
    host.report(agent="1.0")
    status = ask_about(tenant, STATUS, host)
    assert status["users"] == ["bob"]
    assert status["agent"]["upToDate"]


def test_a_change_reaches_an_agent_that_waits(tenant: Tenant, host: Host) -> None:
    """A change ends a waiting poll with the new state."""
    host.poll()
    states: list[State | None] = []

    def wait() -> None:
        with httpx.Client(base_url=str(tenant.world.http.base_url), trust_env=False) as http:
            states.append(host.poll(60, http))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not ask_about(tenant, STATUS, host)["waits"]:
        pass
    assign(tenant, host, add_user(tenant, "bob"))
    waiting.join(60)
    assert states[0] is not None
    assert [user.name for user in states[0].users] == ["bob"]


def test_keys_of_agents(world: World, tenant: Tenant, host: Host) -> None:
    """Each agent gets only the state of its own machine.

    An access token, an enrolment key and a key of a deleted instance get no state. An agent's key cannot call an
    admin's operation.
    """
    other = Host.enrol(tenant, "db")
    assign(tenant, other, add_user(tenant, "bob"))
    state = host.poll()
    assert state is not None
    assert state.users == ()
    assert problem(world.post(STATE, tenant.token, json={})) == (403, "role not allowed")
    assert problem(world.post(STATE, enrolment_key(tenant), json={})) == (403, "role not allowed")
    assert problem(host.send(AGENTS, domainId=tenant.domain)) == (403, "role not allowed")
    tenant.ask("/api/v1/instances/deleteInstance", method="DELETE", domainId=tenant.domain, instanceId=other.instance)
    assert other.send(STATE).status_code == 401


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (STATE, {"version": -1}, "invalid version"), (STATE, {"version": "hunter2"}, "invalid version"),
        (STATE, {"waitS": 10**6}, "invalid waitS"), (REPORT, {"at": 1, "version": 1}, "missing id"),
        (REPORT, {"id": "report-1", "at": 1, "version": 1, "actions": [{"kind": "HUNTER2"}]}, "invalid kind"),
        (REPORT, {"id": "report-1", "at": 1, "version": 1, "drift": [{}] * 3000}, "invalid drift"),
        (ROTATION, {"id": "rotation-1", "user": "../x", "phase": "escrow"}, "invalid user"),
        (ROTATION, {"id": "rotation-1", "user": "ann", "phase": "escrow"}, "invalid password"),
        (PRIVILEGES, {"at": 1, "version": 1, "privileged": {}}, "invalid privileged"),
    ],
)  # fmt: skip
def test_malformed_messages(host: Host, path: str, body: dict[str, Any], expected: str) -> None:
    """A malformed message is answered with 400. The error names the field but never the value."""
    answer = host.send(path, **body)
    assert problem(answer) == (400, expected)
    assert "hunter2" not in answer.text.lower()


def test_settings(tenant: Tenant, host: Host) -> None:
    """A setting of the machine overrides that of its domain, and null removes it. The error for a malformed setting
    names it.
    """
    tenant.ask(SET_SETTINGS, domainId=tenant.domain, rotateDays=30, removal="lock", privilegeSeconds=60)
    ask_about(tenant, SET_SETTINGS, host, rotateDays=7)
    assert ask_about(tenant, GET_SETTINGS, host) == {
        "putBackPrivileges": False, "removeUnknownKeys": False, "removal": "lock", "removeHomes": False,
        "sudoWithoutPassword": False, "endSessions": True, "privilegeSeconds": 60, "discoverSeconds": 86_400,
        "rotateDays": 7,
    }  # fmt: skip
    ask_about(tenant, SET_SETTINGS, host, rotateDays=None)
    assert ask_about(tenant, GET_SETTINGS, host)["rotateDays"] == 30
    body = {"domainId": tenant.domain, "privilegeSeconds": 1}
    assert tenant.refused(SET_SETTINGS, **body) == (400, "invalid privilegeSeconds")
    assert tenant.refused(SET_SETTINGS, domainId=tenant.domain, instanceId=10**9) == (404, "instance not found")


def test_rotation_of_the_state_key(tenant: Tenant, host: Host) -> None:
    """Only an admin may rotate the state key.

    The rotation is audited, and the agent receives the new key in a state that is signed with the old one.
    """
    before = host.poll()
    assert tenant.ask(ROTATE_STATE_KEY, domainId=tenant.domain)["message"] == "states are signed by a new key"
    after = host.poll()
    assert before is not None
    assert after is not None
    assert after.key != before.key
    assert base64.b64decode(before.key) == host.public.public_bytes_raw()
    trail = tenant.ask("/api/v1/audit/list", pageSize=100)
    assert "agent.key.rotate" in [each["action"] for each in trail["entries"]]
    assert tenant.refused(ROTATE_STATE_KEY, domainId=10**9) == (403, "domain not in tenant")


def test_another_tenants_instance(world: World, tenant: Tenant, host: Host) -> None:
    """For each operation, an instance of another tenant is answered with 404."""
    other = world.tenant()
    for path, fields in (
        (STATUS, {}), (REPORTS, {}), (DISCOVERED, {}), (GET_PASSWORD, {"userName": "ann"}), (ORDER, {"kind": "sync"}),
        (TAKE_OVER, {"userNames": "ann", "action": "add"}), (GET_SETTINGS, {}), (SET_SETTINGS, {}),
    ):  # fmt: skip
        asked = {"domainId": other.domain, "instanceId": host.instance, **fields}
        assert other.refused(path, **asked) == (404, "instance not found"), path
    host.ok(PRIVILEGES, at=1, version=1, drift=[{"kind": "sudoers", "name": "x"}])
    assert other.ask(DRIFT, domainId=other.domain, instanceId=host.instance)["totalCount"] == 0
