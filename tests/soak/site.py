"""The installation under test: one node on SQLite, or two on PostgreSQL, with a provider, a directory and a relay."""

import errno
import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Timer
from typing import Final

import trio

from sallyport.certs.folder import CertificateFolder
from sallyport.cli.benchmark.processes import memory_mib
from tests.bench.agents import Fleet, enrol
from tests.bench.lists import Tenant
from tests.nodes.load import is_spooling
from tests.nodes.proxy import Proxy
from tests.peers.hook import Hook
from tests.peers.slapd import BASE, SERVICE, SERVICE_PASSWORD, Slapd, slapd
from tests.ports import free_port
from tests.running_service import RunningService, ServiceError
from tests.soak.checks import Size
from tests.soak.control import prepare
from tests.soak.database import Database, running_database
from tests.soak.history import Failure, History, Span
from tests.soak.programs import Passed, Relay, Shim
from tests.torture.disk import SmallDisk
from tests.waiting import eventually

SECRET: Final = "a secret of the campaign"
PASSWORD: Final = "the password of the campaign"
RIGHT, WRONG = 50, 50
"""Numbers of users of the load generator: user0 on have the password pass0 on; the others send wrong passwords."""
PUSHED: Final = 80
"""Number of users with a push in a round. The next round has others: a user has at most four prompts a minute."""
QUIET: Final = "127.0.0.2"
SOURCES: Final = {
    "default": "127.0.0.1", "push": "127.0.0.5", "gate": "127.0.0.6", "ldap": "127.0.0.8", "monitor": "127.0.0.9",
}  # fmt: skip
"""The address of the client of each domain."""
PROXY_NAME: Final = "proxy.example.org"
"""The name in the certificate of the RadSec client."""
SERVER_NAME: Final = "radius.example.com"
AGENTS: Final = 4
"""Number of endpoint agents of a node."""
AGENT_DOMAINS: Final = ("agents0", "agents1")
"""The domain of each node's agents."""
PROVIDER_TIMEOUT_S: Final = {False: 5, True: 15}
"""The time limit of a prompt. On PostgreSQL it leaves another node the time to take over the prompt."""
SETTINGS: Final = {
    "SALLYPORT_REJECT_DELAY_S": "0",
    "SALLYPORT_DISK_RESERVE_MIB": "4",
    "SALLYPORT_DRAIN_S": "1",
    "SALLYPORT_LOCKOUT_FAILURES": "200",
}
TRIES: Final = 3
"""How often a node is started during a rotation of the master key, while other faults may prevent it."""


@dataclass(frozen=True)
class Kept:
    """A backup. before: the time at which it began. key: the content of the file of the master key."""

    path: Path
    before: float
    key: str


@dataclass
class Site:
    """The installation. history: that of the present round. stopped: the nodes that a fault has ended, and
    when. database:
    PostgreSQL, or None. passed: what the relay has passed, known at the end. backups: those that succeeded. fleets: the
    endpoint agents of each node. machine_users: the id of the user of each agent's machine, by its instance. lasting:
    the nodes of each present fault that disturbs all."""

    nodes: list[RunningService]
    shims: list[Shim]
    radsec_ports: list[int]
    disk: SmallDisk
    relay: Relay
    hook: Hook
    proxy: Proxy
    directory: Slapd
    database: Database | None = None
    history: History = field(default_factory=History)
    stopped: dict[int, float] = field(default_factory=dict)
    passed: Passed = field(default_factory=Passed)
    backups: list[Kept] = field(default_factory=list)
    fleets: list[Fleet] = field(default_factory=list)
    machine_users: dict[int, int] = field(default_factory=dict)
    lasting: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def is_shared(self) -> bool:
        """Whether several nodes share a database."""
        return self.database is not None

    def was_disturbed(self, began: float, node: int) -> bool:
        """Return whether a fault has disturbed a node since a time."""
        is_now = any(node in nodes for nodes in list(self.lasting.values()))
        return is_now or node in self.stopped or self.history.is_disturbed(began, time.monotonic(), {node})

    def is_alive(self, number: int) -> bool:
        """Return whether a node runs. If it has ended although no fault has ended it, this is a finding."""
        node = self.nodes[number]
        if not node.is_running and number not in self.stopped:
            self.history.errors.append(f"{node.directory.name} has ended by itself\n{node.log()[-3000:]}")
            self.note_end(number)
        return node.is_running

    def note_end(self, number: int) -> None:
        """Record that a fault ends a node now, if it has not ended before."""
        self.stopped.setdefault(number, time.monotonic())

    def revive(self, number: int) -> bool:
        """Start a stopped node. Return whether it runs: with a full disk or without a database it may not. The time
        without it is a fault."""
        node = self.nodes[number]
        if node.is_running:
            return True
        node.kill()
        with suppress(ServiceError):
            node.start()
            began = self.stopped.pop(number, time.monotonic())
            self.history.add(Span("start", "process", began, time.monotonic(), frozenset({number})))
            return True
        return False

    def kill_soon(self, number: int, after_s: float, *, is_ready: bool) -> bool:
        """Start a node if it is stopped, and kill it. Return whether it ran. is_ready: whether the time counts from the
        moment in which it is ready, and not from the begin of its start."""
        node = self.nodes[number]
        if is_ready or node.is_running:
            if not self.revive(number):
                return False
            time.sleep(after_s)
            was_running = self.is_alive(number)
        else:
            timer = Timer(after_s, partial(_kill, node))
            timer.start()
            self.revive(number)
            timer.join()
            was_running = True
        self.note_end(number)
        node.kill()
        return was_running

    def restart(self, number: int) -> bool:
        """Stop and start a node as systemd does. Return whether it runs."""
        if self.is_alive(number):
            self.note_end(number)
            with suppress(ServiceError):
                self.nodes[number].stop()
        return any(self.revive(number) for _ in range(TRIES))

    def command(self, number: int, *words: str) -> bool:
        """Run a command at a node. Remember its failure, and return whether it succeeded."""
        began, what = time.monotonic(), f"sallyport {' '.join(words)}"
        try:
            done = self.nodes[number].cli(*words)
            problem = f"{done.returncode} {done.stderr.strip()[-300:]}" if done.returncode else ""
        except TimeoutExpired:
            problem = "it does not end"
        if problem:
            self.history.add(Failure(f"{what}: {problem}", began, time.monotonic(), number))
        return not problem

    def rotate_keys(self) -> bool:
        """Give all nodes a new master key, as docs/install/cluster.md says. Return whether it is complete. If it is
        not, because of another fault, the nodes have both keys, and the next rotation continues."""
        first, *others = [node.data_dir / "master.key" for node in self.nodes]
        lines = first.read_text().split()
        if len(lines) == 1:
            number, _, _ = lines[0].rpartition(":")
            lines.insert(0, f"{int(number or 1) + 1}:{secrets.token_hex(32)}")
        for path in (first, *others):
            path.write_text("\n".join([*lines, ""]))
        numbers = range(len(self.nodes))
        if not (all(map(self.restart, numbers)) and self.command(0, "db", "rotate-key")):
            return False
        for path in others:
            path.write_text(first.read_text())
        return all(map(self.restart, numbers[1:]))

    def resume_prompts(self) -> None:
        """End the pauses of prompts, which begin after two unanswered ones, so that each round has prompts."""
        node = self.nodes[0]
        for each in node.run("/ad/ListPromptPauses", {"pageSize": 2 * PUSHED}, domain="push")["pauses"]:
            node.run("/ad/EndPromptPause", {"userName": each["userName"]}, domain="push")

    def sizes(self) -> list[Size]:
        """Return what each node takes now."""
        bulks = [each for each in self.history.bulks if each.right != "stored"]
        sent = [sum(each.sent for each in bulks if each.node == number) for number in range(len(self.nodes))]
        return [_size(node, stations) for node, stations in zip(self.nodes, sent, strict=True)]

    def settle(self) -> None:
        """Wait until records that wait on the disks of nodes are in the database, and read that of the present primary
        server."""
        if self.database is not None:
            for node in self.nodes:
                node.url = self.database.url
            eventually(lambda: not any(map(is_spooling, self.nodes)))


def _kill(node: RunningService) -> None:
    with suppress(AssertionError, ProcessLookupError):  # its start has failed
        os.kill(node.process_id, signal.SIGKILL)


def _size(node: RunningService, stations: int) -> Size:
    process = Path(f"/proc/{node.process_id}")
    return Size(
        node.process_id,
        memory_mib(node.process_id),
        sum(1 for _ in (process / "fd").iterdir()),
        sum(1 for _ in (process / "task").iterdir()),
        sum(1 for _ in node.data_dir.rglob("*")),
        stations,
    )


@contextmanager
def running_site(directory: Path, disk: SmallDisk, relay: Path, seed: int, *, engine: str) -> Iterator[Site]:
    """Yield an installation until the block ends. directory: an empty directory. disk: an empty disk, for the data of
    the nodes. relay: the program of the relay."""
    with ExitStack() as held:
        (directory / "slapd").mkdir()
        ldap = held.enter_context(slapd(directory / "slapd"))
        names = ("one", "two") if engine == "postgres" else ("one",)
        database = held.enter_context(running_database(directory, len(names))) if engine == "postgres" else None
        shims, ports, nodes = list[Shim](), list[int](), list[RunningService]()
        key = secrets.token_hex(32)
        for number, name in enumerate(names):
            place = disk.inside / name
            (place / "data").mkdir(parents=True)
            (place / "data").chmod(0o700)
            (place / "data" / "master.key").write_text(f"{key}\n")
            (place / "data" / "master.key").chmod(0o600)
            shims.append(Shim(place / "data"))
            ports.append(free_port())
            own = {"SALLYPORT_DATABASE": database.url_of(number), "SALLYPORT_NODE_NAME": name} if database else {}
            secure = {"SALLYPORT_RADSEC_BIND": f"127.0.0.1:{ports[-1]}"}
            nodes.append(RunningService(place, {**SETTINGS, **shims[-1].environ, **own, **secure}))
            held.callback(nodes[-1].kill)
            if number == 0:  # RadSec needs certificates
                nodes[0].ok("db", "migrate")
                nodes[0].ok("cert", "init", "--ca-name", "Campaign CA", "--host", SERVER_NAME)
            nodes[-1].start()
        hook, proxy = held.enter_context(Hook()), held.enter_context(Proxy(ldap.secure_port))
        hook.patience_s = 2 * 3600.0  # clocks are set
        passing = Relay(relay, [node.ports for node in nodes], seed)
        site = Site(nodes, shims, ports, disk, passing, hook, proxy, ldap, database)
        try:
            populate(site)
            if database is not None:
                prepare(database.url)
            yield site
        finally:
            site.passed = passing.close()


def populate(site: Site) -> None:
    """Add the domains, users and clients of the load, and the tenant that nothing may delay."""
    node = site.nodes[0]
    for name in SOURCES:
        if name != "default":
            node.add_domain(name)
        node.add_client(name, SOURCES[name], SECRET, name)
    for number in range(RIGHT + WRONG):
        node.add_user(f"user{number}", f"pass{number}")
    node.add_user("ann", PASSWORD)
    _ask_by_push(site)
    _use_directory(site)
    _use_monitor_mode(site)
    _use_certificates(site)
    people = [f"gate{number}" for number in range(2)]
    for name in people:
        node.add_user(name, PASSWORD, "gate")
    node.add_rule("gate", name="without a second factor", action="allow", users=people, priority=900)
    node.set_mode("gate", "enforce")
    node.add_domain("quiet", org=2)
    node.add_client("quiet", QUIET, SECRET, "quiet", org=2)
    node.add_user("ann", PASSWORD, "quiet")


def _ask_by_push(site: Site) -> None:
    node = site.nodes[0]
    for number in range(2 * PUSHED):
        node.add_user(f"push{number}", PASSWORD, "push")
    fields = {"provider": "webhook", "timeoutSeconds": PROVIDER_TIMEOUT_S[site.is_shared], **site.hook.fields}
    node.run("/ad/SetMFAProvider", fields, domain="push")
    node.set_mode("push", "enforce")


def _use_directory(site: Site) -> None:
    node = site.nodes[0]
    authority = node.directory / "authority.pem"
    authority.write_text(site.directory.authority.pem)
    node.ok(
        "domain", "first-factor", "ldap", "ldap", "--ldap-server", f"ldaps://localhost:{site.proxy.port}", "--base-dn",
        BASE, "--bind-dn", SERVICE, "--bind-password", "-", "--ca-certificate", str(authority),
        input=f"{SERVICE_PASSWORD}\n",
    )  # fmt: skip


def _use_monitor_mode(site: Site) -> None:
    """Add a domain in monitor mode, where enforcing would reject bea and prompt ann."""
    node = site.nodes[0]
    for name in MONITORED:
        node.add_user(name, PASSWORD, "monitor")
    node.run("/ad/SetMFAProvider", {"provider": "webhook", **site.hook.fields}, domain="monitor")
    node.add_rule("monitor", name="no bea", action="block", users=["bea"])


def _use_certificates(site: Site) -> None:
    """Issue the certificate of a RadSec client, and register the endpoint agents."""
    node = site.nodes[0]
    node.ok("cert", "issue", PROXY_NAME, "--org", "1", "--tenant", "1")
    node.add_client("proxy", "192.0.2.200", tlsName=PROXY_NAME)
    for each, name in zip(site.nodes, AGENT_DOMAINS, strict=False):
        tenant = Tenant(1, node.add_domain(name), node.token)
        eventually(lambda each=each, name=name: name in each.domains())
        site.fleets.append(trio.run(enrol, each.ports.http, tenant, AGENTS))
        for number, agent in enumerate(site.fleets[-1].agents):
            user_id = site.machine_users[agent.instance] = node.add_user(f"user{number}", PASSWORD, name)
            body = {"instanceIds": [agent.instance], "userIds": [user_id], "action": "add"}
            node.run("/api/v1/instances/assignUsersToMachines", body, domain=name)


def client_certificate(site: Site) -> Path:
    """Return the certificate of the RadSec client."""
    return CertificateFolder(site.nodes[0].data_dir).client(PROXY_NAME)


MONITORED: Final = {"ann": ("challenge", "reject"), "bea": ("reject",)}
"""The users of the domain in monitor mode, with the decisions that enforcing would make. It rejects
ann while the provider is away."""
ERRORS: Final = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
"""The errors of a disk that fails."""
