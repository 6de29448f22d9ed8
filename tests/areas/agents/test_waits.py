"""Tests of polls that wait for a change of the machine."""

from contextlib import suppress
from functools import partial

import trio
import trio.testing

from sallyport.areas.agents.states import States
from sallyport.areas.tenancy.keys.key import NewKey
from sallyport.base.errors import StoreError
from tests.areas import Areas, SetClock
from tests.areas.agents.hosts import Failing, Host, group, machine, user
from tests.waiting import until

HOUR = 3600


async def test_an_agent_waits_for_a_change(areas: Areas, host: Host) -> None:
    """A waiting agent gets a change of its machine at the next check, and gets no change of another machine."""
    await user(areas, "ann")
    await host.fetch()
    other = await Host.register(areas, "db")
    heard = trio.Event()

    async def wait() -> None:
        assert await host.poll(60) is not None
        heard.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await until(lambda: areas.agents.states.waits(host.id))
            await areas.agents.states.wake_changed()
            await other.assign("ann")
            await areas.agents.states.wake_changed()
            await trio.testing.wait_all_tasks_blocked()
            assert not heard.is_set()
            await host.assign("ann")
            await areas.agents.states.wake_changed()
            await heard.wait()


async def test_a_machine_whose_state_cannot_be_computed(areas: Areas, host: Host) -> None:
    """A machine whose state cannot be computed does not delay changes for agents of other domains.

    Its own agent gets an error.
    """
    await user(areas, "ann")
    domain = await areas.domains.add(areas.tenant, "branch")
    _, key = await areas.keys.create(NewKey(domain))
    other = await areas.agents.machines.register(await areas.keys.authenticate(key), None, machine("broken"))
    policies = Failing(areas.policies)
    states = States(areas.store, areas.vault, policies, areas.clock)
    mine, broken = await states.current(host.id), await states.current(other.instance_id)
    heard = list[int]()

    async def wait(domain_id: int, instance_id: int, version: int) -> None:
        with suppress(StoreError):
            assert await states.poll(areas.tenant, domain_id, instance_id, version, 60) != {"unchanged": True}
        heard.append(instance_id)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, domain, other.instance_id, broken.version)
            await until(lambda: states.waits(other.instance_id))
            nursery.start_soon(wait, areas.domain, host.id, mine.version)
            await until(lambda: states.waits(host.id))
            await states.wake_changed()
            await areas.keys.create(NewKey(domain))
            await host.assign("ann")
            policies.broken = other.instance_id
            await states.wake_changed()
    assert set(heard) == {host.id, other.instance_id}


async def test_expired_rights_wake_the_agent(areas: Areas, host: Host, clock: SetClock) -> None:
    """A waiting agent gets a new state when the time to live of a group ends."""
    ann = await user(areas, "ann")
    await host.assign("ann")
    await group(host, "admins", ann, ttl_user="1h", privileged_user="yes")
    assert (await host.user("ann")).privileged

    async def wait() -> None:
        state = await host.poll(60)
        assert state is not None
        assert not state.users[0].privileged

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await until(lambda: areas.agents.states.waits(host.id))
            await areas.agents.states.wake_changed()
            clock.pass_by(HOUR + 1)
            await areas.agents.states.wake_changed()


async def test_the_end_of_a_wait(areas: Areas, host: Host) -> None:
    """A poll ends without a change when its time is over, when the same machine polls again, and when the service
    stops."""
    await host.fetch()
    assert await host.poll(0.01) is None
    poll = partial(areas.agents.states.poll, areas.tenant, areas.domain, host.id, host.position.version, 60)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await until(lambda: areas.agents.states.waits(host.id))
            nursery.start_soon(poll)
            await trio.testing.wait_all_tasks_blocked()
            assert areas.agents.states.waiting == 1
            areas.agents.states.close()
        assert await host.poll(60) is None
    assert areas.agents.states.waiting == 0


async def test_each_tenant_has_a_share_of_the_waiting_agents(areas: Areas, host: Host) -> None:
    """If a tenant has more waiting agents than the limit, some of its polls are answered early.

    The agent of another tenant keeps waiting.
    """
    states = States(areas.store, areas.vault, areas.policies, areas.clock, most_waiting=2)
    others = [await Host.register(areas, f"other{number}") for number in range(4)]
    for each in (host, *others):
        await each.fetch()
    answered: list[int] = []

    async def poll(each: Host, tenant_id: int) -> None:
        assert await states.poll(tenant_id, areas.domain, each.id, each.position.version, 60) == {"unchanged": True}
        answered.append(each.id)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll, host, 1)
            await until(lambda: states.waits(host.id))
            for each in others:
                nursery.start_soon(poll, each, 2)
                await until(partial(states.waits, each.id))
            await until(lambda: len(answered) == 3)
            assert set(answered) == {each.id for each in others[:3]}  # the order in which their reads ended
            assert states.waits(host.id)
            nursery.cancel_scope.cancel()
