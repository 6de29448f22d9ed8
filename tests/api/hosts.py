"""Machines with an endpoint agent, for tests of the operations."""

import base64
from dataclasses import dataclass, field
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sallyport.agentwire.envelope import believe, open_envelope
from sallyport.agentwire.state import State
from sallyport.base.secret import new_key, token_hash
from tests.api.world import Tenant, World

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
    """Create an enrolment key of the tenant's domain."""
    return str(tenant.ask("/api/v1/agent/createKey", domainId=tenant.domain, **fields)["apiKey"])


@dataclass
class Host:
    """An agent on a machine. The agent has an API key of its own."""

    world: World
    instance: int
    key: str
    public: Ed25519PublicKey
    version: int = 0
    sent: int = 0
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def enrol(cls, tenant: Tenant, name: str, key: str = "", **fields: Any) -> "Host":
        """Register a machine and exchange its enrolment key."""
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
        """Send one message."""
        return self.world.post(path, self.key, json=body)

    def ok(self, path: str, **body: Any) -> Any:
        """Send one message that must succeed, and return the answer."""
        answer = self.send(path, **body)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def poll(self, wait_s: int = 0, http: httpx.Client | None = None) -> State | None:
        """Poll for a newer state."""
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
        """Send a report."""
        self.sent += 1
        return self.ok(REPORT, **{"id": f"report-{self.sent:04}", "at": 1, "version": self.version, **fields})


def add_user(tenant: Tenant, name: str, **fields: Any) -> int:
    """Add a user to the tenant's domain."""
    return int(tenant.ask(ADD_USER, domainId=tenant.domain, userName=name, **fields)["userId"])


def assign(tenant: Tenant, host: Host, *users: int, action: str = "add") -> None:
    """Assign users to a machine."""
    tenant.ask(ASSIGN, domainId=tenant.domain, instanceIds=[host.instance], userIds=users, action=action)


def ask_about(tenant: Tenant, path: str, host: Host, **fields: Any) -> Any:
    """Send a request about the machine."""
    return tenant.ask(path, domainId=tenant.domain, instanceId=host.instance, **fields)


def found_account(name: str, uid: int, **fields: Any) -> dict[str, Any]:
    """Return an account in the form in which an agent discovers it."""
    return {"name": name, "uid": uid, "gid": uid, "home": f"/home/{name}", "shell": "/bin/bash", **fields}
