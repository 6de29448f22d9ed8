"""Access targets: the instances and groups to which a user can request access by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from sallyport.areas.agents import grants
from sallyport.areas.users.groups.group import allows, is_active, ttl_seconds
from sallyport.areas.users.user import UserRef, name_key
from sallyport.base.text import fold
from sallyport.store.model import Tx

MAX_MEMBERS = 500
_INSTANCE = (
    "select i.id, i.domain_id, i.name, i.auth_type as methods, 0 as is_group, 'Active' as status, '' as ttl "
    "from endpoint_instances i join domains d on d.id = i.domain_id where d.tenant_id = :t and "
)
_GROUP = (
    "select g.id, g.domain_id, g.name, g.auth_flow as methods, 1 as is_group, g.status, "
    "coalesce(p.ttl_user, '') as ttl from endpoint_groups g join domains d on d.id = g.domain_id "
    "left join endpoint_credential_policies p on p.group_id = g.id where d.tenant_id = :t and "
)


@dataclass(frozen=True, slots=True)
class AccessTarget:
    """An instance or a group.

    methods: the accepted authentication methods, separated by commas; if it is empty, all methods are accepted.
    is_active: whether the users of the target have access through it. Only for a group can it be False. session_s: the
    session limit in seconds from the credential policy, or None for no limit.
    """

    id: int
    domain_id: int
    name: str
    methods: str
    is_group: bool
    is_active: bool
    session_s: int | None

    def admits(self, tx: Tx, method: str, names: Sequence[str]) -> bool:
        """Return whether a user may use an authentication method for this target.

        names: the possible names of the user. If it is empty, return whether any user may use the method. A user may
        have several assignments to an instance. Such a user may use a method if the instance accepts it and at least
        one of the assignments allows it. For a user without an assignment, only the methods of the instance count,
        because the user's account on the machine may have been created by other means.
        """
        if not allows(self.methods, method):
            return False
        return self.is_group or not names or any(self._admits_user(tx, name, method) for name in names)

    def _admits_user(self, tx: Tx, name: str, method: str) -> bool:
        sql = "select id from endpoint_users where domain_id = :d and name_key = :key"
        user_id = tx.value(int, sql, d=self.domain_id, key=name_key(name))
        own = [] if user_id is None else grants.grants_of_user(tx, self.id, user_id)
        return not own or any(grant.allows(method) for grant in own)


class AccessTargets:
    """The instances and groups of all tenants."""

    def find(self, tx: Tx, tenant_id: int, domain_id: int, name: str, *, group: bool = False) -> AccessTarget | None:
        """Return the tenant's instance or group with this name (case-insensitive) or id, or None.

        If several targets match, an instance is preferred to a group. Then a match by name is preferred to a match by
        id. Then a target of the domain is preferred to a target of another domain. group: whether to search only
        groups.
        """
        kinds = (_GROUP,) if group else (_INSTANCE, _GROUP)
        number = int(name) if name.isascii() and name.isdecimal() and len(name) < 19 else 0
        for select in kinds:
            table = select.partition(" as methods")[0][7]
            for column, value in (("name_key", fold(name)), ("id", number)):
                found = tx.one(
                    _target,
                    f"{select} {table}.{column} = :value order by {table}.domain_id <> :d, {table}.id limit 1",
                    t=tenant_id,
                    d=domain_id,
                    value=value,
                )
                if found is not None:
                    return found
        return None

    def members(self, tx: Tx, group_id: int) -> list[UserRef]:
        """Return the users of a group, ordered by id, at most MAX_MEMBERS + 1."""
        return tx.all(
            UserRef,
            "select u.id, u.domain_id, u.name from endpoint_group_users m join endpoint_users u on u.id = m.user_id "
            "where m.group_id = :group order by u.id limit :most",
            group=group_id,
            most=MAX_MEMBERS + 1,
        )


def _target(*, id: int, domain_id: int, name: str, methods: str, is_group: int, status: str, ttl: str) -> AccessTarget:
    return AccessTarget(
        id,
        domain_id,
        name,
        methods,
        is_group=bool(is_group),
        is_active=is_active(status),
        session_s=ttl_seconds(ttl),
    )
