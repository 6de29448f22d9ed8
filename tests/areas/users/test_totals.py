"""Tests that stored totals equal a count, and that a search finds exactly the matching rows, after any sequence of
changes."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sallyport.areas.users import membership
from sallyport.areas.users.accounts import repo as users
from sallyport.areas.users.accounts.account import UserChange, UserQuery
from sallyport.areas.users.groups import repo as groups
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.instances import repo as instances
from sallyport.areas.users.instances.instance import Instance, InstanceQuery
from sallyport.areas.users.membership import GROUPS_OF_INSTANCE, USERS_OF_GROUP, USERS_OF_INSTANCE, Action, Link
from sallyport.base.errors import Conflict, Invalid
from sallyport.base.secret import Secret
from sallyport.store.counters import PART_BITS
from sallyport.store.model import Tx
from sallyport.store.vault import Vault
from tests.store.memory import store_in_memory

DOMAIN = 3
NAMES = ("ann", "Anna-Maria", "bob", "ÉMILE")
TYPES = ("Local", "local", "Admin", "")
VAULT = Vault(Secret(bytes(32)))
SETUP = """
insert into organizations (id, name, created_at) values (1, '', 0);
insert into tenants (id, organization_id, number, name, created_at) values (1, 1, 1, '', 0);
insert into domains (id, tenant_id, name, directory_name, enforcement_mode, fallback_action, first_factor, status,
    realms, created_at, name_key) values (3, 1, 'corp', '', 'monitor', 'deny', 'local', 'active', '', 0, 'corp');
"""
OTHER = " (4, 1, 'branch', '', 'monitor', 'deny', 'local', 'active', '', 0, 'branch');"
PART = 1 << PART_BITS
TOTALS = (
    ("endpoint_instances", "total_users", "endpoint_instance_users", "instance_id"),
    ("endpoint_instances", "total_groups", "endpoint_instance_groups", "instance_id"),
    ("endpoint_groups", "users_count", "endpoint_group_users", "group_id"),
)
LINKS = (USERS_OF_INSTANCE, GROUPS_OF_INSTANCE, USERS_OF_GROUP)
SMALL = st.integers(0, 3)
STEP = st.one_of(
    st.tuples(st.just("user"), SMALL, SMALL),
    st.tuples(st.just("rename"), SMALL, SMALL),
    st.tuples(st.just("type"), SMALL, SMALL),
    st.tuples(st.sampled_from(["instance", "group", "no user", "no instance", "no group"]), SMALL, SMALL),
    st.tuples(st.sampled_from([f"{action} {number}" for action in Action for number in range(3)]), SMALL, SMALL),
)


def pick(tx: Tx, table: str, number: int) -> int:
    """Return the id of the row at a position, or 0 if there is none."""
    sql = f"select id from {table} order by id limit 1 offset :n"  # noqa: S608
    return tx.value(int, sql, n=number) or 0


def step(tx: Tx, what: str, one: int, other: int) -> None:
    """Run one change of an admin. A name that is already used raises Conflict."""
    user = users.get(tx, DOMAIN, pick(tx, membership.USERS, one))
    machine = instances.get(tx, DOMAIN, pick(tx, membership.INSTANCES, one))
    group = groups.get(tx, DOMAIN, pick(tx, membership.GROUPS, one))
    if what == "user":
        users.add(tx, VAULT, DOMAIN, UserChange(NAMES[one], TYPES[other]), 1)
    elif what == "instance":
        instances.add(tx, DOMAIN, Instance(NAMES[one], public_ip=f"192.0.2.{other}"), 1)
    elif what == "group":
        groups.add(tx, DOMAIN, Group(NAMES[one]), 1)
    elif what == "rename" and user:
        users.check_free(tx, user, UserChange(NAMES[other]))
        users.update(tx, VAULT, user, UserChange(NAMES[other]), 2)
    elif what == "type" and user:
        users.update(tx, VAULT, user, UserChange(user_type=TYPES[other]), 2)
    elif what == "no user" and user:
        users.delete(tx, DOMAIN, [user])
    elif what == "no instance" and machine:
        instances.delete(tx, machine)
    elif what == "no group" and group:
        groups.delete(tx, DOMAIN, [group])
    elif what[:-2] in set(Action):
        assign(tx, LINKS[int(what[-1])], Action(what[:-2]), one, other)


def assign(tx: Tx, link: Link, action: Action, one: int, other: int) -> None:
    """Assign one entry to the other, or remove the assignment, if both exist."""
    held_table = membership.GROUPS if link is GROUPS_OF_INSTANCE else membership.USERS
    holder, held = pick(tx, link.holders, one), pick(tx, held_table, other)
    if holder and held:
        membership.change(tx, link, action, [holder], [held])


def assigned(tx: Tx, user_id: int) -> bool:
    """Return whether a user has an instance, directly or through a group. All groups in this test are active."""
    through = membership.holders_of(tx, USERS_OF_GROUP, user_id)
    groups_with_instances = [each for each in through if membership.holders_of(tx, GROUPS_OF_INSTANCE, each)]
    return bool(membership.holders_of(tx, USERS_OF_INSTANCE, user_id) or groups_with_instances)


def check(tx: Tx) -> None:
    """Compare each total and each filter with a count."""
    for table, column, links, holder in TOTALS:
        sql = f"select count(*) from {table} t where {column} <> (select count(*) from {links} where {holder} = t.id)"  # noqa: S608
        assert tx.value(int, sql) == 0, column
    rows, total = users.page(tx, UserQuery(DOMAIN, limit=100))
    assert total == len(rows)
    for place in range(total + 1):
        assert users.page(tx, UserQuery(DOMAIN, offset=place, limit=2)) == (rows[place : place + 2], total)
    for column, value, meant in (
        ("user_type", "Local", [row for row in rows if row.user_type.lower() == "local"]),
        ("user_type", "admin", [row for row in rows if row.user_type == "Admin"]),
        ("source", "local", rows),
        ("credential_type", "password", rows),
        ("assigned", "1", [row for row in rows if assigned(tx, row.id)]),
        ("assigned", "0", [row for row in rows if not assigned(tx, row.id)]),
        ("name", "nna", [row for row in rows if "nna" in row.name.casefold()]),
        ("name", "émile", [row for row in rows if "émile" in row.name.casefold()]),
    ):
        found, total = users.page(tx, UserQuery(DOMAIN, column, value, limit=100))
        assert ([row.id for row in found], total) == ([row.id for row in meant], len(meant)), (column, value)
        _, total = users.page(tx, UserQuery(DOMAIN, column, value, limit=1))
        assert total == len(meant), (column, value)


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(STEP, max_size=25))
@example(steps=[("user", 0, 0), ("user", 1, 0), ("rename", 0, 1)])
@example(steps=[("user", 0, 0), ("user", 1, 0), ("instance", 0, 0), ("group", 0, 0), ("add 1", 0, 0), ("add 2", 0, 1)])
def test_totals_are_exact(steps: list[tuple[str, int, int]]) -> None:
    """After each step the totals and the filters are exact.

    At the end, the search indexes pass SQLite's integrity check.
    """
    with store_in_memory(SETUP) as tx:
        for each in steps:
            try:
                step(tx, *each)
            except Conflict:
                continue
            check(tx)
        for table in (membership.USERS, membership.INSTANCES, membership.GROUPS):
            tx.execute(f"insert into {table}_search ({table}_search) values ('integrity-check')")  # noqa: S608


def test_a_page_at_a_large_offset() -> None:
    """A page at any offset equals that part of the whole list, even if there are gaps from deleted rows and rows of
    another domain."""
    with store_in_memory(SETUP + SETUP.partition("(3, 1, 'corp'")[0].rpartition(";")[2] + OTHER) as tx:
        for number in range(3 * PART):
            instances.add(tx, DOMAIN if number % 3 else DOMAIN + 1, Instance(f"i{number}"), 1)
        every = [row for (row,) in tx.rows("select id from endpoint_instances where domain_id = 3 order by id")]
        for row_id in every[7:PART:100]:
            machine = instances.get(tx, DOMAIN, int(str(row_id)))
            assert machine is not None
            instances.delete(tx, machine)
            every.remove(row_id)
        for offset in (0, PART - 1, PART, PART + 1, len(every) - 3, len(every), 10 * PART):
            rows, total = instances.page(tx, InstanceQuery(DOMAIN, offset=offset, limit=5))
            assert ([row.id for row in rows], total) == (every[offset : offset + 5], len(every)), offset


MANY = """
insert into endpoint_groups (id, domain_id, name, name_key, ou, cn, dc, auth_flow, status, active, created_at,
    updated_at) values (1, 3, 'g', 'g', '', '', '', '', 'Active', 1, 0, 0);
with recursive n (id) as (select 1 union all select id + 1 from n where id < 1000) insert into endpoint_users (id,
    domain_id, name, name_key, user_type, credential_type, created_at, updated_at)
    select id, 3, 'u' || id, 'u' || id, 'Local', 'Password', 0, 0 from n;
with recursive n (id) as (select 1 union all select id + 1 from n where id < 201) insert into endpoint_instances (id,
    domain_id, name, name_key, os_id, public_ip, private_ip, host_name, status, auth_type, created_at, updated_at)
    select id, 3, 'i' || id, 'i' || id, 1, '', '', '', '', '', 0, 0 from n;
insert into endpoint_group_users select 1, id from endpoint_users;
insert into endpoint_instance_groups select id, 1 from endpoint_instances;
"""


def test_a_page_with_too_many_instances() -> None:
    """A page whose users have more than 200,000 instances in total is refused. A smaller page is returned."""
    with store_in_memory(SETUP + MANY) as tx:
        with pytest.raises(Invalid, match="invalid pageSize"):
            users.instances(tx, range(1, 1001))
        assert {len(each) for each in users.instances(tx, range(1, 101)).values()} == {201}
