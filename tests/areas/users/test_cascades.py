"""Deletions and changes with many dependent rows run in short transactions, and complete after an interruption."""

from contextlib import suppress

import pytest

from sallyport.areas.agents.reports_repo import forget_users
from sallyport.areas.tenancy.keys.key import NewKey
from sallyport.areas.users.accounts.account import Removal, UserChange
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.groups.service import Groups
from sallyport.areas.users.instances.instance import Instance
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.membership import Action
from sallyport.areas.users.service import EndpointUsers
from sallyport.base.errors import Conflict, NotFound
from sallyport.store.model import Store, Tx
from sallyport.store.slices import SLICE
from tests.areas import Areas
from tests.areas.users import trail
from tests.slices import OneSlice, Stopped, interrupted

MANY = 2 * SLICE + 1
"""The number of rows that are deleted in three slices."""


class RecordedRevocations:
    """Revocations that record the names of the users who lose access."""

    def __init__(self) -> None:
        self.names = list[str]()

    def revoke(self, _tx: Tx, _domain_id: int, names: list[str], _reason: str) -> None:
        self.names += names

    def group_matters(self, _domain_id: int, _group: str) -> bool:
        return True


async def insert_rows(
    areas: Areas, table: str, columns: tuple[str, ...], rows: list[tuple[int | str | bytes, ...]]
) -> None:
    """Insert rows into a table."""
    await areas.store.write(lambda tx: tx.insert(table, columns, rows))


async def add_users(areas: Areas, count: int = MANY) -> list[int]:
    """Add users and return their ids."""

    def work(tx: Tx) -> list[int]:
        return [areas.users.add_in(tx, areas.domain, UserChange(f"u{number}")) for number in range(count)]

    return await areas.store.write(work)


async def add_machines(areas: Areas, count: int = MANY) -> list[int]:
    """Add instances and return their ids."""

    def work(tx: Tx) -> list[int]:
        return [areas.instances.add_in(tx, areas.domain, Instance(f"m{number}")) for number in range(count)]

    return await areas.store.write(work)


async def values(areas: Areas, sql: str) -> list[int]:
    """Return the first column of the rows as integers."""
    return await areas.store.read(lambda tx: [int(row[0] or 0) for row in tx.rows(sql)])


async def test_a_group_with_many_users(areas: Areas) -> None:
    """Each transaction of the deletion removes one slice of the group's users, revokes the access of only these users,
    and corrects the total."""
    group = await areas.groups.add(areas.domain, Group("g"))
    users = await add_users(areas)
    await insert_rows(areas, "endpoint_group_users", ("group_id", "user_id"), [(group, each) for each in users])
    await areas.store.write(lambda tx: tx.execute("update endpoint_groups set users_count = :n", n=MANY))
    losses, totals = RecordedRevocations(), list[int]()

    async def delete(store: Store) -> None:
        known = EndpointUsers(store, areas.vault, areas.clock, revocations=losses)
        totals.extend(await values(areas, "select users_count from endpoint_groups"))
        await Groups(store, known, areas.policies, areas.clock).delete(areas.domain, [group])

    assert await interrupted(areas.store, ["endpoint_group_users"], delete) == 4
    assert totals == [MANY, MANY - SLICE, MANY - 2 * SLICE, 0]
    assert sorted(losses.names) == sorted(f"u{number}" for number in range(MANY))
    assert [each.action for each in await trail(areas)][-1] == "group.delete"
    with pytest.raises(NotFound):
        await areas.groups.delete(areas.domain, [group])


async def test_a_group_that_is_disabled(areas: Areas) -> None:
    """The users of a disabled group are revoked in slices, each user once. The last transaction disables the group."""
    group = await areas.groups.add(areas.domain, Group("g"))
    users = await add_users(areas)
    await insert_rows(areas, "endpoint_group_users", ("group_id", "user_id"), [(group, each) for each in users])
    losses, active = RecordedRevocations(), list[int]()

    async def edit(store: Store) -> None:
        known = EndpointUsers(store, areas.vault, areas.clock, revocations=losses)
        await Groups(store, known, areas.policies, areas.clock).edit(areas.domain, group, {"status": "Disabled"})

    for transactions in range(1, 5):
        losses.names.clear()
        with suppress(Stopped):
            await edit(OneSlice(areas.store, transactions))
        active += await values(areas, "select active from endpoint_groups")
    assert active == [1, 1, 1, 0]
    assert sorted(losses.names) == sorted(f"u{number}" for number in range(MANY))


async def test_a_group_with_many_instances_gets_others(areas: Areas) -> None:
    """The instances that are removed from a group are removed in slices, and the others stay. The audit trail has both
    lists."""
    group = await areas.groups.add(areas.domain, Group("g"))
    some = await add_machines(areas)
    columns = ("instance_id", "group_id")
    await insert_rows(areas, "endpoint_instance_groups", columns, [(each, group) for each in some[1:]])

    async def edit(store: Store) -> None:
        groups = Groups(store, areas.users, areas.policies, areas.clock)
        await groups.edit(areas.domain, group, {}, some[:2])

    store = OneSlice(areas.store, 3)
    await edit(store)
    assert store.left == 0
    assert await values(areas, "select instance_id from endpoint_instance_groups order by 1") == some[:2]
    assert (await trail(areas))[-1].changes == {"instances": [some[1:], some[:2]]}


async def test_a_user_with_accounts_on_many_machines(areas: Areas) -> None:
    """If a user is renamed, its takeovers are removed in slices. If the rename is refused, none is removed."""
    ann, _ = [await areas.accounts.add(areas.domain, UserChange(name)) for name in ("ann", "bob")]
    some = await add_machines(areas)
    columns = ("instance_id", "domain_id", "machine", "enrolled_at", "seen_at")
    await insert_rows(areas, "agents", columns, [(each, areas.domain, "m", 1, 1) for each in some])
    rows = [(areas.domain, each, "ann", 1) for each in some]
    await insert_rows(areas, "agent_takeovers", ("domain_id", "instance_id", "account", "at"), rows)

    async def rename(store: Store, name: str = "eve") -> None:
        accounts = Users(store, areas.vault, areas.users, areas.policies, areas.did.users, areas.clock)
        await accounts.update(areas.domain, ann, UserChange(name))

    with pytest.raises(Conflict):
        await rename(OneSlice(areas.store), "bob")
    assert len(await values(areas, "select instance_id from agent_takeovers")) == MANY
    assert await interrupted(areas.store, ["agent_takeovers"], rename) == 4


async def test_users_on_many_instances(areas: Areas) -> None:
    """The first transaction of a deletion removes the password.

    Each later transaction removes a slice of assignments and corrects the totals.
    """
    await areas.accounts.add(areas.domain, UserChange("ann", password=b"x"))
    ann = (await areas.store.read(lambda tx: tx.rows("select id from endpoint_users")))[0][0]
    assert isinstance(ann, int)
    some = await add_machines(areas)
    await insert_rows(areas, "endpoint_instance_users", ("instance_id", "user_id"), [(each, ann) for each in some])
    await areas.store.write(lambda tx: tx.execute("update endpoint_instances set total_users = 1"))
    await insert_rows(
        areas, "agent_grants", ("instance_id", "user_id", "group_id", "since"), [(each, ann, 0, 1) for each in some]
    )

    def service(store: Store) -> Users:
        known = EndpointUsers(store, areas.vault, areas.clock)
        known.before_deletion(areas.did.users.unlink)
        known.before_deletion(forget_users)
        return Users(store, areas.vault, known, areas.policies, areas.did.users, areas.clock)

    async def delete(store: Store) -> None:
        await service(store).remove(areas.domain, [Removal(ann, "", 0)])

    with pytest.raises(Stopped):
        await delete(OneSlice(areas.store))
    user = await areas.users.load(areas.domain, "ann")
    assert user is not None and not user.passwords
    assert await interrupted(areas.store, ["endpoint_instance_users", "agent_grants"], delete) == 7
    assert sum(await values(areas, "select total_users from endpoint_instances")) == 0
    assert await values(areas, "select id from endpoint_users") == []


async def test_an_instance_with_many_dependent_rows(areas: Areas) -> None:
    """A deletion removes the keys of the instance first, so that no agent can use the remaining rows.

    Then it removes assignments, escrowed passwords and discovered accounts in slices.
    """
    machine = await areas.instances.add(areas.domain, Instance("web"))
    await areas.keys.create(NewKey(areas.domain, instance_id=machine))
    users = await add_users(areas)
    await insert_rows(areas, "endpoint_instance_users", ("instance_id", "user_id"), [(machine, each) for each in users])
    await insert_rows(
        areas,
        "agent_passwords",
        ("domain_id", "instance_id", "account", "rotation", "password", "hash", "state", "stored_at"),
        [(areas.domain, machine, "a", str(number), b"p", b"h", "former", 1) for number in range(MANY)],
    )
    await insert_rows(
        areas,
        "agent_discovered",
        ("instance_id", "kind", "name", "told", "at"),
        [(machine, "group", str(number), "{}", 1) for number in range(50)],
    )
    tables = ["endpoint_instance_users", "agent_passwords", "agent_discovered"]

    async def delete(store: Store) -> None:
        own = Instances(store, areas.clock)
        for each in areas.instances.slices:
            own.before_deletion(each)
        await own.remove(areas.domain, machine)

    with pytest.raises(Stopped):
        await delete(OneSlice(areas.store))
    assert await values(areas, "select id from api_keys") == []
    assert len(await values(areas, "select user_id from endpoint_instance_users")) == MANY
    assert await interrupted(areas.store, tables, delete) == 10
    assert await values(areas, "select id from endpoint_instances") == []


async def test_an_id_that_does_not_exist(areas: Areas) -> None:
    """A deletion with an unknown id changes nothing: all ids are checked before the first slice."""
    group = await areas.groups.add(areas.domain, Group("g"))
    ann = await areas.accounts.add(areas.domain, UserChange("ann", password=b"x"))
    await areas.groups.assign_users(areas.domain, group, [ann], Action.ADD)
    with pytest.raises(NotFound):
        await areas.groups.delete(areas.domain, [group, group + 99])
    with pytest.raises(NotFound):
        await areas.accounts.remove(areas.domain, [Removal(ann, "", 0), Removal(ann + 99, "", 0)])
    user = await areas.users.load(areas.domain, "ann")
    assert user is not None and user.passwords == (b"x",) and user.groups == {"g"}
