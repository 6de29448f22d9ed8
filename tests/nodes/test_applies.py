"""Two nodes and an apply that is written in several transactions."""

from typing import TypeVar

import pytest
import trio

from sallyport.areas.configuration import repo
from sallyport.areas.configuration.service import LATE_S
from sallyport.store.model import Store, Work
from tests.areas.configuration.test_apply import engine_of, items
from tests.areas.configuration.test_slices import MANY, begin, clients
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

T = TypeVar("T")
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
        await engine_of(pair.two).finish_unfinished()
        assert numbers(pair) == (0, 0)
        pair.two.clock.pass_by(LATE_S + 1)
        await pair.two.app.configured.engine.finish_unfinished()
    assert [client.name for client in pair.two.clients.of_tenant(pair.one.tenant)] == ["beside"]
    await pair.one.configuration._follow()
    assert numbers(pair) == (1, 1)


async def test_a_stopped_node_does_not_write_on(pair: Pair) -> None:
    """A node is stopped in the middle of an apply. The other node undoes the part, and is in the middle of an apply of
    its own when the first node runs again. That one writes nothing more, although both have noted as many objects."""
    left = await begin(pair.one, clients("one"))
    pair.two.clock.pass_by(LATE_S + 1)
    await pair.two.app.configured.engine.finish_unfinished()
    others = await begin(pair.two, clients("two"))
    with pytest.raises(repo.Outdated, match="undone meanwhile"):
        await pair.one.store.write(left[0])
    for part in others[:-1]:
        await pair.two.store.write(part)
    await pair.two.configuration.change(others[-1])
    assert {each.note for each in pair.two.clients.of_tenant(pair.one.tenant)} == {"two"}


async def test_a_stopped_node_does_not_write_into_an_undo(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that was stopped runs again while another one undoes its part. It writes nothing more."""
    left = await begin(pair.one, clients(last=700))
    pair.two.clock.pass_by(LATE_S + 1)
    write, refused = pair.two.store.write, list[repo.Outdated]()

    async def write_between(work: Work[T]) -> T:
        result = await write(work)
        with pytest.raises(repo.Outdated) as caught:
            await pair.one.store.write(left[0])
        refused.append(caught.value)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(pair.two.store, "write", write_between)
        await pair.two.app.configured.engine.finish_unfinished()
    assert refused
    assert numbers(pair)[1] == 0


async def test_two_nodes_undo_a_part_at_once(pair: Pair) -> None:
    """Both nodes find the part of a stopped process. One of them undoes it, and none serves a part of it."""
    for part in (await begin(pair.one, clients(last=700)))[:9]:
        await pair.one.store.write(part)
    pair.one.clock.pass_by(LATE_S + 1)
    pair.two.clock.now = pair.one.clock.now
    async with trio.open_nursery() as nursery:
        for node in (pair.one, pair.two):
            nursery.start_soon(node.app.configured.engine.finish_unfinished)
    for node in (pair.one, pair.two):
        await node.configuration.reload()
    assert numbers(pair) == (0, 0)
    assert not await pair.one.store.read(repo.is_unfinished)
