"""Local operations of tenants and access tokens: tenant..., token...

The arguments `org` and `tenant` are called orgId and tenantId in the API. The token of a wallet is created with the
wallet, not by these commands.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from sallyport.areas.tenancy.authentication import TokenRecord
from sallyport.areas.tenancy.repo import TokenQuery
from sallyport.areas.tenancy.service import Tenancy
from sallyport.areas.tenancy.tenant_repo import ListedTenant
from sallyport.areas.tenancy.tenants import Tenants
from sallyport.base.clock import Clock, iso
from sallyport.base.fair import in_parts
from sallyport.base.validation import Moment
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.web.scope import Role

Number = Annotated[int, Field(ge=1, le=2**63 - 1)]


class CreateToken(Arguments):
    """Arguments of token.create. expires: the expiry time in microseconds, or None."""

    org: Number
    tenant: Number
    role: Literal["admin", "operator", "auditor"] = "admin"
    name: str | None = None
    expires: Moment | None = None


class ListTokens(Arguments):
    """Arguments of token.list. Without `org` and `tenant`, all tokens of the installation are listed.

    token: the id of the only token to list; None for all. wallets: whether to list the tokens of wallets too.
    """

    org: Number | None = None
    tenant: Number | None = None
    token: Number | None = None
    wallets: bool = True


class PageTokens(Arguments):
    """Arguments of token.page, which returns one page of tokens without those of wallets, and their total.

    search: a part of the name. sort: the field to sort by; a minus sign before it sorts in descending order.
    """

    org: Number | None = None
    tenant: Number | None = None
    search: str = ""
    status: str = ""
    sort: str = ""
    offset: int = Field(default=0, ge=0, le=2**53)
    limit: int = Field(default=50, ge=1, le=10_000)


class RevokeToken(Arguments):
    """Arguments of token.revoke.

    token: the id or name of the token. org: the orgId to search; None for all organizations. tenant: the tenantId to
    search; None for all tenants.
    """

    token: int | str
    org: Number | None = None
    tenant: Number | None = None


class AddTenant(Arguments):
    """Arguments of tenant.add and tenant.remove. If the tenant exists already, tenant.add changes nothing."""

    org: Number
    tenant: Number


class ListTenants(Arguments):
    """Arguments of tenant.list. counts: whether to return the names of each tenant and the numbers of its objects."""

    counts: bool = False


class RenameTenant(Arguments):
    """Arguments of tenant.rename. tenant: the tenantId; None to rename the organization."""

    org: Number
    tenant: Number | None = None
    name: str


def local_operations(service: Tenancy, manager: Tenants, clock: Clock) -> LocalOperations:
    """Return the local operations of tenants and access tokens by name."""
    local = LocalOperations()

    @local("tenant.add")
    async def add(wanted: AddTenant) -> JSON:
        before = await service.numbers()
        await service.ensure_tenant(wanted.org, wanted.tenant)
        return {"new": new(before, wanted.org, wanted.tenant)}

    @local("tenant.list")
    async def tenants(wanted: ListTenants) -> JSON:
        if wanted.counts:
            return [_tenant_row(each) for each in await manager.listed()]
        return [{"org": organization, "tenant": number} for organization, number in (await service.numbers()).values()]

    @local("tenant.rename")
    async def rename(wanted: RenameTenant) -> JSON:
        await manager.rename(wanted.org, wanted.tenant, wanted.name)
        return None

    @local("tenant.remove")
    async def remove(wanted: AddTenant) -> JSON:
        await manager.remove(wanted.org, wanted.tenant)
        return None

    @local("token.create")
    async def create(wanted: CreateToken) -> JSON:
        before = await service.numbers()
        record, token = await service.create_token(
            wanted.org, wanted.tenant, Role(wanted.role), wanted.name or wanted.role, wanted.expires
        )
        return {**_row(record, clock()), "token": token, "new": new(before, wanted.org, wanted.tenant)}

    @local("token.list")
    async def listing(wanted: ListTokens) -> JSON:
        now = clock()
        await service.check_exists(wanted.org, wanted.tenant)
        if wanted.token is not None:
            found = await service.token(wanted.token, wanted.org, wanted.tenant)
            return [] if found is None else [_row(found, now)]
        found_all = await service.list_tokens(wanted.org, wanted.tenant, wallets=wanted.wallets)
        return list[JSON](await in_parts(partial(_row, now=now), found_all))

    @local("token.page")
    async def page(wanted: PageTokens) -> JSON:
        query = TokenQuery(
            wanted.org,
            wanted.tenant,
            wanted.search,
            wanted.status,
            wanted.sort.removeprefix("-"),
            wanted.sort.startswith("-"),
            wanted.offset,
            wanted.limit,
        )
        found, total = await service.token_page(query)
        return {"tokens": list[JSON](await in_parts(partial(_row, now=clock()), found)), "total": total}

    @local("token.revoke")
    async def revoke(wanted: RevokeToken) -> JSON:
        token = int(wanted.token) if isinstance(wanted.token, str) and wanted.token.isdecimal() else wanted.token
        return _row(await service.revoke(token, wanted.org, wanted.tenant), clock())

    return local


def new(before: Mapping[int, tuple[int, int]], organization: int, tenant: int) -> JSON:
    """Return texts that name the organization and the tenant if a command has created them. `note_new` prints these
    texts.

    before: the (organization, tenant) of each tenant that existed before the command, by internal id.
    """
    scopes = before.values()
    found: list[JSON] = []
    if organization not in {each for each, _ in scopes}:
        found.append(f"organization {organization}")
    if (organization, tenant) not in scopes:
        found.append(f"tenant {tenant} of organization {organization}")
    return found


def _tenant_row(tenant: ListedTenant) -> dict[str, JSON]:
    return {
        "org": tenant.organization,
        "tenant": tenant.number,
        "organization": tenant.organization_name,
        "name": tenant.name,
        "domains": tenant.domains,
        "clients": tenant.clients,
        "tokens": tenant.tokens,
        "created": iso(tenant.created_at),
    }


def _row(record: TokenRecord, now: int) -> dict[str, JSON]:
    return {
        "id": record.id,
        "org": record.organization,
        "tenant": record.tenant_number,
        "role": record.role,
        "name": record.name,
        "status": record.status(now),
        "created": iso(record.created_at),
        "expires": None if record.expires_at is None else iso(record.expires_at),
        "revoked": None if record.revoked_at is None else iso(record.revoked_at),
    }
