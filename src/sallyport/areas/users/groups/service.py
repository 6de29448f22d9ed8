"""The service for endpoint groups."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Protocol

from sallyport.areas.users import membership
from sallyport.areas.users.groups import repo
from sallyport.areas.users.groups.group import CredentialPolicy, Group, is_active
from sallyport.areas.users.instances import repo as instances_repo
from sallyport.areas.users.instances.instance import Instance
from sallyport.areas.users.membership import GROUPS, GROUPS_OF_INSTANCE, INSTANCES, NOT_FOUND, USERS_OF_GROUP, Action
from sallyport.areas.users.service import EndpointUsers
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.audit import changed, record_all_in, record_in
from sallyport.store.model import ListQuery, Store, Tx
from sallyport.store.slices import Slice, in_slices
from sallyport.web.bodies import SHORT

MAX_SHOWN = 1000
"""Maximum number of instances that `detail` returns."""


class PolicyIds(Protocol):
    """The interface that tells whether a password policy exists."""

    def exists(self, tx: Tx, tenant_id: int, policy_id: int) -> bool:
        """Return whether a tenant has this password policy."""


class Groups:
    """The groups of all domains. users: the cache of users. When a user joins or leaves a group, or when a group of the
    user changes, this class drops the user from the cache."""

    def __init__(self, store: Store, users: EndpointUsers, policies: PolicyIds, clock: Clock = now_us) -> None:
        self._store = store
        self._clock = clock
        self._users = users
        self._policies = policies

    async def page(
        self, stretch: ListQuery, search: str = "", instance_id: int = 0
    ) -> tuple[list[tuple[Group, CredentialPolicy | None]], int]:
        """Return one page of a domain's groups, each with its credential policy, and the number of matching groups.
        instance_id: the id of an instance, for its groups only; 0 for all groups."""

        def query(tx: Tx) -> tuple[list[tuple[Group, CredentialPolicy | None]], int]:
            found, total = repo.page(tx, stretch, search, instance_id)
            policies = repo.credential_policies(tx, [group.id for group in found])
            return [(group, policies.get(group.id)) for group in found], total

        return await (self._store.search if search or stretch.limit > SHORT else self._store.read_now)(query)

    async def detail(self, domain_id: int, group_id: int) -> tuple[Group, list[Instance]]:
        """Return a group and its first instances, ordered by id. Raises NotFound if the group does not exist."""

        def query(tx: Tx) -> tuple[Group, list[Instance]]:
            return _found(tx, domain_id, group_id), instances_repo.of_group(tx, group_id, MAX_SHOWN)

        return await self._store.read(query)

    async def add(self, domain_id: int, new: Group, instance_ids: Sequence[int] = ()) -> int:
        """Add a group, assign it to instances, and return its id.

        Raises Conflict if the name is taken. Raises NotFound if an instance does not exist. Raises Invalid if there are
        too many instances.
        """
        membership.check_size(instance_ids, [0])

        return await self._store.write(lambda tx: self.add_in(tx, domain_id, new, instance_ids))

    def add_in(self, tx: Tx, domain_id: int, new: Group, instance_ids: Sequence[int] = ()) -> int:
        """Add a group in a transaction, and return its id. Raises Conflict, NotFound."""
        membership.must_exist(tx, INSTANCES, domain_id, instance_ids)
        group_id = repo.add(tx, domain_id, new, self._clock())
        membership.change(tx, GROUPS_OF_INSTANCE, Action.ADD, instance_ids, [group_id])
        changes = changed({}, {**new.settings, "instances": list(instance_ids)})
        record_in(tx, "group.add", domain_id, f"group {group_id} {new.name}", changes, at=self._clock())
        return group_id

    async def edit(
        self, domain_id: int, group_id: int, new_fields: Mapping[str, object], instance_ids: Sequence[int] | None = None
    ) -> None:
        """Change a group.

        new_fields: the fields to change, by name. instance_ids: the ids of the group's new instances, which replace all
        old ones, or None to keep the old ones. Raises NotFound if the group or an instance does not exist. Raises
        Conflict if the name is taken. Raises Invalid if there are too many instances.

        The change takes several transactions. If it is interrupted, the group keeps its old fields, but may have lost
        instances. The sessions of users may also have ended, if the change would have taken access from these users.
        """
        membership.check_size(instance_ids or (), [group_id])
        seen_by_logins, before = False, list[int]()

        def find(tx: Tx) -> Group:
            old = _found(tx, domain_id, group_id)
            repo.check_free(tx, old, _changed(old, new_fields).name)
            if instance_ids is not None:
                membership.must_exist(tx, INSTANCES, domain_id, instance_ids)
                before.extend([] if before else membership.holders_of(tx, GROUPS_OF_INSTANCE, group_id))
            return old

        def take_off(tx: Tx, old: Group) -> int:
            if instance_ids is None:
                return 0
            return membership.forget_other_holders(tx, GROUPS_OF_INSTANCE, old.id, instance_ids)

        def end(tx: Tx, old: Group) -> None:
            nonlocal seen_by_logins
            new = _changed(old, new_fields)
            seen_by_logins = old.name != new.name or is_active(old.status) != is_active(new.status)
            self._edit(tx, old, new, before, instance_ids)

        try:
            await in_slices(self._store, find, (self._revoking(new_fields), take_off), end)
        finally:
            if seen_by_logins:
                self._users.forget_domain(domain_id)

    def _revoking(self, new_fields: Mapping[str, object]) -> Slice[Group]:
        """Return a function that revokes the access that users lose through a change of a group. It runs before the
        group changes. The revocations' second check ends sessions that begin in between."""
        last = 0

        def revoke(tx: Tx, old: Group) -> int:
            nonlocal last
            new = _changed(old, new_fields)
            if fold(old.name) == fold(new.name) and is_active(new.status):
                return 0
            losing = membership.held_by(tx, USERS_OF_GROUP, old.id, last) if self._matters(old) else []
            self._revoke(tx, old, losing)
            last = max(losing, default=last)
            return len(losing)

        return revoke

    def _edit(self, tx: Tx, old: Group, new: Group, before: Sequence[int], instance_ids: Sequence[int] | None) -> None:
        """Store a changed group. before, instance_ids: the ids of its instances before and after the change."""
        changes = changed(old.settings, new.settings)
        if changes:
            repo.update(tx, old, new, self._clock())
        if instance_ids is not None:
            membership.change(tx, GROUPS_OF_INSTANCE, Action.ADD, instance_ids, [old.id])
            after = sorted(set(instance_ids))
            changes |= {} if before == after else {"instances": [list[JSON](before), list[JSON](after)]}
        if changes:
            record_in(tx, "group.update", old.domain_id, f"group {old.id} {new.name}", changes, at=self._clock())

    async def revoke_before(self, domain_id: int, group_id: int, new_fields: Mapping[str, object]) -> None:
        """Revoke the access that users lose through `edit_in`, in short transactions before it. Raises NotFound."""
        find, revoke = (lambda tx: _found(tx, domain_id, group_id)), self._revoking(new_fields)
        await in_slices(self._store, find, [revoke], lambda _tx, _old: None)

    def edit_in(
        self, tx: Tx, domain_id: int, group_id: int, new_fields: Mapping[str, object], instance_ids: Sequence[int]
    ) -> None:
        """Change a group in a transaction, after `revoke_before`. instance_ids: the ids of its instances from now on.
        After the transaction, the caller must call `forget`. Raises NotFound, Conflict."""
        old = _found(tx, domain_id, group_id)
        repo.check_free(tx, old, _changed(old, new_fields).name)
        membership.must_exist(tx, INSTANCES, domain_id, instance_ids)
        before, _ = membership.set_holders(tx, GROUPS_OF_INSTANCE, group_id, instance_ids)
        self._edit(tx, old, _changed(old, new_fields), before, instance_ids)

    def forget(self, domain_id: int) -> None:
        """Drop the users of a domain from the cache, after groups have changed."""
        self._users.forget_domain(domain_id)

    def set_groups_of_user(self, tx: Tx, domain_id: int, user_id: int, group_ids: Sequence[int]) -> bool:
        """Make a user a member of these groups, and of no others, in a transaction. Return whether something has
        changed."""
        before, gone = membership.set_holders(tx, USERS_OF_GROUP, user_id, group_ids)
        for group in repo.several(tx, domain_id, gone):
            self._revoke(tx, group, [user_id])
        return {*before} != {*group_ids}

    async def delete(self, domain_id: int, group_ids: Sequence[int]) -> int:
        """Delete groups, and return their number. Raises NotFound if a group does not exist; no group is deleted in
        this case.

        The deletion takes several transactions. If it is interrupted, no group is deleted yet, but the groups may have
        lost users and instances. To complete the deletion, repeat the call.
        """
        was_found = False

        def find(tx: Tx) -> list[Group]:
            nonlocal was_found
            wanted = repo.several(tx, domain_id, group_ids)
            if len(wanted) < len(set(group_ids)):
                raise NotFound(NOT_FOUND[GROUPS])
            was_found = True
            return wanted

        def end(tx: Tx, wanted: list[Group]) -> int:
            self._delete(tx, domain_id, wanted)
            return len(wanted)

        try:
            return await in_slices(self._store, find, (self._take_users, _take_off_instances), end)
        finally:
            if was_found:
                self._users.forget_domain(domain_id)

    def _delete(self, tx: Tx, domain_id: int, wanted: list[Group]) -> None:
        repo.delete(tx, domain_id, wanted)
        targets = [f"group {group.id} {group.name}" for group in wanted]
        record_all_in(tx, "group.delete", domain_id, targets, at=self._clock())

    async def release(self, domain_id: int, group_ids: Sequence[int]) -> None:
        """Remove the users and instances of groups before the groups themselves, in short transactions."""
        slices = (self._take_users, _take_off_instances)
        await in_slices(
            self._store, lambda tx: repo.several(tx, domain_id, group_ids), slices, lambda _tx, _groups: None
        )

    def delete_in(self, tx: Tx, domain_id: int, group_ids: Sequence[int]) -> None:
        """Delete groups in a transaction, after `release`. After it, the caller must call `forget`."""
        wanted = repo.several(tx, domain_id, group_ids)
        for each in (self._take_users, _take_off_instances):  # those that were added since
            while each(tx, wanted):
                pass
        self._delete(tx, domain_id, wanted)

    def _take_users(self, tx: Tx, groups: list[Group]) -> int:
        """Remove up to SLICE users from groups that will be deleted, and revoke the access of these users."""
        gone = membership.forget_holders(tx, USERS_OF_GROUP, [group.id for group in groups])
        for group in groups:
            self._revoke(tx, group, [user_id for group_id, user_id in gone if group_id == group.id])
        return len(gone)

    async def assign_users(self, domain_id: int, group_id: int, user_ids: Sequence[int], action: Action) -> None:
        """Add users to a group, or remove users from the group.

        If one user does not exist, nothing is changed. Raises NotFound. Raises Invalid if there are too many users.
        """
        membership.check_size([group_id], user_ids)
        names: list[str] = []

        def transaction(tx: Tx) -> None:
            group, members = _found(tx, domain_id, group_id), membership.users(tx, domain_id, user_ids)
            names.extend(user.name for user in members)
            moved = membership.change(tx, USERS_OF_GROUP, action, [group_id], [user.id for user in members])
            if moved and action is Action.REMOVE:
                self._revoke(tx, group, [user_id for _, user_id in moved])
            if moved:
                changes: dict[str, JSON] = {"users": [user.id for user in members]}
                target = f"group {group.id} {group.name}"
                record_in(tx, f"group.users.{action}", domain_id, target, changes, at=self._clock())

        try:
            await self._store.write(transaction)
        finally:
            self._users.drop(domain_id, *names)

    def _revoke(self, tx: Tx, group: Group, user_ids: Sequence[int]) -> None:
        """Revoke the access of users that leave a group. Do nothing if the group is inactive, or if leaving the group
        takes no access from users."""
        if user_ids and self._matters(group):
            names = [user.name for user in membership.users(tx, group.domain_id, user_ids)]
            self._users.revocations.revoke(tx, group.domain_id, names, f"the user left the group {group.name}")

    def _matters(self, group: Group) -> bool:
        """Return whether a user may lose access by leaving the group."""
        return is_active(group.status) and self._users.revocations.group_matters(group.domain_id, group.name)

    async def set_credential_policy(self, domain_id: int, group_id: int, fields: Mapping[str, object]) -> int:
        """Change fields of a group's credential policy, and return the policy's id. If the group has no policy, add
        one.

        fields: the new values, by field name. Raises NotFound if the group or the password policy does not exist.
        """

        try:
            return await self._store.write(lambda tx: self.set_policy_in(tx, domain_id, group_id, fields))
        finally:
            self._users.forget_domain(domain_id)  # the session limits of its users may have changed

    def set_policy_in(self, tx: Tx, domain_id: int, group_id: int, fields: Mapping[str, object]) -> int:
        """Change fields of a group's credential policy in a transaction; see `set_credential_policy`."""
        group = _found(tx, domain_id, group_id)
        old = repo.credential_policy(tx, group_id) or CredentialPolicy()
        new = replace(old, **fields)  # type: ignore[arg-type]
        tenant_id = audit.tenant_of(tx, domain_id)
        if new.policy_id is not None and not self._policies.exists(tx, tenant_id, new.policy_id):
            raise NotFound("password policy not found")
        kept = repo.set_credential_policy(tx, group_id, new)
        changes = changed(asdict(old), asdict(replace(new, id=kept)))
        if changes:
            self._note_policy(tx, "set", group, changes)
        return kept

    def _note_policy(self, tx: Tx, verb: str, group: Group, changes: dict[str, JSON]) -> None:
        target = f"group {group.id} {group.name}"
        record_in(tx, f"group.policy.{verb}", group.domain_id, target, changes, at=self._clock())

    async def delete_credential_policy(self, domain_id: int, group_id: int, policy_id: int | None) -> None:
        """Delete the credential policy of a group.

        policy_id: the id that the policy must have, or None to delete any policy. Raises NotFound if the group does not
        exist, or if the policy has another id.
        """

        try:
            await self._store.write(lambda tx: self.delete_policy_in(tx, domain_id, group_id, policy_id))
        finally:
            self._users.forget_domain(domain_id)

    def delete_policy_in(self, tx: Tx, domain_id: int, group_id: int, policy_id: int | None = None) -> None:
        """Delete the credential policy of a group in a transaction; see `delete_credential_policy`."""
        group = _found(tx, domain_id, group_id)
        old = repo.credential_policy(tx, group_id)
        if policy_id is not None and (old is None or old.id != policy_id):
            raise NotFound("credential policy not found")
        if old is not None:
            repo.delete_credential_policy(tx, group_id)
            self._note_policy(tx, "delete", group, changed(asdict(old), {}))


def _changed(old: Group, new_fields: Mapping[str, object]) -> Group:
    return replace(old, **new_fields)  # type: ignore[arg-type]


def _found(tx: Tx, domain_id: int, group_id: int) -> Group:
    group = repo.get(tx, domain_id, group_id)
    if group is None:
        raise NotFound(NOT_FOUND[GROUPS])
    return group


def _take_off_instances(tx: Tx, groups: list[Group]) -> int:
    return membership.forget_held(tx, GROUPS_OF_INSTANCE, [group.id for group in groups])
