"""The installation under test: one node on SQLite, or two on PostgreSQL, with a provider, a directory and a relay."""

import errno
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError, TimeoutExpired
from typing import Final

from tests.nodes.cluster import DATABASE, DURABLE, MASTER_KEY
from tests.nodes.load import is_spooling
from tests.nodes.proxy import Proxy
from tests.peers.hook import Hook
from tests.peers.postgres import Server, made
from tests.peers.slapd import BASE, SERVICE, SERVICE_PASSWORD, Slapd, slapd
from tests.running_service import RunningService, ServiceError
from tests.soak.checks import Size
from tests.soak.history import Failure, History
from tests.soak.programs import Passed, Relay, Shim
from tests.torture.disk import SmallDisk
from tests.waiting import eventually

SECRET: Final = "a secret of the campaign"
PASSWORD: Final = "the password of the campaign"
RIGHT, WRONG = 50, 50
"""Numbers of users of the load generator: user0 on have the password pass0 on; the others send wrong passwords."""
PUSHED: Final = 80
"""Number of users with a push."""
QUIET: Final = "127.0.0.2"
SOURCES: Final = {"default": "127.0.0.1", "push": "127.0.0.5", "gate": "127.0.0.6", "ldap": "127.0.0.8"}
"""The address of the client of each domain."""
PROVIDER_TIMEOUT_S: Final = {False: 5, True: 15}
"""The time limit of a prompt. On PostgreSQL it leaves another node the time to take over the prompt."""
SETTINGS: Final = {
    "SALLYPORT_REJECT_DELAY_S": "0",
    "SALLYPORT_DISK_RESERVE_MIB": "4",
    "SALLYPORT_DRAIN_S": "1",
    "SALLYPORT_LOCKOUT_FAILURES": "200",
}
RECOVERY_S: Final = 10.0
"""Within this time after a fault that disturbs all, the API may still answer 503."""


@dataclass
class Site:
    """The installation. history: that of the present round. stopped: the nodes that a fault has ended. server: the
    PostgreSQL server, or None. passed: what the relay has passed, known at the end."""

    nodes: list[RunningService]
    shims: list[Shim]
    disk: SmallDisk
    relay: Relay
    hook: Hook
    proxy: Proxy
    directory: Slapd
    server: Server | None = None
    history: History = field(default_factory=History)
    stopped: set[int] = field(default_factory=set)
    passed: Passed = field(default_factory=Passed)

    @property
    def is_shared(self) -> bool:
        """Whether several nodes share a database."""
        return self.server is not None

    def revive(self, number: int) -> bool:
        """Start a stopped node. Return whether it runs: with a full disk or without a database it may not."""
        node = self.nodes[number]
        if node.is_running:
            return True
        node.kill()
        with suppress(ServiceError):
            node.start()
            self.stopped.discard(number)
            return True
        return False

    def command(self, number: int, *words: str) -> None:
        """Run a command at a node. Remember its failure."""
        began, what = time.monotonic(), f"sallyport {' '.join(words)}"
        try:
            done = self.nodes[number].cli(*words)
            problem = f"{done.returncode} {done.stderr.strip()[-300:]}" if done.returncode else ""
        except TimeoutExpired:
            problem = "it does not end"
        if problem:
            self.history.add(Failure(f"{what}: {problem}", began, time.monotonic()))

    def sizes(self) -> list[Size]:
        """Return what each node takes now."""
        return [_size(node) for node in self.nodes]

    def settle(self) -> None:
        """Wait until records that wait on the disks of nodes are in the database."""
        if self.is_shared:
            eventually(lambda: not any(map(is_spooling, self.nodes)))


def _size(node: RunningService) -> Size:
    process = Path(f"/proc/{node.process_id}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Size(
        node.process_id,
        int(status["RssAnon"].split()[0]) / 1024,
        sum(1 for _ in (process / "fd").iterdir()),
        int(status["Threads"]),
        sum(1 for _ in node.data_dir.rglob("*")),
    )


@contextmanager
def running_site(directory: Path, disk: SmallDisk, relay: Path, seed: int, *, engine: str) -> Iterator[Site]:
    """Yield an installation until the block ends. directory: an empty directory. disk: an empty disk, for the data of
    the nodes. relay: the program of the relay."""
    with ExitStack() as held:
        (directory / "slapd").mkdir()
        ldap = held.enter_context(slapd(directory / "slapd"))
        server = held.enter_context(_server(directory / "postgres")) if engine == "postgres" else None
        shims = list[Shim]()
        nodes = list[RunningService]()
        for name in ("one", "two") if server else ("one",):
            place = disk.inside / name
            place.mkdir()
            shims.append(Shim(place))
            nodes.append(RunningService(place, {**SETTINGS, **shims[-1].environ, **_own(server, name)}))
            held.callback(nodes[-1].kill)
            nodes[-1].start()
        hook, proxy = held.enter_context(Hook()), held.enter_context(Proxy(ldap.secure_port))
        passing = Relay(relay, [node.ports for node in nodes], seed)
        site = Site(nodes, shims, disk, passing, hook, proxy, ldap, server)
        try:
            populate(site)
            yield site
        finally:
            site.passed = passing.close()


def _own(server: Server | None, name: str) -> dict[str, str]:
    if server is None:
        return {}
    return {
        "SALLYPORT_DATABASE": server.url(DATABASE),
        "SALLYPORT_NODE_NAME": name,
        "SALLYPORT_MASTER_KEY": MASTER_KEY,
    }


@contextmanager
def _server(directory: Path) -> Iterator[Server]:
    directory.mkdir()
    server = made(directory, DURABLE)
    server.execute(f"create database {DATABASE}")
    try:
        yield server
    finally:
        with suppress(CalledProcessError):  # a fault may have killed it
            server.stop("immediate")


def populate(site: Site) -> None:
    """Add the domains, users and clients of the load, and the tenant that nothing may delay."""
    node = site.nodes[0]
    node.call("cert.init", ca_name="Campaign CA", hosts=["radius.example.com"])
    for name in SOURCES:
        if name != "default":
            node.add_domain(name)
        node.add_client(name, SOURCES[name], SECRET, name)
    for number in range(RIGHT + WRONG):
        node.add_user(f"user{number}", f"pass{number}")
    node.add_user("ann", PASSWORD)
    _ask_by_push(site)
    _use_directory(site)
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
    for number in range(PUSHED):
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


ERRORS: Final = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
"""The errors of a disk that fails."""
