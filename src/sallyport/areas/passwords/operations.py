"""The HTTP operations of password policies, their assignments and checks, below /api/v1/instances/."""

from sallyport.areas.passwords.bodies import (
    MAX_SHOWN,
    AddPasswordPolicy,
    AssignPolicy,
    DeletePasswordPolicy,
    ListPasswordPolicy,
    PasswordPolicy,
    PolicyAdded,
    PolicyDone,
    PolicyList,
    UpdatePasswordPolicy,
    ValidatePolicy,
)
from sallyport.areas.passwords.policy import complete, warnings
from sallyport.areas.passwords.service import PasswordPolicies
from sallyport.base.errors import FieldError, Invalid
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: PasswordPolicies, gate: Gate) -> Operations:
    """Declare the operations of password policies. They apply to the tenant of the caller's token."""
    policies = Operations("Password policies", gate)

    @policies.post("/api/v1/instances/addPasswordPolicy", roles=OPERATORS)
    async def add_password_policy(body: AddPasswordPolicy, caller: Caller) -> PolicyAdded:
        """Add a password policy. The status is 409 if another policy of the tenant has the name.

        The field `minlen` and the fields after it are parameters of libpwquality, with the same meaning as in
        pwquality.conf. A field that is empty requires nothing. A policy without any rule is added with a warning.
        """
        given = body.given()
        policy_id = await service.add(caller.tenant_id, given)
        message = f"password policy {policy_id} was added"
        return PolicyAdded(policyId=policy_id, message=message, warnings=warnings(complete(given)))

    @policies.post("/api/v1/instances/listAllPasswordPolicy", "/api/v1/instances/listPasswordPolicy", roles=READERS)
    async def list_password_policies(body: ListPasswordPolicy, caller: Caller) -> Plain[PolicyList]:
        """List the password policies of the tenant, ordered by id. With `machineIds`, list only the policies that are
        assigned to one of these instances."""
        found, total = await service.page(caller.tenant_id, body.page(), body.machineIds or ())
        instances = await service.instances([each.id for each in found], MAX_SHOWN)
        entries = [
            {"policyId": each.id, **each.fields, "instanceIds": own} for each, own in zip(found, instances, strict=True)
        ]
        return Plain({"totalPolicies": total, "totalPages": -(-total // body.pageSize), "passwordPolicies": entries})

    @policies.post("/api/v1/instances/updatePasswordPolicy", roles=OPERATORS)
    @policies.put("/api/v1/instances/updatePasswordPolicy", roles=OPERATORS)
    async def update_password_policy(body: list[UpdatePasswordPolicy], caller: Caller) -> list[str]:
        """Change password policies. If one of the policies cannot be changed, no policy is changed. An absent field
        keeps its value. An empty field clears the value, but an empty policyName keeps the name."""
        await service.update(caller.tenant_id, [(each.policyId, each.given()) for each in body])
        return ["password policy updated"]

    @policies.delete("/api/v1/instances/deletePasswordPolicy", roles=OPERATORS)
    async def delete_password_policy(body: list[DeletePasswordPolicy], caller: Caller) -> list[PasswordPolicy]:
        """Delete password policies and their assignments, and return the deleted policies. If one policy does not
        exist, none is deleted."""
        deleted = await service.delete(caller.tenant_id, [each.policyId for each in body])
        return [PasswordPolicy.model_validate(each) for each in deleted]

    @policies.post("/api/v1/instances/assignPolicyToMachine", roles=OPERATORS)
    async def assign_policy_to_machine(body: list[AssignPolicy], caller: Caller) -> PolicyDone:
        """Assign policies to instances, or remove assignments. If one assignment cannot be changed, nothing is changed.
        If an instance has several policies, all of them apply."""
        await service.assign(caller.tenant_id, [each.assignment for each in body])
        return PolicyDone(message="policy assignments updated")

    @policies.post("/api/v1/instances/validatePolicy", "/api/v1/instances/validatePassword", roles=READERS)
    async def validate_policy(body: ValidatePolicy, caller: Caller) -> list[str]:
        """Check a password against the policies of an instance, a policy (`policyId`), or both.

        If the instance has no policy, and no policyId is given, the password must have at least eight characters. These
        characters must belong to at least three of four classes: digits, uppercase letters, lowercase letters, others.

        The status is 400 if the password fails a rule. `errors` contains each failed rule under the name of its field.
        """
        password = body.password.get_secret_value().decode(errors="surrogateescape")
        machine = None if body.policyId is not None and not body.machineId else body.machineId
        failed = await service.validate(caller.tenant_id, machine, body.userName, password, policy_id=body.policyId)
        if failed:
            wrong = tuple(FieldError(each.rule, each.message) for each in failed)
            raise Invalid("the password does not meet the policy", wrong)
        return ["the password meets the policy"]

    return policies
