"""PostgreSQL under the nodes: a primary server, its synchronous standby, and a proxy between each node and each of the
two. The disks of the servers can fail too."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

import psycopg

from tests.nodes.cluster import DATABASE, DURABLE
from tests.peers.postgres import USER, Server, made
from tests.soak.gates import Gate, running_gates
from tests.soak.programs import Shim
from tests.waiting import eventually

SETTINGS: Final = {**DURABLE, "wal_retrieve_retry_interval": "500ms"}


@dataclass
class Database:
    """The servers. shims: the failing disks by the ports of the servers. proxies: those of each node."""

    primary: Server
    standby: Server
    shims: dict[int, Shim]
    proxies: list[list[Gate]]

    @property
    def url(self) -> str:
        """The address of the database at the present primary server."""
        return self.primary.url(DATABASE)

    @property
    def shim(self) -> Shim:
        """The disk of the present primary server."""
        return self.shims[self.primary.port]

    def url_of(self, node: int) -> str:
        """Return the address of the database for a node."""
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.proxies[node])
        return f"postgresql://{USER}@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def fail_over(self) -> None:
        """Kill the primary server, and promote the standby."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def rebuild(self) -> None:
        """Make the server that was killed the standby of the other."""
        directory, port = self.standby.directory, self.standby.port
        shutil.rmtree(directory / "data")
        self.standby = self.primary.standby(directory, port=port, environ=self.shims[port].environ)

    def recover(self) -> None:
        """Start the primary server if it has ended because of its disk, and wait until it accepts connections."""
        eventually(self._has_recovered)

    def _has_recovered(self) -> bool:
        try:
            self.primary.execute("select 1")
        except psycopg.OperationalError:
            with suppress(CalledProcessError):  # it runs, and recovers by itself
                self.primary.start()
            return False
        return True


@contextmanager
def running_database(directory: Path, nodes: int) -> Iterator[Database]:
    """Yield a database for some nodes. directory: an empty directory."""
    places = [directory / name for name in ("first", "second")]
    for place in places:
        place.mkdir(parents=True)
    disks = [Shim(place / "data") for place in places]
    with ExitStack() as held:
        primary = made(places[0], SETTINGS, disks[0].environ)
        held.callback(_end, primary)
        primary.execute(f"create database {DATABASE}")
        standby = primary.standby(places[1], environ=disks[1].environ)
        held.callback(_end, standby)
        ports = (primary.port, standby.port)
        gates = iter(held.enter_context(running_gates(ports * nodes)))
        proxies = [[next(gates) for _ in ports] for _ in range(nodes)]
        yield Database(primary, standby, dict(zip(ports, disks, strict=True)), proxies)


def _end(server: Server) -> None:
    with suppress(CalledProcessError):  # a fault may have killed it
        server.stop("immediate")
