"""The state of a machine: who is in it, its versions and signatures, and how soon an agent hears of a change."""

from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
import trio
import trio.testing

from sallyport.base.agentwire.envelope import Position, follow, open_envelope
from sallyport.base.agentwire.fields import MAX_STATE, MAX_USERS, NO_PASSWORD
from sallyport.base.errors import Conflict, NotFound, StoreError, WireError
from sallyport.base.secret import Secret
from sallyport.base.sha512crypt import matches
from sallyport.base.wire import dumps
from sallyport.endpoints.agents.states import States
from sallyport.endpoints.groups.group import NewGroup
from sallyport.endpoints.membership import Action
from sallyport.endpoints.users.account import UserChange
from sallyport.passwords.policy import Assignment
from sallyport.store.model import Tx
from sallyport.store.rotation import Rotation as KeyRotation
from sallyport.tenancy.keys.key import NewKey
from tests.areas import Areas, SetClock
from tests.endpoints.agents.hosts import Failing, Host, machine, user
from tests.endpoints.keys import ED25519

HOUR = 3600


async def group(host: Host, name: str, *users: int, **policy: str) -> int:
    """A group of the machine with these users."""
    areas = host.areas
    group_id = await areas.groups.add(areas.domain, NewGroup(name), [host.id])
    await areas.groups.assign_users(areas.domain, group_id, users, Action.ADD)
    if policy:
        await areas.groups.set_credential_policy(areas.domain, group_id, dict(policy))
    return group_id


async def test_an_empty_machine(host: Host) -> None:
    """Its first state has a version and nobody in it; asking again changes nothing."""
    state = await host.fetch()
    assert state.version > 0
    assert (state.users, state.groups, state.takeover, state.triggers) == ((), (), (), ())
    assert await host.poll() is None


async def test_who_is_assigned_directly(areas: Areas, host: Host) -> None:
    """Comes with keys and the hash of the password, without an end; who is taken off is gone."""
    await user(areas, "ann", password=b"hunter2", ssh_key=ED25519, privileged_user="yes")
    await user(areas, "bob")
    await host.assign("ann")
    ann = await host.user("ann")
    assert ann.ssh_keys == (ED25519,)
    assert ann.privileged
    assert ann.expires is None
    assert matches(b"hunter2", ann.password_hash)
    await host.assign("bob")
    assert (await host.user("bob")).password_hash == NO_PASSWORD
    await host.assign("ann", Action.REMOVE)
    assert [each.name for each in (await host.fetch()).users] == ["bob"]


async def test_who_comes_through_groups(areas: Areas, host: Host, clock: SetClock) -> None:
    """Through active groups of the machine alone, with what their credential policies say; the time to live begins
    when the group is given."""
    ann, bob = await user(areas, "ann"), await user(areas, "bob")
    group_id = await group(host, "Ops", ann, ttl_user="8h", privileged_user="yes", home_dir="/srv/ann")
    found = await host.user("ann")
    assert (found.groups, found.privileged, found.home) == (("ops",), True, "/srv/ann")
    assert found.expires == clock() + 8 * HOUR * 1_000_000
    clock.pass_by(HOUR)
    await areas.groups.assign_users(areas.domain, group_id, [bob], Action.ADD)
    assert (await host.user("bob")).expires == clock() + 8 * HOUR * 1_000_000
    assert (await host.user("ann")).expires == clock() + 7 * HOUR * 1_000_000
    await areas.groups.edit(areas.domain, group_id, {"status": "Disabled"})
    assert (await host.fetch()).users == ()
    await areas.groups.edit(areas.domain, group_id, {"status": "Enabled"})
    assert (await host.user("ann")).expires == clock() + 8 * HOUR * 1_000_000


async def test_how_a_groups_users_authenticate(areas: Areas, host: Host) -> None:
    """By what the group's authFlow says and the machine takes; by another way, by what that one says too."""
    ann = await user(areas, "ann", password=b"hunter2", ssh_key=ED25519)
    group_id = await group(host, "ops", ann)

    async def ways_in() -> tuple[bool, bool]:
        found = await host.user("ann")
        return found.ssh_keys != (), found.password_hash != NO_PASSWORD

    for flow, expected in (("SSH", (True, False)), ("Password,DID", (False, True)), ("DID", (False, False))):
        await areas.groups.edit(areas.domain, group_id, {"auth_flow": flow})
        assert await ways_in() == expected
    more = await group(host, "more", ann)
    await areas.groups.edit(areas.domain, more, {"auth_flow": "Password"})
    assert await ways_in() == (False, True)
    await areas.instances.set_auth_type(areas.domain, host.id, "SSH")
    assert await ways_in() == (False, False)
    await host.assign("ann")
    assert await ways_in() == (True, False)


async def test_two_ways_last_as_long_as_the_later(areas: Areas, host: Host, clock: SetClock) -> None:
    """A direct assignment has no end, and rights that came by the group end with the group's time."""
    ann = await user(areas, "ann")
    await host.assign("ann")
    await group(host, "admins", ann, ttl_user="1h", privileged_user="yes")
    found = await host.user("ann")
    assert (found.expires, found.privileged, found.groups) == (None, True, ("admins",))
    clock.pass_by(HOUR + 1)
    found = await host.user("ann")
    assert (found.expires, found.privileged, found.groups) == (None, False, ())


async def test_names_that_no_host_takes(areas: Areas, host: Host) -> None:
    """Are left out and told; one such user does not keep the others from being there. A group named like one of the
    system's gives nothing."""
    for name in ("ann", "Ünal", "a b", "x" * 33, "../x", "Carol"):
        await user(areas, name)
        await host.assign(name)
    bob = await user(areas, "bob")
    await group(host, "sudo", bob)
    assert [each.name for each in (await host.fetch()).users] == ["ann", "bob", "carol"]
    assert (await host.user("bob")).groups == ()
    assert set((await areas.agents.situation(areas.domain, host.id)).unfit) == {"Ünal", "a b", "x" * 33, "../x"}


async def crowd(areas: Areas, host: Host, count: int, ssh_key: str = "") -> None:
    """So many users of the machine."""

    def work(tx: Tx) -> None:
        for number in range(count):
            areas.users.add_in(tx, areas.domain, UserChange(f"u{number:04}", ssh_key=ssh_key), [host.id])

    await areas.store.write(work)


@pytest.mark.parametrize(("count", "ssh_key"), [(MAX_USERS + 2, ""), (230, f"{ED25519} {'c' * 15_000}")])
async def test_more_than_a_state_holds(areas: Areas, host: Host, count: int, ssh_key: str) -> None:
    """Whoever there is no room for is told; the others are there, and the agent can read it."""
    await crowd(areas, host, count, ssh_key)
    answer = await areas.agents.states.poll(areas.tenant, areas.domain, host.id, 0, 0)
    assert len(dumps(answer)) <= MAX_STATE
    assert open_envelope(answer) is not None
    there = [each.name for each in (await host.fetch()).users]
    unfit = (await areas.agents.situation(areas.domain, host.id)).unfit
    assert there == [f"u{number:04}" for number in range(len(there))]
    assert [*there, *unfit] == [f"u{number:04}" for number in range(count)]
    assert 1 < len(unfit) < 30


async def test_how_one_authenticates_there(areas: Areas, host: Host) -> None:
    """A machine that takes keys alone gets no hash of a password, and one that takes passwords alone gets no key."""
    await user(areas, "ann", password=b"hunter2", ssh_key=ED25519)
    await host.assign("ann")
    await areas.instances.set_auth_type(areas.domain, host.id, "SSH")
    ann = await host.user("ann")
    assert (ann.ssh_keys, ann.password_hash) == ((ED25519,), NO_PASSWORD)
    await areas.instances.set_auth_type(areas.domain, host.id, "Password")
    ann = await host.user("ann")
    assert ann.ssh_keys == ()
    assert matches(b"hunter2", ann.password_hash)


async def test_policies_and_settings_go_along(areas: Areas, host: Host) -> None:
    """Those of the machine, and of its groups' credential policies; a machine's own settings are over its domain's."""
    ann = await user(areas, "ann")
    for name, least in (("of the machine", "12"), ("of the group", "14"), ("of nobody", "16")):
        await areas.policies.add(areas.tenant, {"policyName": name, "minLen": least})
    await areas.policies.assign(areas.tenant, [Assignment(1, host.id)])
    group_id = await group(host, "ops", ann)
    await areas.groups.set_credential_policy(areas.domain, group_id, {"policy_id": 2})
    assert [each.min_length for each in (await host.fetch()).policies] == [12, 14]
    await areas.agents.change_settings(areas.domain, 0, {"putBackPrivileges": True, "removal": "lock"})
    await areas.agents.change_settings(areas.domain, host.id, {"removal": "delete"})
    settings = (await host.fetch()).settings
    assert (settings.put_back_privileges, settings.removal) == (True, "delete")


async def test_a_version_changes_exactly_when_the_content_does(areas: Areas, host: Host, clock: SetClock) -> None:
    """What is said again, or concerns other machines, leaves it; each change raises it, also one that takes another
    back. A changed password is a change."""
    await user(areas, "ann", password=b"hunter2")
    await host.assign("ann")
    first = (await host.fetch()).version
    other = await Host.register(areas, "db")
    await user(areas, "bob")
    await other.assign("bob")
    await host.assign("ann")
    clock.pass_by(1)
    assert await host.poll() is None
    await host.assign("bob")
    second = (await host.fetch()).version
    await host.assign("bob", Action.REMOVE)
    third = (await host.fetch()).version
    await areas.accounts.update(areas.domain, 1, UserChange(password=b"hunter3"))
    fourth = (await host.fetch()).version
    assert first < second < third < fourth
    assert matches(b"hunter3", (await host.user("ann")).password_hash)


async def test_a_new_master_key_changes_no_state(areas: Areas, host: Host) -> None:
    """A password that is sealed anew is the same password: its hash stays, and so does what a host has made since."""
    await user(areas, "ann", password=b"hunter2")
    await host.assign("ann")
    before = await host.user("ann")
    sealed = areas.vault.seal(b"hunter2", "endpoint_users/1/password")
    await areas.store.write(lambda tx: tx.execute("update endpoint_users set password = :p", p=sealed))
    assert await host.poll() is None
    assert await host.user("ann") == before


async def test_a_clock_that_was_set_back(areas: Areas, host: Host, clock: SetClock) -> None:
    """Versions grow all the same."""
    await user(areas, "ann")
    first = (await host.fetch()).version
    clock.pass_by(-10 * HOUR)
    await host.assign("ann")
    assert (await host.fetch()).version > first


async def test_an_agent_that_is_ahead(areas: Areas, host: Host, clock: SetClock) -> None:
    """After the store was restored from a copy an agent has a newer version than the service: it gets a newer one yet;
    a version that nobody can have is not followed."""
    state = await host.fetch()
    clock.pass_by(HOUR)
    host.position = Position(clock() - 1, "what the lost store said")
    again = await host.fetch()
    assert again.version > clock() - 1
    assert again.users == state.users
    host.position = Position(2**62, "nonsense")
    with pytest.raises(WireError, match="older"):
        await host.poll()


async def test_a_state_is_signed_to_its_machine(areas: Areas, host: Host) -> None:
    """Another machine of the domain, and one of another domain, refuse it; an older one is refused too."""
    await user(areas, "ann")
    first = await host.fetch()
    await host.assign("ann")
    newer = await host.fetch()
    other = await Host.register(areas, "db")
    with pytest.raises(WireError, match="another's"):
        follow(Position(), newer, instance=other.id)
    with pytest.raises(WireError, match="older"):
        follow(host.position, first, instance=host.id)
    assert not host.verify(b"\0" * 64, b"anything")


async def test_an_unknown_machine(areas: Areas) -> None:
    """Has no state."""
    with pytest.raises(NotFound):
        await areas.agents.states.poll(areas.tenant, areas.domain, 999, 0, 0)


# --- waiting -------------------------------------------------------------------------------------------------------


async def test_an_agent_waits_for_a_change(areas: Areas, host: Host) -> None:
    """And hears of it at the next look, whoever made it; of a change elsewhere it hears nothing."""
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


async def test_a_machine_that_cannot_be_looked_at(areas: Areas, host: Host) -> None:
    """Does not keep the agents of other domains from hearing of a change: its own looks for itself, and fails."""
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


async def test_rights_that_end_by_themselves_are_told(areas: Areas, host: Host, clock: SetClock) -> None:
    """When a way ends that made somebody privileged, the agent that waits hears of it, though nobody changed it."""
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


async def test_a_wait_that_is_over(areas: Areas, host: Host) -> None:
    """Ends unchanged: after its time, by a newer poll of the same machine, and when the service stops."""
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
    """A tenant with more agents than may wait has its own answered early; another tenant's agent waits on."""
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
            assert set(answered) == {each.id for each in others[:3]}  # in the order in which their reads ended
            assert states.waits(host.id)
            nursery.cancel_scope.cancel()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; `fail_after` is the caller's."""
    while not holds():
        await trio.sleep(0.001)


async def test_another_key_for_states(areas: Areas, host: Host) -> None:
    """An agent is told the next key by a state that its own has signed, gets later ones signed by the next, and who has
    missed two keys believes nothing any more. A rotation of the master key keeps both."""
    late = await Host.register(areas, "late")
    await host.fetch()
    await late.fetch()
    first = host.made.state_key
    await areas.agents.rotate_state_key(areas.domain)
    state = await host.poll()
    assert state is not None
    assert host.made.state_key == b64decode(state.key) != first
    await user(areas, "ann")
    await host.assign("ann")
    assert [each.name for each in (await host.fetch()).users] == ["ann"]
    areas.vault.add(2, Secret(b"k" * 32))
    await KeyRotation(areas.store, areas.vault, late_s=0).rotate()
    assert (await late.fetch()).key == state.key
    late.made = replace(late.made, state_key=first)
    await areas.agents.rotate_state_key(areas.domain)
    await host.fetch()
    with pytest.raises(WireError, match="signature"):
        await late.poll()


async def test_a_domain_without_agents_has_no_key(areas: Areas) -> None:
    """There is nothing to rotate then."""
    with pytest.raises(Conflict):
        await areas.agents.rotate_state_key(areas.domain)


async def test_agents_that_wait_hear_of_another_key(areas: Areas, host: Host) -> None:
    """It is a change like others."""
    await host.fetch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.agents.states.run)
        nursery.start_soon(areas.agents.rotate_state_key, areas.domain)
        with trio.fail_after(20):
            assert await host.poll(15) is not None
        nursery.cancel_scope.cancel()


async def test_more_policies_than_a_state_lists(areas: Areas, host: Host) -> None:
    """All are carried: by few that are stricter than all of them together."""
    for number in range(105):
        policy = await areas.policies.add(areas.tenant, {"policyName": f"p{number}", "minLen": str(10 + number)})
        await areas.policies.assign(areas.tenant, [Assignment(policy, host.id)])
    (told,) = (await host.fetch()).policies
    assert told.min_length == 114
