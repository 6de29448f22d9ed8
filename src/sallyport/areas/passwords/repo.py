"""The SQL of password policies. The fields of a policy are stored as JSON.

A query that selects policies has the tenant in its condition. A query that selects by machine or by assignment does not
need the tenant. For such a query, the caller has already checked that the machine or policy belongs to the tenant.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from sallyport.areas.passwords.policy import Fields, Policy, complete
from sallyport.base.errors import Conflict, NotFound
from sallyport.store.inserts import insert_row
from sallyport.store.model import LISTED, Tx, listed
from sallyport.store.slices import delete_slice
from sallyport.web.bodies import Page

NOT_FOUND = "policy not found"
_COLUMNS = "id, fields"


def _policy(*, id: int, fields: str) -> Policy:
    return Policy(id, complete(json.loads(fields)))


def _id(*, id: int) -> int:
    return id


def find(tx: Tx, tenant_id: int, policy_id: int) -> Policy | None:
    """Return a policy of a tenant, or None if the tenant has no such policy."""
    sql = f"select {_COLUMNS} from password_policies where id = :id and tenant_id = :tenant"
    return tx.one(_policy, sql, id=policy_id, tenant=tenant_id)


def get(tx: Tx, tenant_id: int, policy_id: int) -> Policy:
    """Return a policy of a tenant. Raises NotFound if the tenant has no such policy."""
    found = find(tx, tenant_id, policy_id)
    if found is None:
        raise NotFound(NOT_FOUND)
    return found


def page(tx: Tx, tenant_id: int, page: Page) -> tuple[list[Policy], int]:
    """Return one page of a tenant's policies, ordered by id, and the total number of policies."""
    found = tx.all(
        _policy,
        f"select {_COLUMNS} from password_policies where tenant_id = :tenant order by id limit :limit offset :offset",
        tenant=tenant_id,
        limit=page.size,
        offset=page.offset,
    )
    return found, _count(tx, tenant_id)


def of_tenant(tx: Tx, tenant_id: int) -> list[Policy]:
    """Return all policies of a tenant, ordered by id."""
    sql = f"select {_COLUMNS} from password_policies where tenant_id = :tenant order by id"
    return tx.all(_policy, sql, tenant=tenant_id)


def _count(tx: Tx, tenant_id: int) -> int:
    return tx.value(int, "select count(*) from password_policies where tenant_id = :tenant", tenant=tenant_id) or 0


def ids_of(tx: Tx, instance_ids: Iterable[int]) -> list[int]:
    """Return the ids of the policies that are assigned to at least one of these machines. The ids are sorted and have
    no duplicates."""
    sql = "select policy_id as id from policy_instances where instance_id = :instance"
    return sorted({found for each in instance_ids for found in tx.all(_id, sql, instance=each)})


def fields_of(tx: Tx, policy_ids: Iterable[int]) -> list[Fields]:
    """Return the fields of policies. Deleted policies are skipped."""
    sql = f"select {_COLUMNS} from password_policies where id = :id"
    return [found.fields for each in policy_ids if (found := tx.one(_policy, sql, id=each)) is not None]


def instances_of(tx: Tx, policy_id: int, limit: int) -> list[int]:
    """Return the ids of the machines to which a policy is assigned, in ascending order. Return at most `limit` ids."""
    sql = "select instance_id as id from policy_instances where policy_id = :policy order by instance_id limit :limit"
    return tx.all(_id, sql, policy=policy_id, limit=limit)


def add(tx: Tx, tenant_id: int, fields: Fields, at: int) -> int:
    """Add a policy, and return its id. Raises Conflict if another policy of the tenant has the name."""
    _must_be_free(tx, tenant_id, fields["policyName"])
    return insert_row(
        tx,
        "password_policies",
        tenant_id=tenant_id,
        name_key=fields["policyName"].casefold(),
        fields=json.dumps(dict(fields)),
        created_at=at,
        updated_at=at,
    )


def update(tx: Tx, tenant_id: int, policy: Policy, at: int) -> None:
    """Store the fields of a tenant's policy. Raises Conflict if another policy of the tenant has the name."""
    _must_be_free(tx, tenant_id, policy.name, but=policy.id)
    tx.execute(
        "update password_policies set name_key = :key, fields = :fields, updated_at = :at "
        "where id = :id and tenant_id = :tenant",
        key=policy.name.casefold(),
        fields=json.dumps(dict(policy.fields)),
        at=at,
        id=policy.id,
        tenant=tenant_id,
    )


def _must_be_free(tx: Tx, tenant_id: int, name: str, *, but: int = 0) -> None:
    """Raise Conflict if another policy of the tenant has the name. Several policies may have an empty name.

    but: the id of a policy that is not checked, because it may have the name.
    """
    sql = "select id from password_policies where tenant_id = :tenant and name_key = :key and id <> :but"
    if name and tx.value(int, sql, tenant=tenant_id, key=name.casefold(), but=but) is not None:
        raise Conflict("the tenant already has a password policy with this name: choose another name")


def take_off(tx: Tx, policy_ids: Sequence[int]) -> int:
    """Remove at most SLICE assignments of policies to machines. This is done before the policies are deleted. Return
    the number of removed assignments."""
    condition = f"policy_id in {LISTED}"
    return delete_slice(tx, "policy_instances", "policy_id, instance_id", condition, ids=listed(policy_ids))


def delete(tx: Tx, tenant_id: int, policy_id: int) -> None:
    """Delete a tenant's policy. Its assignments must be deleted already."""
    tx.execute("delete from password_policies where id = :id and tenant_id = :tenant", id=policy_id, tenant=tenant_id)


def assignments(tx: Tx, names: Mapping[int, str]) -> list[tuple[int, str]]:
    """Return (id of a machine, name of a policy) for each assignment, ordered by their ids. names: the names of the
    policies, by id."""
    sql = f"select instance_id, policy_id from policy_instances where policy_id in {LISTED} order by 1, 2"
    return [(int(instance or 0), names[int(policy or 0)]) for instance, policy in tx.rows(sql, ids=listed(names))]


def assign(tx: Tx, policy_id: int, instance_id: int) -> bool:
    """Assign a policy to a machine. Return False if the policy was assigned already."""
    sql = "insert into policy_instances (policy_id, instance_id) values (:policy, :instance) on conflict do nothing"
    return tx.execute(sql, policy=policy_id, instance=instance_id) > 0


def unassign(tx: Tx, policy_id: int, instance_id: int) -> bool:
    """Remove the assignment of a policy to a machine. Return False if the policy was not assigned."""
    sql = "delete from policy_instances where policy_id = :policy and instance_id = :instance"
    return tx.execute(sql, policy=policy_id, instance=instance_id) > 0


def forget_instance(tx: Tx, instance_id: int) -> int:
    """Remove the assignments of at most SLICE policies to a machine. This is done before the machine is deleted. Return
    the number of removed assignments."""
    return delete_slice(tx, "policy_instances", "policy_id, instance_id", "instance_id = :i", i=instance_id)
