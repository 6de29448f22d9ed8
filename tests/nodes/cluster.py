"""Several services over one PostgreSQL database, each with a data directory of its own."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError
from time import monotonic

import httpx

from tests.peers.postgres import SETTINGS, Server, made
from tests.running_service import RunningService
from tests.waiting import eventually

MASTER_KEY = "5a" * 32
DATABASE = "sallyport"
DURABLE = {"listen_addresses": "'127.0.0.1'"}
"""Settings of a server that synchronizes its disk, for tests that kill it."""


@dataclass
class Cluster:
    """A PostgreSQL server and the nodes that use its database `sallyport`."""

    server: Server
    directory: Path
    settings: Mapping[str, str | None]
    nodes: list[RunningService] = field(default_factory=list)

    def start(self, name: str, settings: Mapping[str, str | None] | None = None) -> RunningService:
        """Start a new node, and return it when it is ready."""
        place = self.directory / name
        place.mkdir()
        own = {
            "SALLYPORT_DATABASE": self.server.url(DATABASE),
            "SALLYPORT_NODE_NAME": name,
            "SALLYPORT_MASTER_KEY": MASTER_KEY,
        }
        node = RunningService(place, {**own, **self.settings, **(settings or {})})
        self.nodes.append(node)
        node.start()
        return node

    @property
    def token(self) -> str:
        """The access token of the first start."""
        return self.nodes[0].token


@contextmanager
def running_cluster(
    names: Sequence[str] = ("one", "two"), settings: Mapping[str, str | None] | None = None, *, durable: bool = False
) -> Iterator[Cluster]:
    """Yield a cluster of nodes with these names. Afterwards all must stop without an error.

    settings: environment variables of all nodes. durable: whether the database synchronizes its disk.
    """
    with ExitStack() as held:
        directory = held.enter_context(tempfile.TemporaryDirectory(prefix="sallyport-postgres-"))
        server = made(Path(directory), DURABLE if durable else SETTINGS)
        held.callback(_end, server)
        server.execute(f"create database {DATABASE}")
        places = held.enter_context(tempfile.TemporaryDirectory(prefix="sallyport-nodes-"))
        cluster = Cluster(server, Path(places), settings or {})
        try:
            for name in names:
                cluster.start(name)
            yield cluster
            for node in cluster.nodes:
                assert node.stop() == 0
                assert "Traceback" not in node.log()
        finally:
            for node in cluster.nodes:
                node.kill()


def _end(server: Server) -> None:
    with suppress(CalledProcessError):  # a test may have killed it
        server.stop("immediate")


def readiness(node: RunningService) -> int:
    """Return the status of /readyz."""
    return httpx.get(f"http://127.0.0.1:{node.ports.http}/readyz", trust_env=False).status_code


def seconds_until_ready(node: RunningService, status: int = 200) -> float:
    """Wait until /readyz has a status; return the seconds that it took."""
    began = monotonic()
    eventually(lambda: readiness(node) == status)
    return monotonic() - began
