"""Two services over one database, as an operator runs them."""

import json
from collections.abc import Iterator

import pytest

from tests.nodes.cluster import Cluster, running_cluster
from tests.peers.postgres import needs_postgres
from tests.running_service import ServiceError
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, needs_postgres]
ACCEPT, REJECT = 2, 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield two nodes, with a RADIUS client and a user."""
    with running_cluster(settings={"SALLYPORT_REJECT_DELAY_S": "0"}) as cluster:
        one = cluster.nodes[0]
        scope = "--org", "1", "--tenant", "1"
        assert (
            one.cli("client", "add", "vpn", "--address", "127.0.0.1", "--secret", "xyzzy5461", *scope).returncode == 0
        )
        added = one.cli("user", "add", "ann", "--domain", "default", "--password", "-", input="correct horse")
        assert added.returncode == 0, added.stderr
        yield cluster


def test_a_login_at_any_node(cluster: Cluster) -> None:
    """A client and a user that one node has added log in at every node, and the log of one node has both logins."""
    for node in cluster.nodes:
        with node.radius("xyzzy5461") as client:

            def accepted() -> bool:
                return client.login("ann", "correct horse") == ACCEPT

            eventually(accepted)
    log = json.loads(cluster.nodes[0].cli("event", "list", "--domain", "default", "--json").stdout)
    assert len(log) >= 2


def test_a_change_holds_on_the_other_node(cluster: Cluster) -> None:
    """A user who is removed on one node is refused by the other one within a second."""
    one, two = cluster.nodes
    one.cli("user", "add", "bob", "--domain", "default", "--password", "-", input="correct horse")
    with two.radius("xyzzy5461") as client:
        eventually(lambda: client.login("bob", "correct horse") == ACCEPT)
        one.cli("user", "remove", "bob", "--domain", "default")
        eventually(lambda: client.login("bob", "correct horse") == REJECT)


def test_a_second_node_with_the_name_is_refused(cluster: Cluster) -> None:
    """A node whose name is in use on another machine does not start, and says what to set."""
    with pytest.raises(ServiceError, match="a node named two runs already"):
        cluster.start("copy", {"SALLYPORT_NODE_NAME": "two"})
    cluster.nodes.pop()


def test_a_node_with_another_master_key_is_refused(cluster: Cluster) -> None:
    """A node whose master key differs does not start, and says what to do."""
    with pytest.raises(ServiceError, match=r"differs from the other nodes: copy master\.key"):
        cluster.start("three", {"SALLYPORT_MASTER_KEY": "77" * 32})
    cluster.nodes.pop()
