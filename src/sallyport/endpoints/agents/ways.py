"""By which ways users may use a machine: assigned to it directly, or through groups that grant.

A way through a group ends when the group's time to live is over, counted from the moment that it began; one that is
taken away and given again begins anew. A user has an account there as long as one of the ways lasts, and is privileged
as long as one of those that say so does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import SECOND
from sallyport.endpoints.groups.group import allows, ttl_seconds
from sallyport.store.model import Tx

Key = tuple[int, int]
"""Tells the ways of a machine apart: user and group."""
DIRECT = 0
"""The group_id of a direct assignment."""
WAYS: Final = """
select user_id, 0 as group_id, '' as "group", '' as ttl, '' as privileged, '' as home, 0 as policy,
    '' as flow
from endpoint_instance_users where instance_id = :i
union all
select u.user_id, g.id, g.name, coalesce(p.ttl_user, ''), coalesce(p.privileged_user, ''), coalesce(p.home_dir, ''),
    coalesce(p.policy_id, 0), g.auth_flow
from endpoint_instance_groups i join endpoint_groups g on g.id = i.group_id
join endpoint_group_users u on u.group_id = g.id left join endpoint_credential_policies p on p.group_id = g.id
where i.instance_id = :i and g.active = 1
"""
"""SQL of the ways to the machine :i, in no order."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a user may use a machine. group_id: DIRECT, or the group's; group: its name; flow: by what it lets its users
    authenticate, empty for anything. The rest is its credential policy's; policy: the password policy, or 0."""

    user_id: int
    group_id: int
    group: str
    ttl: str
    privileged: str
    home: str
    policy: int
    flow: str

    def lets_in_by(self, method: str) -> bool:
        """Whether its users may authenticate so."""
        return allows(self.flow, method)

    @property
    def privileges(self) -> bool:
        """Whether it makes its users privileged."""
        return says_yes(self.privileged)

    @property
    def key(self) -> Key:
        """The user and the group."""
        return self.user_id, self.group_id


@dataclass(frozen=True, slots=True)
class Access:
    """What a user's ways to a machine come to. ways: each with its end in microseconds, or None."""

    user_id: int
    ways: tuple[tuple[Way, int | None], ...]

    @property
    def until(self) -> int | None:
        """When the last way ends; None: never."""
        ends = [end for _, end in self.ways if end is not None]
        return max(ends) if len(ends) == len(self.ways) else None

    @property
    def home(self) -> str:
        """The home directory that the first of the ways has which says one."""
        return next((way.home for way, _ in self.ways if way.home), "")

    def lasting(self, at: int) -> list[Way]:
        """The ways that have not ended at a time."""
        return [way for way, end in self.ways if end is None or end > at]

    def turns_at(self, at: int) -> int | None:
        """When the next way ends after a time."""
        return min((end for _, end in self.ways if end is not None and end > at), default=None)


def says_yes(flag: str) -> bool:
    """Whether a flag that is kept as text is set."""
    return flag.strip().lower() in {"true", "yes", "1"}


def of_instance(tx: Tx, instance_id: int) -> list[Way]:
    """The ways to a machine, ordered by user and group."""
    return tx.all(Way, f"{WAYS} order by user_id, group_id", i=instance_id)


def of_user(tx: Tx, instance_id: int, user_id: int) -> list[Way]:
    """The ways of one user to a machine, ordered by group."""
    sql = f"select * from ({WAYS}) as ways where user_id = :u order by group_id"  # noqa: S608
    return tx.all(Way, sql, i=instance_id, u=user_id)


def begun(tx: Tx, instance_id: int) -> dict[Key, int]:
    """Since when the known ways last."""
    rows = tx.rows("select user_id, group_id, since from agent_ways where instance_id = :i", i=instance_id)
    return {(int(user or 0), int(group or 0)): int(since or 0) for user, group, since in rows}


def change(tx: Tx, instance_id: int, changes: Iterable[tuple[Key, bool]], at: int) -> None:
    """Let ways begin at a time (True), unless they have or their user is gone; forget those that have ended (False)."""
    for (user_id, group_id), begins in changes:
        sql = "delete from agent_ways where instance_id = :i and user_id = :u and group_id = :g"
        if begins:
            sql = (
                "insert into agent_ways (instance_id, user_id, group_id, since) select :i, id, :g, :at "
                "from endpoint_users where id = :u on conflict do nothing"
            )
        tx.execute(sql, i=instance_id, u=user_id, g=group_id, **({"at": at} if begins else {}))


def accesses(ways: Sequence[Way], since: Mapping[Key, int]) -> list[Access]:
    """The ways of a machine, one entry for each user, in order. since: when each began; who has none is left out."""
    by_user: dict[int, list[tuple[Way, int | None]]] = {}
    for way in ways:
        if way.key in since:
            by_user.setdefault(way.user_id, []).append((way, _end(way, since[way.key])))
    return [Access(user_id, tuple(own)) for user_id, own in by_user.items()]


def _end(way: Way, since: int) -> int | None:
    seconds = ttl_seconds(way.ttl)
    return None if seconds is None else since + seconds * SECOND
