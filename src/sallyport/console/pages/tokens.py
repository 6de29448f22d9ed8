"""Access tokens. An installation administrator sees the tokens of all tenants, and an admin those of the own tenant."""

from typing import Final

from sallyport.base.errors import Invalid, NotFound
from sallyport.base.wire import JSON
from sallyport.console.columns import Column
from sallyport.console.pages.reading import number, one
from sallyport.console.table import SIZE, Filter, Table, is_export, page_of, wanted
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.bodies import LONG
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, INSTALLATIONS

pages = Pages()
OWNERS: Final = ADMINS | INSTALLATIONS
COLUMNS: Final = (
    Column("id", "Token", "number"),
    Column("name", "Name"),
    Column("role", "Role"),
    Column("org", "Org", "number"),
    Column("tenant", "Tenant", "number"),
    Column("status", "Status"),
    Column("created", "Created", "time"),
    Column("expires", "Expires", "time"),
    Column("revoked", "Revoked", "time", is_chosen=False),
)
ROLES: Final = (
    ("admin", "admin: changes everything in the tenant"),
    ("operator", "operator: changes everything but tokens, secrets of clients, rules and modes"),
    ("auditor", "auditor: reads everything but secrets"),
)
EMPTY: Final = "No token yet. Create one for a program that uses the API."
STATUS: Final = Filter("status", "Status", [(each, each) for each in ("active", "expired", "revoked")])


@pages.show("/tokens", "Access tokens", roles=OWNERS, template="tokens.html", menu="Administration")
async def tokens(visit: Visit) -> Context:
    """List the access tokens, without those of wallets, of which a tenant may have very many."""
    page, size = page_of(visit), LONG if is_export(visit) else SIZE
    paging: dict[str, JSON] = {"offset": (page - 1) * size, "limit": size}
    filters = (Filter("search", "Name"), STATUS)
    answer = await _run(visit, "token.page", **wanted(visit, filters), sort=visit.query.get("sort", ""), **paging)
    assert isinstance(answer, dict)  # noqa: S101  the command returns an object
    link = Column("id", "Token", link=lambda row: f"/tokens/{row['id']}/revoke")
    columns, total = (link, *COLUMNS[1:]), int(str(answer["total"]))
    next_url = visit.url(page=page + 1) if is_export(visit) and page * size < total else ""
    found = entries(answer["tokens"])
    table = Table(visit, columns, found, total, page, size, filters, EMPTY, can_sort=True, next_url=next_url)
    return {"table": table, "is_installation": visit.person.is_installation}


@pages.show("/tokens/add", "Create an access token", roles=OWNERS, template="token_add.html")
async def new_token(visit: Visit) -> Context:
    """Show the form of a new token."""
    scopes = sorted(await _scopes(visit))
    chosen = f"{visit.person.session.organization}/{visit.person.session.tenant_number}"
    texts = [(f"{org}/{tenant}", f"org {org}, tenant {tenant}") for org, tenant in scopes]
    return {"roles": ROLES, "scopes": texts, "chosen": chosen}


@pages.submit("/tokens/add", roles=OWNERS, template="token_made.html")
async def add_token(visit: Visit) -> Context:
    """Create a token in a tenant that exists, and show it once."""
    fields = visit.fields
    scope = {f"{org}/{tenant}": (org, tenant) for org, tenant in await _scopes(visit)}.get(fields.get("scope", ""))
    if scope is None:
        raise Invalid.about("no such tenant", "scope")
    arguments: dict[str, JSON] = {"role": fields.get("role", ""), "name": fields.get("name") or None}
    if fields.get("expires"):
        arguments["expires"] = fields["expires"]
    made = await _run(visit, "token.create", org=scope[0], tenant=scope[1], **arguments)
    return {"title": "The access token is created", "made": made}


@pages.show("/tokens/{token}/revoke", "Revoke an access token", roles=OWNERS, template="token_revoke.html")
async def confirm_token(visit: Visit) -> Context:
    """Show the token that would be revoked."""
    token = number(visit.at["token"], "token")
    return {"token": one(entries(await _run(visit, "token.list", token=token)), "id", visit.at["token"], "token")}


@pages.submit("/tokens/{token}/revoke", roles=OWNERS)
async def revoke_token(visit: Visit) -> Redirect:
    """Revoke a token."""
    revoked = await _run(visit, "token.revoke", token=number(visit.at["token"], "token"))
    if not isinstance(revoked, dict):
        raise NotFound("token not found")
    return Redirect("/tokens", f"The token {revoked['name']} is revoked.")


async def _scopes(visit: Visit) -> list[tuple[int, int]]:
    """Return the (organization, tenant) of each tenant in which the person may create a token."""
    if visit.person.is_installation:
        return list((await visit.services.tenancy.numbers()).values())
    return [(visit.caller.organization, visit.caller.tenant_number)]


async def _run(visit: Visit, command: str, /, **arguments: JSON) -> JSON:
    """Run a command of tokens: in all tenants for an installation administrator, and otherwise in the own tenant."""
    if visit.person.is_installation:
        return await visit.command(command, **arguments)
    return await visit.tenant_command(command, **arguments)
