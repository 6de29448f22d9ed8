"""The HTTP operations of password policies: /api/v1/instances/...PasswordPolicy and their kin."""

from sallyport.base.errors import FieldError, Invalid
from sallyport.passwords.model import (
    AddPasswordPolicy,
    AssignPolicy,
    DeletePasswordPolicy,
    ListPasswordPolicy,
    PasswordPolicy,
    PolicyDone,
    PolicyEntry,
    PolicyList,
    UpdatePasswordPolicy,
    ValidatePolicy,
)
from sallyport.passwords.service import PasswordPolicies
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: PasswordPolicies, gate: Gate) -> Operations:
    """The operations of this slice; they act in the token's tenant."""
    policies = Operations("Password policies", gate)

    @policies.post("/api/v1/instances/addPasswordPolicy", roles=OPERATORS)
    async def add_password_policy(body: AddPasswordPolicy, caller: Caller) -> PolicyDone:
        """Add a password policy; `message` names its policyId. A name that is taken is refused with 409.

        The fields from `minlen` on are libpwquality's, with the meaning of pwquality.conf. An empty field is no value
        and demands nothing.
        """
        policy_id = await service.add(caller.tenant_id, body)
        return PolicyDone(message=f"password policy {policy_id} is added")

    @policies.post("/api/v1/instances/listAllPasswordPolicy", "/api/v1/instances/listPasswordPolicy", roles=READERS)
    async def list_password_policies(body: ListPasswordPolicy, caller: Caller) -> PolicyList:
        """The password policies of the tenant, ordered by id; with `machineIds` those of any of these machines."""
        found, total = await service.page(caller.tenant_id, body.page(), body.machineIds or ())
        return PolicyList(
            totalPolicies=total,
            totalPages=-(-total // body.pageSize),
            passwordPolicies=[PolicyEntry(policyId=each.id, **each.fields.model_dump()) for each in found],
        )

    @policies.post("/api/v1/instances/updatePasswordPolicy", roles=OPERATORS)
    @policies.put("/api/v1/instances/updatePasswordPolicy", roles=OPERATORS)
    async def update_password_policy(body: list[UpdatePasswordPolicy], caller: Caller) -> list[str]:
        """Change password policies, all or none. An absent field keeps its value, an empty one clears it; an empty
        policyName keeps the name."""
        await service.update(caller.tenant_id, [(each.policyId, each) for each in body])
        return ["password policy updated"]

    @policies.delete("/api/v1/instances/deletePasswordPolicy", roles=OPERATORS)
    async def delete_password_policy(body: list[DeletePasswordPolicy], caller: Caller) -> list[PasswordPolicy]:
        """Delete password policies, all or none; what they were. They apply to no machine any more."""
        return await service.delete(caller.tenant_id, [each.policyId for each in body])

    @policies.post("/api/v1/instances/assignPolicyToMachine", roles=OPERATORS)
    async def assign_policy_to_machine(body: list[AssignPolicy], caller: Caller) -> PolicyDone:
        """Assign policies to machines, all or none; with `action` `remove` take them off. All policies of a machine
        apply."""
        await service.assign(caller.tenant_id, body)
        return PolicyDone(message="policy assignments updated")

    @policies.post("/api/v1/instances/validatePolicy", "/api/v1/instances/validatePassword", roles=READERS)
    async def validate_policy(body: ValidatePolicy, caller: Caller) -> list[str]:
        """Whether a password meets the policies of a machine; without one, eight characters of three of four classes.

        Where it does not: 400, with every rule that it fails in `errors`, by the name of the policy's field.
        """
        failed = await service.validate(caller.tenant_id, body.machineId, body.userName, body.password)
        if failed:
            wrong = tuple(FieldError(each.rule, each.message) for each in failed)
            raise Invalid("the password does not meet the policy", wrong)
        return ["the password meets the policy"]

    return policies
