"""Endpoint agents over HTTP: registration, states, reports, rotations, and what admins ask about them."""

import base64
import threading
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sallyport.base.agentwire.envelope import believe, open_envelope
from sallyport.base.agentwire.state import State
from sallyport.base.ids import new_key, token_hash
from sallyport.base.sha512crypt import matches, sha512_crypt
from tests.api.world import Tenant, World, problem

ADD = ("/api/v1/machine/add-machine", "/api/v1/instances/add-instance")
STATE = "/api/v1/agent/desiredState"
REPORT = "/api/v1/agent/report"
ROTATION = "/api/v1/agent/rotation"
PRIVILEGES = "/api/v1/agent/privilegeStatus"
AGENTS = "/api/v1/agent/listAgents"
STATUS = "/api/v1/agent/agentStatus"
REPORTS = "/api/v1/agent/listReports"
DRIFT = "/api/v1/agent/listDrift"
DISCOVERED = "/api/v1/agent/listDiscovered"
GET_SETTINGS = "/api/v1/agent/getSettings"
SET_SETTINGS = "/api/v1/agent/setSettings"
ROTATE_STATE_KEY = "/api/v1/agent/rotateStateKey"
GET_PASSWORD = "/api/v1/agent/getPassword"
TAKE_OVER = "/api/v1/agent/takeOver"
ORDER = "/api/v1/agent/order"
USERS = "/api/v1/endpointUsers/listAllEpmUsers"
INSTANCES = "/api/v1/instances/list"
ASSIGN = "/api/v1/instances/assignUsersToMachines"
ADD_USER = "/api/v1/endpointUsers/addEpmUserInfo"


def enrolment_key(tenant: Tenant, **fields: Any) -> str:
    """An enrolment key of the tenant's domain."""
    return str(tenant.ask("/api/v1/agent/createKey", domainId=tenant.domain, **fields)["apiKey"])


@dataclass
class Host:
    """An agent on a machine: it has a key of its own."""

    world: World
    instance: int
    key: str
    public: Ed25519PublicKey
    version: int = 0
    sent: int = 0
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def enrol(cls, tenant: Tenant, name: str, key: str = "", **fields: Any) -> "Host":
        """A machine that registers itself and gets its key."""
        key, world = key or enrolment_key(tenant), tenant.world
        body = {"machineKey": key, "instanceName": name, "machineId": f"machine {name}", "osId": 1, **fields}
        made = world.post(ADD[0], None, json=body)
        assert made.status_code == 200, made.text
        own, instance = new_key(), int(made.json()["instanceId"])
        answer = world.post("/api/v1/agent/exchangeKey", key, json={"keyHash": token_hash(own), "instanceId": instance})
        assert answer.status_code == 200, answer.text
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(made.json()["stateKey"]))
        return cls(world, instance, own, public)

    def send(self, path: str, **body: Any) -> httpx.Response:
        """One message."""
        return self.world.post(path, self.key, json=body)

    def ok(self, path: str, **body: Any) -> Any:
        """One message that must be taken."""
        answer = self.send(path, **body)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def poll(self, wait_s: int = 0, http: httpx.Client | None = None) -> State | None:
        """Ask for another state."""
        headers = {"authorization": f"Bearer {self.key}"}
        key = base64.b64encode(self.public.public_bytes_raw()).decode()
        body = {"version": self.version, "waitS": wait_s, "key": key}
        answer = (http or self.world.http).post(STATE, headers=headers, json=body, timeout=90)
        assert answer.status_code == 200, answer.text
        signed = open_envelope(answer.json())
        if signed is None:
            return None
        state = believe(signed, self._verify)
        assert state.instance == self.instance
        self.version = state.version
        return state

    def _verify(self, signature: bytes, octets: bytes) -> bool:
        self.public.verify(signature, octets)
        return True

    def report(self, **fields: Any) -> Any:
        """Tell something."""
        self.sent += 1
        return self.ok(REPORT, **{"id": f"report-{self.sent:04}", "at": 1, "version": self.version, **fields})


@pytest.fixture
def host(tenant: Tenant) -> Host:
    """An enrolled machine of the tenant."""
    return Host.enrol(tenant, "web", privateIpAddress="10.0.0.7", hostName="web.example.org")


def add_user(tenant: Tenant, name: str, **fields: Any) -> int:
    """A user of the tenant's domain."""
    return int(tenant.ask(ADD_USER, domainId=tenant.domain, userName=name, **fields)["userId"])


def assign(tenant: Tenant, host: Host, *users: int, action: str = "add") -> None:
    """Assign users to a machine."""
    tenant.ask(ASSIGN, domainId=tenant.domain, instanceIds=[host.instance], userIds=users, action=action)


def about(tenant: Tenant, path: str, host: Host, **fields: Any) -> Any:
    """Ask about a machine."""
    return tenant.ask(path, domainId=tenant.domain, instanceId=host.instance, **fields)


def found(name: str, uid: int, **fields: Any) -> dict[str, Any]:
    """An account as an agent finds it."""
    return {"name": name, "uid": uid, "gid": uid, "home": f"/home/{name}", "shell": "/bin/bash", **fields}


# --- registration --------------------------------------------------------------------------------------------------


def test_what_is_empty_is_not_said(tenant: Tenant) -> None:
    """Neither an empty text nor null is an error, or clears what was told; the other spelling of a field stands."""
    added = {"domainId": tenant.domain, "instanceName": "blank", "osId": 1, "publicIp": "192.0.2.7"}
    made = tenant.ask(ADD[0], **added)
    for blank in ("", None):
        body = {"domainId": tenant.domain, "instanceName": "blank", "machineId": blank, "publicIpAddress": blank}
        again = tenant.ask(ADD[0], **body, osId=blank, privateIp=blank, publicIp="192.0.2.8")
        assert again["instanceId"] == made["instanceId"]


@pytest.mark.parametrize("path", ADD)
def test_an_operator_registers_a_machine(tenant: Tenant, path: str) -> None:
    """By the sample body of the interface: instanceId and code are strings; again it is the same instance."""
    body = {"instanceName": "web-1", "osId": 1, "publicIp": "203.0.113.7", "privateIp": "10.0.0.7"}
    made = tenant.ask(path, domainId=tenant.domain, **body)
    assert made["instanceId"].isdecimal()
    assert made["code"] == "200"
    assert made["message"]
    assert tenant.ask(path, domainId=tenant.domain, **body)["instanceId"] == made["instanceId"]
    (entry,) = tenant.ask(INSTANCES, domainId=tenant.domain)["instances"]
    assert (entry["instanceName"], entry["osName"], entry["publicIp"], entry["privateIp"], entry["status"]) == (
        "web-1", "Linux", "203.0.113.7", "10.0.0.7", "Inactive",
    )  # fmt: skip


def test_a_machine_registers_itself(world: World, tenant: Tenant) -> None:
    """By its machineKey alone: no name, so it is called after its address; the same machine is one instance, another
    behind the same address is another."""
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
    ("fields", "told"),
    [
        ({}, (400, "missing instanceName")),
        ({"publicIp": "hunter2"}, (400, "invalid publicIp")),
        ({"osId": "hunter2"}, (400, "invalid osId")),
        ({"instanceName": "a\nb"}, (400, "invalid instanceName")),
        ({"machineKey": "spk_hunter2"}, (401, "invalid API key")),
    ],
)
def test_what_is_no_machine(tenant: Tenant, fields: dict[str, Any], told: tuple[int, str]) -> None:
    """400 naming the field, 401 for a key that is none, without the value."""
    assert tenant.refused(ADD[0], domainId=tenant.domain, **fields) == told


def test_a_key_of_one_instance(world: World, tenant: Tenant) -> None:
    """Is that instance's, whatever the machine is called; and a key of the domain does not take an instance that has an
    agent."""
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
    """Signed to it, with who is assigned; the instance is Active once its agent has asked."""
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
    status = about(tenant, STATUS, host)
    assert status["users"] == ["bob"]
    assert status["agent"]["upToDate"]


def test_a_change_reaches_an_agent_that_waits(tenant: Tenant, host: Host) -> None:
    """The answer to a poll that waits comes with the change."""
    host.poll()
    states: list[State | None] = []

    def wait() -> None:
        with httpx.Client(base_url=str(tenant.world.http.base_url), trust_env=False) as http:
            states.append(host.poll(60, http))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not about(tenant, STATUS, host)["waits"]:
        pass
    assign(tenant, host, add_user(tenant, "bob"))
    waiting.join(60)
    assert states[0] is not None
    assert [user.name for user in states[0].users] == ["bob"]


def test_another_instances_key(world: World, tenant: Tenant, host: Host) -> None:
    """Each agent gets its own machine's state; an access token, an enrolment key and a key of a deleted instance get
    none, and an agent's key nothing that admins ask."""
    other = Host.enrol(tenant, "db")
    assign(tenant, other, add_user(tenant, "bob"))
    state = host.poll()
    assert state is not None
    assert state.users == ()
    assert problem(world.post(STATE, tenant.token, json={})) == (403, "role not allowed")
    assert problem(world.post(STATE, enrolment_key(tenant), json={})) == (403, "role not allowed")
    assert problem(host.send(AGENTS, domainId=tenant.domain)) == (403, "role not allowed")
    world.service.call("instance.remove", name="db", domain=str(tenant.domain))
    assert other.send(STATE).status_code == 401


@pytest.mark.parametrize(
    ("path", "body", "told"),
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
def test_messages_that_are_none(host: Host, path: str, body: dict[str, Any], told: str) -> None:
    """400, naming the field and never the value."""
    answer = host.send(path, **body)
    assert problem(answer) == (400, told)
    assert "hunter2" not in answer.text.lower()


# --- reports -------------------------------------------------------------------------------------------------------


def test_reports(tenant: Tenant, host: Host) -> None:
    """Are listed, the newest first, with what failed; one that comes twice is one, and twenty are kept."""
    host.poll()
    body = {"actions": [{"kind": "create", "name": "bob"}, {"kind": "keys", "name": "bob", "error": "disk full"}]}
    assert host.report(**body)["message"] == "report kept"
    host.sent -= 1
    assert host.report(**body)["message"] == "report known"
    (entry,) = about(tenant, REPORTS, host)["reports"]
    assert (entry["reportId"], entry["outcome"], entry["version"]) == ("report-0001", "errors", host.version)
    assert entry["told"]["actions"][0]["error"] == "disk full"
    for _ in range(25):
        host.report()
    answer = about(tenant, REPORTS, host, pageSize=1000)
    assert answer["totalCount"] == len(answer["reports"]) == 20
    assert answer["reports"][0]["reportId"] == "report-0026"


def test_drift(tenant: Tenant, host: Host) -> None:
    """What someone changed by hand lasts until a status comes without it, or it is put back; by setting, the state says
    that it is."""
    someone = {"kind": "privilege", "name": "eve", "detail": "group sudo"}
    for _ in range(2):
        host.ok(PRIVILEGES, at=1, version=1, privileged=[{"name": "eve", "via": ["group sudo"]}], drift=[someone])
    host.report(drift=[{"kind": "key", "name": "ann", "detail": "SHA256:x", "putBack": True}])
    (lasting,) = about(tenant, DRIFT, host)["drift"]
    assert (lasting["kind"], lasting["name"], lasting["detail"], lasting["putBack"]) == (
        "privilege", "eve", "group sudo", False,
    )  # fmt: skip
    assert [each["kind"] for each in about(tenant, DRIFT, host, lasting=False)["drift"]] == ["key", "privilege"]
    host.ok(PRIVILEGES, at=2, version=1)
    assert tenant.ask(DRIFT, domainId=tenant.domain)["totalCount"] == 0
    tenant.ask(SET_SETTINGS, domainId=tenant.domain, putBackPrivileges="yes")
    state = host.poll()
    assert state is not None
    assert state.settings.put_back_privileges
    assert about(tenant, GET_SETTINGS, host)["putBackPrivileges"] is True


def test_discovery_and_take_over(tenant: Tenant, host: Host) -> None:
    """People's accounts are users whose source is `discovered`, found on their machines and wanted of none; who is
    taken over is wanted there. A system's account is listed and not taken over; who is gone is gone."""
    accounts = [found("root", 0), found("eve", 1000, sudo=["ALL"]), found("ann", 1001), found("old", 1002)]
    groups = [{"name": "sudo", "gid": 27, "members": ["eve"]}]
    host.report(discovery={"at": 1, "accounts": accounts, "groups": groups})
    listing = {"domainId": tenant.domain, "filter": {"filterBy": "source", "value": "discovered"}}
    entries = tenant.ask(USERS, **listing)["epmUsers"]
    assert [(each["userName"], each["instanceIds"], each["assign"]) for each in entries] == [
        ("eve", [host.instance], False),
        ("old", [host.instance], False),
    ]
    names = [each["name"] for each in about(tenant, DISCOVERED, host)["discovered"]]
    assert names == ["ann", "eve", "old", "root"]
    assert about(tenant, DISCOVERED, host, kind="group")["discovered"][0]["told"]["members"] == ["eve"]
    state = host.poll()
    assert state is not None
    assert state.users == ()

    about(tenant, TAKE_OVER, host, userNames=["eve"], action="add")
    state = host.poll()
    assert state is not None
    assert [(user.name, user.password_hash) for user in state.users] == [("eve", "")]
    assert state.takeover == ("eve",)
    body = {"domainId": tenant.domain, "instanceId": host.instance, "action": "add"}
    assert tenant.refused(TAKE_OVER, userNames="nobody", **body)[0] == 404
    assert tenant.refused(TAKE_OVER, userNames="root", **body)[0] in (404, 409)
    host.report(discovery={"at": 2, "accounts": accounts[:2]})
    assert tenant.ask(USERS, **listing)["totalCount"] == 0
    about(tenant, TAKE_OVER, host, userNames=["eve"], action="remove")
    state = host.poll()
    assert state is not None
    assert state.users == ()


def test_who_was_discovered_can_be_added(tenant: Tenant, host: Host) -> None:
    """A discovered name is nobody's yet: adding it is no conflict, and the user is like any other then."""
    host.report(discovery={"at": 1, "accounts": [found("eve", 1000)]})
    (entry,) = tenant.ask(USERS, domainId=tenant.domain, filter={"filterBy": "userName", "value": "eve"})["epmUsers"]
    assert add_user(tenant, "eve", password="hunter2") == entry["userId"]
    (entry,) = tenant.ask(USERS, domainId=tenant.domain, filter={"filterBy": "userName", "value": "eve"})["epmUsers"]
    assert (entry["source"], entry["instanceIds"]) == ("Local", [])
    again = {"domainId": tenant.domain, "userName": "eve"}
    assert tenant.refused(ADD_USER, **again) == (409, "the domain has a user of that name")


# --- orders and rotations ------------------------------------------------------------------------------------------


def test_an_order_and_its_outcome(tenant: Tenant, host: Host) -> None:
    """Stands in the state until a report tells what became of it; the same order meanwhile is that one."""
    body = {"kind": "rotate", "userNames": ["ann"]}
    (first,) = about(tenant, ORDER, host, **body)["orders"]
    (again,) = about(tenant, ORDER, host, **body)["orders"]
    assert (first["orderId"], first["outcome"]) == (again["orderId"], "waiting")
    state = host.poll()
    assert state is not None
    assert [(each.id, each.kind, each.users) for each in state.triggers] == [(first["orderId"], "rotate", ("ann",))]
    host.report(outcomes=[{"trigger": first["orderId"], "error": "passwd is locked"}, {"trigger": 10**9}])
    (told,) = about(tenant, STATUS, host)["orders"]
    assert (told["outcome"], told["error"]) == ("failed", "passwd is locked")
    state = host.poll()
    assert state is not None
    assert state.triggers == ()


def test_waiting_for_an_outcome(tenant: Tenant, host: Host) -> None:
    """The caller has it in the answer, when the agent reports in time."""
    host.poll()

    def act() -> None:
        with httpx.Client(base_url=str(tenant.world.http.base_url), trust_env=False) as http:
            state = host.poll(60, http)
            assert state is not None
            body = {"id": "report-9999", "at": 1, "version": 1, "outcomes": [{"trigger": state.triggers[0].id}]}
            http.post(REPORT, headers={"authorization": f"Bearer {host.key}"}, json=body)

    acting = threading.Thread(target=act)
    acting.start()
    (told,) = about(tenant, ORDER, host, kind="discover", waitSeconds=60)["orders"]
    acting.join(60)
    assert told["outcome"] == "done"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "hunter2"}, "invalid kind"), ({}, "missing kind"),
        ({"kind": "sync", "waitSeconds": 61}, "invalid waitSeconds"),
        ({"kind": "rotate", "userNames": ["../x"]}, "names of accounts"),
        ({"kind": "sync", "userNames": ["ann"]}, "userNames go with the kind rotate"),
    ],
)  # fmt: skip
def test_what_is_no_order(tenant: Tenant, host: Host, fields: dict[str, Any], told: str) -> None:
    """400 naming the field."""
    assert tenant.refused(ORDER, domainId=tenant.domain, instanceId=host.instance, **fields) == (400, told)


def test_a_rotation(world: World, tenant: Tenant, host: Host) -> None:
    """A password is known before it is in force, and its hash is in the state once it is; an auditor sees neither, and
    each reading is in the audit trail."""
    user = add_user(tenant, "bob", password="hunter2")
    assign(tenant, host, user)
    host.poll()
    hashed = sha512_crypt(b"n3w and long")
    message = {"id": "rotation-1", "user": "bob"}
    escrow = {**message, "phase": "escrow", "password": "n3w and long", "passwordHash": hashed}
    for _ in range(2):
        host.ok(ROTATION, **escrow)
    shown = about(tenant, GET_PASSWORD, host, userName="bob")["passwords"]
    assert [(each["password"], each["state"]) for each in shown] == [("hunter2", "set"), ("n3w and long", "candidate")]
    assert host.poll() is None
    for _ in range(2):
        host.ok(ROTATION, **message, phase="confirm")
    state = host.poll()
    assert state is not None
    assert state.users[0].password_hash == hashed
    shown = about(tenant, GET_PASSWORD, host, userName="bob")["passwords"]
    assert [(each["password"], each["state"]) for each in shown] == [("n3w and long", "current")]
    hidden = about(tenant, GET_PASSWORD, host, userName="bob", token=tenant.role("auditor"))["passwords"]
    assert [each["password"] for each in hidden] == ["********"]
    trail = tenant.ask("/api/v1/audit/list", pageSize=100)
    actions = [each["action"] for each in trail["entries"]]
    assert actions.count("agent.password.read") == 3
    assert actions.count("agent.password.rotate") == 1
    assert "n3w and long" not in str(trail)
    tenant.ask(
        "/api/v1/endpointUsers/updateEpmUserInfo", method="PUT", domainId=tenant.domain, userId=user, password="third"
    )
    state = host.poll()
    assert state is not None
    assert matches(b"third", state.users[0].password_hash)


def test_a_rotation_that_is_none(host: Host) -> None:
    """An unknown confirm is 404, an unknown abandon a success; another password under the same id is 409, and so is
    abandoning what is in force."""
    message = {"id": "rotation-1", "user": "bob"}
    escrow = {**message, "phase": "escrow", "password": "one", "passwordHash": sha512_crypt(b"one")}
    assert host.send(ROTATION, **message, phase="confirm").status_code == 404
    assert host.send(ROTATION, **message, phase="abandon").status_code == 200
    host.ok(ROTATION, **escrow)
    assert host.send(ROTATION, **{**escrow, "password": "two"}).status_code == 409
    host.ok(ROTATION, **message, phase="confirm")
    assert host.send(ROTATION, **message, phase="abandon").status_code == 409


def test_settings(tenant: Tenant, host: Host) -> None:
    """A machine's own stand over its domain's; null takes them back; what is malformed is named."""
    tenant.ask(SET_SETTINGS, domainId=tenant.domain, rotateDays=30, removal="lock", privilegeSeconds=60)
    about(tenant, SET_SETTINGS, host, rotateDays=7)
    assert about(tenant, GET_SETTINGS, host) == {
        "putBackPrivileges": False, "removeUnknownKeys": False, "removal": "lock", "removeHomes": False,
        "sudoWithoutPassword": False, "endSessions": True, "privilegeSeconds": 60, "discoverSeconds": 86_400,
        "rotateDays": 7,
    }  # fmt: skip
    about(tenant, SET_SETTINGS, host, rotateDays=None)
    assert about(tenant, GET_SETTINGS, host)["rotateDays"] == 30
    body = {"domainId": tenant.domain, "privilegeSeconds": 1}
    assert tenant.refused(SET_SETTINGS, **body) == (400, "invalid privilegeSeconds")
    assert tenant.refused(SET_SETTINGS, domainId=tenant.domain, instanceId=10**9) == (404, "instance not found")


def test_another_key_for_states(tenant: Tenant, host: Host) -> None:
    """Is made for the admin alone, is noted, and reaches the agent by a state that the key before has signed."""
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
    """Does not exist, whatever is asked about it."""
    other = world.tenant()
    for path, fields in (
        (STATUS, {}), (REPORTS, {}), (DISCOVERED, {}), (GET_PASSWORD, {"userName": "ann"}), (ORDER, {"kind": "sync"}),
        (TAKE_OVER, {"userNames": "ann", "action": "add"}), (GET_SETTINGS, {}), (SET_SETTINGS, {}),
    ):  # fmt: skip
        asked = {"domainId": other.domain, "instanceId": host.instance, **fields}
        assert other.refused(path, **asked) == (404, "instance not found"), path
    host.ok(PRIVILEGES, at=1, version=1, drift=[{"kind": "sudoers", "name": "x"}])
    assert other.ask(DRIFT, domainId=other.domain, instanceId=host.instance)["totalCount"] == 0
