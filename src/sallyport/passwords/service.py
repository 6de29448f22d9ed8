"""The rules of password policies: who may change which, and what holds for a machine."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from sallyport.base.agentwire import state as agentwire
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import BODY, FieldError, Invalid, NotFound, invalid_field
from sallyport.base.wire import JSON
from sallyport.passwords import engine, repo
from sallyport.passwords.contradictions import contradictions
from sallyport.passwords.engine import Failure, Quality, Rules
from sallyport.passwords.model import AssignPolicy, PasswordPolicy, Policy, PolicyFields
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.slices import Slice, in_slices
from sallyport.web.paging import Page

MAX_ENTRIES = 200
"""Of one request: logins wait for its transaction, up to 0.4 ms for each."""
MOST_DEMANDED = 100
"""Policies that an agent is told of one by one. What more of them demand is told as few that are stricter than all."""


class Instances(Protocol):
    """Knows the endpoint machines."""

    def exists(self, tx: Tx, tenant_id: int, instance_id: int) -> bool:
        """Whether a tenant has this machine."""


def _nobody(_tx: Tx, _policy_ids: Sequence[int]) -> int:
    return 0


class PasswordPolicies:
    """The password policies of all tenants. deleted: a slice by ids of policies, which runs before they are deleted."""

    def __init__(
        self, store: Store, instances: Instances, clock: Clock = now_us, *, deleted: Slice[Sequence[int]] = _nobody
    ) -> None:
        self._store = store
        self._instances = instances
        self._clock = clock
        self._deleted = deleted

    def exists(self, tx: Tx, tenant_id: int, policy_id: int) -> bool:
        """Whether a tenant has this policy."""
        return repo.find(tx, tenant_id, policy_id) is not None

    async def page(self, tenant_id: int, page: Page, instance_ids: Collection[int] = ()) -> tuple[list[Policy], int]:
        """One page of a tenant's policies, ordered by id, and how many there are in all.

        instance_ids: those that are assigned to any of these machines; without any, all. NotFound: no such machine.
        """

        def work(tx: Tx) -> tuple[list[Policy], int]:
            if not instance_ids:
                return repo.page(tx, tenant_id, page)
            self._must_have(tx, tenant_id, instance_ids)
            assigned = repo.ids_of(tx, instance_ids)
            shown = assigned[page.offset : page.offset + page.size]
            return [repo.get(tx, tenant_id, each) for each in shown], len(assigned)

        return await self._store.search(work)

    async def machines(self, policy_ids: Sequence[int]) -> list[list[int]]:
        """For each of these policies the machines that it is assigned to."""
        return await self._store.read(lambda tx: [repo.instances_of(tx, each) for each in policy_ids])

    async def add(self, tenant_id: int, fields: PolicyFields) -> int:
        """The new policy's id; it needs a name. Invalid; Conflict: the name is taken, or there are too many."""
        made = _checked(PasswordPolicy.model_validate(fields.given()))

        def work(tx: Tx) -> int:
            policy_id = repo.add(tx, tenant_id, made, self._clock())
            self._note(tx, "policy.add", tenant_id, Policy(policy_id, made), {}, made.values())
            return policy_id

        return await self._store.write(work)

    async def update(self, tenant_id: int, changes: Sequence[tuple[int, PolicyFields]]) -> None:
        """Change what is given of each policy, by id, all or none; the rest stays. NotFound, Invalid, Conflict."""
        _check_number(changes)

        def work(tx: Tx) -> None:
            for policy_id, fields in changes:
                old = repo.get(tx, tenant_id, policy_id)
                new = Policy(policy_id, _checked(old.fields.model_copy(update=fields.given())))
                if new != old:
                    repo.update(tx, tenant_id, new, self._clock())
                    self._note(tx, "policy.update", tenant_id, new, old.fields.values(), new.fields.values())

        await self._store.write(work)

    async def delete(self, tenant_id: int, policy_ids: Sequence[int]) -> list[PasswordPolicy]:
        """Delete policies, which also takes them off their machines; what they were. NotFound: nothing is changed if
        one does not exist.

        A stop in the middle leaves all policies, assigned to fewer machines; see `in_slices`.
        """
        _check_number(policy_ids)

        def find(tx: Tx) -> list[Policy]:
            return [repo.get(tx, tenant_id, each) for each in dict.fromkeys(policy_ids)]

        def end(tx: Tx, policies: list[Policy]) -> list[PasswordPolicy]:
            for policy in policies:
                repo.delete(tx, tenant_id, policy.id)
                self._note(tx, "policy.delete", tenant_id, policy, policy.fields.values(), {})
            return [policy.fields for policy in policies]

        slices = (lambda tx, _found: self._deleted(tx, policy_ids), lambda tx, _found: repo.take_off(tx, policy_ids))
        return await in_slices(self._store, find, slices, end)

    async def assign(self, tenant_id: int, assignments: Sequence[AssignPolicy]) -> None:
        """Assign policies to machines, or take them off, all or none. What holds already is no error. NotFound."""
        _check_number(assignments)

        def work(tx: Tx) -> None:
            self._must_have(tx, tenant_id, {each.instanceId for each in assignments})
            for each in assignments:
                policy = repo.get(tx, tenant_id, each.policyId)
                machine: dict[str, JSON] = {"instanceId": each.instanceId}
                if each.action == "add" and repo.assign(tx, policy.id, each.instanceId):
                    self._note(tx, "policy.assign", tenant_id, policy, {}, machine)
                elif each.action == "remove" and repo.unassign(tx, policy.id, each.instanceId):
                    self._note(tx, "policy.unassign", tenant_id, policy, machine, {})

        await self._store.write(work)

    async def validate(self, tenant_id: int, instance_id: int, user_name: str, password: str) -> list[Failure]:
        """What the policies of a machine find wrong with a password; with none assigned, what the guidance does.
        NotFound: no such machine."""

        def work(tx: Tx) -> list[Failure]:
            self._must_have(tx, tenant_id, [instance_id])
            policies = repo.fields_of(tx, repo.ids_of(tx, [instance_id]))
            return engine.all_failures(_rules(policies) or [engine.GUIDANCE], password, user_name)

        return await self._store.search(work)

    def check(
        self, tx: Tx, instance_ids: Collection[int], policy_ids: Collection[int], user_name: str, password: str
    ) -> list[Failure]:
        """What all policies of these machines, and these beside them, together find wrong with a password; nothing
        where there is none.

        instance_ids, policy_ids: of the tenant that the caller acts in; whose password it is to be has access to the
        machines, and is in groups that have the policies.
        """
        ids = sorted({*repo.ids_of(tx, instance_ids), *policy_ids})
        return engine.all_failures(_rules(repo.fields_of(tx, ids)), password, user_name)

    def demands(self, tx: Tx, instance_id: int, policy_ids: Sequence[int]) -> tuple[agentwire.Policy, ...]:
        """What the policies of a machine, and these beside them, demand of a password that its agent makes."""
        ids = sorted({*repo.ids_of(tx, [instance_id]), *policy_ids})
        rules = _rules(repo.fields_of(tx, ids))
        return tuple(map(_for_agents, rules if len(rules) <= MOST_DEMANDED else engine.strictest(rules)))

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
            target=f"policy {policy.id} {policy.fields.policyName}",
            changes=audit.changed(before, after),
        )


def _rules(policies: Iterable[PasswordPolicy]) -> list[Rules]:
    """The rules of policies, each once."""
    return list(dict.fromkeys(policy.rules() for policy in policies))


def _for_agents(rules: Rules) -> agentwire.Policy:
    quality = rules.quality
    return agentwire.Policy(
        min_length=rules.min_length,
        max_length=rules.max_length,
        first=rules.first or "",
        both_cases=rules.both_cases,
        special=rules.special,
        digits=rules.digits,
        quality=None if quality is None else _quality_for_agents(quality),
    )


def _quality_for_agents(quality: Quality) -> agentwire.Quality:
    digits, upper, lower, other = quality.credits
    return agentwire.Quality(
        minlen=quality.minlen,
        dcredit=digits,
        ucredit=upper,
        lcredit=lower,
        ocredit=other,
        minclass=quality.minclass,
        maxrepeat=quality.maxrepeat,
        maxclassrepeat=quality.maxclassrepeat,
        maxsequence=quality.maxsequence,
        usercheck=quality.usercheck,
    )


def _checked(fields: PasswordPolicy) -> PasswordPolicy:
    """Invalid: no password could meet it."""
    wrong = contradictions(fields.rules())
    if wrong:
        raise Invalid(f"invalid {wrong[0].rule}", tuple(FieldError(each.rule, each.message) for each in wrong))
    return fields


def _check_number(entries: Collection[object]) -> None:
    if not 1 <= len(entries) <= MAX_ENTRIES:
        raise invalid_field(BODY, f"an array of 1 to {MAX_ENTRIES} entries")
