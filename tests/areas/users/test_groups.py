"""Tests of endpoint groups: their users, instances and policies, and the groups that a login sees."""

import pytest
import trio

from sallyport.areas.users.groups.group import CredentialPolicy, Group
from sallyport.areas.users.groups.service import Groups
from sallyport.areas.users.instances.instance import Instance
from sallyport.areas.users.membership import MAX_PAIRS, Action
from sallyport.areas.users.service import EndpointUsers, Missing
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.users import trail
from tests.areas.users.test_service import SlowStore


async def listed(areas: Areas, name: str) -> tuple[Group, CredentialPolicy | None]:
    """Return the group whose name contains a text, with its credential policy."""
    (found,), _ = await areas.groups.page(ListQuery(areas.domain, 0, 10), name)
    return found


async def named(areas: Areas, name: str) -> Group:
    """Return the group whose name contains a text."""
    return (await listed(areas, name))[0]


async def policy_of(areas: Areas, name: str) -> CredentialPolicy | None:
    """Return the credential policy of a group."""
    return (await listed(areas, name))[1]


async def groups_of(areas: Areas, name: str) -> frozenset[str]:
    """Return the groups that the next login sees for a user. They are read from memory if they are cached, and
    otherwise from the store."""
    cached = areas.users.cached(areas.domain, name)
    user = cached if getattr(cached, "groups", None) is not None else await areas.users.load(areas.domain, name)
    return user.groups  # type: ignore[union-attr]


async def test_a_login_knows_the_active_groups(areas: Areas) -> None:
    """The next login sees each change of a group and of its users, even if the user is cached.

    Group names are case-folded.
    """
    ann = await areas.add_user(areas.domain, "ann", b"x")
    staff, guests = [await areas.groups.add(areas.domain, Group(name)) for name in ("Staff", "guests")]
    assert await groups_of(areas, "ann") == frozenset()
    await areas.groups.assign_users(areas.domain, staff, [ann], Action.ADD)
    assert await groups_of(areas, "ann") == {"staff"}
    await areas.groups.assign_users(areas.domain, guests, [ann], Action.ADD)
    await areas.groups.edit(areas.domain, staff, {"name": "People"})
    assert await groups_of(areas, "ann") == {"people", "guests"}
    await areas.groups.edit(areas.domain, guests, {"status": "Disabled"})
    assert await groups_of(areas, "ann") == {"people"}
    await areas.groups.edit(areas.domain, guests, {"status": "enabled"})
    assert await groups_of(areas, "ann") == {"people", "guests"}
    await areas.groups.assign_users(areas.domain, guests, [ann], Action.REMOVE)
    await areas.groups.delete(areas.domain, [staff])
    assert await groups_of(areas, "ann") == frozenset()


async def test_a_login_folds_no_name_of_a_group(areas: Areas) -> None:
    """A login takes the stored form of the names, which was folded when the group was written."""
    ann = await areas.add_user(areas.domain, "ann", b"x")
    staff = await areas.groups.add(areas.domain, Group("Staff"))
    await areas.groups.assign_users(areas.domain, staff, [ann], Action.ADD)
    await areas.store.write(lambda tx: tx.execute("update endpoint_groups set name_key = 'stored'"))
    assert await groups_of(areas, "ann") == {"stored"}


async def test_a_change_that_no_login_sees_keeps_the_cache(areas: Areas) -> None:
    """A change that affects no login keeps the cached users. Other changes keep the cached users of other domains."""
    branch = await areas.domains.add(areas.tenant, "branch")
    group = await areas.groups.add(areas.domain, Group("g"))
    for domain in (areas.domain, branch):
        await areas.add_user(domain, "ann", b"x")
        await areas.users.load(domain, "ann")
    loaded = areas.users.cached(areas.domain, "ann"), areas.users.cached(branch, "ann")
    await areas.groups.edit(areas.domain, group, {"ou": "People", "auth_flow": "SSH"}, [])
    assert areas.users.cached(areas.domain, "ann") is loaded[0]
    await areas.groups.delete(areas.domain, [group])
    assert areas.users.cached(areas.domain, "ann") is not loaded[0]
    assert areas.users.cached(branch, "ann") is loaded[1]


async def test_a_change_of_a_group_overtakes_a_load(areas: Areas) -> None:
    """Groups that were read before a change are not cached after the change."""
    ann = await areas.add_user(areas.domain, "ann", b"x")
    slow = SlowStore(areas.store)
    users = EndpointUsers(slow, areas.vault, areas.clock)
    groups = Groups(areas.store, users, areas.policies, areas.clock)
    group = await groups.add(areas.domain, Group("g"))
    await groups.assign_users(areas.domain, group, [ann], Action.ADD)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(users.load, areas.domain, "ann")
        await slow.has_read.wait()
        await groups.edit(areas.domain, group, {"status": "Disabled"})
        slow.release.set()
    assert users.cached(areas.domain, "ann") is Missing.MISSING


async def test_groups_are_searched_and_counted(areas: Areas) -> None:
    """A search finds groups by a part of the name, also after a rename. The totals and the numbers of users are
    exact."""
    ids = [await areas.groups.add(areas.domain, Group(f"Team-{number}")) for number in range(3)]
    users = [await areas.add_user(areas.domain, name, b"x") for name in ("ann", "bob")]
    await areas.groups.assign_users(areas.domain, ids[1], users, Action.ADD)
    await areas.groups.edit(areas.domain, ids[2], {"name": "Crew"})
    whole, total = await areas.groups.page(ListQuery(areas.domain, 0, 10))
    assert [(group.name, group.users_count) for group, _ in whole] == [("Team-0", 0), ("Team-1", 2), ("Crew", 0)]
    assert total == 3
    found = [
        (await areas.groups.page(ListQuery(areas.domain, 0, 10), text))[1] for text in ("team", "am-1", "crew", "-2")
    ]
    assert found == [2, 1, 1, 0]
    await areas.remove_user(areas.domain, "ann")
    assert (await named(areas, "team-1")).users_count == 1


async def test_names_are_unique_in_a_domain(areas: Areas) -> None:
    """A new or renamed group needs a name that no other group of the domain has; the comparison is case-insensitive.

    A group may change the case of its own name.
    """
    first = await areas.groups.add(areas.domain, Group("one"))
    second = await areas.groups.add(areas.domain, Group("two"))
    with pytest.raises(Conflict):
        await areas.groups.add(areas.domain, Group("ONE"))
    with pytest.raises(Conflict):
        await areas.groups.edit(areas.domain, second, {"name": "One"})
    await areas.groups.edit(areas.domain, first, {"name": "ONE"})
    assert (await named(areas, "one")).name == "ONE"


async def test_an_edit_replaces_the_instances(areas: Areas) -> None:
    """A given list of instances replaces the old list, and an empty list clears it. If no list is given, the old list
    stays."""
    machines = [await areas.instances.add(areas.domain, Instance(f"i{number}")) for number in range(3)]
    group = await areas.groups.add(areas.domain, Group("g"), machines[:2])

    async def members() -> list[int]:
        return [each.id for each in (await areas.groups.detail(areas.domain, group))[1]]

    await areas.groups.edit(areas.domain, group, {}, machines[1:])
    assert await members() == machines[1:]
    await areas.groups.edit(areas.domain, group, {"ou": "x"})
    assert await members() == machines[1:]
    with pytest.raises(NotFound):
        await areas.groups.edit(areas.domain, group, {"ou": "y"}, [machines[0], 10**9])
    assert (await members(), (await named(areas, "g")).ou) == (machines[1:], "x")
    await areas.groups.edit(areas.domain, group, {}, [])
    assert await members() == []
    totals = await areas.store.read(lambda tx: tx.value(int, "select sum(total_groups) from endpoint_instances"))
    assert totals == 0


async def test_deleting_is_all_or_nothing(areas: Areas) -> None:
    """If one group of a deletion is unknown, no group is deleted. A repeated id counts once."""
    ids = [await areas.groups.add(areas.domain, Group(f"g{number}")) for number in range(2)]
    with pytest.raises(NotFound):
        await areas.groups.delete(areas.domain, [*ids, 10**9])
    assert await areas.groups.delete(areas.domain, [*ids, ids[0]]) == 2
    assert await areas.groups.page(ListQuery(areas.domain, 0, 10)) == ([], 0)


async def test_a_credential_policy_changes_in_part(areas: Areas) -> None:
    """An update keeps the fields that are not given, and keeps the id of the policy.

    The password policy must belong to the tenant. If it is deleted, it is removed from the credential policy.
    """
    group = await areas.groups.add(areas.domain, Group("g"))
    password_policy = await areas.policies.add(areas.tenant, {"policyName": "p"})
    other_tenant = await areas.tenancy.ensure_tenant(2, 2)
    foreign = await areas.policies.add(other_tenant, {"policyName": "p"})
    for unknown in (foreign, 10**9):
        with pytest.raises(NotFound):
            await areas.groups.set_credential_policy(areas.domain, group, {"policy_id": unknown})
    given: dict[str, str | int | None] = {"ttl_user": "8h", "policy_id": password_policy}
    kept = await areas.groups.set_credential_policy(areas.domain, group, given)
    assert await areas.groups.set_credential_policy(areas.domain, group, {"home_dir": "/home"}) == kept
    policy = await policy_of(areas, "g")
    assert policy is not None
    assert (policy.id, policy.ttl_user, policy.policy_id, policy.home_dir) == (kept, "8h", password_policy, "/home")
    await areas.policies.delete(areas.tenant, [password_policy])
    policy = await policy_of(areas, "g")
    assert policy is not None and policy.policy_id is None
    with pytest.raises(NotFound):
        await areas.groups.delete_credential_policy(areas.domain, group, kept + 1)
    for policy_id in (kept, None, None):
        await areas.groups.delete_credential_policy(areas.domain, group, policy_id)
    assert await policy_of(areas, "g") is None
    with pytest.raises(NotFound):
        await areas.groups.delete_credential_policy(areas.domain, group, kept)


async def test_every_change_is_in_the_audit_trail(areas: Areas) -> None:
    """Each change has an audit entry with the values before and after it. A change without effect has no entry."""
    ann = await areas.add_user(areas.domain, "ann", b"x")
    group = await areas.groups.add(areas.domain, Group("g"))
    for _ in range(2):
        await areas.groups.edit(areas.domain, group, {"status": "Disabled"})
        await areas.groups.assign_users(areas.domain, group, [ann], Action.ADD)
        await areas.groups.set_credential_policy(areas.domain, group, {"ttl_user": "60"})
    await areas.groups.delete(areas.domain, [group])
    entries = [entry for entry in await trail(areas) if entry.action.startswith("group.")]
    assert [entry.action for entry in entries] == [
        "group.add", "group.update", "group.users.add", "group.policy.set", "group.delete",
    ]  # fmt: skip
    assert entries[1].changes == {"status": ["Active", "Disabled"]}
    assert {entry.target for entry in entries} == {f"group {group} g"}


async def test_assignments_of_a_group_are_bounded(areas: Areas) -> None:
    """One request assigns at most MAX_PAIRS users or instances."""
    group = await areas.groups.add(areas.domain, Group("g"))
    many = range(1, MAX_PAIRS + 2)
    for work in (
        areas.groups.assign_users(areas.domain, group, many, Action.ADD),
        areas.groups.add(areas.domain, Group("h"), many),
        areas.groups.edit(areas.domain, group, {}, many),
    ):
        with pytest.raises(Invalid, match=f"at most {MAX_PAIRS} assignments"):
            await work
