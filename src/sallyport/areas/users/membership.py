"""The SQL of assignments: users to instances, groups to instances, and users to groups.

For each instance and each group, the store contains the number of its assignments. The transaction that changes an
assignment also updates this number. If an assignment that exists is added again, nothing is changed. If an assignment
that does not exist is removed, nothing is changed.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sallyport.areas.users.user import NO_USER, UserRef
from sallyport.base.errors import Invalid, NotFound
from sallyport.store import counters
from sallyport.store.model import LISTED, Tx, Value, listed
from sallyport.store.slices import SLICE

INSTANCES, GROUPS, USERS = "endpoint_instances", "endpoint_groups", "endpoint_users"
NOT_FOUND = {INSTANCES: "instance not found", GROUPS: "group not found", USERS: NO_USER}
ASSIGNED = "endpoint_users/assigned"
"""Name of the counter of a domain's users that are assigned to at least one instance."""
MAX_PAIRS = 2_000
"""Maximum number of assignments in one request. Logins wait for the transaction of the request, and each assignment
takes up to 50 µs."""


class Action(StrEnum):
    """The action on an assignment: add or remove."""

    ADD = "add"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Link:
    """A table of assignments. Each row assigns a user or a group (the held) to an instance or a group (the holder).

    holder, held: the names of the two columns of the table. The column `holder` refers to ids in the table `holders`,
    and the column `held` to ids in the table `holds`. total: a column of the table `holders`, with the number of
    assignments of each holder.
    """

    table: str
    holder: str
    held: str
    holders: str
    holds: str
    total: str


Pair = tuple[int, int]
"""An assignment: (id of the holder, id of the assigned user or group)."""
USERS_OF_INSTANCE = Link("endpoint_instance_users", "instance_id", "user_id", INSTANCES, USERS, "total_users")
GROUPS_OF_INSTANCE = Link("endpoint_instance_groups", "instance_id", "group_id", INSTANCES, GROUPS, "total_groups")
USERS_OF_GROUP = Link("endpoint_group_users", "group_id", "user_id", GROUPS, USERS, "users_count")


def check_size(holders: Sequence[int], held: Sequence[int]) -> None:
    """Check that one request does not change too many assignments. The number of assignments is the number of `holders`
    times the number of `held`. Raises Invalid if it exceeds MAX_PAIRS."""
    if len(holders) * len(held) > MAX_PAIRS:
        raise Invalid(f"one request changes at most {MAX_PAIRS} assignments: send several requests")


def must_exist(tx: Tx, table: str, domain_id: int, ids: Sequence[int]) -> None:
    """Check that all ids exist in a table and belong to the domain. Raises NotFound."""
    sql = f"select count(*) from {table} where domain_id = :d and id in {LISTED}"  # noqa: S608
    if tx.value(int, sql, ids=listed(ids), d=domain_id) != len(set(ids)):
        raise NotFound(NOT_FOUND[table])


def users(tx: Tx, domain_id: int, user_ids: Sequence[int]) -> list[UserRef]:
    """Return the users of a domain with these ids. Raises NotFound if the domain has no user with one of the ids."""
    sql = f"select id, domain_id, name from endpoint_users where domain_id = :d and id in {LISTED}"  # noqa: S608
    found = {user.id: user for user in tx.all(UserRef, sql, ids=listed(user_ids), d=domain_id)}
    if len(found) < len(set(user_ids)):
        raise NotFound(NO_USER)
    return [found[each] for each in dict.fromkeys(user_ids)]


def change(tx: Tx, link: Link, action: Action, holders: Sequence[int], held: Sequence[int]) -> list[Pair]:
    """Assign each of `held` (users or groups) to each of `holders` (instances or groups), or remove these assignments.
    Return the assignments that were changed. All ids must exist."""
    holder_ids, held_ids = LISTED.replace(":ids", ":holders"), LISTED.replace(":ids", ":held")
    sql = (
        f"insert into {link.table} ({link.holder}, {link.held}) select h.id, o.id from {link.holders} h, "  # noqa: S608
        f"{link.holds} o where h.id in {holder_ids} and o.id in {held_ids} on conflict do nothing"
    )
    if action is Action.REMOVE:
        sql = f"delete from {link.table} where {link.holder} in {holder_ids} and {link.held} in {held_ids}"  # noqa: S608
    sign = 1 if action is Action.ADD else -1
    return _changed(tx, link, sql, sign, holders=listed(holders), held=listed(held))


def held_by(tx: Tx, link: Link, holder: int, after: int) -> list[int]:
    """Return up to SLICE ids that are assigned to a holder (an instance or a group), in ascending order. after: the
    last id of the previous call, or 0; only greater ids are returned."""
    sql = f"select {link.held} as id from {link.table} where {link.holder} = :holder and {link.held} > :after"  # noqa: S608
    return tx.all(_id, f"{sql} order by id limit {SLICE}", holder=holder, after=after)


def holders_of(tx: Tx, link: Link, held: int) -> list[int]:
    """Return the ids of the holders (instances or groups) to which a user or group is assigned, in ascending order."""
    sql = f"select {link.holder} as id from {link.table} where {link.held} = :held order by id"  # noqa: S608
    return tx.all(_id, sql, held=held)


def holder_names(tx: Tx, link: Link, domain_id: int) -> dict[int, list[str]]:
    """Return the names of the holders (instances or groups) of each assigned user or group of a domain, ordered by the
    ids of the holders. The keys are the ids of the assigned."""
    sql = (
        f"select l.{link.held}, h.name from {link.table} l join {link.holders} h on h.id = l.{link.holder} "  # noqa: S608
        f"where h.domain_id = :d order by l.{link.held}, h.id"
    )
    found = dict[int, list[str]]()
    for held, name in tx.rows(sql, d=domain_id):
        found.setdefault(int(held or 0), []).append(str(name))
    return found


def set_holders(tx: Tx, link: Link, held: int, holders: Collection[int]) -> tuple[list[int], list[int]]:
    """Assign a user or group to these holders (instances or groups), and to no others. Return the ids of the holders
    before, and of those that it left."""
    before = holders_of(tx, link, held)
    gone = sorted({*before} - {*holders})
    change(tx, link, Action.ADD, sorted({*holders} - {*before}), [held])
    change(tx, link, Action.REMOVE, gone, [held])
    return before, gone


def instances_of(tx: Tx, user_id: int) -> list[int]:
    """Return the ids of the instances to which a user is assigned, directly or through a group."""
    return tx.all(
        _id,
        "select instance_id as id from endpoint_instance_users where user_id = :user union "
        "select i.instance_id from endpoint_group_users g join endpoint_instance_groups i on i.group_id = g.group_id "
        "where g.user_id = :user order by id",
        user=user_id,
    )


@dataclass(frozen=True, slots=True)
class Demands:
    """The password policies that a password must meet.

    instance_ids: the ids of the instances whose policies apply. policy_ids: the ids of the policies that come from the
    credential policies of groups.
    """

    instance_ids: Sequence[int]
    policy_ids: Sequence[int] = ()


def demands_on(tx: Tx, user_id: int) -> Demands:
    """Return the policies that a user's password must meet. The policies of inactive groups are included, because a
    group may become active later."""
    return Demands(instances_of(tx, user_id), policies_of(tx, holders_of(tx, USERS_OF_GROUP, user_id)))


def policies_of(tx: Tx, group_ids: Sequence[int]) -> list[int]:
    """Return the ids of the password policies in the credential policies of these groups."""
    sql = "select policy_id as id from endpoint_credential_policies where group_id = :group and policy_id is not null"
    return [policy for each in group_ids for policy in tx.all(_id, sql, group=each)]


def forget_holders(tx: Tx, link: Link, holders: Sequence[int]) -> list[Pair]:
    """Delete up to SLICE assignments to holders (instances or groups), before the holders are deleted. Return the
    deleted assignments."""
    return _slice(tx, link, link.holder, holders)


def forget_held(tx: Tx, link: Link, held: Sequence[int]) -> int:
    """Delete up to SLICE assignments of users or groups, before the users or groups are deleted. Return the number of
    deleted assignments."""
    return len(_slice(tx, link, link.held, held))


def forget_other_holders(tx: Tx, link: Link, held: int, staying: Sequence[int]) -> int:
    """Delete assignments of a user or group, at most SLICE. Keep its assignments to the holders (instances or groups)
    in `staying`. Return the number of deleted assignments."""
    others = f"{link.holder} not in {LISTED.replace(':ids', ':staying')}"
    return len(_slice(tx, link, link.held, [held], others, staying=listed(staying)))


def _slice(tx: Tx, link: Link, column: str, ids: Sequence[int], only: str = "true", **parameters: str) -> list[Pair]:
    key = f"{link.holder}, {link.held}"
    some = f"select {key} from {link.table} where {column} in {LISTED} and {only} limit {SLICE}"  # noqa: S608
    sql = f"delete from {link.table} where ({key}) in ({some})"  # noqa: S608
    return _changed(tx, link, sql, -1, ids=listed(ids), **parameters)


def _changed(tx: Tx, link: Link, sql: str, sign: int, **parameters: str) -> list[Pair]:
    """Run SQL that adds or deletes assignments, and return these assignments.

    Also update the number of assignments of each holder, and the counter of assigned users. sign: 1 if the SQL adds
    assignments, -1 if it deletes them.
    """
    changed = tx.rows(f"{sql} returning {link.holder}, {link.held}", **parameters)
    rows = [(int(holder or 0), int(held or 0)) for holder, held in changed]
    by_change = dict[int, list[Value]]()
    for holder, own in Counter(holder for holder, _ in rows).items():
        by_change.setdefault(sign * own, []).append(holder)
    for each, holders in by_change.items():
        total = f"update {link.holders} set {link.total} = {link.total} + :change where id in {LISTED}"  # noqa: S608
        tx.execute(total, change=each, ids=listed(holders))
    if rows and link is USERS_OF_INSTANCE:
        _mark_assigned(tx, [user for _, user in rows])
    return rows


def _mark_assigned(tx: Tx, user_ids: Sequence[Value]) -> None:
    """Update the column `assigned` of users whose assignments have changed. Also update the stored counter of assigned
    users."""
    has_any = "exists (select 1 from endpoint_instance_users where user_id = endpoint_users.id)"
    differing = f"assigned <> case when {has_any} then 1 else 0 end"
    sql = f"update endpoint_users set assigned = 1 - assigned where id in {LISTED} and {differing} "  # noqa: S608
    rows = tx.rows(f"{sql} returning domain_id, assigned", ids=listed(user_ids))
    for (domain_id, assigned), users in Counter(rows).items():
        counters.add(tx, int(domain_id or 0), ASSIGNED, users if assigned else -users)


def _id(*, id: int) -> int:
    return id
