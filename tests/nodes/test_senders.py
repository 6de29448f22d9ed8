"""Senders without an answer, which every node lists for all nodes."""

from collections.abc import Sequence

from sallyport.areas.login.listen.causes import UNKNOWN
from sallyport.base.wire import JSON, Row
from sallyport.nodes.node import DEAD_US
from sallyport.nodes.senders import MAX_SENDERS, SharedSenders
from sallyport.service.commands import commands
from sallyport.shell.command import entries
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas
from tests.nodes.conftest import Pair
from tests.nodes.test_service import silent
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres


async def listed(areas: Areas, **arguments: JSON) -> list[Row]:
    """Return the rows that a node lists."""
    return entries(await commands(areas.app).ready("listen.senders", arguments)())


async def write(*nodes: Areas) -> None:
    """Write the senders of these nodes to the database."""
    for areas in nodes:
        assert isinstance(areas.login.node_senders, SharedSenders)
        await areas.login.node_senders.write()


def hear(areas: Areas, host: str, *, after_s: int = 0) -> None:
    """Receive a datagram of an unknown address."""
    areas.senders.note(host, UNKNOWN, areas.clock() + after_s * 1_000_000, datagram=b"\1")


def facts(rows: Sequence[Row]) -> list[tuple[JSON, JSON, JSON]]:
    """Return address, packets and nodes of each row."""
    return [(row["address"], row["packets"], row["node"]) for row in rows]


async def test_each_node_lists_the_senders_of_all(pair: Pair) -> None:
    """The packets of an address that several nodes have heard are added, and the row names the nodes."""
    for areas, host, after_s in ((pair.one, "192.0.2.66", 0), (pair.one, "192.0.2.67", 1), (pair.two, "192.0.2.67", 2)):
        hear(areas, host, after_s=after_s)
    await write(pair.one, pair.two)
    expected = [("192.0.2.67", 2, "one, two"), ("192.0.2.66", 1, "one")]
    assert facts(await listed(pair.one)) == facts(await listed(pair.two)) == expected
    assert facts(await listed(pair.two, own=True)) == [("192.0.2.67", 1, "two")]


async def test_an_address_that_became_a_client_is_not_listed(pair: Pair) -> None:
    """If an address is registered at one node, its row of another node disappears at once."""
    hear(pair.one, "192.0.2.66")
    await write(pair.one)
    assert await listed(pair.two)
    await pair.two.client("192.0.2.66/32")
    assert await listed(pair.two) == []


async def test_the_senders_of_a_dead_node_are_not_listed(pair: Pair) -> None:
    """A node that sends no heartbeat is left out. If it is removed, its row is removed too."""
    hear(pair.one, "192.0.2.66")
    await write(pair.one)
    await silent(pair.two.store, "one", DEAD_US + 1)  # type: ignore[arg-type]
    assert await listed(pair.two) == []
    assert await pair.two.cluster.forget("one")
    assert await versions(pair.two) == []


async def test_a_row_has_the_latest_senders_and_is_written_after_a_change(pair: Pair) -> None:
    """The size of a row is limited. A node without a change writes nothing, and a sender whose request was answered
    is removed."""
    for number in range(MAX_SENDERS + 10):
        hear(pair.one, f"198.51.{number // 250}.{number % 250}", after_s=number)
    await write(pair.one)
    rows = await listed(pair.two)
    assert (len(rows), rows[0]["address"]) == (MAX_SENDERS, f"198.51.0.{MAX_SENDERS + 9}")
    before = await versions(pair.two)
    await write(pair.one)
    assert await versions(pair.two) == before
    pair.one.senders.answered(str(rows[0]["address"]), 1)
    pair.one.senders.answered(str(rows[0]["address"]), 1)
    await write(pair.one)
    assert (await listed(pair.two))[0]["address"] == f"198.51.0.{MAX_SENDERS + 8}"
    assert await versions(pair.two) != before


async def test_a_node_that_starts_replaces_its_former_senders(pair: Pair) -> None:
    """The first write after a start removes the senders of the process before, although nothing was heard yet."""
    hear(pair.one, "192.0.2.66")
    await write(pair.one)
    one = pair.one
    started = SharedSenders(one.store, one.cluster, ["one"], lambda: 0, lambda _most: [])
    await started.write()
    assert await listed(pair.two) == []


async def versions(areas: Areas) -> list[tuple[object, ...]]:
    """Return a value for each row that changes with each write of the row."""
    assert isinstance(areas.store, PostgresStore)
    return [tuple(row) for row in await areas.store.read(lambda tx: tx.rows("select xmin::text from node_senders"))]
