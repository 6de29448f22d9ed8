"""The work that one node does for all: it runs on the node with the lease alone."""

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import trio

from sallyport.areas.agents.presence import HEARTBEAT_S, MISSES, SWEEP_S
from sallyport.areas.domains.domain import Mode
from sallyport.areas.domains.enforcement import Reverts
from sallyport.areas.events.event import EventQuery
from sallyport.base.answer import answer
from sallyport.base.clock import now_us
from sallyport.base.errors import LeaseLost
from sallyport.nodes.periodic import CheckedStore, while_leading
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.postgres.connection import connect
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas, SetClock
from tests.areas.agents.hosts import Host
from tests.nodes.conftest import Monotonic, Pair, insert_events, move_lease, node
from tests.peers.postgres import database_in, needs_postgres
from tests.waiting import until

pytestmark = needs_postgres
DAY_S = 86_400


async def test_the_leader_alone_works(store: PostgresStore, other: PostgresStore) -> None:
    """Tasks run on the node with the lease; after it has ended, they end there and start on the next holder."""
    clocks = Monotonic(), Monotonic()
    nodes = node(store, "one", monotonic=clocks[0]), node(other, "two", monotonic=clocks[1])
    running: list[str] = []

    async def work(name: str) -> None:
        running.append(name)
        try:
            await trio.sleep_forever()
        finally:
            running.remove(name)

    for each in nodes:
        await each.join()
        await each._beat()
    async with trio.open_nursery() as nursery:
        for each in nodes:
            nursery.start_soon(partial(while_leading, begin=trio.lowlevel.checkpoint), each, [partial(work, each.name)])
        await until(lambda: running == ["one"])
        clocks[0].now += 10
        await until(lambda: running == [])
        await move_lease(other, nodes[1])
        await until(lambda: running == ["two"])
        nursery.cancel_scope.cancel()


async def test_a_check_of_the_lease_blocks_no_heartbeat(
    store: PostgresStore, other: PostgresStore, tmp_path: Path
) -> None:
    """While a transaction has checked the lease, its holder renews it, and another node sends heartbeats but cannot
    take it."""
    one, two = node(store, "one"), node(other, "two")
    for each in (one, two):
        await each.join()
        await each._beat()
    with closing(connect(database_in(tmp_path))) as open_one:
        open_one.execute("begin; select 1 from leases for key share")
        with trio.fail_after(5):
            await one._beat()
            await store.write_aside(lambda tx: tx.execute("update leases set until = 1"))
            await two._beat()
        assert (one.leads, two.leads) == (True, False)
        open_one.execute("commit")
    await two._beat()
    assert two.leads


async def left(areas: Areas) -> tuple[int, int]:
    """Return the number of events, and of entries of the audit trail."""

    def work(tx: Tx) -> tuple[int, int]:
        events = tx.value(int, "select count(*) from events")
        return events or 0, tx.value(int, "select count(*) from audit_trail") or 0

    return await areas.store.read(work)


async def fill(areas: Areas, at: int) -> None:
    """Write an event and an entry of the audit trail with a time."""

    def work(tx: Tx) -> None:
        insert_events(tx, "ann", at=at, domain_id=areas.domain)
        tx.execute("insert into counters (domain_id, name, value) values (:d, 'events', 1)", d=areas.domain)
        audit.record(tx, "domain.mode", at=at, tenant_id=areas.tenant, target="domain 1")

    await areas.store.write(work)


async def test_a_paused_leader_deletes_nothing(pair: Pair) -> None:
    """Retention of a former leader changes nothing; that of the new one deletes."""
    await fill(pair.one, 1)
    await pair.one.app.parts.settled.look()
    before = await left(pair.one)
    await pair.move_lease()
    for purge in (pair.one.app.events.retention.purge, pair.one.app.audit.retention.purge):
        with pytest.raises(LeaseLost):
            await purge()
    assert await left(pair.one) == before
    await pair.two.app.parts.settled.look()
    await pair.two.app.events.retention.purge()
    await pair.two.app.audit.retention.purge()
    assert await left(pair.one) == (0, before[1] - 1)


async def test_a_leader_with_a_fast_clock_deletes_nothing_early(pair: Pair, clock: SetClock) -> None:
    """If the clock of the leader is years ahead of the clock of the database, the rows of today stay."""
    clock.now = now_us()
    await fill(pair.one, clock.now)
    before = await left(pair.one)
    await pair.one.app.parts.settled.look()
    clock.pass_by(4000 * DAY_S)
    await pair.one.app.events.retention.purge()
    await pair.one.app.audit.retention.purge()
    assert before[0] == 1
    assert await left(pair.one) == before


async def test_the_leader_reverts_a_mode(pair: Pair, clock: SetClock) -> None:
    """A change that was not confirmed is reverted by the node with the lease, once, and stays if it was confirmed at
    another node."""
    one, two = pair.one, pair.two
    other = await one.domains.add(one.tenant, "branch")
    await one.domains.set_mode([one.domain, other], Mode.ENFORCE, revert_after_minutes=10)
    await two.configuration.reload()
    await two.domains.set_mode([other], Mode.ENFORCE)
    clock.pass_by(601)
    for each in (two, one):
        each.reverts = Reverts(each.domains, each.cluster, each.clock, Monotonic())
    await two.reverts._look()
    await one.configuration.reload()
    assert one.domains.table.by_id[one.domain].mode is Mode.ENFORCE
    await one.reverts._look()
    await two.configuration.reload()
    assert [two.domains.table.by_id[each].mode for each in (two.domain, other)] == [Mode.MONITOR, Mode.ENFORCE]


async def statuses(areas: Areas) -> dict[str, str]:
    """Return the status of each instance by its name."""
    rows = await areas.store.read(lambda tx: tx.rows("select name, status from endpoint_instances"))
    return {str(name): str(status) for name, status in rows}


async def test_an_agent_at_another_node_is_not_silent(pair: Pair, clock: SetClock) -> None:
    """The leader stores Inactive for an agent that no node hears, and not for one that another node hears."""
    one, two = pair.one, pair.two
    here, there = await Host.register(one, "web"), await Host.register(one, "db")
    await one.agents.presence.seen(here.id)
    await two.agents.presence.seen(there.id)
    for _ in range(2):
        for each in (one, two):
            await each.agents.presence.sweep()
        await one.agents.presence.look()
        clock.pass_by(MISSES * HEARTBEAT_S + 2 * SWEEP_S + 1)
        await two.agents.presence.seen(there.id)
    for each in (one, two):
        await each.agents.presence.sweep()
    await one.agents.presence.look()
    assert await statuses(one) == {"web": "Inactive", "db": "Active"}
    await two.agents.presence.seen(here.id)
    assert await statuses(one) == {"web": "Active", "db": "Active"}


async def test_an_event_names_its_node(pair: Pair) -> None:
    """The log of logins shows the name of the node that decided."""
    await pair.one.store.write(lambda tx: insert_events(tx, "ann", domain_id=pair.one.domain, node_id=pair.nodes[1].id))
    rows, _ = await pair.one.events.page(EventQuery(pair.one.domain))
    names = await pair.one.events.nodes()
    assert [answer(row, domain="corp", nodes=names)["node"] for row in rows] == ["two"]


async def test_a_check_that_raises_undoes_the_write(store: PostgresStore) -> None:
    """A write runs after the check in its transaction, also one without a task that waits."""
    done: list[BaseException | None] = []

    def refuse(_tx: Tx) -> None:
        raise LeaseLost("gone")

    checked = CheckedStore(store, refuse)
    with pytest.raises(LeaseLost):
        await checked.write(lambda tx: insert_events(tx, "ann"))
    checked.submit(lambda tx: insert_events(tx, "ann"), lambda _result, error: done.append(error))
    await until(lambda: bool(done))
    assert isinstance(done[0], LeaseLost)
    assert await store.settled("events") == 0
