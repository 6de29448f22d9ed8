"""SQL for tenants and tokens, as functions of a transaction."""

from dataclasses import dataclass
from typing import Final

from sallyport.areas.tenancy.authentication import TokenRecord
from sallyport.store import audit
from sallyport.store.model import Tx, Value, without_case
from sallyport.web.scope import Role


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant.

    id: the internal id. organization: the orgId of the API. number: the tenantId of the API.
    """

    id: int
    organization: int
    number: int


_RECORD = """
select access_tokens.id, organization_id as organization, number as tenant_number, tenant_id, access_tokens.name, role,
    access_tokens.created_at, expires_at, revoked_at
from access_tokens join tenants on tenants.id = access_tokens.tenant_id
"""
_OF_REMOVED = (
    "exists (select 1 from wallets join domains on domains.id = wallets.domain_id "
    "where wallets.token_id = access_tokens.id and domains.removed_at is not null)"
)
NOT_OF_WALLETS: Final = f" and access_tokens.role <> '{Role.WALLET}'"
_IN_TENANT = "(:organization is null or organization_id = :organization) and (:number is null or number = :number)"


_STATUS: Final = (
    "case when revoked_at is not null then 'revoked' when expires_at <= :now then 'expired' else 'active' end"
)
_ORDERS: Final = {
    "id": "access_tokens.id",
    "name": "lower(access_tokens.name)",
    "role": "role",
    "org": "organization_id",
    "tenant": "number",
    "status": _STATUS,
    "created": "access_tokens.created_at",
    "expires": "expires_at",
    "revoked": "revoked_at",
}


@dataclass(frozen=True, slots=True)
class TokenQuery:
    """A query for one page of tokens, without those of wallets.

    organization, number: the organization and tenant of the tokens; None for any. search: a part of their name. status:
    their status; empty for any. order: the field by which they are sorted; another text sorts them by id.
    """

    organization: int | None
    number: int | None
    search: str = ""
    status: str = ""
    order: str = "id"
    descending: bool = False
    offset: int = 0
    limit: int = 50


def organizations(tx: Tx) -> dict[int, int]:
    """Return the organization (orgId) of each tenant, by the tenant's internal id."""
    return {int(tenant or 0): int(owner or 0) for tenant, owner in tx.rows("select id, organization_id from tenants")}


def ensure_tenant(tx: Tx, organization: int, number: int, *, at: int) -> Tenant:
    """Return a tenant. Insert the organization and the tenant if they do not exist."""
    new_organization = tx.execute(
        "insert into organizations (id, name, created_at) values (:id, :name, :at) on conflict (id) do nothing",
        id=organization,
        name=f"Organization {organization}",
        at=at,
    )
    new_tenant = tx.execute(
        "insert into tenants (organization_id, number, name, created_at) values (:organization, :number, :name, :at)"
        " on conflict (organization_id, number) do nothing",
        organization=organization,
        number=number,
        name=f"Tenant {number}",
        at=at,
    )
    tenant = tx.one(
        Tenant,
        "select id, organization_id as organization, number from tenants"
        " where organization_id = :organization and number = :number",
        organization=organization,
        number=number,
    )
    if tenant is None:  # the insert is in the same transaction
        raise LookupError("a tenant that was just made is gone")
    if new_organization:
        audit.record(tx, "organization.add", at=at, tenant_id=tenant.id, target=f"organization {organization}")
    if new_tenant:
        target = f"tenant {number} of organization {organization}"
        audit.record(tx, "tenant.add", at=at, tenant_id=tenant.id, target=target)
    return tenant


def tenant(tx: Tx, tenant_id: int) -> Tenant:
    """Return a tenant by its internal id. Raises LookupError if the tenant does not exist."""
    found = tx.one(
        Tenant, "select id, organization_id as organization, number from tenants where id = :id", id=tenant_id
    )
    if found is None:
        raise LookupError(f"there is no tenant with the id {tenant_id}")
    return found


def tenants(tx: Tx) -> list[Tenant]:
    """Return every tenant of the installation."""
    return tx.all(Tenant, "select id, organization_id as organization, number from tenants order by id")


def add_token(tx: Tx, tenant: Tenant, role: Role, name: str, *, hashed: str, at: int, until: int | None) -> int:
    """Insert a token's hash, and return the token's id."""
    made = tx.value(
        int,
        "insert into access_tokens (tenant_id, name, role, hash, created_at, expires_at)"
        " values (:tenant, :name, :role, :hash, :at, :until) returning id",
        tenant=tenant.id,
        name=name,
        role=role.value,
        hash=hashed,
        at=at,
        until=until,
    )
    if made is None:
        raise LookupError("an insert returned no id")
    return made


def any_token(tx: Tx) -> bool:
    """Return whether any token exists, including revoked tokens."""
    return tx.value(int, "select 1 from access_tokens limit 1") is not None


def token_by_hash(tx: Tx, hashed: str) -> TokenRecord | None:
    """Return the token with a hash, or None if there is none. Expired and revoked tokens are returned too.

    A wallet's token is not returned if the wallet's domain was removed.
    """
    return tx.one(TokenRecord, f"{_RECORD} where hash = :hash and not {_OF_REMOVED}", hash=hashed)


def token_by_id(tx: Tx, token_id: int, organization: int | None, number: int | None) -> TokenRecord | None:
    """Return a token by its id, or None.

    organization, number: the organization and tenant to which the token must belong; None for any.
    """
    where = f"where access_tokens.id = :id and {_IN_TENANT}"
    return tx.one(TokenRecord, f"{_RECORD} {where}", id=token_id, organization=organization, number=number)


def tokens(
    tx: Tx, organization: int | None, number: int | None, *, name: str | None = None, wallets: bool = True
) -> list[TokenRecord]:
    """Return tokens, ordered by id.

    organization, number, name: the values that the tokens must have; None for any value. wallets: whether to return the
    tokens of wallets too.
    """
    named = "(:name is null or access_tokens.name = :name)"
    where = f"where {_IN_TENANT} and {named}{'' if wallets else NOT_OF_WALLETS} order by access_tokens.id"
    return tx.all(TokenRecord, f"{_RECORD} {where}", organization=organization, number=number, name=name)


def token_page(tx: Tx, query: TokenQuery, now: int) -> tuple[list[TokenRecord], int]:
    """Return one page of tokens, and the number of all matching tokens. now: the time in microseconds."""
    where, parameters = "true" + NOT_OF_WALLETS, dict[str, Value]()
    for column, wanted in (("organization_id", query.organization), ("number", query.number)):
        if wanted is not None:
            where += f" and {column} = :{column}"
            parameters[column] = wanted
    if query.search:
        name, parameters["search"] = without_case("access_tokens.name", query.search)
        where += f" and instr({name}, :search) > 0"
    if query.status:
        where += f" and {_STATUS} = :status"
        parameters |= {"status": query.status, "now": now}
    count = "select count(*) from access_tokens join tenants on tenants.id = access_tokens.tenant_id"
    total = tx.value(int, f"{count} where {where}", **parameters) or 0
    order = f"{_ORDERS.get(query.order, 'access_tokens.id')} {'desc' if query.descending else 'asc'}"
    if query.order == "status":
        parameters["now"] = now
    page = f"{_RECORD} where {where} order by {order}, access_tokens.id limit :limit offset :offset"
    return tx.all(TokenRecord, page, limit=query.limit, offset=query.offset, **parameters), total


def revoke(tx: Tx, token_id: int, *, at: int) -> bool:
    """Revoke a token. Return False if the token is revoked already.

    The function increases config_version, so that other nodes empty their caches.
    """
    sql = "update access_tokens set revoked_at = :at where id = :id and revoked_at is null"
    changed = tx.execute(sql, id=token_id, at=at)
    tx.execute("update config_version set version = version + 1")
    return changed > 0


def revoke_all(tx: Tx, *, at: int) -> int:
    """Revoke all tokens. Return the number of tokens that this call has revoked."""
    return tx.execute("update access_tokens set revoked_at = :at where revoked_at is null", at=at)
