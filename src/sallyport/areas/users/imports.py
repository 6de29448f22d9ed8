"""The import of instances and users from the rows of a file. All rows are planned first. Then all plans are executed in
one transaction.

If the domain already has an instance or user with the name in a row, the import changes this instance or user.
Otherwise, the import adds a new one. A field without a value in the row keeps its old value. The assignments in a row
are added to the existing assignments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from sallyport.areas.users import membership
from sallyport.areas.users.accounts import repo as accounts
from sallyport.areas.users.accounts.account import DISCOVERED, Account
from sallyport.areas.users.accounts.bodies import ImportedUser
from sallyport.areas.users.accounts.service import Users, differences
from sallyport.areas.users.groups import repo as groups_repo
from sallyport.areas.users.instances import repo as instances_repo
from sallyport.areas.users.instances.bodies import ImportedInstance
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.membership import (
    GROUPS,
    GROUPS_OF_INSTANCE,
    INSTANCES,
    NOT_FOUND,
    USERS_OF_GROUP,
    USERS_OF_INSTANCE,
    Action,
    Demands,
)
from sallyport.base.errors import Conflict, FieldError, NotFound, Refused
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import Arguments
from sallyport.store.audit import changed
from sallyport.store.model import Store, Tx

ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_ROWS = 1000
"""Maximum number of rows in one command. Other writes wait for the transaction of the command."""


class Outcome(StrEnum):
    """The effect of importing a row."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan for importing a row.

    changes: the names of the fields that the import changes. do: the function that executes the plan in a transaction,
    or None if nothing has to be done. reason: the reason why the row cannot be imported, or empty. id: that of a
    present instance or user that changes.
    """

    outcome: Outcome
    name: str
    changes: Sequence[str] = ()
    do: Callable[[Tx], object] | None = None
    reason: str = ""
    id: int = 0

    def row(self) -> Row:
        """Return the plan as a row of the command's answer."""
        return {
            "action": self.outcome.value,
            "name": self.name,
            "changes": list[JSON](self.changes),
            "reason": self.reason,
        }


Plan = Callable[[Tx, Mapping[str, object]], Planned]
"""A function that plans a row. It raises Refused if the row cannot be imported."""


class ImportRows(Arguments):
    """Rows to import into a domain. apply: whether to execute the plans of the rows, or only to return them. override:
    whether to change instances and users that files manage."""

    domain: str
    rows: list[dict[str, object]] = Field(max_length=MAX_ROWS)
    apply: bool = False
    override: bool = False


async def carry_out(store: Store, plan: Plan, rows: Sequence[Mapping[str, object]], *, apply: bool) -> list[Planned]:
    """Plan the import of each row, and return the plans in the order of the rows.

    apply: whether to execute the plans as well, in one transaction. If it is True and a row cannot be imported, this
    function raises Conflict and changes nothing.
    """

    def plan_rows(tx: Tx) -> list[Planned]:
        planned = [_planned(tx, plan, row) for row in rows]
        refused = [each for each in planned if each.outcome is Outcome.REFUSED]
        if apply and refused:
            raise Conflict(f"{refused[0].name}: {refused[0].reason}")
        for each in planned:
            if apply and each.do is not None:
                each.do(tx)
        return planned

    return await (store.write(plan_rows) if apply else store.search(plan_rows))


def parsed(model: type[ModelT], row: Mapping[str, object]) -> ModelT:
    """Validate a row. Raises Invalid if a value is invalid. The error contains the names of the columns, but not the
    values."""
    try:
        return model.model_validate(dict(row))
    except ValidationError as error:
        raise refusal(error) from None


def _planned(tx: Tx, plan: Plan, row: Mapping[str, object]) -> Planned:
    try:
        return plan(tx, row)
    except Refused as error:
        fields: Sequence[FieldError] = getattr(error, "fields", ())
        reasons = [each.about(each.field) if _is_column(each) else each.message for each in fields]
        return Planned(
            Outcome.REFUSED,
            str(row.get("userName", row.get("instanceName", ""))),
            reason="; ".join(reasons) or str(error),
        )


def _is_column(wrong: FieldError) -> bool:
    """Return whether an error is about a column of the file. Other errors are about rules for passwords."""
    column = wrong.field.partition(".")[0]
    return column in ImportedUser.model_fields or column in ImportedInstance.model_fields


async def import_instances(
    store: Store, instances: Instances, domain_id: int, rows: Sequence[Mapping[str, object]], *, apply: bool
) -> list[Planned]:
    """Plan the import of instances. If `apply` is True, execute the plans as well; see `carry_out`. Raises Conflict."""

    def plan(tx: Tx, row: Mapping[str, object]) -> Planned:
        wanted = parsed(ImportedInstance, row)
        old = instances_repo.named(tx, domain_id, wanted.instanceName)
        new = wanted.onto(old)
        if old is None:
            return Planned(Outcome.NEW, new.name, do=lambda tx: instances.add_in(tx, domain_id, new))
        changes = changed(old.settings, new.settings)
        if not changes:
            return Planned(Outcome.UNCHANGED, new.name)
        do: Callable[[Tx], object] = lambda tx: instances.update_in(tx, old, new)  # noqa: E731
        return Planned(Outcome.CHANGED, new.name, list(changes), do, id=old.id)

    return await carry_out(store, plan, rows, apply=apply)


@dataclass(frozen=True, slots=True)
class _Assignments:
    """The ids of the instances and groups that a row assigns to a user."""

    instances: Sequence[int]
    groups: Sequence[int]

    def demands(self, tx: Tx) -> Demands:
        """Return the password policies that the user's password must meet. These are the policies of the instances, of
        the groups, and of all instances to which these groups are assigned."""
        machines = [*self.instances, *(each for group in self.groups for each in _instances_of(tx, group))]
        return Demands(machines, membership.policies_of(tx, self.groups))

    def new_to(self, tx: Tx, user_id: int) -> dict[str, list[int]]:
        """Return the ids of the instances and groups to which a user is not assigned yet. The keys are `instances` and
        `groups`."""
        held = {
            "instances": {*self.instances} - {*membership.holders_of(tx, USERS_OF_INSTANCE, user_id)},
            "groups": {*self.groups} - {*membership.holders_of(tx, USERS_OF_GROUP, user_id)},
        }
        return {kind: sorted(ids) for kind, ids in held.items() if ids}


def _instances_of(tx: Tx, group_id: int) -> list[int]:
    return membership.holders_of(tx, GROUPS_OF_INSTANCE, group_id)


async def import_users(
    store: Store, users: Users, domain_id: int, rows: Sequence[Mapping[str, object]], *, apply: bool
) -> list[Planned]:
    """Plan the import of users. If `apply` is True, execute the plans as well; see `carry_out`. Raises Conflict."""
    importer = _UserImport(users, domain_id)
    with users.changing(domain_id, importer.names):
        return await carry_out(store, importer.plan, rows, apply=apply)


class _UserImport:
    """The import of users. names: the names of the users in all rows that were planned so far. At the end,
    `Users.changing` drops these users from the cache."""

    def __init__(self, users: Users, domain_id: int) -> None:
        self._users = users
        self._domain_id = domain_id
        self.names: list[str] = []

    def plan(self, tx: Tx, row: Mapping[str, object]) -> Planned:
        """Plan the import of a row. Raises Invalid if a value is invalid. Raises NotFound if an instance or group does
        not exist."""
        wanted = parsed(ImportedUser, row)
        self.names.append(wanted.userName)
        assigned = self._find(tx, wanted)
        old = accounts.named(tx, self._domain_id, wanted.userName)
        return self._new(tx, wanted, assigned) if old is None else self._changed(tx, old, wanted, assigned)

    def _new(self, tx: Tx, wanted: ImportedUser, assigned: _Assignments) -> Planned:
        self._users.check_password(tx, assigned.demands(tx), wanted.userName, wanted.change)

        def do(tx: Tx) -> None:
            user_id = self._users.add_in(tx, self._domain_id, wanted.change)
            self._assign(tx, user_id, wanted.userName, assigned)

        return Planned(Outcome.NEW, wanted.userName, do=do)

    def _changed(self, tx: Tx, old: Account, wanted: ImportedUser, assigned: _Assignments) -> Planned:
        new = self._users.without_same_secrets(tx, old, wanted.change)
        present, more = membership.demands_on(tx, old.id), assigned.demands(tx)
        demands = Demands([*present.instance_ids, *more.instance_ids], [*present.policy_ids, *more.policy_ids])
        self._users.check_password(tx, demands, wanted.userName, new)
        changes = [*differences(old, new), *assigned.new_to(tx, old.id)]
        if old.source == DISCOVERED:
            changes.append("source")

        def do(tx: Tx) -> None:
            self._users.update_in(tx, old, wanted.change)
            self._assign(tx, old.id, wanted.userName, assigned)

        if not changes:
            return Planned(Outcome.UNCHANGED, old.name)
        return Planned(Outcome.CHANGED, old.name, changes, do, id=old.id)

    def _assign(self, tx: Tx, user_id: int, name: str, assigned: _Assignments) -> None:
        fresh = assigned.new_to(tx, user_id)
        membership.change(tx, USERS_OF_INSTANCE, Action.ADD, assigned.instances, [user_id])
        membership.change(tx, USERS_OF_GROUP, Action.ADD, assigned.groups, [user_id])
        if fresh:
            changes: dict[str, JSON] = {kind: list[JSON](ids) for kind, ids in fresh.items()}
            self._users.note(tx, "user.assign", self._domain_id, f"user {user_id} {name}", changes)

    def _find(self, tx: Tx, wanted: ImportedUser) -> _Assignments:
        machines = [instances_repo.named(tx, self._domain_id, name) for name in wanted.instances if name]
        joined = [groups_repo.named(tx, self._domain_id, name) for name in wanted.groups if name]
        if None in machines:
            raise NotFound(f"instances: {NOT_FOUND[INSTANCES]}; add it first: sallyport instance add")
        if None in joined:
            raise NotFound(f"groups: {NOT_FOUND[GROUPS]}; add it first: sallyport group add")
        return _Assignments([each.id for each in machines if each], [each.id for each in joined if each])
