"""The tenants of the installation: the choice of the tenant to act in, the names, and the removal. Only installation
administrators see these pages."""

from typing import Final

from sallyport.base.errors import Invalid, NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.pages.reading import number_at
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import INSTALLATIONS

pages = Pages()
ONE: Final = "/tenants/{org}/{tenant}"


@pages.show("/tenants", "Tenants", roles=INSTALLATIONS, template="tenants.html", menu="Installation")
async def tenants(visit: Visit) -> Context:
    """List the tenants with the numbers of their objects. An installation administrator acts in one of them."""
    numbers = await visit.services.tenancy.numbers()
    ids: dict[tuple[JSON, JSON], int] = {each: tenant for tenant, each in numbers.items()}
    return {"tenants": [{**each, "id": ids.get((each["org"], each["tenant"]))} for each in await _listed(visit)]}


@pages.submit("/tenants", roles=INSTALLATIONS)
async def choose(visit: Visit) -> Redirect:
    """Choose the tenant."""
    wanted, numbers = visit.fields.get("tenant", ""), await visit.services.tenancy.numbers()
    chosen = {str(tenant): (tenant, *each) for tenant, each in numbers.items()}.get(wanted)
    if chosen is None:
        raise Invalid("no such tenant")
    await visit.services.sessions.choose_tenant(visit.person, chosen[0])
    return Redirect("/", f"You now act in tenant {chosen[2]} of organization {chosen[1]}.")


@pages.show("/tenants/{org}/rename", "Rename an organization", roles=INSTALLATIONS, template="tenant_rename.html")
async def organization(visit: Visit) -> Context:
    """Show the form of the name of an organization."""
    org = number_at(visit, "org")
    for each in await _listed(visit):
        if each["org"] == org:
            return {"title": f"Rename organization {org}", "name": each["organization"]}
    raise NotFound("organization not found")


@pages.submit("/tenants/{org}/rename", roles=INSTALLATIONS)
async def rename_organization(visit: Visit) -> Redirect:
    """Rename the organization."""
    org, name = number_at(visit, "org"), visit.fields.get("name", "")
    await visit.command("tenant.rename", org=org, name=name)
    return Redirect("/tenants", f"Organization {org} is now {name}.")


@pages.show(f"{ONE}/rename", "Rename a tenant", roles=INSTALLATIONS, template="tenant_rename.html")
async def tenant(visit: Visit) -> Context:
    """Show the form of the name of a tenant."""
    found = await _tenant(visit)
    return {"title": f"Rename {_text(found)}", "name": found["name"]}


@pages.submit(f"{ONE}/rename", roles=INSTALLATIONS)
async def rename(visit: Visit) -> Redirect:
    """Rename the tenant."""
    found, name = await _tenant(visit), visit.fields.get("name", "")
    await visit.command("tenant.rename", org=found["org"], tenant=found["tenant"], name=name)
    return Redirect("/tenants", f"{_text(found).capitalize()} is now {name}.")


@pages.show(f"{ONE}/remove", "Remove a tenant", roles=INSTALLATIONS, template="tenant_remove.html")
async def removal(visit: Visit) -> Context:
    """Show the tenant that would be removed, and the numbers of its objects."""
    found, session = await _tenant(visit), visit.person.session
    is_own = (found["org"], found["tenant"]) == (session.organization, session.tenant_number)
    return {"title": f"Remove {_text(found)}", "tenant": found, "is_own": is_own}


@pages.submit(f"{ONE}/remove", roles=INSTALLATIONS)
async def remove(visit: Visit) -> Redirect:
    """Remove the tenant."""
    found = await _tenant(visit)
    await visit.command("tenant.remove", org=found["org"], tenant=found["tenant"])
    return Redirect("/tenants", f"{_text(found).capitalize()} is removed.")


async def _listed(visit: Visit) -> list[Row]:
    return entries(await visit.command("tenant.list", counts=True))


async def _tenant(visit: Visit) -> Row:
    """Return the tenant of the path. Raises NotFound."""
    wanted = number_at(visit, "org"), number_at(visit, "tenant")
    for each in await _listed(visit):
        if (each["org"], each["tenant"]) == wanted:
            return each
    raise NotFound("tenant not found")


def _text(row: Row) -> str:
    return f"tenant {row['tenant']} of organization {row['org']}"
