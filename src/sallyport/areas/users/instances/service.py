"""The service for instances."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sallyport.areas.users import membership
from sallyport.areas.users.instances import repo
from sallyport.areas.users.instances.instance import Instance, InstanceQuery
from sallyport.areas.users.membership import (
    GROUPS,
    GROUPS_OF_INSTANCE,
    INSTANCES,
    NOT_FOUND,
    USERS,
    USERS_OF_INSTANCE,
    Action,
    Link,
)
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.store.audit import changed, record_in
from sallyport.store.model import Store, Tx
from sallyport.store.slices import Slice, in_slices
from sallyport.web.bodies import SHORT


class Instances:
    """The instances of all domains."""

    def __init__(self, store: Store, clock: Clock = now_us) -> None:
        self._store = store
        self._clock = clock
        self._before_deletion = list[Slice[int]]()

    def before_deletion(self, delete: Slice[int]) -> None:
        """Register a function that deletes what another area has stored for an instance. Before an instance is deleted,
        the function is called with the id of the instance until it returns 0."""
        self._before_deletion.append(delete)

    @property
    def slices(self) -> Sequence[Slice[int]]:
        """The functions that delete the rows of an instance before the instance itself."""
        return (
            *self._before_deletion,
            partial(_take_all, USERS_OF_INSTANCE),
            partial(_take_all, GROUPS_OF_INSTANCE),
        )

    async def page(self, query: InstanceQuery) -> tuple[list[Instance], int]:
        """Return one page of a domain's instances, and the number of matching instances. Raises NotFound if the group
        in the query does not exist."""

        def read_page(tx: Tx) -> tuple[list[Instance], int]:
            if query.group_id:
                membership.must_exist(tx, GROUPS, query.domain_id, [query.group_id])
            return repo.page(tx, query)

        by_key = not (query.search or query.group_id) and query.limit <= SHORT
        return await (self._store.read_now if by_key else self._store.search)(read_page)

    async def add(self, domain_id: int, new: Instance) -> int:
        """Add an instance, and return its id. Raises Conflict if the name is taken."""
        return await self._store.write(lambda tx: self.add_in(tx, domain_id, new))

    def add_in(self, tx: Tx, domain_id: int, new: Instance) -> int:
        """Add an instance in a transaction, and return its id. Raises Conflict if the name is taken."""
        instance_id = repo.add(tx, domain_id, new, self._clock())
        changes = changed({}, {name: value for name, value in new.settings.items() if value})
        record_in(tx, "instance.add", domain_id, f"instance {instance_id} {new.name}", changes, at=self._clock())
        return instance_id

    def update_in(self, tx: Tx, old: Instance, new: Instance) -> None:
        """Change an instance in a transaction. If nothing differs, store nothing and write no audit-trail entry."""
        changes = changed(old.settings, new.settings)
        if changes:
            repo.update(tx, old, new, self._clock())
            record_in(tx, "instance.update", old.domain_id, f"instance {old.id} {new.name}", changes, at=self._clock())

    async def set_auth_type(self, domain_id: int, instance_id: int, auth_type: str) -> None:
        """Set the authentication methods of an instance. auth_type: the methods, separated by commas. Raises
        NotFound."""

        def transaction(tx: Tx) -> None:
            old = _found(repo.get(tx, domain_id, instance_id))
            self.update_in(tx, old, replace(old, auth_type=auth_type))

        await self._store.write(transaction)

    async def assign_users(
        self, domain_id: int, instance_ids: Sequence[int], user_ids: Sequence[int], action: Action
    ) -> None:
        """Assign each user to each instance, or remove the assignments.

        If one user or instance does not exist, nothing is changed. Raises NotFound. Raises Invalid if there are too
        many assignments.
        """
        await self._assign(domain_id, USERS_OF_INSTANCE, USERS, instance_ids, user_ids, action)

    async def assign_groups(
        self, domain_id: int, instance_ids: Sequence[int], group_ids: Sequence[int], action: Action
    ) -> None:
        """Assign each group to each instance, or remove the assignments.

        If one group or instance does not exist, nothing is changed. Raises NotFound. Raises Invalid if there are too
        many assignments.
        """
        await self._assign(domain_id, GROUPS_OF_INSTANCE, GROUPS, instance_ids, group_ids, action)

    async def _assign(
        self, domain_id: int, link: Link, table: str, instance_ids: Sequence[int], held: Sequence[int], action: Action
    ) -> None:
        membership.check_size(instance_ids, held)

        def transaction(tx: Tx) -> None:
            membership.must_exist(tx, INSTANCES, domain_id, instance_ids)
            membership.must_exist(tx, table, domain_id, held)
            self._change(tx, domain_id, link, instance_ids, held, action)

        await self._store.write(transaction)

    def _change(
        self, tx: Tx, domain_id: int, link: Link, instance_ids: Sequence[int], held: Sequence[int], action: Action
    ) -> None:
        """Assign users or groups to instances, or remove these assignments. held: the ids of the users or groups. All
        ids must exist."""
        if membership.change(tx, link, action, instance_ids, held):
            kind = "users" if link is USERS_OF_INSTANCE else "groups"
            changes: dict[str, JSON] = {kind: list[JSON](held), "instances": list[JSON](instance_ids)}
            target = f"{'instance' if len(instance_ids) == 1 else 'instances'} {_few(instance_ids)}"
            record_in(tx, f"instance.{kind}.{action}", domain_id, target, changes, at=self._clock())

    async def remove(self, domain_id: int, instance_id: int) -> None:
        """Delete an instance and its assignments. Raises NotFound.

        The deletion takes several transactions. If it is interrupted, the instance remains, but may have lost its keys
        and assignments. To complete the deletion, repeat the call.
        """

        def find(tx: Tx) -> Instance:
            return _found(repo.get(tx, domain_id, instance_id))

        await in_slices(self._store, find, [_by_id(each) for each in self.slices], self._delete)

    def _delete(self, tx: Tx, old: Instance) -> None:
        repo.delete(tx, old)
        record_in(tx, "instance.delete", old.domain_id, f"instance {old.id} {old.name}", at=self._clock())

    async def release(self, instance_id: int) -> None:
        """Delete the rows of an instance before the instance itself, in short transactions."""
        await in_slices(self._store, lambda _tx: instance_id, self.slices, lambda _tx, _id: None)

    def delete_in(self, tx: Tx, domain_id: int, instance_id: int) -> None:
        """Delete an instance in a transaction, after `release`. Raises NotFound."""
        old = _found(repo.get(tx, domain_id, instance_id))
        for each in self.slices:  # rows that were added since
            while each(tx, instance_id):
                pass
        self._delete(tx, old)

    def in_domain(self, tx: Tx, domain_id: int, instance_id: int) -> bool:
        """Return whether a domain has this instance."""
        return repo.get(tx, domain_id, instance_id) is not None

    def exists(self, tx: Tx, tenant_id: int, instance_id: int) -> bool:
        """Return whether a tenant has this instance."""
        return repo.exists(tx, tenant_id, instance_id)


def _found(instance: Instance | None) -> Instance:
    if instance is None:
        raise NotFound(NOT_FOUND[INSTANCES])
    return instance


def _take_all(link: Link, tx: Tx, instance_id: int) -> int:
    return len(membership.forget_holders(tx, link, [instance_id]))


def _by_id(delete: Slice[int]) -> Slice[Instance]:
    return lambda tx, old: delete(tx, old.id)


def _few(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
