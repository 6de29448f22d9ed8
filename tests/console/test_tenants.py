"""The tenants page of an installation administrator: the names, the counts, and the removal."""

from collections.abc import AsyncIterator

import pytest

from tests.console.visitor import Site, Visitor, text_of


@pytest.fixture
async def root(site: Site) -> AsyncIterator[Visitor]:
    """Yield the browser of an installation administrator, who acts in tenant 1 of organization 1."""
    await site.areas.tenancy.ensure_tenant(3, 4)
    seed = await site.administrator("root")
    async with site.visitor() as visitor:
        await visitor.sign_in_as("root", site.code(seed))
        await visitor.send("/tenants", {"tenant": str(site.areas.tenant)})
        yield visitor


async def test_tenants_are_listed_with_names_and_counts(site: Site, root: Visitor) -> None:
    """Each tenant has its names and the numbers of its domains, RADIUS clients and active tokens."""
    await site.areas.client()
    await site.token(org=3, tenant=4)
    await root.send("/tenants/1/1/rename", {"name": "South"})
    await root.send("/tenants/3/4/rename", {"name": "North"})
    page = text_of(await root.get("/tenants"))
    assert " 1 South Rename 1 1 0 " in page and " 4 North Rename 0 0 1 " in page


async def test_a_tenant_and_its_organization_are_renamed(site: Site, root: Visitor) -> None:
    """The numbers stay. A name that is refused is shown again with the reason."""
    assert "/tenants/3/4/rename" in (await root.get("/tenants")).text
    refused = await root.send("/tenants/3/4/rename", {"name": " "})
    assert refused.status_code == 400 and "must have 1 to 255 printable characters" in text_of(refused)
    await root.send("/tenants/3/4/rename", {"name": "North"})
    await root.send("/tenants/3/rename", {"name": "Example Corp"})
    page = text_of(await root.get("/tenants"))
    assert "3 Example Corp Rename 4 North" in page
    assert 'value="Example Corp"' in (await root.get("/tenants/3/rename")).text
    assert await site.audited("organization.rename") == ["organization 3"]


async def test_a_tenant_is_removed(site: Site, root: Visitor) -> None:
    """The page before it removes nothing. Afterwards the tenant and its organization are gone."""
    assert "Remove tenant 4 of organization 3" in text_of(await root.get("/tenants/3/4/remove"))
    answer = await root.send("/tenants/3/4/remove")
    page = await root.get(answer.headers["location"])
    assert "Tenant 4 of organization 3 is removed" in text_of(page)
    assert "/tenants/3/4/" not in page.text
    for path in ("/tenants/3/4/remove", "/tenants/3/4/rename", "/tenants/3/rename"):
        assert (await root.get(path)).status_code == 404


async def test_a_tenant_with_objects_is_not_removed(site: Site, root: Visitor) -> None:
    """The page shows the reason of the refusal."""
    await site.areas.domains.add(await site.areas.tenancy.ensure_tenant(3, 4), "branch")
    refused = await root.send("/tenants/3/4/remove")
    assert refused.status_code == 409
    assert "tenant 4 of organization 3 still has 1 domain: remove them first" in text_of(refused)


async def test_the_tenant_of_the_session_has_no_button(root: Visitor) -> None:
    """A removal would end the session of the person, so another tenant must be chosen first."""
    page = await root.get("/tenants/1/1/remove")
    assert "You act in this tenant" in text_of(page)
    assert ">Remove the tenant</button>" not in page.text
