"""A NAS that fails over between two real services while a push waits."""

import re
from collections.abc import Iterator

import httpx
import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.nodes.cluster import Cluster, running_cluster
from tests.peers.hook import Hook
from tests.peers.postgres import needs_postgres
from tests.peers.second_factor import PASSWORD, SECRET, populate, provide
from tests.running_service import RunningService
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, needs_postgres]
STATION = b"02-00-00-00-00-01"


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    """Yield the provider of the pushes."""
    with Hook() as hook:
        yield hook
        assert hook.forged == 0


@pytest.fixture(scope="module")
def cluster(hook: Hook) -> Iterator[Cluster]:
    """Yield two nodes that ask by push."""
    with running_cluster(settings={"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_DRAIN_S": "0.2"}) as cluster:
        populate(cluster.nodes[0], "ann", "ben", "carl")
        provide(cluster.nodes[0], "webhook", **hook.fields)
        for node in cluster.nodes:  # both know the domain's provider
            with node.radius(SECRET) as nas:
                hook.will("ben", "approved")
                eventually(lambda nas=nas: nas.login("ben", PASSWORD) == ACCESS_ACCEPT)  # type: ignore[misc]
        yield cluster


def accepts(cluster: Cluster, user: str) -> int:
    """Return the number of a user's Accepts in the log."""
    sql = "select count(*) from events where user_name = ? and applied_decision = 'accept'"
    ((count,),) = cluster.nodes[1].rows(sql, user)
    return int(count)


def dropped(node: RunningService) -> int:
    """Return how many requests a node has dropped because another one answers."""
    text = httpx.get(f"http://127.0.0.1:{node.ports.http}/metrics", trust_env=False).text
    found = re.search(r'sallyport_radius_discards_total\{listener="auth",reason="other_node"\} (\d+)', text)
    return int(found[1]) if found else 0


def test_the_owner_of_a_prompt_stops(cluster: Cluster, hook: Hook) -> None:
    """A node that gets SIGTERM in the middle of a push answers nothing by the fallback and does not withdraw the push.
    The NAS asks the second node, which takes the push over and sends the one Accept. Then the first node comes back."""
    one, two = cluster.nodes
    changed = one.cli("domain", "mode", "default", "enforce", "--fallback", "allow")
    assert changed.returncode == 0, changed.stderr
    with one.radius(SECRET) as first, two.radius(SECRET) as second:
        second.sock.settimeout(20)
        first.send(first.packet("carl", PASSWORD, CALLING_STATION_ID=STATION))
        hook.wait_for_prompt("carl")
        assert one.stop() == 0
        first.sock.settimeout(0.1)
        with pytest.raises((TimeoutError, ConnectionRefusedError)):
            first.sock.recv(4096)
        request = second.packet("carl", PASSWORD, CALLING_STATION_ID=STATION)
        second.send(request)
        eventually(lambda: "prompt_taken_over" in two.log())
        hook.will("carl", "approved")
        assert second.receive(request)[0] == ACCESS_ACCEPT
    one.start()
    assert [each["user"] for each in hook.prompts].count("carl") == 1
    assert accepts(cluster, "carl") == 1


def test_the_owner_of_a_prompt_is_killed(cluster: Cluster, hook: Hook) -> None:
    """A NAS fails over in the middle of a push, and its first node is killed: the second node polls the same prompt,
    and sends the one Accept."""
    one, two = cluster.nodes
    with one.radius(SECRET) as first, two.radius(SECRET) as second:
        second.sock.settimeout(20)
        first.send(first.packet("ann", PASSWORD, CALLING_STATION_ID=STATION))
        hook.wait_for_prompt("ann")
        request = second.packet("ann", PASSWORD, CALLING_STATION_ID=STATION)
        second.send(request)
        eventually(lambda: dropped(one) == 1)
        one.kill()
        eventually(lambda: two.log().count("prompt_taken_over") == 2)
        hook.will("ann", "approved")
        assert second.receive(request)[0] == ACCESS_ACCEPT
        first.sock.settimeout(0.1)
        with pytest.raises((TimeoutError, ConnectionRefusedError)):
            first.sock.recv(4096)
    assert [each["user"] for each in hook.prompts].count("ann") == 1
    assert accepts(cluster, "ann") == 1
