"""The rules of endpoint groups."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Protocol

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.endpoints import membership
from sallyport.endpoints.bodies import Action
from sallyport.endpoints.groups import repo
from sallyport.endpoints.groups.model import CredentialPolicy, Group, NewGroup, grants
from sallyport.endpoints.instances import repo as instances_repo
from sallyport.endpoints.instances.model import Instance
from sallyport.endpoints.membership import (
    GROUPS,
    GROUPS_OF_INSTANCE,
    INSTANCES,
    NOT_FOUND,
    USERS,
    USERS_OF_GROUP,
)
from sallyport.endpoints.model import Person
from sallyport.endpoints.repo import locate
from sallyport.endpoints.service import EndpointUsers
from sallyport.endpoints.trail import note, note_all
from sallyport.store import audit
from sallyport.store.audit import changed
from sallyport.store.model import Store, Tx
from sallyport.store.search import Stretch
from sallyport.store.turns import in_slices

MAX_SHOWN = 1000
"""Instances in a group's detail."""


class PolicyIds(Protocol):
    """Knows the password policies."""

    def exists(self, tx: Tx, tenant_id: int, policy_id: int) -> bool:
        """Whether a tenant has this policy."""


class Groups:
    """The groups of all domains. users: told of those whose groups change, so that their next login sees it."""

    def __init__(self, store: Store, users: EndpointUsers, policies: PolicyIds, clock: Clock = now_us) -> None:
        self._store = store
        self._clock = clock
        self._users = users
        self._policies = policies

    async def page(self, stretch: Stretch, search: str = "") -> tuple[list[Group], int]:
        """One page of a domain's groups and how many match."""
        return await self._store.search(lambda tx: repo.page(tx, stretch, search))

    async def detail(self, domain_id: int, group_id: int) -> tuple[Group, list[Instance]]:
        """A group and its first instances. NotFound."""

        def work(tx: Tx) -> tuple[Group, list[Instance]]:
            return _found(tx, domain_id, group_id), instances_repo.of_group(tx, group_id, MAX_SHOWN)

        return await self._store.read(work)

    async def named(self, domain_id: int, name: str) -> Group:
        """A group by its name. NotFound."""
        group = await self._store.read(lambda tx: repo.named(tx, domain_id, name))
        if group is None:
            raise NotFound(NOT_FOUND[GROUPS])
        return group

    async def credential_policies(self, group_ids: Sequence[int]) -> dict[int, CredentialPolicy]:
        """The credential policies of groups, of those that have one."""

        def work(tx: Tx) -> dict[int, CredentialPolicy]:
            found = {each: repo.credential_policy(tx, each) for each in group_ids}
            return {each: policy for each, policy in found.items() if policy is not None}

        return await self._store.read(work)

    async def add(self, domain_id: int, new: NewGroup, instance_ids: Sequence[int] = ()) -> int:
        """The new group's id. Conflict: the name is taken. NotFound: no such instance. Invalid: too many."""
        membership.check_size(instance_ids, [0])

        def work(tx: Tx) -> int:
            membership.must_exist(tx, INSTANCES, domain_id, instance_ids)
            group_id = repo.add(tx, domain_id, new, self._clock())
            membership.change(tx, GROUPS_OF_INSTANCE, Action.ADD, instance_ids, [group_id])
            said = {**asdict(new), "instances": list(instance_ids)}
            note(tx, "group.add", domain_id, f"group {group_id} {new.name}", changed({}, said), at=self._clock())
            return group_id

        return await self._store.write(work)

    async def edit(
        self, domain_id: int, group_id: int, said: dict[str, str], instance_ids: Sequence[int] | None = None
    ) -> None:
        """Change a group: what is not said stays. NotFound, Conflict: the name is taken. Invalid: too many.

        instance_ids: its instances from now on. A stop in the middle leaves the group as it is, with fewer instances,
        and ends sessions of users who are about to lose it; see `in_slices`.
        """
        membership.check_size(instance_ids or (), [group_id])
        seen_by_logins, last, before = False, 0, list[int]()

        def find(tx: Tx) -> Group:
            old = _found(tx, domain_id, group_id)
            repo.check_free(tx, old, replace(old.fields, **said).name)
            if instance_ids is not None:
                membership.must_exist(tx, INSTANCES, domain_id, instance_ids)
                before.extend([] if before else membership.holders_of(tx, GROUPS_OF_INSTANCE, group_id))
            return old

        def revoke(tx: Tx, old: Group) -> int:
            # Before the group changes: the second look of the revocations ends what begins meanwhile.
            nonlocal last
            new = replace(old.fields, **said)
            if fold(old.name) == fold(new.name) and grants(new.status):
                return 0
            losing = membership.held_by(tx, USERS_OF_GROUP, old.id, last) if self._matters(old) else []
            self._revoke(tx, old, losing)
            last = max(losing, default=last)
            return len(losing)

        def take_off(tx: Tx, old: Group) -> int:
            if instance_ids is None:
                return 0
            return membership.forget_other_holders(tx, GROUPS_OF_INSTANCE, old.id, instance_ids)

        def end(tx: Tx, old: Group) -> None:
            nonlocal seen_by_logins
            new = replace(old.fields, **said)
            changes = changed(asdict(old.fields), asdict(new))
            seen_by_logins = old.name != new.name or grants(old.status) != grants(new.status)
            if changes:
                repo.update(tx, old, new, self._clock())
            if instance_ids is not None:
                membership.change(tx, GROUPS_OF_INSTANCE, Action.ADD, instance_ids, [group_id])
                after = sorted(set(instance_ids))
                changes |= {} if before == after else {"instances": [list[JSON](before), list[JSON](after)]}
            if changes:
                note(tx, "group.update", domain_id, f"group {group_id} {new.name}", changes, at=self._clock())

        try:
            await in_slices(self._store, find, (revoke, take_off), end)
        finally:
            if seen_by_logins:
                self._users.forget_domain(domain_id)

    async def delete(self, domain_id: int, group_ids: Sequence[int]) -> int:
        """Remove groups; how many. NotFound: nothing is removed if one does not exist.

        A stop in the middle leaves all groups, with fewer users and instances; see `in_slices`.
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
            repo.delete(tx, domain_id, wanted)
            targets = [f"group {group.id} {group.name}" for group in wanted]
            note_all(tx, "group.delete", domain_id, targets, at=self._clock())
            return len(wanted)

        try:
            return await in_slices(self._store, find, (self._take_users, _take_off_instances), end)
        finally:
            if was_found:
                self._users.forget_domain(domain_id)

    def _take_users(self, tx: Tx, groups: list[Group]) -> int:
        """Take users from groups that are to be deleted, and revoke their access."""
        gone = membership.forget_holders(tx, USERS_OF_GROUP, [group.id for group in groups])
        for group in groups:
            self._revoke(tx, group, [user_id for group_id, user_id in gone if group_id == group.id])
        return len(gone)

    async def assign_users(self, domain_id: int, group_id: int, user_ids: Sequence[int], action: Action) -> None:
        """Put users into a group, or take them out, all or none. NotFound, Invalid: too many."""
        membership.check_size([group_id], user_ids)

        def find(tx: Tx) -> tuple[Group, list[Person], list[int]]:
            return _found(tx, domain_id, group_id), membership.people(tx, domain_id, user_ids), []

        await self._assign(domain_id, find, action)

    async def assign_named(
        self, domain_id: int, name: str, users: Sequence[str], instances: Sequence[str], action: Action
    ) -> None:
        """Put users and instances into a group, or take them out, all by name, all or none. NotFound."""

        def find(tx: Tx) -> tuple[Group, list[Person], list[int]]:
            group = repo.named(tx, domain_id, name)
            people = [locate(tx, domain_id, each) for each in users]
            machines = [instances_repo.named(tx, domain_id, each) for each in instances]
            for table, found in ((GROUPS, [group]), (USERS, people), (INSTANCES, machines)):
                if None in found:
                    raise NotFound(NOT_FOUND[table])
            assert group is not None  # noqa: S101  it was looked at
            return group, [each for each in people if each], [each.id for each in machines if each]

        await self._assign(domain_id, find, action)

    async def _assign(
        self, domain_id: int, find: Callable[[Tx], tuple[Group, list[Person], list[int]]], action: Action
    ) -> None:
        names: list[str] = []

        def work(tx: Tx) -> None:
            group, people, instance_ids = find(tx)
            names.extend(person.name for person in people)
            user_ids = [person.id for person in people]
            target = f"group {group.id} {group.name}"
            moved = membership.change(tx, USERS_OF_GROUP, action, [group.id], user_ids)
            if moved and action is Action.REMOVE:
                self._revoke(tx, group, [user_id for _, user_id in moved])
            if moved:
                told: dict[str, JSON] = {"users": list[JSON](user_ids)}
                note(tx, f"group.users.{action}", domain_id, target, told, at=self._clock())
            if membership.change(tx, GROUPS_OF_INSTANCE, action, instance_ids, [group.id]):
                told = {"instances": list[JSON](instance_ids)}
                note(tx, f"group.instances.{action}", domain_id, target, told, at=self._clock())

        try:
            await self._store.write(work)
        finally:
            self._users.drop(domain_id, *names)

    def _revoke(self, tx: Tx, group: Group, user_ids: Sequence[int]) -> None:
        """Revoke the access of users who lose a group, if a group gives access."""
        if user_ids and self._matters(group):
            names = [person.name for person in membership.people(tx, group.domain_id, user_ids)]
            self._users.revocations.revoke(tx, group.domain_id, names, f"the group {group.name} was lost")

    def _matters(self, group: Group) -> bool:
        """Whether a group gives access."""
        return grants(group.status) and self._users.revocations.group_matters(group.domain_id, group.name)

    async def set_credential_policy(self, domain_id: int, group_id: int, said: dict[str, str | int | None]) -> int:
        """Change a group's credential policy, or make it: what is not said stays; its id. NotFound: no such group, or
        no such password policy."""

        def work(tx: Tx) -> int:
            group = _found(tx, domain_id, group_id)
            old = repo.credential_policy(tx, group_id) or CredentialPolicy()
            new = replace(old, **said)  # type: ignore[arg-type]
            tenant_id = audit.tenant_of(tx, domain_id)
            if new.policy_id is not None and not self._policies.exists(tx, tenant_id, new.policy_id):
                raise NotFound("password policy not found")
            kept = repo.set_credential_policy(tx, group_id, new)
            changes = changed(asdict(old), asdict(replace(new, id=kept)))
            if changes:
                note(tx, "group.policy.set", domain_id, f"group {group_id} {group.name}", changes, at=self._clock())
            return kept

        try:
            return await self._store.write(work)
        finally:
            self._users.forget_domain(domain_id)  # how long their sessions may last

    async def delete_credential_policy(self, domain_id: int, group_id: int, policy_id: int | None) -> None:
        """Take a group's credential policy away; None: whichever it is. NotFound: no such group, or another policy."""

        def work(tx: Tx) -> None:
            group = _found(tx, domain_id, group_id)
            old = repo.credential_policy(tx, group_id)
            if policy_id is not None and (old is None or old.id != policy_id):
                raise NotFound("credential policy not found")
            if old is not None:
                repo.delete_credential_policy(tx, group_id)
                changes = changed(asdict(old), {})
                note(tx, "group.policy.delete", domain_id, f"group {group_id} {group.name}", changes, at=self._clock())

        try:
            await self._store.write(work)
        finally:
            self._users.forget_domain(domain_id)


def _found(tx: Tx, domain_id: int, group_id: int) -> Group:
    group = repo.get(tx, domain_id, group_id)
    if group is None:
        raise NotFound(NOT_FOUND[GROUPS])
    return group


def _take_off_instances(tx: Tx, groups: list[Group]) -> int:
    return membership.forget_held(tx, GROUPS_OF_INSTANCE, [group.id for group in groups])
