"""The SQL of who is assigned to what: users and groups to instances, users to groups.

Each total is kept on the row that shows it, in the transaction of the assignment. Assigning again and taking away again
change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sallyport.base.errors import Invalid, NotFound
from sallyport.endpoints.bodies import Action
from sallyport.endpoints.model import NO_USER, Person
from sallyport.store import counters
from sallyport.store.model import Tx

INSTANCES, GROUPS, USERS = "endpoint_instances", "endpoint_groups", "endpoint_users"
NOT_FOUND = {INSTANCES: "instance not found", GROUPS: "group not found", USERS: NO_USER}
ASSIGNED = "endpoint_users/assigned"
"""The kept total of a domain's users that are assigned to any instance."""
MAX_PAIRS = 2_000
"""Assignments in one request: logins wait for its transaction, up to 50 µs for each."""


@dataclass(frozen=True, slots=True)
class Link:
    """A table of assignments. holder, held: its columns. total: the holders' column that counts what they hold."""

    table: str
    holder: str
    held: str
    holders: str
    total: str


USERS_OF_INSTANCE = Link("endpoint_instance_users", "instance_id", "user_id", INSTANCES, "total_users")
GROUPS_OF_INSTANCE = Link("endpoint_instance_groups", "instance_id", "group_id", INSTANCES, "total_groups")
USERS_OF_GROUP = Link("endpoint_group_users", "group_id", "user_id", GROUPS, "users_count")


def check_size(holders: Sequence[int], held: Sequence[int]) -> None:
    """Raise Invalid if one request would change too many assignments."""
    if len(holders) * len(held) > MAX_PAIRS:
        raise Invalid(f"one request changes at most {MAX_PAIRS} assignments")


def must_exist(tx: Tx, table: str, domain_id: int, ids: Sequence[int]) -> None:
    """NotFound: an id that the domain does not have."""
    sql = f"select 1 from {table} where id = :id and domain_id = :d"  # noqa: S608
    if not all(tx.value(int, sql, id=each, d=domain_id) for each in ids):
        raise NotFound(NOT_FOUND[table])


def people(tx: Tx, domain_id: int, user_ids: Sequence[int]) -> list[Person]:
    """The users of a domain with these ids. NotFound: one of them is nobody."""
    sql = "select id, domain_id, name from endpoint_users where id = :id and domain_id = :d"
    found = [tx.one(Person, sql, id=each, d=domain_id) for each in dict.fromkeys(user_ids)]
    present = [person for person in found if person is not None]
    if len(present) < len(found):
        raise NotFound(NO_USER)
    return present


def change(tx: Tx, link: Link, action: Action, holders: Sequence[int], held: Sequence[int]) -> int:
    """Assign, or take away, each with each; how many assignments there are more, or fewer. All of them must exist."""
    sql = f"insert into {link.table} ({link.holder}, {link.held}) values (:holder, :held) on conflict do nothing"  # noqa: S608
    if action is Action.REMOVE:
        sql = f"delete from {link.table} where {link.holder} = :holder and {link.held} = :held"  # noqa: S608
    changed, sign = 0, 1 if action is Action.ADD else -1
    for holder in dict.fromkeys(holders):
        own = sum(tx.execute(sql, holder=holder, held=each) for each in dict.fromkeys(held))
        _count(tx, link, holder, sign * own)
        changed += own
    if changed and link is USERS_OF_INSTANCE:
        _mark(tx, held)
    return changed


def held_by(tx: Tx, link: Link, holder: int) -> list[int]:
    """What is assigned to one, by ids in order."""
    sql = f"select {link.held} as id from {link.table} where {link.holder} = :holder order by id"  # noqa: S608
    return tx.all(_id, sql, holder=holder)


def holders_of(tx: Tx, link: Link, held: int) -> list[int]:
    """What one is assigned to, by ids in order."""
    sql = f"select {link.holder} as id from {link.table} where {link.held} = :held order by id"  # noqa: S608
    return tx.all(_id, sql, held=held)


def machines_of(tx: Tx, user_id: int) -> list[int]:
    """The instances of a user: its own, and those of its groups."""
    return tx.all(
        _id,
        "select instance_id as id from endpoint_instance_users where user_id = :user union "
        "select i.instance_id from endpoint_group_users g join endpoint_instance_groups i on i.group_id = g.group_id "
        "where g.user_id = :user order by id",
        user=user_id,
    )


@dataclass(frozen=True, slots=True)
class Demands:
    """Whose password policies a password has to meet: those of instances, and the policies of groups themselves."""

    instance_ids: Sequence[int]
    policy_ids: Sequence[int] = ()


def demands_on(tx: Tx, user_id: int) -> Demands:
    """What is demanded of a user's password, by groups that are not active too: they may be tomorrow."""
    return Demands(machines_of(tx, user_id), policies_of(tx, holders_of(tx, USERS_OF_GROUP, user_id)))


def policies_of(tx: Tx, group_ids: Sequence[int]) -> list[int]:
    """The password policies that the credential policies of these groups name."""
    sql = "select policy_id as id from endpoint_credential_policies where group_id = :group and policy_id is not null"
    return [policy for each in group_ids for policy in tx.all(_id, sql, group=each)]


def forget_holder(tx: Tx, link: Link, holder: int) -> None:
    """What held is deleted."""
    held = held_by(tx, link, holder) if link is USERS_OF_INSTANCE else ()
    tx.execute(f"delete from {link.table} where {link.holder} = :holder", holder=holder)  # noqa: S608
    _mark(tx, held)


def forget_held(tx: Tx, link: Link, held: int) -> None:
    """What was held is deleted."""
    holders = f"select {link.holder} from {link.table} where {link.held} = :held"  # noqa: S608
    tx.execute(f"update {link.holders} set {link.total} = {link.total} - 1 where id in ({holders})", held=held)  # noqa: S608
    tx.execute(f"delete from {link.table} where {link.held} = :held", held=held)  # noqa: S608
    if link is USERS_OF_INSTANCE:
        _mark(tx, [held])


def _count(tx: Tx, link: Link, holder: int, change: int) -> None:
    if change:
        sql = f"update {link.holders} set {link.total} = {link.total} + :change where id = :id"  # noqa: S608
        tx.execute(sql, change=change, id=holder)


@dataclass(frozen=True, slots=True)
class _Marked:
    domain_id: int
    assigned: int
    now: int


def _mark(tx: Tx, user_ids: Sequence[int]) -> None:
    """Keep whether users are assigned to any instance, and how many of the domain's are."""
    for user_id in dict.fromkeys(user_ids):
        user = tx.one(
            _Marked,
            "select domain_id, assigned, exists (select 1 from endpoint_instance_users where user_id = u.id) as now "
            "from endpoint_users u where id = :id",
            id=user_id,
        )
        if user is not None and user.now != user.assigned:
            tx.execute("update endpoint_users set assigned = :now where id = :id", now=user.now, id=user_id)
            counters.add(tx, user.domain_id, ASSIGNED, user.now - user.assigned)


def _id(*, id: int) -> int:
    return id
