"""What the command line asks: policy.add, policy.assign, policy.list, policy.remove, policy.unassign, policy.update,
policy.validate."""

from typing import Literal

from pydantic import Field

from sallyport.base.command import Command, HexOctets, OfTenant, Tenants, command
from sallyport.base.limits import HIGHEST
from sallyport.base.wire import JSON, Row
from sallyport.passwords.model import AssignPolicy, Policy, PolicyFields
from sallyport.passwords.service import PasswordPolicies
from sallyport.web.paging import Page
from sallyport.web.scope import Id, Name


class AddPolicy(OfTenant, PolicyFields):
    """A policy of a tenant."""

    policyName: Name  # noqa: N815


class UpdatePolicy(OfTenant, PolicyFields):
    """None keeps a value, an empty text takes it away."""

    policy: Id


class ListPolicies(OfTenant):
    """Of one tenant."""


class RemovePolicies(OfTenant):
    """Some of a tenant's, all or none."""

    policies: list[Id] = Field(min_length=1)


class AssignToMachines(OfTenant):
    """One policy, and machines."""

    policy: Id
    instances: list[Id] = Field(min_length=1)


class ValidatePassword(OfTenant):
    """password: hex octets, since a password may be in any encoding."""

    instance: Id
    user: str = ""
    password: HexOctets


def commands(service: PasswordPolicies, tenants: Tenants) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def tenant(wanted: OfTenant) -> int:
        return await tenants.tenant_id(wanted.org, wanted.tenant)

    async def add(wanted: AddPolicy) -> JSON:
        return await service.add(await tenant(wanted), wanted)

    async def update(wanted: UpdatePolicy) -> JSON:
        await service.update(await tenant(wanted), [(wanted.policy, wanted)])
        return None

    async def listing(wanted: ListPolicies) -> JSON:
        policies, _ = await service.page(await tenant(wanted), Page(0, HIGHEST))
        machines = await service.machines([each.id for each in policies])
        return [_row(policy, own) for policy, own in zip(policies, machines, strict=True)]

    async def remove(wanted: RemovePolicies) -> JSON:
        return len(await service.delete(await tenant(wanted), wanted.policies))

    async def assign(wanted: AssignToMachines) -> JSON:
        return await change(wanted, "add")

    async def unassign(wanted: AssignToMachines) -> JSON:
        return await change(wanted, "remove")

    async def change(wanted: AssignToMachines, action: Literal["add", "remove"]) -> JSON:
        entries = [AssignPolicy(policyId=wanted.policy, instanceId=each, action=action) for each in wanted.instances]
        await service.assign(await tenant(wanted), entries)
        return None

    async def validate(wanted: ValidatePassword) -> JSON:
        password = bytes.fromhex(wanted.password).decode("utf-8", "surrogateescape")
        failed = await service.validate(await tenant(wanted), wanted.instance, wanted.user, password)
        return [{"rule": each.rule, "message": each.message} for each in failed]

    return {
        "policy.add": command(AddPolicy, add),
        "policy.assign": command(AssignToMachines, assign),
        "policy.list": command(ListPolicies, listing),
        "policy.remove": command(RemovePolicies, remove),
        "policy.unassign": command(AssignToMachines, unassign),
        "policy.update": command(UpdatePolicy, update),
        "policy.validate": command(ValidatePassword, validate),
    }


def _row(policy: Policy, machines: list[int]) -> Row:
    return {"id": policy.id, **policy.fields.model_dump(), "instances": list[JSON](machines)}
