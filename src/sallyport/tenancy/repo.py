"""SQL for tenants and tokens, as functions of a transaction."""

from dataclasses import dataclass
from typing import Final

from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.web.scope import Role


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant.

    id: the internal id. organization: the orgId of the API. number: the tenantId of the API.
    """

    id: int
    organization: int
    number: int


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token without its secret. tenant_id: the internal id of the tenant. Times are UTC microseconds."""

    id: int
    organization: int
    tenant_number: int
    tenant_id: int
    name: str
    role: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def status(self, now: int) -> str:
        """Return `active`, `expired` or `revoked`, at the time `now` in microseconds."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


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
