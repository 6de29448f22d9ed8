"""What a row of a file does to a domain's users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.endpoints import membership
from sallyport.endpoints.groups import repo as groups
from sallyport.endpoints.imports import Outcome, Planned, parsed
from sallyport.endpoints.instances import repo as instances
from sallyport.endpoints.membership import (
    GROUPS,
    GROUPS_OF_INSTANCE,
    INSTANCES,
    NOT_FOUND,
    USERS_OF_GROUP,
    USERS_OF_INSTANCE,
    Action,
    Demands,
)
from sallyport.endpoints.users import repo
from sallyport.endpoints.users.account import DISCOVERED, Account
from sallyport.endpoints.users.bodies import ImportedUser
from sallyport.endpoints.users.service import Users, differences
from sallyport.store.model import Tx


@dataclass(frozen=True, slots=True)
class _Joins:
    """What a row assigns its user to, by ids."""

    instances: Sequence[int]
    groups: Sequence[int]

    def demands(self, tx: Tx) -> Demands:
        """What they demand of a password: the instances themselves, and those of the groups, and the groups."""
        machines = [*self.instances, *(each for group in self.groups for each in _instances_of(tx, group))]
        return Demands(machines, membership.policies_of(tx, self.groups))

    def new_to(self, tx: Tx, user_id: int) -> dict[str, list[int]]:
        """What the user is not assigned to yet."""
        held = {
            "instances": {*self.instances} - {*membership.holders_of(tx, USERS_OF_INSTANCE, user_id)},
            "groups": {*self.groups} - {*membership.holders_of(tx, USERS_OF_GROUP, user_id)},
        }
        return {kind: sorted(ids) for kind, ids in held.items() if ids}


def _instances_of(tx: Tx, group_id: int) -> list[int]:
    return membership.holders_of(tx, GROUPS_OF_INSTANCE, group_id)


async def import_rows(
    users: Users, domain_id: int, rows: Sequence[Mapping[str, object]], *, apply: bool
) -> list[Planned]:
    """Judge rows of a file, and with `apply` do what they say, all or none. Conflict: one is refused."""
    importer = _Importer(users, domain_id)
    return await users.carry_out(domain_id, importer.plan, importer.names, rows, apply=apply)


class _Importer:
    """Judges the rows of one import, and does what they say. names: of the users it has judged."""

    def __init__(self, users: Users, domain_id: int) -> None:
        self._users = users
        self._domain_id = domain_id
        self.names: list[str] = []

    def plan(self, tx: Tx, row: Mapping[str, object]) -> Planned:
        """What a row would do. Invalid, NotFound: an instance or group that is not there."""
        wanted = parsed(ImportedUser, row)
        self.names.append(wanted.userName)
        joins = self._joins(tx, wanted)
        old = repo.named(tx, self._domain_id, wanted.userName)
        return self._new(tx, wanted, joins) if old is None else self._changed(tx, old, wanted, joins)

    def _new(self, tx: Tx, wanted: ImportedUser, joins: _Joins) -> Planned:
        self._users.check_password(tx, joins.demands(tx), wanted.userName, wanted.change)

        def do(tx: Tx) -> None:
            user_id = self._users.add_in(tx, self._domain_id, wanted.change)
            self._join(tx, user_id, wanted.userName, joins)

        return Planned(Outcome.NEW, wanted.userName, do=do)

    def _changed(self, tx: Tx, old: Account, wanted: ImportedUser, joins: _Joins) -> Planned:
        new = self._users.without_same_secrets(tx, old, wanted.change)
        present, more = membership.demands_on(tx, old.id), joins.demands(tx)
        demands = Demands([*present.instance_ids, *more.instance_ids], [*present.policy_ids, *more.policy_ids])
        self._users.check_password(tx, demands, wanted.userName, new)
        changes = [*differences(old, new), *joins.new_to(tx, old.id)]
        if old.source == DISCOVERED:
            changes.append("source")

        def do(tx: Tx) -> None:
            self._users.update_in(tx, old, wanted.change)
            self._join(tx, old.id, wanted.userName, joins)

        return Planned(Outcome.CHANGED, old.name, changes, do) if changes else Planned(Outcome.UNCHANGED, old.name)

    def _join(self, tx: Tx, user_id: int, name: str, joins: _Joins) -> None:
        fresh = joins.new_to(tx, user_id)
        membership.change(tx, USERS_OF_INSTANCE, Action.ADD, joins.instances, [user_id])
        membership.change(tx, USERS_OF_GROUP, Action.ADD, joins.groups, [user_id])
        if fresh:
            told: dict[str, JSON] = {kind: list[JSON](ids) for kind, ids in fresh.items()}
            self._users.note(tx, "user.assign", self._domain_id, f"user {user_id} {name}", told)

    def _joins(self, tx: Tx, wanted: ImportedUser) -> _Joins:
        machines = [instances.named(tx, self._domain_id, name) for name in wanted.instances if name]
        joined = [groups.named(tx, self._domain_id, name) for name in wanted.groups if name]
        if None in machines:
            raise NotFound(NOT_FOUND[INSTANCES])
        if None in joined:
            raise NotFound(NOT_FOUND[GROUPS])
        return _Joins([each.id for each in machines if each], [each.id for each in joined if each])
