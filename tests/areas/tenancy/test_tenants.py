"""The list, the names and the removal of tenants, with each engine."""

import pytest

from sallyport.areas.tenancy.tenant_repo import SLICES
from sallyport.areas.tenancy.tenants import Tenants
from sallyport.base.errors import Conflict, Invalid, NotFound, Unauthenticated
from sallyport.store.model import Tx
from sallyport.web.scope import Role
from tests.areas import Areas, areas, clock, only_sqlite
from tests.plans import plans

__all__ = ["areas", "clock"]


@pytest.fixture
def tenants(areas: Areas) -> Tenants:
    """The tenants of a store that has tenant 1 of organization 1 with a domain."""
    return Tenants(areas.store, areas.tenancy, areas.clock)


async def listed(tenants: Tenants) -> list[tuple[int, int]]:
    """Return the numbers of all tenants."""
    return [(each.organization, each.number) for each in await tenants.listed()]


async def test_the_list_counts_what_a_tenant_has(areas: Areas, tenants: Tenants) -> None:
    """An entry has the names, and the numbers of domains, RADIUS clients and active tokens."""
    await areas.tenancy.create_token(11, 3, Role.ADMIN, "a", None)
    gone, _ = await areas.tenancy.create_token(11, 3, Role.ADMIN, "b", None)
    await areas.tenancy.revoke(gone.id)
    await areas.client()
    first, second = await tenants.listed()
    assert (first.domains, first.clients, first.tokens) == (1, 1, 0)
    assert (second.organization_name, second.name) == ("Organization 11", "Tenant 3")
    assert (second.domains, second.clients, second.tokens) == (0, 0, 1)


async def test_a_mistyped_tenant_is_removed(areas: Areas, tenants: Tenants) -> None:
    """The tenant, its tokens and its empty organization are gone, and the trail has an entry. A second removal raises
    NotFound, and the same numbers make a new tenant.
    """
    _, token = await areas.tenancy.create_token(11, 3, Role.ADMIN, "a", None)
    await areas.tenancy.authenticate(token)
    await tenants.remove(11, 3)
    with pytest.raises(Unauthenticated):
        await areas.tenancy.authenticate(token)
    assert await listed(tenants) == [(1, 1)]
    actions = await areas.store.read(lambda tx: tx.rows("select action, target from audit_trail order by id"))
    assert actions[-1] == ("tenant.remove", "tenant 3 of organization 11")
    with pytest.raises(NotFound, match="there is no tenant 3 of organization 11"):
        await tenants.remove(11, 3)
    before = await areas.store.read(lambda tx: tx.value(int, "select max(tenant_id) from audit_trail"))
    made = await areas.tenancy.ensure_tenant(11, 3)
    assert before is not None and made > before  # the new tenant does not see the audit trail of the old one


async def test_the_organization_of_another_tenant_stays(areas: Areas, tenants: Tenants) -> None:
    """Only the removed tenant is gone, with only its own tokens."""
    await areas.tenancy.create_token(11, 3, Role.ADMIN, "a", None)
    _, token = await areas.tenancy.create_token(11, 4, Role.ADMIN, "b", None)
    await tenants.remove(11, 3)
    assert await listed(tenants) == [(1, 1), (11, 4)]
    assert (await areas.tenancy.authenticate(token)).tenant_number == 4


async def test_a_tenant_in_use_is_not_removed(areas: Areas, tenants: Tenants) -> None:
    """The error says what the tenant has. Nothing is removed, not even a token."""
    await areas.client()
    _, token = await areas.tenancy.create_token(1, 1, Role.ADMIN, "a", None)
    await areas.tenancy.ensure_tenant(11, 3)
    with pytest.raises(Conflict, match="tenant 1 of organization 1 still has 1 domain, 1 RADIUS client: remove them"):
        await tenants.remove(1, 1)
    assert (await areas.tenancy.authenticate(token)).name == "a"


async def test_the_only_tenant_is_not_removed(areas: Areas, tenants: Tenants) -> None:
    """An installation keeps one tenant, even if it is empty."""
    await areas.store.write(_without_domains)
    with pytest.raises(Conflict, match="the only tenant"):
        await tenants.remove(1, 1)


def _without_domains(tx: Tx) -> None:
    tx.execute("delete from domain_realms")
    tx.execute("delete from domains")


async def test_many_tokens_are_removed_in_slices(areas: Areas, tenants: Tenants) -> None:
    """A tenant with many tokens is removed completely, although each transaction deletes only some of them."""
    tenant = await areas.tenancy.ensure_tenant(11, 3)
    rows = [(tenant, "t", "admin", f"hash {number}", 1) for number in range(1000)]
    columns = ["tenant_id", "name", "role", "hash", "created_at"]
    await areas.store.write(lambda tx: tx.insert("access_tokens", columns, rows))
    await tenants.remove(11, 3)
    assert await listed(tenants) == [(1, 1)]


@only_sqlite
async def test_a_slice_of_sessions_does_not_read_all_tokens(areas: Areas) -> None:
    """The owner of each session is looked up by its id. Each slice would otherwise read all tokens of the tenant."""
    found = plans(areas.store.path, lambda tx: SLICES[0](tx, areas.tenant))
    assert any("SEARCH a USING INTEGER PRIMARY KEY" in plan for plan in found)
    assert [plan for plan in found if "access_tokens_tenant" in plan] == []


async def test_a_tenant_and_an_organization_are_renamed(areas: Areas, tenants: Tenants) -> None:
    """Each has a name of its own. The change is in the trail, and the numbers stay."""
    await tenants.rename(1, 1, "Head office")
    await tenants.rename(1, None, "Example")
    (only,) = await tenants.listed()
    assert (only.organization_name, only.name) == ("Example", "Head office")
    actions = await areas.store.read(lambda tx: tx.rows("select action from audit_trail order by id"))
    assert [action for (action,) in actions][-2:] == ["tenant.rename", "organization.rename"]
    for name in ("", " ", "a\nb", "x" * 256):
        with pytest.raises(Invalid):
            await tenants.rename(1, 1, name)
    for number in (2, None):
        with pytest.raises(NotFound):
            await tenants.rename(9, number, "x")
