"""Policies of two tenants, each with machines."""

from dataclasses import dataclass

import pytest

from sallyport.areas.passwords.bodies import AssignPolicy, PolicyFields
from sallyport.areas.passwords.policy import Policy
from sallyport.areas.passwords.service import PasswordPolicies
from sallyport.web.bodies import Page
from tests.areas import Areas, areas, clock
from tests.areas.passwords import Machines, make_table

__all__ = ["areas", "clock"]

EVERYTHING = Page(0, 1000)


@dataclass
class Setup:
    """The policies, and two tenants with machines.

    The machines 1 to 3 belong to the first tenant, and machine 7 to the other.
    """

    areas: Areas
    policies: PasswordPolicies
    ours: int
    theirs: int

    async def add(self, name: str = "p", tenant: int = 0, **fields: object) -> int:
        """Add a policy for `tenant`. The default is the first tenant."""
        given = change(policyName=name, **fields)
        return await self.policies.add(tenant or self.ours, given)

    async def assign(self, policy: int, *machines: int, action: str = "add", tenant: int = 0) -> None:
        """Assign a policy of the first tenant to machines, or remove the assignment."""
        entries = [{"policyId": policy, "instanceId": each, "action": action} for each in machines]
        await self.policies.assign(
            tenant or self.ours, [AssignPolicy.model_validate(each).assignment for each in entries]
        )

    async def all(self, tenant: int = 0) -> list[Policy]:
        """Return all policies of `tenant`. The default is the first tenant."""
        found, total = await self.policies.page(tenant or self.ours, EVERYTHING)
        assert len(found) == total
        return found

    async def trail(self) -> list[tuple[str, int, str, str]]:
        """Return the audit entries about policies in order, each with its action, tenant, target and changes."""
        sql = "select action, tenant_id, target, changes from audit_trail where action like 'policy.%' order by id"
        return await self.areas.store.read(lambda tx: tx.all(_entry, sql))


def _entry(*, action: str, tenant_id: int, target: str, changes: str) -> tuple[str, int, str, str]:
    return action, tenant_id, target, changes


def change(**fields: object) -> dict[str, str]:
    """Return the given fields in the form in which they are stored."""
    return PolicyFields.model_validate(fields).given()


@pytest.fixture
async def setup(areas: Areas) -> Setup:
    """Return a setup without policies."""
    theirs = await areas.tenancy.ensure_tenant(2, 1)
    await areas.store.write(make_table)
    machines = [(1, areas.tenant), (2, areas.tenant), (3, areas.tenant), (7, theirs)]
    await areas.store.write(lambda tx: tx.insert("machines", ("id", "tenant_id"), machines))
    return Setup(areas, PasswordPolicies(areas.store, Machines(), areas.clock), areas.tenant, theirs)
