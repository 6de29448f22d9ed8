"""The network between one of two nodes and PostgreSQL is lost, while the database and the other node continue."""

import time
from contextlib import closing

import pytest

from sallyport.store.postgres.engine import HUNG_S
from tests.nodes.cluster import DATABASE, readiness, running_cluster, seconds_until_ready
from tests.nodes.load import Loaded, check, logins
from tests.nodes.proxy import Proxy
from tests.nodes.test_takeover import Siem, leader, query
from tests.peers.postgres import needs_postgres
from tests.torture.load import populate
from tests.waiting import eventually

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_postgres]


def test_a_node_without_the_database() -> None:
    """The leader loses the database under load. Its /readyz answers 503 within a second, and no login gets an answer
    from it. The other node continues within seconds, also if it waits for locks of the first node, and takes over the
    outlet. When the network is back, the first node continues without a restart. Each answered login is stored, and
    each event has reached the collector."""
    siem = Siem()
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOCKOUT_FAILURES": "0", "SALLYPORT_EVENT_OUTLETS": siem.url}
    with closing(siem), running_cluster((), settings) as cluster, Proxy(cluster.server.port) as proxy:
        one = cluster.start("one", {"SALLYPORT_DATABASE": proxy.url(cluster.server.url(DATABASE))})
        two = cluster.start("two")
        populate(one)
        assert leader(cluster) == "one"
        with Loaded(cluster.nodes, window=16) as load:
            cut_off, connected = load.loads
            eventually(lambda: len(siem.lines) > 50 and len(connected.answered) > 50)
            proxy.hold()
            assert seconds_until_ready(one, 503) < HUNG_S  # before it gives up its connections
            answered, others = logins(cut_off), logins(connected)
            held = time.monotonic()
            eventually(lambda: logins(connected) > others + 50)
            eventually(lambda: leader(cluster) == "two")
            (newest,) = query(cluster, "select max(id) from events")[0]
            eventually(lambda: max(siem.lines) > int(str(newest)))
            eventually(lambda: time.monotonic() - held > HUNG_S + 1)  # it has given up its connections
            assert readiness(one) == 503
            assert logins(cut_off) == answered
            proxy.release()
            seconds_until_ready(one)
            load.stop()
            check(one, cut_off)
            check(two, connected)
            stored = {int(str(row[0])) for row in query(cluster, "select id from events")}
            eventually(lambda: siem.lines.keys() == stored)
            assert all(len(set(lines)) == 1 for lines in siem.lines.values())
