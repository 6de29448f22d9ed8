"""SQL for the list, the names and the removal of tenants, as functions of a transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.store.model import Tx
from sallyport.store.slices import Slice, delete_slice

_SESSIONS: Final = (  # `exists`, because each slice would read all ids of a tenant with a million tokens
    "tenant_id = :t or exists (select 1 from access_tokens a where a.id = token_id and a.tenant_id = :t) "
    "or exists (select 1 from identities i where i.id = identity_id and i.tenant_id = :t)"
)


@dataclass(frozen=True, slots=True)
class ListedTenant:
    """A tenant with its names and the numbers of its objects. organization, number: the orgId and the tenantId."""

    id: int
    organization: int
    number: int
    organization_name: str
    name: str
    domains: int
    clients: int
    tokens: int
    created_at: int


_LIST: Final = """
select tenants.id, organization_id as organization, number, organizations.name as organization_name,
    tenants.name as name, tenants.created_at as created_at,
    (select count(*) from domains where tenant_id = tenants.id and removed_at is null) as domains,
    (select count(*) from radius_clients where tenant_id = tenants.id) as clients,
    (select count(*) from access_tokens where tenant_id = tenants.id and revoked_at is null
        and (expires_at is null or expires_at > :now)) as tokens
from tenants join organizations on organizations.id = tenants.organization_id
order by organization_id, number
"""


def _of_tenant(table: str, key: str = "id", condition: str = "tenant_id = :t") -> Slice[int]:
    return lambda tx, tenant_id: delete_slice(tx, table, key, condition, t=tenant_id)


SLICES: Final[Sequence[Slice[int]]] = (
    _of_tenant("console_sessions", condition=_SESSIONS),
    _of_tenant("identities"),
    _of_tenant("access_tokens"),
    _of_tenant("issued_certificates", "fingerprint"),
    _of_tenant("configured_items", "tenant_id, kind, name"),
    _of_tenant("configured_slices", "tenant_id, number"),
    _of_tenant("radius_client_history"),
)
"""The rows that are removed together with a tenant."""


def listed(tx: Tx, now: int) -> list[ListedTenant]:
    """Return all tenants, ordered by orgId and tenantId."""
    return tx.all(ListedTenant, _LIST, now=now)


def find(tx: Tx, organization: int, number: int | None) -> int | None:
    """Return the internal id of a tenant, or None. number: None for any tenant of the organization."""
    return tx.value(
        int,
        "select min(id) from tenants where organization_id = :organization and (:number is null or number = :number)",
        organization=organization,
        number=number,
    )


def rename(tx: Tx, table: str, row_id: int, name: str) -> str | None:
    """Rename a tenant or an organization, and return its name before. table: `tenants` or `organizations`."""
    before = tx.value(str, f"select name from {table} where id = :id", id=row_id)
    tx.execute(f"update {table} set name = :name where id = :id", name=name, id=row_id)
    return before


def remove(tx: Tx, tenant_id: int, organization: int) -> None:
    """Delete a tenant without rows of its own, and its organization if it has no other tenant."""
    tx.execute("delete from tenant_rows where tenant_id = :t", t=tenant_id)
    tx.execute("delete from tenants where id = :t", t=tenant_id)
    tx.execute(
        "delete from organizations where id = :o and not exists (select 1 from tenants where organization_id = :o)",
        o=organization,
    )
    tx.execute("update config_version set version = version + 1")  # so that other nodes forget the tokens


def count(tx: Tx, table: str, tenant_id: int) -> int:
    """Return the number of a tenant's rows in a table."""
    return tx.value(int, f"select count(*) from {table} where tenant_id = :t", t=tenant_id) or 0


def has_erased_domain(tx: Tx, tenant_id: int) -> bool:
    """Return whether a tenant has a removed domain whose rows are not deleted yet."""
    sql = "select 1 from domains where tenant_id = :t and removed_at is not null"
    return tx.value(int, sql, t=tenant_id) is not None


def is_only(tx: Tx) -> bool:
    """Return whether the installation has one tenant."""
    return tx.value(int, "select count(*) from tenants") == 1
