"""eapol_test at two services. A relay moves its requests from one to the other in the middle of a conversation."""

import selectors
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from sallyport.radius.attributes import EAP_MESSAGE, pull_attributes
from sallyport.radius.eap.packet import FAILURE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.nodes.cluster import Cluster, running_cluster
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.postgres import needs_postgres
from tests.peers.programs import needs
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres, needs("eapol_test")]

SECRET, PASSWORD = "between NAS and server", "correct horse"
ONE, TWO = 0, 1
TWICE = "MPPE keys OK: 2  mismatch: 0"
HEADER: Final = 20


@dataclass
class Relay:
    """A UDP relay between a NAS and two nodes.

    ports: the authentication ports of the nodes. replies: the node and the octets of each reply, without
    retransmissions. moves_after: a code, and the number of replies with this code after which the first node gets no
    further request.
    """

    ports: tuple[int, int]
    moves_after: tuple[int, int]
    replies: list[tuple[int, bytes]] = field(default_factory=list)

    def __enter__(self) -> "Relay":
        self._is_over = False
        self._nas = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._nas.bind(("127.0.0.1", 0))
        self._nodes = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in self.ports]
        for node, port in zip(self._nodes, self.ports, strict=True):
            node.connect(("127.0.0.1", port))
        self._thread = Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over = True
        self._thread.join()
        for each in (self._nas, *self._nodes):
            each.close()

    @property
    def port(self) -> int:
        """Return the port for the NAS."""
        return int(self._nas.getsockname()[1])

    def codes(self, node: int) -> list[int]:
        """Return the codes of a node's replies."""
        return [reply[0] for sender, reply in self.replies if sender == node]

    def _run(self) -> None:
        address = None
        with selectors.DefaultSelector() as ready:
            for each in (self._nas, *self._nodes):
                ready.register(each, selectors.EVENT_READ)
            while not self._is_over:
                for key, _ in ready.select(0.05):
                    if key.fileobj is self._nas:
                        request, address = self._nas.recvfrom(4096)
                        code, count = self.moves_after
                        self._nodes[TWO if self.codes(ONE).count(code) >= count else ONE].send(request)
                    else:
                        node = self._nodes.index(key.fileobj)  # type: ignore[arg-type]
                        reply = self._nodes[node].recv(4096)
                        if (node, reply) not in self.replies:  # else the NAS has sent its request again
                            self.replies.append((node, reply))
                        self._nas.sendto(reply, address)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield two nodes with one certificate, a RADIUS client and the user ann."""
    with running_cluster(settings={"SALLYPORT_REJECT_DELAY_S": "0"}) as cluster:
        one, two = cluster.nodes
        one.ok("cert", "init", "--host", "radius.example.com")
        one.add_client("nas", "127.0.0.1", SECRET)
        one.add_user("ann", PASSWORD)
        eventually((two.data_dir / "certs" / "ca.pem").exists)
        yield cluster


@pytest.fixture
def ports(cluster: Cluster) -> tuple[int, int]:
    """Return the authentication ports of the nodes."""
    one, two = (node.ports.auth for node in cluster.nodes)
    return one, two


def log_in(cluster: Cluster, directory: Path, port: int, *options: str) -> str:
    """Log in by PEAP at a port, and return the output of eapol_test."""
    lines = [
        "eap=PEAP", 'phase2="auth=MSCHAPV2"', 'identity="ann"', 'anonymous_identity="anonymous"',
        f'password="{PASSWORD}"', f'ca_cert="{cluster.nodes[0].data_dir / "certs" / "ca.pem"}"',
    ]  # fmt: skip
    return eapol_test(directory, port, SECRET, "\n".join(lines), *options)


def events(cluster: Cluster) -> list[tuple[str, str]]:
    """Return the node and the applied decision of each login, oldest first."""
    sql = "select n.name, e.applied_decision from events e join nodes n on n.id = e.node_id order by e.id"
    return [(name, decision) for name, decision in cluster.nodes[0].rows(sql)]


def test_a_conversation_at_each_node(cluster: Cluster, ports: tuple[int, int], tmp_path: Path) -> None:
    """A login by PEAP succeeds at each node, with the same certificate."""
    for port, node in zip(ports, ("one", "two"), strict=True):
        output = log_in(cluster, tmp_path, port)
        assert SUCCESS in output, output
        assert events(cluster)[-1] == (node, "accept")


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_a_conversation_that_moves(cluster: Cluster, ports: tuple[int, int], tmp_path: Path, rounds: int) -> None:
    """If a later round of a conversation reaches another node, this node answers with Access-Reject and EAP-Failure,
    and the client is not logged in. When the client starts again there, it is."""
    before = len(events(cluster))
    with Relay(ports, (ACCESS_CHALLENGE, rounds)) as relay:
        assert SUCCESS not in log_in(cluster, tmp_path, relay.port)
        assert relay.codes(ONE) == [ACCESS_CHALLENGE] * rounds
        assert relay.codes(TWO) == [ACCESS_REJECT]
        assert dict(pull_attributes(relay.replies[-1][1], HEADER))[EAP_MESSAGE][0] == FAILURE
        output = log_in(cluster, tmp_path, relay.port)
        assert SUCCESS in output, output
        assert relay.codes(TWO)[-1] == ACCESS_ACCEPT
    assert events(cluster)[before:] == [("two", "reject"), ("two", "accept")]


def test_a_session_that_moves(cluster: Cluster, ports: tuple[int, int], tmp_path: Path) -> None:
    """A client with a TLS session of one node logs in again at another node by a full handshake, in one
    conversation."""
    with Relay(ports, (ACCESS_ACCEPT, 1)) as relay:
        output = log_in(cluster, tmp_path, relay.port, "-r", "1")
        assert SUCCESS in output, output
        assert TWICE in output
        assert relay.codes(ONE)[-1] == relay.codes(TWO)[-1] == ACCESS_ACCEPT
        assert ACCESS_REJECT not in relay.codes(TWO)
    ((method,),) = cluster.nodes[0].rows("select method from events order by id desc limit 1")
    assert method == "eap-peap-mschapv2"
