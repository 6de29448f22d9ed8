"""Tests of the state of a machine: its users, its versions and signatures, and how soon an agent gets a change."""

from base64 import b64decode
from dataclasses import replace

import pytest
import trio
import trio.testing

from sallyport.agentwire.envelope import Position, follow, open_envelope
from sallyport.agentwire.fields import MAX_STATE, MAX_USERS, NO_PASSWORD
from sallyport.areas.passwords.policy import Assignment
from sallyport.areas.users.accounts.account import UserChange
from sallyport.areas.users.membership import Action
from sallyport.base.errors import Conflict, NotFound, WireError
from sallyport.base.secret import Secret
from sallyport.base.sha512crypt import matches
from sallyport.base.wire import dumps
from sallyport.store.model import Tx
from sallyport.store.rotation import Rotation as KeyRotation
from tests.areas import Areas, SetClock
from tests.areas.agents.hosts import Host, group, user
from tests.areas.users.keys import ED25519

HOUR = 3600


async def test_an_empty_machine(host: Host) -> None:
    """The first state of a machine without users has a version and an empty list of users. A second poll returns no
    newer state."""
    state = await host.fetch()
    assert state.version > 0
    assert (state.users, state.groups, state.takeover, state.triggers) == ((), (), (), ())
    assert await host.poll() is None


async def test_a_directly_assigned_user(areas: Areas, host: Host) -> None:
    """A user that is assigned directly has its keys, its password hash and no end time.

    A user that is not assigned is not in the state.
    """
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


async def test_users_of_groups(areas: Areas, host: Host, clock: SetClock) -> None:
    """An active group of the machine adds its users with the values of its credential policy.

    The time to live starts when the user is added to the group.
    """
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
    """A user of a group may use the methods that both the authFlow of the group and the machine allow.

    A second group or a direct assignment adds its own methods.
    """
    ann = await user(areas, "ann", password=b"hunter2", ssh_key=ED25519)
    group_id = await group(host, "ops", ann)

    async def login_methods() -> tuple[bool, bool]:
        found = await host.user("ann")
        return found.ssh_keys != (), found.password_hash != NO_PASSWORD

    for flow, expected in (("SSH", (True, False)), ("Password,DID", (False, True)), ("DID", (False, False))):
        await areas.groups.edit(areas.domain, group_id, {"auth_flow": flow})
        assert await login_methods() == expected
    more = await group(host, "more", ann)
    await areas.groups.edit(areas.domain, more, {"auth_flow": "Password"})
    assert await login_methods() == (False, True)
    await areas.instances.set_auth_type(areas.domain, host.id, "SSH")
    assert await login_methods() == (False, False)
    await host.assign("ann")
    assert await login_methods() == (True, False)


async def test_a_direct_assignment_outlasts_a_group(areas: Areas, host: Host, clock: SetClock) -> None:
    """A user that is also assigned directly stays when the time of the group ends. Only the rights from the group
    end."""
    ann = await user(areas, "ann")
    await host.assign("ann")
    await group(host, "admins", ann, ttl_user="1h", privileged_user="yes")
    found = await host.user("ann")
    assert (found.expires, found.privileged, found.groups) == (None, True, ("admins",))
    clock.pass_by(HOUR + 1)
    found = await host.user("ann")
    assert (found.expires, found.privileged, found.groups) == (None, False, ())


async def test_names_invalid_on_a_host(areas: Areas, host: Host) -> None:
    """Users whose names are invalid on a host are reported and are not in the state.

    The other users are in the state. A group that has the name of a system group is not in the state.
    """
    for name in ("ann", "Ünal", "a b", "x" * 33, "../x", "Carol"):
        await user(areas, name)
        await host.assign(name)
    bob = await user(areas, "bob")
    await group(host, "sudo", bob)
    assert [each.name for each in (await host.fetch()).users] == ["ann", "bob", "carol"]
    assert (await host.user("bob")).groups == ()
    assert set((await areas.agents.situation(areas.domain, host.id)).unfit) == {"Ünal", "a b", "x" * 33, "../x"}


async def add_users(areas: Areas, host: Host, count: int, ssh_key: str = "") -> None:
    """Add `count` users to the machine."""

    def work(tx: Tx) -> None:
        for number in range(count):
            areas.users.add_in(tx, areas.domain, UserChange(f"u{number:04}", ssh_key=ssh_key), [host.id])

    await areas.store.write(work)


@pytest.mark.parametrize(("count", "ssh_key"), [(MAX_USERS + 2, ""), (230, f"{ED25519} {'c' * 15_000}")])
async def test_more_than_a_state_holds(areas: Areas, host: Host, count: int, ssh_key: str) -> None:
    """Users beyond the limits of the state are reported. The other users are in the state, and the agent can read
    it."""
    await add_users(areas, host, count, ssh_key)
    answer = await areas.agents.states.poll(areas.tenant, areas.domain, host.id, 0, 0)
    assert len(dumps(answer)) <= MAX_STATE
    assert open_envelope(answer) is not None
    there = [each.name for each in (await host.fetch()).users]
    unfit = (await areas.agents.situation(areas.domain, host.id)).unfit
    assert there == [f"u{number:04}" for number in range(len(there))]
    assert [*there, *unfit] == [f"u{number:04}" for number in range(count)]
    assert 1 < len(unfit) < 30


async def test_the_methods_of_a_machine(areas: Areas, host: Host) -> None:
    """A machine that allows only SSH keys gets no password hash.

    A machine that allows only passwords gets no SSH key.
    """
    await user(areas, "ann", password=b"hunter2", ssh_key=ED25519)
    await host.assign("ann")
    await areas.instances.set_auth_type(areas.domain, host.id, "SSH")
    ann = await host.user("ann")
    assert (ann.ssh_keys, ann.password_hash) == ((ED25519,), NO_PASSWORD)
    await areas.instances.set_auth_type(areas.domain, host.id, "Password")
    ann = await host.user("ann")
    assert ann.ssh_keys == ()
    assert matches(b"hunter2", ann.password_hash)


async def test_policies_and_settings_of_a_state(areas: Areas, host: Host) -> None:
    """The state has the password policies of the machine and of the credential policies of its groups.

    A setting of the machine overrides the setting of its domain.
    """
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
    """Each change of the content increases the version.

    This includes a change that undoes another one, and a change of a password. A repeated change and a change of
    another machine do not increase it.
    """
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
    """If a password is sealed again under the same key or a new one, its hash and the version of the state do not
    change."""
    await user(areas, "ann", password=b"hunter2")
    await host.assign("ann")
    before = await host.user("ann")
    sealed = areas.vault.seal(b"hunter2", "endpoint_users/1/password")
    await areas.store.write(lambda tx: tx.execute("update endpoint_users set password = :p", p=sealed))
    assert await host.poll() is None
    assert await host.user("ann") == before


async def test_a_clock_that_was_set_back(areas: Areas, host: Host, clock: SetClock) -> None:
    """Versions increase even after the clock was set back."""
    await user(areas, "ann")
    first = (await host.fetch()).version
    clock.pass_by(-10 * HOUR)
    await host.assign("ann")
    assert (await host.fetch()).version > first


async def test_an_agent_that_is_ahead(areas: Areas, host: Host, clock: SetClock) -> None:
    """If the store was restored and an agent reports a newer version than the service has, the agent gets a state with
    a still newer version. The service ignores an impossible version."""
    state = await host.fetch()
    clock.pass_by(HOUR)
    host.position = Position(clock() - 1, "what the lost store said")
    again = await host.fetch()
    assert again.version > clock() - 1
    assert again.users == state.users
    host.position = Position(2**62, "nonsense")
    with pytest.raises(WireError, match="is lower"):
        await host.poll()


async def test_a_state_is_signed_to_its_machine(areas: Areas, host: Host) -> None:
    """An agent refuses a state that was signed for another machine of the domain. It also refuses a state that is older
    than its own."""
    await user(areas, "ann")
    first = await host.fetch()
    await host.assign("ann")
    newer = await host.fetch()
    other = await Host.register(areas, "db")
    with pytest.raises(WireError, match="another instance"):
        follow(Position(), newer, instance=other.id)
    with pytest.raises(WireError, match="is lower"):
        follow(host.position, first, instance=host.id)
    assert not host.verify(b"\0" * 64, b"anything")


async def test_an_unknown_machine(areas: Areas) -> None:
    """A poll for an unknown machine raises NotFound."""
    with pytest.raises(NotFound):
        await areas.agents.states.poll(areas.tenant, areas.domain, 999, 0, 0)


async def test_rotation_of_the_state_key(areas: Areas, host: Host) -> None:
    """The state that the old key signs contains the next key, and later states are signed with the next key.

    An agent that missed two keys refuses the state. A rotation of the master key keeps both keys.
    """
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
    await KeyRotation(areas.store, areas.vault, lambda: areas.app.areas.sealed, late_s=0).rotate()
    assert (await late.fetch()).key == state.key
    late.made = replace(late.made, state_key=first)
    await areas.agents.rotate_state_key(areas.domain)
    await host.fetch()
    with pytest.raises(WireError, match="signature"):
        await late.poll()


async def test_a_domain_without_agents_has_no_key(areas: Areas) -> None:
    """A rotation of the state key in a domain without agents raises Conflict."""
    with pytest.raises(Conflict):
        await areas.agents.rotate_state_key(areas.domain)


async def test_a_rotated_state_key_wakes_the_agent(areas: Areas, host: Host) -> None:
    """A waiting agent gets a new state when the state key is rotated."""
    await host.fetch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.agents.states.run)
        nursery.start_soon(areas.agents.rotate_state_key, areas.domain)
        with trio.fail_after(20):
            assert await host.poll(15) is not None
        nursery.cancel_scope.cancel()


async def test_more_policies_than_a_state_lists(areas: Areas, host: Host) -> None:
    """If a machine has more policies than a state can hold, they are merged into fewer policies that are at least as
    strict."""
    for number in range(105):
        policy = await areas.policies.add(areas.tenant, {"policyName": f"p{number}", "minLen": str(10 + number)})
        await areas.policies.assign(areas.tenant, [Assignment(policy, host.id)])
    (merged,) = (await host.fetch()).policies
    assert merged.min_length == 114
