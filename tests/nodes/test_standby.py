"""Nodes over a PostgreSQL server with a synchronous standby."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from sallyport.store.postgres.engine import HUNG_S
from sallyport.store.postgres.link import SETTLE_S
from tests.nodes.cluster import DATABASE, Cluster, readiness, running_cluster, seconds_until_ready
from tests.nodes.load import Loaded, check
from tests.nodes.proxy import Proxy
from tests.peers.postgres import USER, Server, needs_postgres
from tests.radius_client import RadiusClient
from tests.torture.load import SECRET, populate
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres]
SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0.1"}
ENOUGH = 100  # answers before the primary is killed


@contextmanager
def replicated(*names: str, through: bool = False) -> Iterator[tuple[Cluster, Server, Proxy]]:
    """Yield nodes over a primary and its synchronous standby, the standby, and a proxy to the primary.

    through: whether the standby uses the proxy.
    """
    with (
        running_cluster((), SETTINGS, durable=True) as cluster,
        Proxy(cluster.server.port) as proxy,
        tempfile.TemporaryDirectory(prefix="sallyport-standby-") as directory,
    ):
        standby = cluster.server.standby(Path(directory), primary_port=proxy.port if through else 0)
        try:
            hosts = ",".join(f"127.0.0.1:{each.port}" for each in (cluster.server, standby))
            url = f"postgresql://{USER}@{hosts}/{DATABASE}?target_session_attrs=read-write"
            for name in names:
                cluster.start(name, {"SALLYPORT_DATABASE": url})
            populate(cluster.nodes[0])
            yield cluster, standby, proxy
            for node in cluster.nodes:  # it does not wait for a server
                assert node.stop() == 0
        finally:
            for node in cluster.nodes:
                node.kill()
            with suppress(CalledProcessError):
                standby.stop("immediate")


@pytest.mark.parametrize("is_hung", [pytest.param(False, id="killed"), pytest.param(True, id="hung")])
def test_a_failover_to_the_standby_loses_no_answer(*, is_hung: bool) -> None:
    """The primary is killed or hangs under load, and the standby is promoted. Each answer that a client received from
    either node is in the store of the new primary. Both nodes continue without a restart, and answer the other requests
    when they are sent again."""
    with ExitStack() as stack:
        cluster, standby, _ = stack.enter_context(replicated("one", "two"))
        load = stack.enter_context(Loaded(cluster.nodes))
        eventually(lambda: all(len(each.answered) >= ENOUGH for each in load.loads))
        if is_hung:
            stack.enter_context(cluster.server.frozen())
        else:
            cluster.server.kill()
        eventually(lambda: all(readiness(node) == 503 for node in cluster.nodes))
        standby.promote()
        for node in cluster.nodes:
            seconds_until_ready(node)
        load.stop()
        for node, each in zip(cluster.nodes, load.loads, strict=True):
            node.url = standby.url(DATABASE)
            check(node, each)
            assert node.stop() == 0


def test_no_answer_is_sent_before_the_standby_has_it() -> None:
    """While the standby cannot be reached, a login gets no answer, however often it is sent again, and /readyz answers
    503. When the standby is back, the node continues without a restart."""
    with replicated("one", through=True) as (cluster, _, proxy), cluster.nodes[0].radius(SECRET) as nas:
        (node,) = cluster.nodes
        eventually(lambda: nas.login("user1", "password of 1") == ACCESS_ACCEPT)
        proxy.hold()
        request = nas.packet("user1", "password of 1")
        nas.sock.settimeout(0.5)
        until = time.monotonic() + HUNG_S + SETTLE_S + 2  # the node gives up its connections, and opens new ones
        while time.monotonic() < until:
            assert not answers(nas, request)
        assert readiness(node) == 503
        proxy.release()
        seconds_until_ready(node)
        eventually(lambda: answers(nas, request))


def answers(nas: RadiusClient, request: bytes) -> bool:
    """Return whether a request gets an Access-Accept within the timeout of the socket."""
    nas.send(request)
    with suppress(TimeoutError):
        return nas.receive(request)[0] == ACCESS_ACCEPT
    return False
