"""Pages about roles: their sets of reply attributes, and what uses them."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.policy.roles.templates import TEMPLATES
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.reading import choices, every, joined, replies, rights
from sallyport.console.table import SIZE, Filter, Table, is_export, page_of
from sallyport.console.visit import Pages, Visit, address
from sallyport.radius.vendors import PRODUCTS
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, READERS

pages = Pages()
LIST: Final = "/ad/ListRoles"
OTHERS: Final = "all other products"
COLUMNS: Final = (
    Column("role", "Role", link=lambda row: _at("/roles/show", row["domainId"], role=row["role"])),
    Column("default", "Other products"),
    Column("products", "Own sets"),
    Column("users", "Used by"),
)
SETS: Final = (
    Column("for", "For", link=lambda row: str(row["address"])),
    Column("attributes", "Attributes of the Access-Accept", "changes"),
)
FILTERS: Final = (Filter("search", "Name"),)
EMPTY: Final = (
    "No role yet. A role is a named set of reply attributes with a set for each product, so that a login rule names it "
    "once for all devices."
)


@pages.show("/roles", "Roles", roles=READERS, template="roles.html", menu="Sign-in policy")
async def roles(visit: Visit) -> Context:
    """List the roles of a domain."""
    domain, page = visit.domain(), page_of(visit)
    found = await every(visit, LIST, "roles", {"search": visit.query.get("search", "")}, domain=domain.id)
    shown = found if is_export(visit) else found[(page - 1) * SIZE : page * SIZE]
    table = Table(visit, COLUMNS, [_row(each) for each in shown], len(found), page, SIZE, FILTERS, EMPTY)
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/roles/show", "Role", roles=READERS, template="role.html")
async def show(visit: Visit) -> Context:
    """Show a role with its sets, and what uses it."""
    domain = visit.domain()
    role = await _role(visit, domain)
    sets = [_set(domain, role, each) for each in entries(role["sets"])]
    columns = SETS if visit.may(ADMINS) else (Column("for", "For"), *SETS[1:])
    title = f"Role {role['role']}"
    return {"domain": domain, "role": role, "sets": sets, "columns": columns, "title": title, **rights(visit)}


@pages.show("/roles/set", "Set of a role", roles=ADMINS, template="role_set.html")
async def edit(visit: Visit) -> Context:
    """Show the form of a set. The role and the product are in the address. A new set has the attributes of the
    product's template."""
    domain, product, tag = visit.domain(), visit.query.get("product", ""), visit.query.get("tag", "")
    role, by_tag = await _role(visit, domain) if visit.query.get("role") else None, visit.query.get("by") == "tag"
    sets = [] if role is None or by_tag else entries(role["sets"])
    own = [each for each in sets if (each["product"], each["tag"]) == (product, tag)]
    template = TEMPLATES.get(product)
    lines = [f"{each['name']}={each['value']}" for each in entries(own[0]["replyAttributes"])] if own else []
    if template is not None and role is not None and not own:
        lines = [f"{each.name}={each.value}" for each in template.replies(str(role["role"]))]
    return {
        "domain": domain, "role": role, "product": product, "tag": tag, "by_tag": by_tag, "template": template,
        "own": own[0] if own else None, "replies": "\n".join(lines), "products": [("", OTHERS), *choices(PRODUCTS)],
        "kept": [("domain", domain.id), *([("role", role["role"])] if role else [])],
    }  # fmt: skip


@pages.submit("/roles/set", roles=ADMINS)
async def set_(visit: Visit) -> Redirect:
    """Set the attributes of a role for a product."""
    domain, fields = visit.domain(), visit.fields
    name = visit.query.get("role") or fields.get("role", "")
    body: Row = {
        "role": name,
        "product": visit.query.get("product", ""),
        "tag": visit.query.get("tag") or fields.get("tag", ""),
        "vlan": fields.get("vlan", ""),
        "replyAttributes": replies(fields.get("replyAttributes", "")),
    }
    await visit.call("/ad/SetRole", body, domain=domain.id)
    return Redirect(
        _at("/roles/show", domain.id, role=name.strip()), "The set is stored. It applies from the next login on."
    )


@pages.show("/roles/remove", "Remove a role", roles=ADMINS, template="role_remove.html")
async def confirm(visit: Visit) -> Context:
    """Show the role, or the set of a role, that would be removed."""
    domain = visit.domain()
    role, product, tag = await _role(visit, domain), visit.query.get("product", ""), visit.query.get("tag", "")
    found = [each for each in entries(role["sets"]) if product in ("", each["product"]) and tag in ("", each["tag"])]
    return {
        "domain": domain,
        "role": role,
        "is_set": bool(product or tag),
        "sets": [_set(domain, role, each) for each in found],
        "columns": (Column("for", "For"), SETS[1]),
    }


@pages.submit("/roles/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove a role, or its set for one product or tag."""
    domain, product, tag = visit.domain(), visit.query.get("product", ""), visit.query.get("tag", "")
    body: Row = {"role": visit.query.get("role", ""), "product": product, "tag": tag}
    done = await visit.call("/ad/RemoveRole", body, domain=domain.id)
    next_page = _at("/roles/show", domain.id, role=body["role"]) if product or tag else _at("/roles", domain.id)
    return Redirect(next_page, f"{str(done['message']).capitalize()}.")


async def _role(visit: Visit, domain: Domain) -> Row:
    return await visit.call("/ad/ShowRole", {"role": visit.query.get("role", "")}, domain=domain.id)


def _at(path: str, domain: object, **parameters: object) -> str:
    return address(path, [("domain", str(domain)), *((name, str(value)) for name, value in parameters.items())])


def _row(role: Row) -> Row:
    """Return a role with its sets as texts."""
    sets = entries(role["sets"])
    default = next((each["attributes"] for each in sets if each["source"] == "default"), None)
    return {
        **role,
        "default": "" if default is None else joined(default) or "nothing",
        "products": joined([each["tag"] or each["product"] for each in sets if each["source"] != "default"]),
        "users": joined(role["usedBy"]),
    }


def _set(domain: Domain, role: Row, each: Row) -> Row:
    """Return a set with the address of its form."""
    return {
        **each,
        "for": each["tag"] or each["product"] or OTHERS,
        "address": _at("/roles/set", domain.id, role=role["role"], product=each["product"], tag=each["tag"]),
        "attributes": each["attributes"] or ["nothing"],
    }
