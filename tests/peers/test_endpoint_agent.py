"""Tests of the endpoint agent on its own complete Debian, with real useradd, chpasswd, visudo, su, sudo and sshd.

It uses the enrolment, the states and the passwords of a running service's API.
"""

import hashlib
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peers.isolated import IsolatedHost, base, needs_isolation
from tests.ports import free_port
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, pytest.mark.system, *needs_isolation]
CONFIG = "/etc/sallyport/endpoint-agent.toml"
OWN_FILES = ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/sudoers")
LIMIT_S = 90.0
SCOPE = {"orgId": 1, "tenantId": 1}
SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey /etc/ssh/test_key
PidFile none
UsePAM yes
PasswordAuthentication no
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running_service(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(autouse=True)
def own_files_stay() -> Iterator[None]:
    """Assert that the accounts of the test machine are unchanged."""
    before = _digests()
    yield
    assert _digests() == before


def _digests() -> list[str]:
    there = (Path(each) for each in OWN_FILES)
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in there if path.exists()]


@dataclass
class Site:
    """A host with an agent, and a domain of its own at the service."""

    host: IsolatedHost
    service: RunningService
    domain: str
    domain_id: int
    directory: Path

    def agent(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return self.host.run(*self.host.sallyport("agent", "endpoint", "--config", CONFIG, *arguments), check=check)

    @property
    def instance_id(self) -> int:
        rows = self.service.rows("select id from endpoint_instances where domain_id = ?", self.domain_id)
        return int(rows[0][0])

    def post(self, path: str, **body: object) -> dict[str, object]:
        answer: dict[str, object] = self.service.post(path, {**SCOPE, "domainId": self.domain_id, **body})
        return answer

    def add_user(self, name: str, **fields: object) -> int:
        """Add a user that is assigned to the host."""
        answer = self.post("/api/v1/endpointUsers/addEpmUserInfo", userName=name, **fields)
        user_id = int(str(answer["userId"]))
        self.assign(user_id, "add")
        return user_id

    def assign(self, user_id: int, action: str) -> None:
        self.post(
            "/api/v1/instances/assignUsersToMachines",
            instanceIds=[self.instance_id],
            userIds=[user_id],
            action=action,
        )

    def key(self) -> str:
        """Make a key pair, and return the public key. The private key is in the file `key`."""
        path = self.directory / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
        return path.with_name("key.pub").read_text().strip()

    def sshd(self, more: str = "") -> int:
        """Start sshd, and return its port."""
        port = free_port()
        self.host.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/test_key")
        self.host.write("/etc/ssh/test_config", SSHD.format(port=port) + more)
        self.host.start(["/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/test_config"])
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    return port
            time.sleep(0.05)
        raise AssertionError("sshd does not listen")

    def ssh(self, port: int, user: str, *command: str) -> list[str]:
        """Return the command line of a login with the key."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "IdentitiesOnly=yes")
        flags = [each for option in options for each in ("-o", option)]
        to = ["-p", str(port), "-i", str(self.directory / "key"), f"{user}@127.0.0.1"]
        return ["ssh", "-F", "/dev/null", *flags, *to, *command]

    def logged_in(self, port: int, user: str) -> str:
        """Return the user name that a login with the key gets, or an empty text if it is refused."""
        done = subprocess.run(
            self.ssh(port, user, "id", "-un"), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        return done.stdout.strip()

    def su(self, user: str, password: str, command: str = "id -un") -> "subprocess.CompletedProcess[str]":
        """Run a command with su and this password. An unprivileged user starts it."""
        by = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        return self.host.run(*by, "su", user, "-c", command, stdin=f"{password}\n".encode(), check=False)


@pytest.fixture
def site(service: RunningService, tmp_path: Path) -> Iterator[Site]:
    domain = f"site-{tmp_path.name}".lower().replace("_", "-")[:60]
    domain_id = int(service.ok("domain", "add", domain, "--org", "1", "--tenant", "1").split()[-1])
    url = f"http://127.0.0.1:{service.ports.http}"
    made = service.ok("agent", "key", "create", "--org", "1", "--tenant", "1", "--domain", domain, "--service", url)
    with IsolatedHost(tmp_path, base()) as host:
        host.write("/root/agent.toml", made, 0o600)
        install = shlex.join(host.sallyport("agent", "install", "endpoint"))
        host.run("sh", "-c", f"{install} </root/agent.toml")
        site = Site(host, service, domain, domain_id, tmp_path)
        site.agent("--once")
        yield site


def test_a_user_logs_in_by_ssh_and_loses_access(site: Site) -> None:
    """An assigned user logs in with the key.

    When the assignment is removed, the session ends and no other session can begin.
    """
    user_id = site.add_user("ann", sshKey=site.key())
    planned = site.agent("--dry-run").stdout
    assert "+ create     ann" in planned
    assert site.host.run("id", "ann", check=False).returncode != 0  # a dry run changes nothing
    site.agent("--once")
    port = site.sshd()
    assert site.logged_in(port, "ann") == "ann"
    assert site.logged_in(port, "root") == ""
    session = subprocess.Popen(site.ssh(port, "ann", "echo in; exec sleep 600"), stdout=subprocess.PIPE)
    try:
        assert session.stdout is not None
        assert session.stdout.readline() == b"in\n"
        site.assign(user_id, "remove")
        site.agent("--once")
        assert session.wait(LIMIT_S) != 0
    finally:
        session.kill()
        session.wait()
        assert session.stdout is not None
        session.stdout.close()
    assert site.logged_in(port, "ann") == ""
    assert site.host.run("id", "ann", check=False).returncode != 0


def test_a_hostile_user_leaves(site: Site) -> None:
    """A hostile user makes its home writable for all, puts a FIFO in the place of the keys, and hides processes behind
    a subordinate uid and an ignored signal. The user is still locked out, and neither an account nor a process remains.
    """
    user_id = site.add_user("ann", sshKey=site.key())
    site.agent("--once")
    site.host.run("sh", "-c", "grep -q ^ann: /etc/subuid || echo ann:2300000000:65536 >>/etc/subuid")
    first = int(site.host.run("sed", "-n", "s/^ann:\\([0-9]*\\):.*/\\1/p", "/etc/subuid").stdout)
    uid = int(site.host.run("id", "-u", "ann").stdout)
    site.host.run("sh", "-c", "cd /home/ann/.ssh && rm authorized_keys && mkfifo authorized_keys && chmod 777 ..")
    stubborn = ("--clear-groups", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
    hidden = [site.host.start(["setpriv", f"--reuid={each}", *stubborn]) for each in (uid, first + 7)]
    for process in hidden:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
    site.assign(user_id, "remove")
    done = site.agent("--once", check=False)
    assert "keys ann" in done.stderr
    assert site.host.run("id", "ann", check=False).returncode != 0
    assert site.host.run("stat", "-c", "%U %a", "/home/ann").stdout == "root 700\n"
    for process in hidden:
        assert process.wait(LIMIT_S) != 0


def test_keys_by_command_end_with_the_account(site: Site) -> None:
    """sshd calls `agent authorized-keys`.

    The home directory is not changed. Without the agent's file no login is accepted.
    """
    site.host.run("sed", "-i", 's/^\\[endpoint\\]/[endpoint]\\nkeys = "command"/', CONFIG)
    site.add_user("ann", sshKey=site.key())
    site.agent("--once")
    command = shlex.join(site.host.sallyport("agent", "authorized-keys"))
    site.host.write("/usr/local/sbin/sallyport-keys", f'#!/bin/sh\nexec {command} "$1"\n', 0o755)
    port = site.sshd(
        "AuthorizedKeysFile none\nAuthorizedKeysCommand /usr/local/sbin/sallyport-keys %u\n"
        "AuthorizedKeysCommandUser nobody\n"
    )
    assert site.logged_in(port, "ann") == "ann"
    assert site.host.run("test", "-e", "/home/ann/.ssh", check=False).returncode == 1
    site.host.run("usermod", "--lock", "--expiredate", "1", "ann")
    assert site.logged_in(port, "ann") == ""
    site.agent("--once")  # another user's locked directory is open again
    assert site.logged_in(port, "ann") == "ann"
    site.host.run("rm", "/var/lib/sallyport-keys/ann")
    assert site.logged_in(port, "ann") == ""


def test_a_rotated_password_works_with_su_and_sudo(site: Site) -> None:
    """The password that the service has set works.

    After a rotation only the new password works, and the service shows it. With it a privileged user becomes root, and
    other users do not.
    """
    site.add_user("ann", password="First-password-1", privilegedUser="true")
    site.add_user("ben", password="Other-password-2")
    site.agent("--once")
    assert site.su("ann", "First-password-1").stdout.strip() == "ann"
    assert site.su("ann", "Other-password-2").returncode != 0
    site.service.ok("agent", "order", "rotate", _name(site), "--domain", site.domain, "--user", "ann", "--wait", "0")
    site.agent("--once")
    shown = site.service.ok("agent", "password", _name(site), "ann", "--domain", site.domain)
    password = shown.split()[-1]
    assert site.su("ann", password).stdout.strip() == "ann"
    assert site.su("ann", "First-password-1").returncode != 0
    as_root = "echo {} | sudo -S -p '' id -un"
    assert site.su("ann", password, as_root.format(password)).stdout.strip() == "root"
    assert site.su("ben", "Other-password-2", as_root.format("Other-password-2")).returncode != 0
    assert site.host.read("/etc/shadow").count("$y$") + site.host.read("/etc/shadow").count("$6$") >= 2


def test_leaving_a_host(site: Site) -> None:
    """`agent status` names the accounts. `uninstall --lock-accounts` locks them and removes their rights."""
    site.add_user("ann", password="First-password-1", privilegedUser="true")
    site.agent("--once")
    status = site.host.run(*site.host.sallyport("agent", "status")).stdout
    assert "ann" in status
    assert f"instance   {site.instance_id}" in status
    unit = "/etc/systemd/system/sallyport-agent-endpoint.service"
    assert "Type=notify" in site.host.read(unit)
    # The host has no systemd, so that it is not called.
    site.host.run(*site.host.sallyport("agent", "uninstall", "--lock-accounts", "--purge"))
    assert site.su("ann", "First-password-1").returncode != 0
    assert site.host.run("test", "-e", "/etc/sudoers.d/sallyport", check=False).returncode == 1


def _name(site: Site) -> str:
    return str(site.service.rows("select name from endpoint_instances where id = ?", site.instance_id)[0][0])
