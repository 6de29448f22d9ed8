"""Who is heard of: Active, and Inactive after three heartbeats that did not come."""

from pathlib import Path
from threading import Event

import trio
from trio.testing import wait_all_tasks_blocked

from sallyport.endpoints.agents.presence import HEARTBEAT_S, MISSES
from sallyport.endpoints.instances.instance import InstanceQuery
from tests.areas import Areas, SetClock
from tests.endpoints.agents.hosts import Host


async def status(areas: Areas) -> dict[str, str]:
    """Each instance's status, by its name."""
    rows, _ = await areas.instances.page(InstanceQuery(areas.domain))
    return {row.name: row.status for row in rows}


async def test_three_misses(areas: Areas, host: Host, clock: SetClock) -> None:
    """Whoever speaks is active at once, and stays so for three heartbeats; then inactive, until it speaks again."""
    presence = areas.agents.presence
    assert await status(areas) == {"web": "Inactive"}
    await presence.seen(host.id)
    assert await status(areas) == {"web": "Active"}
    clock.pass_by(MISSES * HEARTBEAT_S)
    await presence.sweep()
    assert await status(areas) == {"web": "Active"}
    assert areas.sample("sallyport_agent_last_seen_seconds") == MISSES * HEARTBEAT_S
    clock.pass_by(1)
    await presence.sweep()
    assert await status(areas) == {"web": "Inactive"}
    assert areas.sample("sallyport_agents") == 0
    await presence.seen(host.id)
    assert await status(areas) == {"web": "Active"}


async def test_an_agent_that_speaks_while_it_is_noted_as_silent(areas: Areas, host: Host, clock: SetClock) -> None:
    """Is active in the end."""
    presence = areas.agents.presence
    await presence.seen(host.id)
    clock.pass_by(MISSES * HEARTBEAT_S + 1)
    go_on = Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.store.write, lambda _tx: go_on.wait(30))
        await wait_all_tasks_blocked()
        nursery.start_soon(presence.sweep)
        await wait_all_tasks_blocked()
        await presence.seen(host.id)
        go_on.set()
    assert await status(areas) == {"web": "Active"}


async def test_a_restart(areas: Areas, host: Host, clock: SetClock) -> None:
    """What was missed while the service was away does not count, and who stays silent afterwards is inactive."""
    other = await Host.register(areas, "db")
    for each in (host, other):
        await areas.agents.presence.seen(each.id)
    await areas.agents.presence.sweep()
    clock.pass_by(10 * MISSES * HEARTBEAT_S)
    await areas.agents.prepare()
    await areas.agents.presence.sweep()
    assert await status(areas) == {"web": "Active", "db": "Active"}
    clock.pass_by(HEARTBEAT_S)
    await areas.agents.presence.seen(other.id)
    clock.pass_by((MISSES - 1) * HEARTBEAT_S + 1)
    await areas.agents.presence.sweep()
    assert await status(areas) == {"web": "Inactive", "db": "Active"}


async def test_an_agent_that_waits_is_heard(areas: Areas, host: Host, clock: SetClock) -> None:
    """A poll that is open is a heartbeat, however long it waits."""
    await areas.agents.presence.seen(host.id)
    await host.fetch()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.poll, 60)
            while not areas.agents.states.waits(host.id):
                await trio.sleep(0.001)
            clock.pass_by(10 * MISSES * HEARTBEAT_S)
            await areas.agents.presence.sweep()
            assert await status(areas) == {"web": "Active"}
            found = await areas.agents.situation(areas.domain, host.id)
            assert found.seen_at == clock()
            areas.agents.states.close()


async def test_when_it_was_heard_is_kept(areas: Areas, host: Host, clock: SetClock, tmp_path: Path) -> None:
    """In the store, a few seconds later; a machine that is deleted meanwhile is no trouble."""
    await areas.agents.presence.seen(host.id)
    clock.pass_by(5)
    await areas.agents.presence.seen(host.id)
    await areas.agents.presence.sweep()
    assert (await areas.agents.agent(areas.domain, host.id)).seen_at == clock()
    await areas.agents.presence.seen(host.id)
    await areas.instances.remove(areas.domain, host.id)
    clock.pass_by(1000)
    await areas.agents.presence.sweep()
    assert await status(areas) == {}
