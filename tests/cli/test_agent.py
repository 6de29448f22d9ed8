"""`sallyport agent ...`, which manages endpoint agents, and the doctor's check for silent agents."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from sallyport.base.secret import new_key, token_hash
from sallyport.base.sha512crypt import sha512_crypt
from tests.cli import Service, add_domain


@dataclass
class Host:
    """A machine called web, whose agent has a key of its own."""

    service: Service
    domain: str
    key: str

    def send(self, step: str, **body: object) -> None:
        """Send one message as the agent."""
        self.service.post(f"/api/v1/agent/{step}", body, token=self.key)

    def rows(self, *command: str) -> list[dict[str, Any]]:
        """Return the JSON output of a list command."""
        found: list[dict[str, Any]] = json.loads(self.service.ok("agent", *command, "--domain", self.domain, "--json"))
        return found


@pytest.fixture
def host(service: Service, request: pytest.FixtureRequest) -> Iterator[Host]:
    """Yield an enrolled machine in a domain of its own."""
    domain = add_domain(service, request.node.name)
    where = ("--org", "1", "--tenant", "1", "--domain", domain)
    key, own = service.ok("agent", "key", "create", *where, "--key-only"), new_key()
    body = {"instanceName": "web", "machineId": "machine", "hostName": "web.example"}
    instance = service.post("/api/v1/machine/add-machine", body, token=key)["instanceId"]
    service.post("/api/v1/agent/exchangeKey", {"keyHash": token_hash(own), "instanceId": instance}, token=key)
    yield Host(service, domain, own)


def test_agents_are_listed_and_shown(host: Host) -> None:
    """`list` prints the agents of a domain with their status. `show` prints the last report of one agent."""
    host.send("report", id="report-1", at=1, version=1, actions=[{"kind": "create", "name": "ann", "error": "busy"}])
    (row,) = host.rows("list")
    assert (row["instanceName"], row["hostName"], row["status"]) == ("web", "web.example", "Active")
    shown = json.loads(host.service.ok("agent", "show", "web", "--domain", host.domain))
    assert shown["report"]["outcome"] == "errors"
    assert shown["report"]["told"]["actions"][0]["error"] == "busy"
    refused = host.service.cli("agent", "show", "nobody", "--domain", host.domain)
    assert (refused.returncode, refused.stderr) == (
        1,
        f'sallyport: instance "nobody" not found; existing: web; see: sallyport instance list --domain {host.domain}\n',
    )


def test_discovered_accounts_can_be_taken_over(host: Host) -> None:
    """`found` lists the accounts and groups that the agent has found. `take-over` adds an account to the users of the
    machine.
    """
    eve = {"name": "eve", "uid": 1000, "gid": 1000, "shell": "/bin/sh"}
    discovery = {"at": 1, "accounts": [eve], "groups": [{"name": "ops", "gid": 7}]}
    host.send("report", id="report-1", at=1, version=1, discovery=discovery)
    assert [(row["name"], row["told"]["uid"]) for row in host.rows("found", "web")] == [("eve", 1000)]
    assert [row["name"] for row in host.rows("found", "web", "--groups")] == ["ops"]
    host.service.ok("agent", "take-over", "web", "eve", "--domain", host.domain)
    shown = json.loads(host.service.ok("agent", "show", "web", "--domain", host.domain))
    assert shown["users"] == ["eve"]
    host.service.ok("agent", "take-over", "web", "eve", "--undo", "--domain", host.domain)
    shown = json.loads(host.service.ok("agent", "show", "web", "--domain", host.domain))
    assert shown["users"] == []


def test_drift_is_listed_and_settings_are_changed(host: Host) -> None:
    """`drift` lists the current local changes; with --all it also lists former ones. `settings` shows and sets the
    options of the agents.
    """
    drift = [{"kind": "privilege", "name": "eve", "detail": "group sudo"}]
    host.send("privilegeStatus", at=1, version=1, drift=drift)
    (row,) = host.rows("drift")
    assert (row["kind"], row["name"], row["ended"]) == ("privilege", "eve", "")
    host.send("privilegeStatus", at=2, version=1)
    assert host.rows("drift") == []
    assert [each["name"] for each in host.rows("drift", "--all", "--instance", "web")] == ["eve"]
    host.rows("settings", "--put-back", "--rotate-days", "30")
    held = {row["setting"]: row["value"] for row in host.rows("settings", "--instance", "web")}
    assert (held["putBackPrivileges"], held["rotateDays"], held["removal"]) == (True, 30, "delete")
    assert held["sudoWithoutPassword"] is False
    held = {row["setting"]: row["value"] for row in host.rows("settings", "--sudo-without-password")}
    assert held["sudoWithoutPassword"] is True


def test_the_state_key_is_rotated(host: Host) -> None:
    """`rotate-state-key` prints the new key. It fails for an unknown domain."""
    done = host.service.cli("agent", "rotate-state-key", "--domain", host.domain)
    assert done.returncode == 0, done.stderr
    assert "new key" in done.stderr
    assert host.service.cli("agent", "rotate-state-key", "--domain", "nowhere").returncode == 1


def test_an_order_is_shown_with_its_outcome(host: Host) -> None:
    """`order` reports that the order is waiting. `show` prints the outcome and the error that the agent has
    reported.
    """
    waiting = host.service.cli("agent", "order", "sync", "web", "--domain", host.domain, "--wait", "0")
    assert waiting.returncode == 0
    number = int(waiting.stderr.split()[1].rstrip(":"))
    assert waiting.stderr == f"order {number}: waiting\n"
    host.send("report", id="report-1", at=1, version=1, outcomes=[{"trigger": number, "error": "disk full"}])
    shown = json.loads(host.service.ok("agent", "show", "web", "--domain", host.domain))
    assert [(each["outcome"], each["error"]) for each in shown["orders"]] == [("failed", "disk full")]


def test_an_escrowed_password_is_a_candidate_until_confirmed(host: Host) -> None:
    """`password` shows an escrowed password as a candidate until the agent has confirmed it, and then as the current
    one.
    """
    step = {"id": "rotation-1", "user": "ann"}
    host.send("rotation", **step, phase="escrow", password="n3w", passwordHash=sha512_crypt(b"n3w"))
    (row,) = host.rows("password", "web", "ann")
    assert (row["state"], row["password"]) == ("candidate", "n3w")
    host.send("rotation", **step, phase="confirm")
    (row,) = host.rows("password", "web", "ann")
    assert (row["state"], row["password"]) == ("current", "n3w")


def test_the_doctor_names_silent_agents(host: Host) -> None:
    """The doctor names a machine whose agent has not sent anything. After a message of the agent it does not."""
    (domain,) = (name for name, each in host.service.domains().items() if str(each["domainId"]) == host.domain)

    def agent_findings() -> list[str]:
        rows = json.loads(host.service.cli("doctor", "--json").stdout)
        return [row["finding"] for row in rows if row["check"] == "agents" and row["finding"].startswith(domain)]

    assert [text.partition(" since ")[0] for text in agent_findings()] == [f"{domain}: web is silent"]
    host.send("privilegeStatus", at=1, version=1)
    assert agent_findings() == [f"{domain}: every agent sends messages"]
