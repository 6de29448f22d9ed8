"""Tests of presence: an agent is Active, and becomes Inactive after three missed heartbeats."""

from pathlib import Path
from threading import Event

import trio
from trio.testing import wait_all_tasks_blocked

from sallyport.areas.agents.presence import HEARTBEAT_S, MISSES
from sallyport.areas.users.instances.instance import InstanceQuery
from tests.areas import Areas, SetClock
from tests.areas.agents.hosts import Host


async def status(areas: Areas) -> dict[str, str]:
    """Return the status of each instance by its name."""
    rows, _ = await areas.instances.page(InstanceQuery(areas.domain))
    return {row.name: row.status for row in rows}


async def test_three_missed_heartbeats(areas: Areas, host: Host, clock: SetClock) -> None:
    """An agent is Active from its first message until it misses three heartbeats. Its next message makes it Active
    again."""
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


async def test_a_message_during_the_sweep(areas: Areas, host: Host, clock: SetClock) -> None:
    """If an agent sends a message while the sweep marks it Inactive, it is Active in the end."""
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


async def test_heartbeats_missed_during_a_downtime_do_not_count(areas: Areas, host: Host, clock: SetClock) -> None:
    """An agent that sends nothing after the service has started becomes Inactive."""
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


async def test_an_open_poll_is_a_heartbeat(areas: Areas, host: Host, clock: SetClock) -> None:
    """A waiting poll counts as a heartbeat until it ends."""
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


async def test_the_last_message_is_stored(areas: Areas, host: Host, clock: SetClock, tmp_path: Path) -> None:
    """The sweep stores the time of each agent's last message. A machine that has been deleted since that message causes
    no error."""
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
