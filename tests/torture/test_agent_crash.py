"""Tests of a service that is killed between two steps of an agent.

Everything that the service has acknowledged is still stored after the restart.
"""

from pathlib import Path

import httpx

from sallyport.base.secret import new_key, token_hash
from sallyport.base.sha512crypt import sha512_crypt
from tests.running_service import RunningService, running_service


def enrol(service: RunningService, domain: int) -> tuple[int, str]:
    """A machine, and the key of its agent."""
    key = service.post("/api/v1/agent/createKey", {"domainId": domain})["apiKey"]
    body = {"instanceName": "web", "machineId": "machine web"}
    instance = int(service.post("/api/v1/machine/add-machine", body, token=key)["instanceId"])
    own = new_key()
    service.post("/api/v1/agent/exchangeKey", {"keyHash": token_hash(own), "instanceId": instance}, token=key)
    return instance, own


def send(service: RunningService, key: str, step: str, **fields: object) -> httpx.Response:
    """A step of a rotation."""
    body = {"id": "rotation-1", "user": "ann", "phase": step, **fields}
    return service.request("POST", "/api/v1/agent/rotation", token=key, json=body)


def test_a_password_that_was_acknowledged_is_there(tmp_path: Path) -> None:
    """After a kill at any step of a rotation the service knows the password, and accepts the same step again and then
    the next one. The key of the agent, its orders and the versions of its state are kept too."""
    with running_service(tmp_path) as service:
        domain = service.post("/ad/GetAllDomains", {"orgId": 1, "tenantId": 1})["domains"][0]["domainId"]
        instance, key = enrol(service, domain)
        about = {"domainId": domain, "instanceId": instance}
        service.post("/api/v1/agent/order", {**about, "kind": "rotate", "userNames": ["ann"]})
        before = service.post("/api/v1/agent/desiredState", {}, token=key)
        escrow = {"password": "n3w and long", "passwordHash": sha512_crypt(b"n3w and long")}
        for step, fields, state in (("escrow", escrow, "candidate"), ("confirm", {}, "current")):
            for _ in range(2):
                assert send(service, key, step, **fields).status_code == 200
                service.kill()
                service.start()
                shown = service.post("/api/v1/agent/getPassword", {**about, "userName": "ann"})["passwords"]
                assert [(each["password"], each["state"]) for each in shown] == [("n3w and long", state)]
        after = service.post("/api/v1/agent/desiredState", {}, token=key)
        assert before.keys() == after.keys() == {"payload", "signature"}
        orders = service.post("/api/v1/agent/agentStatus", about)["orders"]
        assert [(each["kind"], each["outcome"]) for each in orders] == [("rotate", "waiting")]
        (agent,) = service.post("/api/v1/agent/listAgents", {"domainId": domain})["agents"]
        assert agent["status"] == "Active"
