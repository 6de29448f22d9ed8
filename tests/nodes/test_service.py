"""Nodes that join, send heartbeats and hold the lease of the periodic work."""

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from sallyport.base.clock import SECOND, now_us
from sallyport.base.errors import LeaseLost, StartError, StoreError
from sallyport.nodes import repo
from sallyport.nodes.node import DEAD_US, LEASE_US
from sallyport.nodes.service import Nodes
from sallyport.store.foreign import CLOCKS_US
from sallyport.store.postgres.engine import PostgresStore
from tests.nodes.conftest import Monotonic, move_lease, node
from tests.peers.postgres import needs_postgres, set_database_clock

pytestmark = needs_postgres


async def silent(store: PostgresStore, name: str, for_us: int) -> None:
    """Move the last heartbeat and the lease of a node into the past."""
    await store.write(
        lambda tx: tx.execute("update nodes set seen_at = seen_at - :us where name = :name", us=for_us, name=name)
    )
    await store.write(lambda tx: tx.execute("update leases set until = until - :us", us=for_us))


async def beat(node: Nodes) -> None:
    """Send one heartbeat."""
    await node._beat()


async def test_nodes_see_each_other(store: PostgresStore, other: PostgresStore) -> None:
    """Each node that has joined is in the list, with its address after a heartbeat."""
    one, two = node(store, "one"), node(other, "two")
    for each in (one, two):
        await each.join()
        await beat(each)
    found = await one.everyone()
    assert [(each.name, each.address, each.is_alive, each.leads) for each in found] == [
        ("one", "http://one", True, True),
        ("two", "http://two", True, False),
    ]
    assert one.id != two.id


async def test_a_name_with_a_live_heartbeat_is_refused(store: PostgresStore, other: PostgresStore) -> None:
    """A second installation cannot join under the name of a live node; it can once the node is dead."""
    await node(store, "one").join()
    second = node(other, "one", installation="another machine")
    with pytest.raises(StartError, match=r"a node named one runs already .*set node_name to another name"):
        await second.join()
    await silent(store, "one", DEAD_US)
    await second.join()


async def test_a_node_restarts_at_once(store: PostgresStore, other: PostgresStore) -> None:
    """After a crash, the same installation takes its name again without waiting, and the old process stops."""
    old, new = node(store, "one"), node(other, "one")
    await old.join()
    await new.join()
    assert new.id == old.id
    with pytest.raises(StartError, match="another process has joined as the node one"):
        await beat(old)


async def test_former_names_of_an_installation_are_forgotten(store: PostgresStore, other: PostgresStore) -> None:
    """A process that joins deletes the dead nodes of its data directory with other names, as after fewer workers."""
    for name in ("one/1", "one/2", "one/3"):
        await node(store, name, installation="here").join()
    await node(store, "two").join()
    for name in ("one/2", "one/3", "two"):
        await silent(store, name, DEAD_US)
    joined = node(other, "one/1", installation="here", names=("one/1", "one/2"))
    await joined.join()
    assert [each.name for each in await joined.everyone()] == ["one/1", "one/2", "two"]


async def test_another_master_key_is_refused(store: PostgresStore, other: PostgresStore) -> None:
    """A node whose master key differs is refused before it opens a sealed value."""
    await node(store, "one").join()
    with pytest.raises(StartError, match=r"version 1 of the master key differs from the other nodes: copy"):
        await node(other, "two", key=bytes(31) + b"x").join()


async def test_one_node_holds_the_lease(store: PostgresStore, other: PostgresStore) -> None:
    """The first node leads until its lease ends; then another one takes it, with a higher fencing number."""
    clocks = Monotonic(), Monotonic()
    one, two = node(store, "one", monotonic=clocks[0]), node(other, "two", monotonic=clocks[1])
    for each in (one, two):
        await each.join()
        await beat(each)
    assert (one.leads, two.leads) == (True, False)
    await store.write(one.check)
    with pytest.raises(LeaseLost):
        await other.write(two.check)
    await silent(store, "one", LEASE_US)
    await beat(two)
    assert two.leads
    with pytest.raises(LeaseLost):
        await store.write(one.check)
    fence = await store.read(lambda tx: tx.value(int, "select fence from leases"))
    assert fence == 2


async def test_a_holder_without_a_heartbeat_stops_leading(store: PostgresStore) -> None:
    """A node that cannot renew its lease stops its periodic work before another node may take it."""
    clock = Monotonic()
    one = node(store, "one", monotonic=clock)
    await one.join()
    await beat(one)
    assert one.leads
    clock.now = LEASE_US / 1e6 - 0.5
    assert not one.leads


async def test_a_node_that_was_paused_logs_that_it_has_lost_the_lease(
    store: PostgresStore, other: PostgresStore
) -> None:
    """The lease of a paused node ends, and another node takes it. The first heartbeat after the pause logs the loss."""
    clock = Monotonic()
    one, two = node(store, "one", monotonic=clock), node(other, "two")
    for each in (one, two):
        await each.join()
        await beat(each)
    clock.now = 10
    await move_lease(other, two)
    with capture_logs() as logged:
        for _ in range(2):
            await beat(one)
    assert [each["event"] for each in logged] == ["lease_lost"]


async def test_a_node_that_stops_releases_its_name_and_lease(store: PostgresStore, other: PostgresStore) -> None:
    """After an orderly stop, the name is free and another node leads at once."""
    one, two = node(store, "one"), node(other, "two")
    for each in (one, two):
        await each.join()
        await beat(each)
    await one._leave()
    await beat(two)
    assert two.leads
    await node(other, "one", installation="another machine").join()


@pytest.mark.parametrize("step_s", [3600, -3600])
async def test_the_lease_of_a_dead_node_after_a_step_of_the_clock(
    store: PostgresStore, other: PostgresStore, step_s: int
) -> None:
    """The clock of the database is set, and the node with the lease dies. Another node leads at once, and the former
    leader cannot write."""
    at = now_us()
    await set_database_clock(store, at)
    one, two = node(store, "one"), node(other, "two")
    for each in (one, two):
        await each.join()
        await beat(each)
    assert one.leads and not two.leads
    await set_database_clock(store, at + step_s * SECOND)
    await beat(two)
    assert two.leads
    with pytest.raises(LeaseLost):
        await store.write(one.check)


async def test_leases_in_simulated_time(
    store: PostgresStore, other: PostgresStore, mock_clock: trio.testing.MockClock
) -> None:
    """Two nodes run, and trio's clock and that of the database advance together. One node leads. When it stops without
    a word, the other one leads after the time of the lease, and no moment has two leaders."""
    mock_clock.rate = 1  # the waits for the database end, too
    at = now_us()
    nodes = [node(each, name, monotonic=trio.current_time) for each, name in ((store, "one"), (other, "two"))]
    for each in nodes:
        await each.join()
    led: list[str] = []
    async with trio.open_nursery() as nursery:
        scopes = [trio.CancelScope(), trio.CancelScope()]

        async def run(number: int) -> None:
            with scopes[number]:
                await nodes[number].run()

        for number in range(2):
            nursery.start_soon(run, number)
        for step in range(60):
            at += SECOND // 2
            await set_database_clock(store, at)
            mock_clock.jump(0.5)
            await trio.testing.wait_all_tasks_blocked(0.02)
            leaders = [each.name for each in nodes if each.leads]
            assert len(leaders) <= 1
            led += leaders
            if step == 20:
                nodes[led[-1] == "two"]._address = refuse_to_beat
        nursery.cancel_scope.cancel()
    first, second = led[0], led[-1]
    assert {first, second} == {"one", "two"}
    assert 40 < len(led) < 59


def refuse_to_beat() -> str:
    """Fail as a node does that cannot reach the database."""
    raise StoreError("the database is away")


async def test_a_wrong_clock_is_logged_once(store: PostgresStore) -> None:
    """Each heartbeat compares the clock of the node with the clock of the database. A difference of more than 60
    seconds is logged when it begins, and when it ends."""
    clock = Monotonic()
    one = node(store, "one", clock=lambda: now_us() + int(clock.now * SECOND))
    await one.join()
    with capture_logs() as logged:
        for ahead_s in (0, 30, -30, 600, 601, -86_400, 0, -600):
            clock.now = ahead_s
            await beat(one)
    found = [(each["event"], each.get("ahead_s")) for each in logged if each["event"].startswith("node_clock")]
    assert [event for event, _ in found] == ["node_clock_wrong", "node_clock_right", "node_clock_wrong"]
    assert abs(found[0][1] - 600) < CLOCKS_US / SECOND
    assert abs(found[2][1] + 600) < CLOCKS_US / SECOND


async def test_deletions_use_the_earlier_clock(store: PostgresStore) -> None:
    """Rows are deleted by the clock of the node if it is behind, and by the clock of the database if it is ahead, also
    if the clock has changed since the last heartbeat."""
    began, clock, monotonic = now_us(), Monotonic(), Monotonic()
    one = node(store, "one", clock=lambda: began + int(clock.now * SECOND), monotonic=monotonic)
    await one.join()
    await beat(one)
    clock.now = -86_400
    assert one.earlier_now() == began - 86_400 * SECOND
    clock.now = 86_400
    by_database = one.earlier_now()
    assert began - CLOCKS_US < by_database < began + 3600 * SECOND
    monotonic.now = 5
    assert one.earlier_now() == by_database + 5 * SECOND


async def test_only_a_dead_node_can_be_forgotten(store: PostgresStore, other: PostgresStore) -> None:
    """The row of a live node stays; that of a dead one can be deleted."""
    one, two = node(store, "one"), node(other, "two")
    await one.join()
    await two.join()
    assert not await one.forget("two")
    await silent(store, "two", DEAD_US)
    assert await one.forget("two")
    assert [each.name for each in await store.read(repo.everyone)] == ["one"]
