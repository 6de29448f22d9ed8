"""The service for password policies: changes, assignments, and checks of passwords."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from sallyport.agentwire.state import Rules
from sallyport.areas.passwords import engine, repo
from sallyport.areas.passwords.engine import Failure
from sallyport.areas.passwords.policy import Assignment, Fields, Policy, complete, contradictions, rules_of, values
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import BODY, FieldError, Invalid, NotFound, invalid_field
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.slices import Slice, in_slices
from sallyport.web.bodies import Page

MAX_ENTRIES = 200
"""Maximum number of entries in one request. Logins wait for the transaction of the request, and each entry takes up to
0.4 ms."""
MAX_DEMANDED = 100
"""Maximum number of policies in a machine's desired state. If there are more, they are merged into fewer, stricter
policies."""


class Instances(Protocol):
    """The interface to the endpoint machines."""

    def exists(self, tx: Tx, tenant_id: int, instance_id: int) -> bool:
        """Return whether a tenant has this machine."""


class PasswordPolicies:
    """The password policies of all tenants."""

    def __init__(self, store: Store, instances: Instances, clock: Clock = now_us) -> None:
        self._store = store
        self._instances = instances
        self._clock = clock
        self._before_deletion = list[Slice[Sequence[int]]]()

    def before_deletion(self, release: Slice[Sequence[int]]) -> None:
        """Register a function that removes references to policies. Before policies are deleted, the function is called
        with their ids until it returns 0."""
        self._before_deletion.append(release)

    def exists(self, tx: Tx, tenant_id: int, policy_id: int) -> bool:
        """Return whether a tenant has this password policy."""
        return repo.find(tx, tenant_id, policy_id) is not None

    async def page(self, tenant_id: int, page: Page, instance_ids: Collection[int] = ()) -> tuple[list[Policy], int]:
        """Return one page of a tenant's policies, ordered by id, and the number of all matching policies.

        instance_ids: only policies that are assigned to one of these machines match; if empty, all policies match.
        Raises NotFound if a machine does not exist.
        """

        def query(tx: Tx) -> tuple[list[Policy], int]:
            if not instance_ids:
                return repo.page(tx, tenant_id, page)
            self._must_have(tx, tenant_id, instance_ids)
            assigned = repo.ids_of(tx, instance_ids)
            shown = assigned[page.offset : page.offset + page.size]
            return [repo.get(tx, tenant_id, each) for each in shown], len(assigned)

        return await self._store.search(query)

    async def instances(self, policy_ids: Sequence[int], limit: int) -> list[list[int]]:
        """For each policy, return the ids of the instances to which the policy is assigned, but only the first `limit`
        ids."""
        return await self._store.search(lambda tx: [repo.instances_of(tx, each, limit) for each in policy_ids])

    async def add(self, tenant_id: int, given: Fields) -> int:
        """Add a policy, and return its id. The policy must have a name.

        Raises Invalid if the rules contradict each other. Raises Conflict if another policy of the tenant has the name.
        """
        made = checked(complete(given))
        return await self._store.write(lambda tx: self.add_in(tx, tenant_id, made))

    def add_in(self, tx: Tx, tenant_id: int, made: Fields) -> int:
        """Add a checked policy in a transaction, and return its id. Raises Conflict."""
        policy_id = repo.add(tx, tenant_id, made, self._clock())
        self._note(tx, "policy.add", tenant_id, Policy(policy_id, made), {}, values(made))
        return policy_id

    async def update(self, tenant_id: int, changes: Sequence[tuple[int, Fields]]) -> None:
        """Change policies. If one policy cannot be changed, none is changed.

        changes: pairs of a policy id and the fields to change. Raises NotFound, Invalid, Conflict.
        """
        _check_number(changes)

        def transaction(tx: Tx) -> None:
            for policy_id, given in changes:
                self.update_in(tx, tenant_id, policy_id, given)

        await self._store.write(transaction)

    def update_in(self, tx: Tx, tenant_id: int, policy_id: int, given: Fields) -> None:
        """Change a policy in a transaction. Raises NotFound, Invalid, Conflict."""
        old = repo.get(tx, tenant_id, policy_id)
        new = Policy(policy_id, checked({**old.fields, **given}))
        if new != old:
            repo.update(tx, tenant_id, new, self._clock())
            self._note(tx, "policy.update", tenant_id, new, values(old.fields), values(new.fields))

    async def delete(self, tenant_id: int, policy_ids: Sequence[int]) -> list[Fields]:
        """Delete policies and their assignments. Return the fields of the deleted policies.

        Raises NotFound if a policy does not exist. In this case nothing is changed. The deletion takes several
        transactions. If the deletion is interrupted, all policies remain, but some assignments may be lost. A second
        call with the same policies then completes the deletion.
        """
        _check_number(policy_ids)

        def find(tx: Tx) -> list[Policy]:
            return [repo.get(tx, tenant_id, each) for each in dict.fromkeys(policy_ids)]

        def end(tx: Tx, policies: list[Policy]) -> list[Fields]:
            for policy in policies:
                self._delete(tx, tenant_id, policy)
            return [policy.fields for policy in policies]

        return await in_slices(self._store, find, self._slices(policy_ids), end)

    def _slices(self, policy_ids: Sequence[int]) -> list[Slice[object]]:
        return [_of_policies(each, policy_ids) for each in (*self._before_deletion, repo.take_off)]

    def _delete(self, tx: Tx, tenant_id: int, policy: Policy) -> None:
        repo.delete(tx, tenant_id, policy.id)
        self._note(tx, "policy.delete", tenant_id, policy, values(policy.fields), {})

    async def release(self, policy_ids: Sequence[int]) -> None:
        """Remove the references to policies, before the policies themselves."""
        await in_slices(self._store, lambda _tx: None, self._slices(policy_ids), lambda _tx, _found: None)

    def delete_in(self, tx: Tx, tenant_id: int, policy_id: int) -> None:
        """Delete a policy in a transaction, after `release`. Raises NotFound."""
        policy = repo.get(tx, tenant_id, policy_id)
        for each in self._slices([policy_id]):  # those that were added since
            while each(tx, None):
                pass
        self._delete(tx, tenant_id, policy)

    async def assign(self, tenant_id: int, assignments: Sequence[Assignment]) -> None:
        """Assign policies to machines, or remove assignments. If one assignment cannot be changed, nothing is changed.

        An assignment to add may exist already, and an assignment to remove may be missing. Neither is an error. Raises
        NotFound.
        """
        _check_number(assignments)

        def transaction(tx: Tx) -> None:
            self._must_have(tx, tenant_id, {each.instance_id for each in assignments})
            for each in assignments:
                self.assign_in(tx, tenant_id, each)

        await self._store.write(transaction)

    def assign_in(self, tx: Tx, tenant_id: int, assignment: Assignment) -> None:
        """Add or remove an assignment in a transaction. The machine must exist. Raises NotFound."""
        policy = repo.get(tx, tenant_id, assignment.policy_id)
        machine: dict[str, JSON] = {"instanceId": assignment.instance_id}
        if assignment.adds and repo.assign(tx, policy.id, assignment.instance_id):
            self._note(tx, "policy.assign", tenant_id, policy, {}, machine)
        elif not assignment.adds and repo.unassign(tx, policy.id, assignment.instance_id):
            self._note(tx, "policy.unassign", tenant_id, policy, machine, {})

    def names(self, tx: Tx, tenant_id: int) -> dict[int, str]:
        """Return the names of a tenant's policies, by id. Policies without a name are left out."""
        return {each.id: each.name for each in repo.of_tenant(tx, tenant_id) if each.name}

    def of_instances(self, tx: Tx, tenant_id: int) -> dict[int, list[str]]:
        """Return the names of the policies of each machine of a tenant, by the id of the machine."""
        found = dict[int, list[str]]()
        for instance_id, name in repo.assignments(tx, self.names(tx, tenant_id)):
            found.setdefault(instance_id, []).append(name)
        return found

    def assign_exactly(self, tx: Tx, tenant_id: int, instance_id: int, names: Collection[str]) -> None:
        """Assign these policies to a machine, and no others that have names. Raises NotFound."""
        known = self.names(tx, tenant_id)
        ids = {fold(name): number for number, name in known.items()}
        try:
            wanted = {ids[fold(name)] for name in names}
        except KeyError as error:
            raise NotFound(f"there is no password policy {error.args[0]}") from None
        present = {*repo.ids_of(tx, [instance_id])} & known.keys()
        for policy_id in sorted(wanted ^ present):
            self.assign_in(tx, tenant_id, Assignment(policy_id, instance_id, policy_id in wanted))

    async def validate(
        self,
        tenant_id: int,
        instance_id: int | None,
        user_name: str,
        password: str,
        *,
        policy_id: int | None = None,
    ) -> list[Failure]:
        """Return the rules that a password fails. The rules come from the policies of a machine, and from the policy
        `policy_id`. If the machine has no policy, and policy_id is None, the rules of GUIDANCE apply. Raises NotFound
        if the machine or the policy does not exist."""
        machines = [] if instance_id is None else [instance_id]

        def query(tx: Tx) -> list[Failure]:
            self._must_have(tx, tenant_id, machines)
            own = [] if policy_id is None else [repo.get(tx, tenant_id, policy_id).id]
            rules = _rules(repo.fields_of(tx, sorted({*repo.ids_of(tx, machines), *own})))
            return engine.all_failures(rules if rules or own else [engine.GUIDANCE], password, user_name)

        return await self._store.search(query)

    def check(
        self, tx: Tx, instance_ids: Collection[int], policy_ids: Collection[int], user_name: str, password: str
    ) -> list[Failure]:
        """Return the rules that a password fails.

        instance_ids: the ids of the user's machines. All policies of these machines apply. policy_ids: the ids of the
        policies of the user's groups. The machines and policies must belong to one tenant.
        """
        ids = sorted({*repo.ids_of(tx, instance_ids), *policy_ids})
        return engine.all_failures(_rules(repo.fields_of(tx, ids)), password, user_name)

    def demands(self, tx: Tx, instance_id: int, policy_ids: Sequence[int]) -> tuple[Rules, ...]:
        """Return the rules that apply when the agent of a machine generates a password. policy_ids: the ids of further
        policies. They apply in addition to the policies of the machine."""
        ids = sorted({*repo.ids_of(tx, [instance_id]), *policy_ids})
        rules = _rules(repo.fields_of(tx, ids))
        return tuple(rules if len(rules) <= MAX_DEMANDED else engine.strictest(rules))

    def _must_have(self, tx: Tx, tenant_id: int, instance_ids: Collection[int]) -> None:
        if not all(self._instances.exists(tx, tenant_id, each) for each in instance_ids):
            raise NotFound("instance not found")

    def _note(
        self,
        tx: Tx,
        action: str,
        tenant_id: int,
        policy: Policy,
        before: Mapping[str, JSON],
        after: Mapping[str, JSON],
    ) -> None:
        audit.record(
            tx,
            action,
            at=self._clock(),
            tenant_id=tenant_id,
            target=f"policy {policy.id} {policy.name}",
            changes=audit.changed(before, after),
        )


def _of_policies(release: Slice[Sequence[int]], policy_ids: Sequence[int]) -> Slice[object]:
    return lambda tx, _found: release(tx, policy_ids)


def _rules(policies: Iterable[Fields]) -> list[Rules]:
    """Return the rules of policies, without duplicates."""
    return list(dict.fromkeys(map(rules_of, policies)))


def checked(fields: Fields) -> Fields:
    """Check the fields of a policy, and return them. Raises Invalid if no password can meet the policy."""
    wrong = contradictions(rules_of(fields))
    if wrong:
        raise Invalid(f"invalid {wrong[0].rule}", tuple(FieldError(each.rule, each.message) for each in wrong))
    return fields


def _check_number(entries: Collection[object]) -> None:
    if not 1 <= len(entries) <= MAX_ENTRIES:
        raise invalid_field(BODY, f"must be an array of 1 to {MAX_ENTRIES} entries")
