"""The grants that give users access to machines. A grant is either the direct assignment of a user to a machine, or the
assignment of one of the user's active groups to the machine.

The time to live of a group limits each grant through the group: the grant ends when this time has passed since the
grant began. If a grant is removed and later added again, its time to live begins again. A user has an account on the
machine until the last grant ends, and is privileged until the last grant with privileges ends.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.agentwire.fields import NAME
from sallyport.areas.users.groups.group import allows, ttl_seconds
from sallyport.base.clock import SECOND
from sallyport.store.model import Tx

Key = tuple[int, int]
"""The user id and the group id of a grant to a machine. The group id is 0 for a direct assignment."""
_NAME: Final = re.compile(NAME, re.ASCII)
GRANTS: Final = """
select user_id, 0 as group_id, '' as "group", '' as ttl, '' as privileged, '' as home, 0 as policy,
    '' as methods
from endpoint_instance_users where instance_id = :i
union all
select u.user_id, g.id, g.name, coalesce(p.ttl_user, ''), coalesce(p.privileged_user, ''), coalesce(p.home_dir, ''),
    coalesce(p.policy_id, 0), g.auth_flow
from endpoint_instance_groups i join endpoint_groups g on g.id = i.group_id
join endpoint_group_users u on u.group_id = g.id left join endpoint_credential_policies p on p.group_id = g.id
where i.instance_id = :i and g.active = 1
"""
"""SQL that selects the grants to the machine :i, unordered."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant that gives a user access to a machine.

    group_id: the id of the group, or 0 for a direct assignment. group: the name of the group. methods: the allowed
    authentication methods, separated by commas; an empty string allows all methods. ttl, privileged, home and policy:
    values from the credential policy of the group. policy is the id of the password policy, or 0 if there is none.
    """

    user_id: int
    group_id: int
    group: str
    ttl: str
    privileged: str
    home: str
    policy: int
    methods: str

    def allows(self, method: str) -> bool:
        """Return whether the grant allows an authentication method."""
        return allows(self.methods, method)

    @property
    def privileges(self) -> bool:
        """Whether the grant makes the user privileged."""
        return is_yes(self.privileged)

    @property
    def key(self) -> Key:
        """The user id and the group id."""
        return self.user_id, self.group_id


@dataclass(frozen=True, slots=True)
class Access:
    """All grants of a user to a machine. grants: pairs of a grant and the time at which it ends, in microseconds. The
    time is None if the grant does not end."""

    user_id: int
    grants: tuple[tuple[Grant, int | None], ...]

    @property
    def until(self) -> int | None:
        """The time at which the last grant ends, in microseconds, or None if at least one grant does not end."""
        ends = [end for _, end in self.grants if end is not None]
        return max(ends) if len(ends) == len(self.grants) else None

    @property
    def home(self) -> str:
        """The home directory of the first grant that specifies one. It is empty if no grant specifies one."""
        return next((grant.home for grant, _ in self.grants if grant.home), "")

    def lasting(self, at: int) -> list[Grant]:
        """Return the grants that have not ended at time `at`."""
        return [grant for grant, end in self.grants if end is None or end > at]

    def next_end(self, at: int) -> int | None:
        """Return the earliest time after `at` at which a grant ends, or None if no grant ends after `at`."""
        return min((end for _, end in self.grants if end is not None and end > at), default=None)


def account_name(user_name: str) -> str:
    """Return the name of a user's account on hosts, in lower case. Return an empty string if hosts do not accept the
    name."""
    name = user_name.lower()
    return name if _NAME.fullmatch(name) else ""


def is_yes(flag: str) -> bool:
    """Return whether a flag that is stored as text, such as "true" or "yes", is true."""
    return flag.strip().lower() in {"true", "yes", "1"}


def of_instance(tx: Tx, instance_id: int) -> list[Grant]:
    """Return the grants to a machine, ordered by user and group."""
    return tx.all(Grant, f"{GRANTS} order by user_id, group_id", i=instance_id)


def grants_of_user(tx: Tx, instance_id: int, user_id: int) -> list[Grant]:
    """Return the grants of one user to a machine, ordered by group."""
    sql = f"select * from ({GRANTS}) as grants where user_id = :u order by group_id"  # noqa: S608
    return tx.all(Grant, sql, i=instance_id, u=user_id)


def begun(tx: Tx, instance_id: int) -> dict[Key, int]:
    """Return the start times of the stored grants to a machine, in microseconds, by user id and group id."""
    rows = tx.rows("select user_id, group_id, since from agent_grants where instance_id = :i", i=instance_id)
    return {(int(user or 0), int(group or 0)): int(since or 0) for user, group, since in rows}


def change(tx: Tx, instance_id: int, changes: Iterable[tuple[Key, bool]], at: int) -> None:
    """Store the start times of new grants to a machine, and delete the start times of removed grants.

    changes: pairs of the key of a grant and a flag. True means that the grant begins at time `at`. False means that the
    grant was removed. If a new grant has a stored start time already, the stored time does not change. Nothing is
    stored for a deleted user.
    """
    for (user_id, group_id), begins in changes:
        sql = "delete from agent_grants where instance_id = :i and user_id = :u and group_id = :g"
        if begins:
            sql = (
                "insert into agent_grants (instance_id, user_id, group_id, since) select :i, id, :g, :at "
                "from endpoint_users where id = :u on conflict do nothing"
            )
        tx.execute(sql, i=instance_id, u=user_id, g=group_id, **({"at": at} if begins else {}))


def accesses(grants: Sequence[Grant], since: Mapping[Key, int]) -> list[Access]:
    """Return the access of each user to a machine, in the order of the grants.

    since: the start time of each grant, in microseconds. A grant without a start time is left out.
    """
    by_user: dict[int, list[tuple[Grant, int | None]]] = {}
    for grant in grants:
        if grant.key in since:
            by_user.setdefault(grant.user_id, []).append((grant, _end(grant, since[grant.key])))
    return [Access(user_id, tuple(own)) for user_id, own in by_user.items()]


def _end(grant: Grant, since: int) -> int | None:
    seconds = ttl_seconds(grant.ttl)
    return None if seconds is None else since + seconds * SECOND
