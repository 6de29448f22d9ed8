"""Tests of instances: their fields, their assignments and their import."""

import pytest

from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.imports import import_instances
from sallyport.areas.users.instances.instance import Instance, InstanceQuery
from sallyport.areas.users.membership import MAX_PAIRS, Action
from sallyport.base.errors import Conflict, Invalid, NotFound
from tests.areas import Areas
from tests.areas.users import trail


async def found(areas: Areas, search: str = "", **fields: int) -> tuple[list[str], int]:
    """Return the names of the instances that match a query, and the total."""
    rows, total = await areas.instances.page(InstanceQuery(areas.domain, search, **fields))
    return [row.name for row in rows], total


async def first_found(areas: Areas, name: str) -> Instance:
    """Return the first instance that a search for a name returns."""
    rows, _ = await areas.instances.page(InstanceQuery(areas.domain, name))
    return rows[0]


async def test_a_search_finds_parts_of_names_and_addresses(areas: Areas) -> None:
    """A case-insensitive search finds name parts of any length, and only in this domain.

    The totals of a list and of a search are exact.
    """
    other = await areas.domains.add(areas.tenant, "branch")
    for number in range(5):
        new = Instance(
            f"Web-{number}", os_id=1, public_ip=f"192.0.2.{number}", private_ip=f"10.0.0.{number}",
            host_name=f"host{number}.example",
        )  # fmt: skip
        await areas.instances.add(areas.domain, new)
    await areas.instances.add(other, Instance("Web-9"))
    assert await found(areas) == ([f"Web-{number}" for number in range(5)], 5)
    assert await found(areas, offset=2, limit=2) == (["Web-2", "Web-3"], 5)
    for search in ("WEB-3", "b-3", "192.0.2.3", "0.0.3", "HOST3.ex"):
        assert await found(areas, search) == (["Web-3"], 1), search
    assert await found(areas, "web", limit=2) == (["Web-0", "Web-1"], 5)
    assert await found(areas, "web-9") == ([], 0)


async def test_names_are_unique_in_a_domain(areas: Areas) -> None:
    """Two names that differ only in case are the same name, in every script."""
    await areas.instances.add(areas.domain, Instance("Straße"))
    with pytest.raises(Conflict):
        await areas.instances.add(areas.domain, Instance("STRASSE"))
    assert await found(areas) == (["Straße"], 1)


async def test_assignments_are_counted_once(areas: Areas) -> None:
    """A repeated assignment or removal changes neither the totals nor the audit trail."""
    machine = await areas.instances.add(areas.domain, Instance("a"))
    users = [await areas.add_user(areas.domain, name, b"x") for name in ("ann", "bob")]
    for _ in range(2):
        await areas.instances.assign_users(areas.domain, [machine, machine], [*users, users[0]], Action.ADD)
    assert (await first_found(areas, "a")).total_users == 2
    for _ in range(2):
        await areas.instances.assign_users(areas.domain, [machine], users[:1], Action.REMOVE)
    assert (await first_found(areas, "a")).total_users == 1
    assert [entry.action for entry in await trail(areas)][-2:] == ["instance.users.add", "instance.users.remove"]


async def test_an_unknown_id_assigns_nothing(areas: Areas) -> None:
    """A request with a user, group or instance of another domain is NotFound and assigns nothing."""
    branch = await areas.domains.add(areas.tenant, "branch")
    here = await areas.instances.add(areas.domain, Instance("here"))
    there = await areas.instances.add(branch, Instance("there"))
    ann, eve = await areas.add_user(areas.domain, "ann", b"x"), await areas.add_user(branch, "eve", b"x")
    group = await areas.groups.add(branch, Group("g"))
    for instances, users in (([here, there], [ann]), ([here], [ann, eve]), ([here, 10**9], [ann]), ([here], [-1])):
        with pytest.raises(NotFound):
            await areas.instances.assign_users(areas.domain, instances, users, Action.ADD)
    with pytest.raises(NotFound):
        await areas.instances.assign_groups(areas.domain, [here], [group], Action.ADD)
    with pytest.raises(NotFound):
        await areas.instances.set_auth_type(areas.domain, there, "SSH")
    row = await first_found(areas, "here")
    assert (row.total_users, row.total_groups) == (0, 0)


async def test_assignments_of_one_request_are_bounded(areas: Areas) -> None:
    """A request with too many assignments is refused before the store is used."""
    with pytest.raises(Invalid):
        await areas.instances.assign_users(areas.domain, range(200), range(MAX_PAIRS // 200 + 1), Action.ADD)


async def test_a_deleted_instance_leaves_nothing(areas: Areas) -> None:
    """A deleted instance loses its assignments and its policies, and searches no longer find it.

    Its users and groups stay.
    """
    machine = await areas.instances.add(areas.domain, Instance("gone-for-good"))
    ann = await areas.add_user(areas.domain, "ann", b"x")
    group = await areas.groups.add(areas.domain, Group("g"), [machine])
    await areas.instances.assign_users(areas.domain, [machine], [ann], Action.ADD)
    await areas.instances.remove(areas.domain, machine)
    assert await found(areas) == await found(areas, "gone") == ([], 0)
    assert (await areas.groups.detail(areas.domain, group))[1] == []
    listed = await areas.store.read(lambda tx: tx.value(int, "select count(*) from endpoint_instance_users"))
    assert listed == 0
    with pytest.raises(NotFound):
        await areas.instances.remove(areas.domain, machine)


async def test_instances_of_a_group(areas: Areas) -> None:
    """A list can be limited to a group. A group of another domain raises NotFound."""
    machines = [await areas.instances.add(areas.domain, Instance(f"web-{number}")) for number in range(4)]
    group = await areas.groups.add(areas.domain, Group("g"), machines[1:3])
    assert await found(areas, group_id=group) == (["web-1", "web-2"], 2)
    assert await found(areas, "eb-2", group_id=group) == (["web-2"], 1)
    with pytest.raises(NotFound):
        await found(areas, group_id=group + 1)


async def test_which_tenant_has_an_instance(areas: Areas) -> None:
    """Only the tenant that owns the domain has access to the instance."""
    machine = await areas.instances.add(areas.domain, Instance("a"))
    tenants = [
        tenant
        for tenant in range(9)
        if await areas.store.read(lambda tx, t=tenant: areas.instances.exists(tx, t, machine))
    ]  # type: ignore[misc]
    assert tenants == [areas.tenant]


async def test_an_import_reports_each_row(areas: Areas) -> None:
    """An import reports new, changed, unchanged and refused rows, and reports the same whether or not it applies them.

    If a row lacks a field, the stored value stays.
    """
    await areas.instances.add(areas.domain, Instance("old", os_id=1, public_ip="192.0.2.1", host_name="h"))
    await areas.instances.add(areas.domain, Instance("same", os_id=2))
    rows = [{"instanceName": "OLD", "osId": "2"}, {"instanceName": "same"}, {"instanceName": "new", "authType": "ssh"}]
    for apply in (False, True):
        planned = await import_instances(areas.store, areas.instances, areas.domain, rows, apply=apply)
        assert [(each.outcome.value, list(each.changes)) for each in planned] == [
            ("changed", ["name", "os_id"]), ("unchanged", []), ("new", []),
        ]  # fmt: skip
        assert (await found(areas))[1] == (3 if apply else 2)
    wanted = Instance("OLD", os_id=2, public_ip="192.0.2.1", host_name="h")
    assert (await first_found(areas, "old")).settings == wanted.settings
    assert (await first_found(areas, "new")).auth_type == "SSH"


async def test_an_import_is_done_as_a_whole(areas: Areas) -> None:
    """A refused row is reported with the reason but without its values.

    If any row is refused, the import applies no row.
    """
    rows = [{"instanceName": "good"}, {"instanceName": "bad", "publicIp": "hunter2"}, {"osId": 1}]
    planned = await import_instances(areas.store, areas.instances, areas.domain, rows, apply=False)
    assert [(each.outcome.value, each.reason) for each in planned] == [
        ("new", ""),
        ("refused", "publicIp must be an IP address"),
        ("refused", "instanceName is missing"),
    ]
    with pytest.raises(Conflict):
        await import_instances(areas.store, areas.instances, areas.domain, rows, apply=True)
    assert await found(areas) == ([], 0)
