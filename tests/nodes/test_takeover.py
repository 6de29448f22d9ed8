"""The leader dies under load: another node does its work."""

import json
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import psycopg
import pytest

from tests.nodes.cluster import DATABASE, Cluster, running_cluster
from tests.peers.postgres import needs_postgres
from tests.running_service import RunningService
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, needs_postgres]
SECRET = "xyzzy5461"


class Siem:
    """A collector of JSON lines over TCP. lines: by eventId."""

    def __init__(self) -> None:
        self.lines: defaultdict[int, list[str]] = defaultdict(list)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._read, args=[connection], daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, suppress(OSError):
            for line in lines:
                if line.endswith(b"\n"):  # else its sender died
                    fields = json.loads(line)
                    if fields["type"] == "login":
                        self.lines[fields["eventId"]].append(line.decode())

    def close(self) -> None:
        """Refuse further connections."""
        self._socket.close()


def query(cluster: Cluster, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a query."""
    with closing(psycopg.connect(cluster.server.url(DATABASE))) as connection:
        return connection.execute(sql.encode()).fetchall()


def leader(cluster: Cluster) -> str:
    """Return the name of the node with the lease; empty if there is none."""
    rows = query(cluster, "select n.name from leases l join nodes n on n.id = l.node_id where l.until > now_us()")
    return str(rows[0][0]) if rows else ""


@contextmanager
def load(nodes: list[RunningService]) -> Iterator[None]:
    """Send logins to each node until the block ends."""
    over = threading.Event()

    def send(node: RunningService) -> None:
        with node.radius(SECRET) as client:
            while not over.is_set():
                with suppress(OSError):
                    client.login("ann", "wrong")

    threads = [threading.Thread(target=send, args=[node]) for node in nodes]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()


def test_the_outlet_continues_at_another_node() -> None:
    """After a kill -9 of the leader under load, another node delivers within 15 s. No event is missing, and an event
    that is sent twice is the same line twice."""
    siem = Siem()
    with (
        closing(siem),
        running_cluster(
            settings={
                "SALLYPORT_REJECT_DELAY_S": "0",
                "SALLYPORT_LOCKOUT_FAILURES": "0",
                "SALLYPORT_EVENT_OUTLETS": siem.url,
            }
        ) as cluster,
    ):
        added = cluster.nodes[0].cli(
            "client", "add", "vpn", "--address", "127.0.0.1", "--secret", SECRET, "--org", "1", "--tenant", "1"
        )
        assert added.returncode == 0, added.stderr
        eventually(lambda: len(query(cluster, "select 1 from outlet_places")) == 2)
        names = ["one", "two"]
        dead, alive = sorted(cluster.nodes, key=lambda node: node.directory.name != leader(cluster))
        assert {dead.directory.name, alive.directory.name} == set(names)
        with load(cluster.nodes):
            eventually(lambda: len(siem.lines) > 50)
            dead.kill()
            killed = time.monotonic()
            (newest,) = query(cluster, "select max(id) from events")[0]
            eventually(lambda: max(siem.lines) > int(str(newest)))
            print(f"delivered {time.monotonic() - killed:.1f} s after the kill")
            assert leader(cluster) == alive.directory.name
            count = len(siem.lines)
            eventually(lambda: len(siem.lines) > count + 50)
        stored = {int(str(row[0])) for row in query(cluster, "select id from events")}
        eventually(lambda: siem.lines.keys() == stored)
        assert all(len(set(lines)) == 1 for lines in siem.lines.values())
