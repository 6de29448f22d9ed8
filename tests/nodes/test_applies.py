"""Two nodes and an apply that is written in several transactions."""

import trio

from sallyport.areas.configuration.service import LATE_S
from sallyport.store.model import Store
from tests.areas.configuration.test_apply import engine_of, items
from tests.areas.configuration.test_slices import MANY, begin, clients
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres


async def written(store: Store, name: str) -> None:
    """Wait until a RADIUS client is written."""
    sql = "select 1 from radius_clients where name = :name"
    while not await store.read(lambda tx: tx.value(int, sql, name=name)):
        await trio.lowlevel.checkpoint()


def numbers(pair: Pair) -> tuple[int, int]:
    """Return the number of RADIUS clients of the tenant in memory of each node."""
    return len(pair.one.clients.of_tenant(pair.one.tenant)), len(pair.two.clients.of_tenant(pair.one.tenant))


async def test_no_node_shows_a_part(pair: Pair) -> None:
    """A change of another tenant at another node waits for the end, and neither node shows a part until then."""
    other = await pair.one.tenancy.ensure_tenant(1, 9)
    await pair.two.configuration.reload()
    left = await begin(pair.one, clients())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: pair.two.client("203.0.113.5/32", name="beside", tenant=other))
        await written(pair.two.store, "beside")
        await pair.one.configuration._follow()
        await pair.two.configuration._follow()
        assert (numbers(pair), pair.two.clients.of_tenant(other)) == ((0, 0), ())
        for part in left[:-1]:
            await pair.one.store.write(part)
        await pair.one.configuration.change(left[-1])
    assert numbers(pair) == (MANY, MANY)
    assert len(pair.two.clients.of_tenant(other)) == 1


async def test_break_glass_reaches_every_node(pair: Pair) -> None:
    """It takes effect at the other node too while an apply is unfinished."""
    await begin(pair.one, clients())
    await pair.two.domains.break_glass()
    await pair.one.configuration._follow()
    for areas in (pair.one, pair.two):
        assert areas.domains.table.present(pair.one.domain).glass_mode is not None


async def test_an_apply_waits_for_that_of_another_node(pair: Pair) -> None:
    """It begins after the end of the other one, and finds its objects."""
    left = await begin(pair.one, clients(last=MANY))
    plans = []

    async def apply() -> None:
        plans.append(await engine_of(pair.two).run(pair.one.tenant, items(clients(last=MANY + 5))))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(apply)
        for part in left[:-1]:
            await pair.one.store.write(part)
        assert not plans
        await pair.one.configuration.change(left[-1])
    assert [len(plan.changes) for plan in plans] == [5]
    assert numbers(pair)[1] == MANY + 5


async def test_a_node_that_starts_waits_for_the_end(pair: Pair) -> None:
    """A node that starts while another one applies answers no login before its end, and then has all of it."""
    left = await begin(pair.one, clients())
    await pair.two.configuration.restored()  # a start reads the part too
    assert 0 < numbers(pair)[1] < MANY
    prepared = trio.Event()

    async def prepare() -> None:
        await pair.two.app.configured.prepare()
        prepared.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(prepare)
        for part in left[:-1]:
            await pair.one.store.write(part)
        assert not prepared.is_set()
        await pair.one.configuration.change(left[-1])
    assert numbers(pair) == (MANY, MANY)


async def test_the_other_node_undoes_what_a_stopped_one_has_left(pair: Pair) -> None:
    """A node stops in the middle. The change of the other node takes effect when it has undone the part."""
    await begin(pair.one, clients())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: pair.two.client("203.0.113.5/32", name="beside"))
        await written(pair.two.store, "beside")
        await engine_of(pair.two).undo_unfinished()
        assert numbers(pair) == (0, 0)
        pair.two.clock.pass_by(LATE_S + 1)
        await pair.two.app.configured.engine.undo_unfinished()
    assert [client.name for client in pair.two.clients.of_tenant(pair.one.tenant)] == ["beside"]
    await pair.one.configuration._follow()
    assert numbers(pair) == (1, 1)
