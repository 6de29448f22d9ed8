"""`node.list` and `node.forget`, the doctor's look at the nodes, and their metrics."""

import re
from typing import cast

import pytest

from sallyport.base.errors import Conflict, NotFound
from sallyport.base.wire import JSON, Row
from sallyport.cli.checks.model import Examination, Finding
from sallyport.cli.checks.service import check_nodes
from sallyport.cli.line import Line
from sallyport.nodes.node import DEAD_US, LEASE_US
from sallyport.nodes.operations import local_operations
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas
from tests.nodes.conftest import Pair, node
from tests.nodes.test_service import silent
from tests.peers.postgres import needs_postgres


async def run(areas: Areas, command: str, **arguments: object) -> JSON:
    """Run a command of the nodes, as the control socket does."""
    return await local_operations(areas.cluster)[command](arguments)()


class Listed:
    """A command line whose service lists these nodes."""

    def __init__(self, *nodes: Row) -> None:
        self._nodes = list(nodes)

    def rows(self, command: str) -> list[Row]:
        """Return the nodes."""
        assert command == "node.list"
        return self._nodes


def checked(*nodes: Row) -> list[str]:
    """Return the findings of the doctor as `level: text`."""

    def shown(finding: Finding) -> str:
        return f"{finding.level.value}: {finding.text}"

    return [shown(each) for each in check_nodes(Examination(cast(Line, Listed(*nodes))))]


def row(name: str, *, alive: bool = True, version: str = "1.0", leads: bool = False) -> Row:
    """Return a node as `node.list` has it."""
    state = "alive" if alive else "silent for 12 s"
    return {"name": name, "state": state, "alive": alive, "version": version, "leads": leads}


@needs_postgres
async def test_nodes_are_listed(pair: Pair) -> None:
    """Every node sees all, with their states; one of them leads."""
    two = pair.two
    await silent(two.store, "two", DEAD_US + 7_000_000)  # type: ignore[arg-type]
    found = await run(two, "node.list")
    assert isinstance(found, list)
    leader, other = ((each["name"], each["state"], each["alive"]) for each in found if isinstance(each, dict))
    assert leader == ("one", "alive", True)
    assert other[0] == "two" and re.fullmatch("silent for [0-9]+ s", other[1]) and not other[2]


@needs_postgres
async def test_only_a_silent_node_is_forgotten(pair: Pair) -> None:
    """A live node and an unknown name are refused, each with the next step."""
    one = pair.one
    with pytest.raises(Conflict, match="the node two is alive: stop it first"):
        await run(one, "node.forget", name="two")
    with pytest.raises(NotFound, match=r'node "ttwo" not found.*two.*sallyport node list'):
        await run(one, "node.forget", name="ttwo")
    await silent(one.store, "two", DEAD_US)  # type: ignore[arg-type]
    assert await run(one, "node.forget", name="two") is None
    found = await run(one, "node.list")
    assert isinstance(found, list) and len(found) == 1


async def test_the_embedded_engine_has_one_node(areas: Areas) -> None:
    """The list has the running service alone; a command without a service lists nothing."""
    if areas.store.is_shared:
        pytest.skip("about the embedded engine")
    assert await run(areas, "node.list") == []
    await areas.cluster.join()
    found = await run(areas, "node.list")
    assert isinstance(found, list) and isinstance(found[0], dict)
    assert (len(found), found[0]["state"], found[0]["leads"]) == (1, "alive", True)
    assert str(found[0]["address"]).startswith("http://")
    await areas.app.installation.node_metrics.update()
    assert areas.sample("sallyport_nodes", state="alive") == 1
    assert areas.sample("sallyport_lease_held") == 1


def test_the_doctor_accepts_live_nodes_with_a_leader() -> None:
    assert checked(row("one", leads=True), row("two")) == ["ok: 2 nodes alive, one does the periodic work"]


def test_the_doctor_names_silent_nodes_other_versions_and_a_free_lease() -> None:
    """Each finding says what to do."""
    found = checked(row("one"), row("two", version="1.1"), row("three", alive=False))
    assert found == [
        "ok: 2 nodes alive",
        "warning: three is silent for 12 s: start it, or remove it from the list: sallyport node forget three",
        "warning: the nodes have different versions: one has 1.0, two has 1.1; "
        "set all to one version: see sallyport node list",
        "problem: no node holds the lease of the periodic work: no schedule, outlet or retention runs; look for "
        "heartbeat_failed in the log of each node, and restart one",
    ]


@needs_postgres
async def test_metrics_of_nodes(pair: Pair) -> None:
    """Every node exports how many are alive and silent, whether a node has the lease, and whether it leads itself."""
    one, two = pair.one, pair.two
    for each in (one, two):
        await each.app.installation.node_metrics.update()
        assert each.sample("sallyport_nodes", state="alive") == 2
        assert each.sample("sallyport_nodes", state="silent") == 0
        assert each.sample("sallyport_lease_held") == 1
        assert each.sample("sallyport_database_standbys") == 0
        assert each.sample("sallyport_database_synchronous") == 0
    assert (one.sample("sallyport_node_leads"), two.sample("sallyport_node_leads")) == (1, 0)
    assert one.sample("sallyport_node_heartbeat_age_seconds") < 5
    await silent(one.store, "one", max(DEAD_US, LEASE_US))  # type: ignore[arg-type]
    await two.app.installation.node_metrics.update()
    assert two.sample("sallyport_nodes", state="silent") == 1
    assert two.sample("sallyport_lease_held") == 0


@needs_postgres
async def test_a_forgotten_node_leaves_no_notices(store: PostgresStore, other: PostgresStore) -> None:
    """The notices of a forgotten node are deleted with it."""
    one, two = node(store, "one"), node(other, "two")
    await one.join()
    await two.join()
    await other.write(
        lambda tx: tx.execute("insert into notices (node_id, kind, content) values (:id, 'k', '[]')", id=two.id)
    )
    await silent(store, "two", DEAD_US)
    assert await one.forget("two")
    assert await store.read(lambda tx: tx.value(int, "select count(*) from notices")) == 0
