"""Tests of the number of statements in a change with many rows, because the logins of all tenants wait for its
transaction."""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import groupby
from typing import TypeVar

import pytest

from sallyport.areas.agents.desired import release_names
from sallyport.areas.users.accounts.account import Removal, UserChange
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.instances.instance import Instance
from sallyport.areas.users.membership import Action
from tests.areas import Areas, only_sqlite

pytestmark = only_sqlite
T = TypeVar("T")
FEW, MANY = 4, 24


async def statements(areas: Areas, work: Callable[[], Awaitable[T]]) -> int:
    """Return how many statements the writer runs for a change. The statements of triggers and of the search tables are
    not counted."""
    seen = list[str]()
    await areas.store.exclusive(lambda connection: connection.set_trace_callback(seen.append))
    await work()
    await areas.store.exclusive(lambda connection: connection.set_trace_callback(None))
    return sum("'main'." not in each for each, _ in groupby(seen))


async def least_statements(areas: Areas, prepare: Callable[[int], Awaitable[Callable[[], Awaitable[T]]]]) -> int:
    """Return the least number of statements of three changes. On a busy machine a change takes a second transaction,
    which repeats some statements.

    prepare: adds the rows of an attempt, whose number it gets, and returns the change.
    """
    return min([await statements(areas, await prepare(attempt)) for attempt in range(3)])


async def add_users(areas: Areas, count: int, group_ids: list[int], machines: list[int]) -> list[int]:
    """Add users with these groups and machines."""
    begin = await areas.accounts.add(areas.domain, UserChange("begin"))
    ids = [await areas.accounts.add(areas.domain, UserChange(f"user{begin}-{number}")) for number in range(count)]
    await areas.accounts.remove(areas.domain, [Removal(begin, "", 0)])
    for group_id in group_ids:
        await areas.groups.assign_users(areas.domain, group_id, ids, Action.ADD)
    await areas.instances.assign_users(areas.domain, machines, ids, Action.ADD)
    return ids


async def add_groups_and_machines(areas: Areas, count: int, prefix: str = "") -> tuple[list[int], list[int]]:
    """Add groups and machines."""
    names = [f"{prefix}-{count}-{number}" for number in range(count)]
    groups = [await areas.groups.add(areas.domain, Group(f"g{name}")) for name in names]
    return groups, [await areas.instances.add(areas.domain, Instance(f"m{name}")) for name in names]


async def test_deleted_users(areas: Areas) -> None:
    """The number of statements that delete users does not depend on how many there are."""
    groups, machines = await add_groups_and_machines(areas, FEW)

    async def prepare(count: int, _attempt: int) -> Callable[[], Awaitable[object]]:
        gone = [Removal(user_id, "", 0) for user_id in await add_users(areas, count, groups, machines)]
        return partial(areas.accounts.remove, areas.domain, gone)

    few, many = [await least_statements(areas, partial(prepare, count)) for count in (FEW, MANY)]
    assert few == many
    assert (await areas.groups.detail(areas.domain, groups[0]))[0].users_count == 0


@pytest.mark.parametrize("action", list(Action))
async def test_assignments(areas: Areas, action: Action) -> None:
    """The number of statements that assign users to machines, or remove them, does not depend on how many there are."""
    _, machines = await add_groups_and_machines(areas, MANY)
    ids, taken = await add_users(areas, MANY, [], []), set[int]()
    for count in (FEW, MANY):
        some = areas.domain, machines[:count], ids[:count]
        if action is Action.REMOVE:
            await areas.instances.assign_users(*some, Action.ADD)
        taken.add(await statements(areas, partial(areas.instances.assign_users, *some, action)))
        await areas.instances.assign_users(*some, Action.REMOVE)
    assert len(taken) == 1


async def test_deleted_groups(areas: Areas) -> None:
    """The number of statements that delete groups does not depend on the number of groups and users, up to one
    slice."""

    async def prepare(count: int, attempt: int) -> Callable[[], Awaitable[object]]:
        groups, machines = await add_groups_and_machines(areas, count, f"{attempt}")
        for group_id in groups:
            await areas.instances.assign_groups(areas.domain, machines[:FEW], [group_id], Action.ADD)
        await add_users(areas, 3, groups, machines[:FEW])
        return partial(areas.groups.delete, areas.domain, groups)

    few, many = [await least_statements(areas, partial(prepare, count)) for count in (FEW, MANY)]
    assert few == many


@pytest.mark.parametrize(
    ("table", "verb"),
    [("agent_passwords", "update"), ("agent_takeovers", "delete from")],
    ids=["passwords", "takeovers"],
)
async def test_names_are_released_by_key(areas: Areas, table: str, verb: str) -> None:
    """The names of a domain are released by an index on domain and account, however many rows other tenants have."""
    ann, seen = await areas.accounts.add(areas.domain, UserChange("ann")), list[str]()
    await areas.store.exclusive(lambda connection: connection.set_trace_callback(seen.append))
    await areas.store.write(lambda tx: release_names(tx, [ann]))
    await areas.store.exclusive(lambda connection: connection.set_trace_callback(None))
    sql = next(each for each in seen if each.startswith(f"{verb} {table}"))
    plan = await areas.store.read(lambda tx: [str(row[-1]) for row in tx.rows(f"explain query plan {sql}")])
    assert any(f"{table}_name (domain_id=? AND account=?" in step for step in plan)
    assert not any("SCAN agent" in step for step in plan)
