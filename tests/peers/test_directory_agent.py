"""Tests of the directory agent between a real OpenLDAP and a running service that cannot reach the directory."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from sallyport.agent import file
from sallyport.agent.directory.agent import DirectoryAgent, StateFile
from sallyport.agent.directory.cli import TABLE
from sallyport.agent.directory.settings import settings_of
from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.areas.directory.reading.reader import LdapReader
from sallyport.base.clock import now_us
from sallyport.base.secret import Secret
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE
from tests.peers.authority import Authority
from tests.peers.programs import needs
from tests.peers.slapd import BASE, PEOPLE, SERVICE, SERVICE_PASSWORD, STAFF, Slapd, dn_of, slapd
from tests.running_service import PROGRAM, RunningService, running_service

pytestmark = [pytest.mark.peer, needs("slapd", "ldapmodify", "ldapsearch")]

TENANT = ("--org", "1", "--tenant", "1")
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """Yield a directory that no test changes."""
    with slapd(tmp_path_factory.mktemp("slapd"), Authority("The directory's CA")) as directory:
        yield directory


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Slapd]:
    """Yield a directory that only this test uses."""
    (tmp_path / "slapd").mkdir()
    with slapd(tmp_path / "slapd", Authority("The directory's CA")) as directory:
        yield directory


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service that may not connect to the directory."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_EGRESS": "192.0.2.0/32"}) as service:
        yield service


@pytest.fixture
def domain(service: RunningService, request: pytest.FixtureRequest) -> int:
    """Add a domain that only this test uses."""
    return service.add_domain(request.node.name)


def configured(service: RunningService, directory: Slapd, domain: int, tmp_path: Path) -> Path:
    """Write the configuration file that `agent key create` prints, and fill in its only gap."""
    text = service.ok(
        "agent", "key", "create", *TENANT, "--domain", str(domain), "--kind", "directory",
        "--ldap-server", directory.secure_url, "--base-dn", BASE, "--bind-dn", SERVICE,
    )  # fmt: skip
    assert 'bind_secret = ""' in text
    text = text.replace('bind_secret = ""', f"bind_secret = {json.dumps(SERVICE_PASSWORD)}")
    text = f'state_dir = "{tmp_path}/state"\n{text}\nca_certificate = "{directory.directory}/authority.pem"\n'
    path = tmp_path / "agent.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.fixture
def config(tmp_path: Path, directory: Slapd, service: RunningService, domain: int) -> Path:
    """Return the configuration of an agent for the shared directory."""
    return configured(service, directory, domain, tmp_path)


@pytest.fixture
def own_config(tmp_path: Path, changing: Slapd, service: RunningService, domain: int) -> Path:
    """Return the configuration of an agent for the directory of this test."""
    return configured(service, changing, domain, tmp_path)


def agent(service: RunningService, config: Path, *options: str) -> str:
    """Run the agent, which must succeed, and return its output."""
    return service.ok("agent", "directory", "--config", str(config), *options)


def until(done: Callable[[], Any]) -> Any:
    """Call `done` repeatedly until it returns a value, and return that value."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := done()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def people(service: RunningService, domain: int) -> dict[str, dict[str, Any]]:
    """Return the users of the domain, keyed by name, when no import is open any more."""
    until(lambda: not service.rows("select 1 from directory_jobs where state in ('QUEUED', 'RUNNING')"))
    body = {"orgId": 1, "tenantId": 1, "domainId": domain, "pageSize": 1000}
    return {user["userName"]: user for user in service.post("/ad/GetAllAdUsers", body)["users"]}


def test_a_directory_is_sent(service: RunningService, changing: Slapd, own_config: Path, domain: int) -> None:
    """The first run sends all users with their groups.

    The next run sends the changes: new, locked, removed and renamed users.
    """
    assert "everything" in agent(service, own_config, "--once")
    first = people(service, domain)
    assert set(first) == set(PEOPLE)
    assert set(first["ann"]["groups"]) == {"admins, all", "vpn users"}
    changing.add(
        f"dn: uid=new,{STAFF}\nobjectClass: inetOrgPerson\nuid: new\ncn: new\nsn: new\n\n"
        f"dn: {dn_of('eve')}\nchangetype: delete\n\n"
        f"dn: {dn_of('pia')}\nchangetype: modrdn\nnewrdn: uid=petra\ndeleteoldrdn: 1\n\n"
        f"dn: {dn_of('lou')}\nchangetype: modify\nreplace: pwdAccountLockedTime\npwdAccountLockedTime: 000001010000Z\n"
    )
    assert "changes: " in agent(service, own_config, "--once")
    second = people(service, domain)
    assert set(second) == {*PEOPLE, "new", "petra"} - {"eve", "pia"}
    assert second["petra"]["userId"] == first["pia"]["userId"]
    assert second["lou"]["status"] == "disabled"
    assert "everything" in agent(service, own_config, "--once", "--full")
    assert people(service, domain) == second


def test_the_agent_makes_a_key_of_its_own(service: RunningService, config: Path, domain: int) -> None:
    """After the first run the enrolment key is no longer in the file, and the agent still runs after that key was
    revoked."""
    agent(service, config, "--once")
    assert "enrolment_key" not in config.read_text()
    keys = json.loads(service.ok("agent", "key", "list", "--domain", str(domain), "--json"))
    assert [each["kind"] for each in keys] == ["enrolment", "own"]
    service.ok("agent", "key", "revoke", str(keys[0]["keyId"]), "--domain", str(domain))
    agent(service, config, "--once")
    service.ok("agent", "key", "revoke", str(keys[1]["keyId"]), "--domain", str(domain))
    refused = service.cli("agent", "directory", "--config", str(config), "--once")
    assert (refused.returncode, "invalid token" in refused.stderr) == (1, True)


def test_a_dry_run(service: RunningService, config: Path, domain: int) -> None:
    """A dry run prints what would be sent, without passwords. It sends nothing, not even the key of the agent."""
    before = config.read_text()
    lines = [json.loads(line) for line in agent(service, config, "--dry-run").splitlines()]
    assert {each["name"] for each in lines if each["kind"] == "person"} == set(PEOPLE)
    assert not [each for each in lines if "password" in json.dumps(each).lower()]
    assert config.read_text() == before
    assert people(service, domain) == {}
    assert not service.rows("select 1 from directory_runs where domain_id = ?", domain)


def test_an_unreachable_directory(service: RunningService, directory: Slapd, config: Path, domain: int) -> None:
    """An unreachable directory is reported in one line, and no user is removed."""
    agent(service, config, "--once")
    before = people(service, domain)
    directory.kill()
    failed = service.cli("agent", "directory", "--config", str(config), "--once")
    directory.start()
    assert failed.returncode == 1 and "no connection" in failed.stderr
    assert people(service, domain) == before


@contextmanager
def listening(path: Path) -> Iterator[set[str]]:
    """Yield the messages that a simulated systemd receives."""
    messages: set[str] = set()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(path))

        def listen() -> None:
            while message := sock.recv(4096).decode():
                messages.add(message)

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield messages
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", str(path))
        thread.join(PATIENCE_S)


def test_the_loop_outlives_its_service(service: RunningService, config: Path, domain: int, tmp_path: Path) -> None:
    """The agent notifies systemd, waits while the service is unavailable, and ends at SIGTERM."""
    service.stop()
    environ = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "2000000"}
    with listening(tmp_path / "notify") as messages, (tmp_path / "agent.log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, "agent", "directory", "--config", config], env=environ, stderr=log)
        try:
            until(lambda: any("could not be sent" in each for each in tuple(messages)) and "WATCHDOG=1" in messages)
            assert any(each.startswith("READY=1") for each in messages)
            service.start()
            until(lambda: set(people(service, domain)) == set(PEOPLE))
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
            until(lambda: "STOPPING=1" in messages)
        finally:
            process.kill()
            process.wait()
    assert SERVICE_PASSWORD not in (tmp_path / "agent.log").read_text()


class ProcessEnd(Exception):
    """The simulated end of the agent's process."""


class LimitedConnection:
    """A connection to the service that raises an error after a number of batches."""

    def __init__(self, service: ServiceClient, batches: int) -> None:
        self._service = service
        self._left = batches

    def post(
        self, path: str, body: Mapping[str, object], *, key: Secret | None = None, timeout_s: float = 30.0
    ) -> dict[str, object]:
        if path.endswith(("batch", "finish")):
            if not self._left:
                raise ProcessEnd
            self._left -= 1
        return self._service.post(path, body, key=key, timeout_s=timeout_s)


async def run(config: Path, connect: Callable[[ServiceClient], LimitedConnection]) -> str:
    """Run the agent once with this connection."""
    found = file.read(config, TABLE)
    service = ServiceClient(found.service)
    posts = connect(service)
    state = StateFile(found.state_dir / "state.json")
    reader = LdapReader(Egress(ANYWHERE), now_us)
    agent = DirectoryAgent(settings_of(found), reader, posts, KeyRing(config, TABLE, posts), state, now_us)
    try:
        return str(await agent.once())
    finally:
        service.close()


def populate(directory: Slapd) -> list[str]:
    """Add more people than fit into one batch."""
    many = [f"many{number}" for number in range(700)]
    people = (f"dn: uid={each},{STAFF}\nobjectClass: inetOrgPerson\nuid: {each}\ncn: {each}\nsn: x\n" for each in many)
    directory.add("\n".join(people))
    return many


def cut_after(batches: int) -> Callable[[ServiceClient], LimitedConnection]:
    """Return a connection that ends after this number of batches."""
    return lambda service: LimitedConnection(service, batches)


def test_a_crash_between_two_batches(service: RunningService, changing: Slapd, own_config: Path, domain: int) -> None:
    """After a crash nothing of the run is visible, whichever batch was the last one. The next run is complete."""
    many = populate(changing)
    for batches in range(2):
        with pytest.raises(ProcessEnd):
            trio.run(run, own_config, cut_after(batches))
        assert people(service, domain) == {}
    trio.run(run, own_config, cut_after(100))
    assert set(people(service, domain)) == {*PEOPLE, *many}
    with pytest.raises(ProcessEnd):
        trio.run(run, own_config, cut_after(0))
    assert set(people(service, domain)) == {*PEOPLE, *many}


class KillingConnection(LimitedConnection):
    """A connection to a service that is killed before its second batch and is started again at the next request."""

    def __init__(self, service: ServiceClient, running: RunningService) -> None:
        super().__init__(service, 0)
        self._running = running
        self._batches = 0

    def post(
        self, path: str, body: Mapping[str, object], *, key: Secret | None = None, timeout_s: float = 30.0
    ) -> dict[str, object]:
        self._batches += path.endswith("batch")
        if self._batches == 2:
            self._running.kill()
        elif self._batches == 3 and path.endswith("batch"):
            self._running.start()
        return self._service.post(path, body, key=key, timeout_s=timeout_s)


def test_a_service_that_is_killed_between_two_batches(
    service: RunningService, changing: Slapd, own_config: Path, domain: int
) -> None:
    """The run continues where it stopped, and is complete in the end."""
    many = populate(changing)
    killing: list[KillingConnection] = []

    def connect(to: ServiceClient) -> KillingConnection:
        killing.append(KillingConnection(to, service))
        return killing[0]

    assert f"{len(PEOPLE) + len(many)} person" in trio.run(run, own_config, connect)
    assert set(people(service, domain)) == {*PEOPLE, *many}
