"""A push over three real services."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.nodes.cluster import Cluster, running_cluster
from tests.nodes.test_failover import accepts, dropped
from tests.peers.hook import Hook
from tests.peers.postgres import needs_postgres
from tests.peers.second_factor import PASSWORD, SECRET, populate, provide
from tests.radius_client import RadiusClient
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres]


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    """Yield the provider of the pushes."""
    with Hook() as hook:
        yield hook
        assert hook.forged == 0


@pytest.fixture(scope="module")
def cluster(hook: Hook) -> Iterator[Cluster]:
    """Yield three nodes that ask by push."""
    with running_cluster(("one", "two", "three"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as cluster:
        populate(cluster.nodes[0], "ann", "ben", "cid")
        provide(cluster.nodes[0], "webhook", **hook.fields)
        hook.will("cid", "approved")
        for node in cluster.nodes:  # all know the domain's provider
            with node.radius(SECRET) as nas:
                eventually(lambda nas=nas: nas.login("cid", PASSWORD) == ACCESS_ACCEPT)  # type: ignore[misc]
        yield cluster


@pytest.fixture
def servers(cluster: Cluster) -> Iterator[list[RadiusClient]]:
    """Yield the NAS as a client of each node."""
    with ExitStack() as stack:
        yield [stack.enter_context(node.radius(SECRET)) for node in cluster.nodes]


def ask(server: RadiusClient, user: str) -> bytes:
    """Send a login of the NAS to a node, and return the request."""
    server.sock.settimeout(30)
    request = server.packet(user, PASSWORD, CALLING_STATION_ID=b"02-00-00-00-00-01")
    server.send(request)
    return request


def is_silent(server: RadiusClient) -> bool:
    """Return whether no answer of a node waits at the NAS."""
    server.sock.settimeout(0.1)
    try:
        server.sock.recv(4096)
    except (TimeoutError, ConnectionRefusedError):
        return True
    return False


def test_a_nas_tries_three_nodes(cluster: Cluster, servers: list[RadiusClient], hook: Hook) -> None:
    """A NAS fails over from the first node to the second and then to the third in the middle of a push. There is one
    prompt, and one Accept, which the third node sends."""
    one, two, three = servers
    before = [dropped(node) for node in cluster.nodes]
    ask(one, "ann")
    hook.wait_for_prompt("ann")
    ask(two, "ann")
    eventually(lambda: dropped(cluster.nodes[0]) == before[0] + 1)
    request = ask(three, "ann")
    eventually(lambda: dropped(cluster.nodes[1]) == before[1] + 1)
    hook.will("ann", "approved")
    assert three.receive(request)[0] == ACCESS_ACCEPT
    assert is_silent(one)
    assert is_silent(two)
    assert hook.prompts_of("ann") == 1
    assert accepts(cluster, "ann") == 1


def test_the_owner_and_its_successor_are_killed(cluster: Cluster, servers: list[RadiusClient], hook: Hook) -> None:
    """The owner of a prompt is killed, and the second node takes over the prompt. Then the second node is killed, and
    the third one takes over the same prompt, and sends the one Accept."""
    one, two, three = cluster.nodes
    before = dropped(one), dropped(two)
    ask(servers[0], "ben")
    hook.wait_for_prompt("ben")
    ask(servers[1], "ben")
    eventually(lambda: dropped(one) == before[0] + 1)
    one.kill()
    eventually(lambda: "prompt_taken_over" in two.log())
    request = ask(servers[2], "ben")
    eventually(lambda: dropped(two) == before[1] + 1)
    two.kill()
    eventually(lambda: "prompt_taken_over" in three.log())
    hook.will("ben", "approved")
    assert servers[2].receive(request)[0] == ACCESS_ACCEPT
    assert all(map(is_silent, servers[:2]))
    assert [each["user"] for each in hook.prompts].count("ben") == 1
    assert accepts(cluster, "ben") == 1
