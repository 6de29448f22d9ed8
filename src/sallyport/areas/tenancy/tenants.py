"""The list, the names and the removal of tenants. `token create` and `domain add` create them.

A tenant is removed only if it has no domains, RADIUS clients, password policies and administrators: each of these has a
command that removes it. Access tokens, sessions in the console and records of certificates are removed together with
the tenant. The audit trail stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, NotFound, invalid_field
from sallyport.base.text import counted
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.slices import Slice, delete_slice, in_slices

LONGEST_NAME: Final = 255
_KEPT: Final[Mapping[str, tuple[str, str]]] = {
    "domains": ("domain", ""),
    "radius_clients": ("RADIUS client", ""),
    "password_policies": ("password policy", "password policies"),
    "administrators": ("administrator", ""),
}
"""The tables with rows that keep a tenant from being removed, and the nouns of their rows."""
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


class Tenants:
    """The tenants of the installation, for its administrators."""

    def __init__(self, store: Store, tenancy: Tenancy, clock: Clock) -> None:
        self._store = store
        self._tenancy = tenancy
        self._clock = clock

    async def listed(self) -> Sequence[ListedTenant]:
        """Return all tenants, ordered by orgId and tenantId. Raises StoreError."""
        return await self._store.search(lambda tx: tx.all(ListedTenant, _LIST, now=self._clock()))

    async def rename(self, organization: int, number: int | None, name: str) -> None:
        """Rename a tenant, or its organization if `number` is None. Raises NotFound, Invalid, StoreError."""
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise invalid_field("name", f"must have 1 to {LONGEST_NAME} printable characters")
        at = self._clock()

        def transaction(tx: Tx) -> None:
            tenant_id = _find(tx, organization, number)
            if number is None:
                kind, table, key = f"organization {organization}", "organizations", organization
            else:
                kind, table, key = f"tenant {number} of organization {organization}", "tenants", tenant_id
            before = tx.value(str, f"select name from {table} where id = :id", id=key)  # noqa: S608
            tx.execute(f"update {table} set name = :name where id = :id", name=name, id=key)  # noqa: S608
            changes = audit.changed({"name": before}, {"name": name})
            action = f"{'organization' if number is None else 'tenant'}.rename"
            audit.record(tx, action, at=at, tenant_id=tenant_id, target=kind, changes=changes)

        await self._store.write(transaction)

    async def remove(self, organization: int, number: int) -> None:
        """Remove a tenant with its tokens, and its organization if it has no other tenant.

        The removal takes several transactions. If it is interrupted, some tokens may be removed already; repeat the
        call. Raises NotFound, StoreError. Raises Conflict if the tenant has objects that must be removed first, or if
        it is the only tenant.
        """
        at = self._clock()

        def find(tx: Tx) -> int:
            tenant_id = _find(tx, organization, number)
            _check_removable(tx, tenant_id, organization, number)
            return tenant_id

        def end(tx: Tx, tenant_id: int) -> None:
            tx.execute("delete from tenant_rows where tenant_id = :t", t=tenant_id)
            tx.execute("delete from tenants where id = :t", t=tenant_id)
            tx.execute(
                "delete from organizations where id = :o and not exists "
                "(select 1 from tenants where organization_id = :o)",
                o=organization,
            )
            tx.execute("update config_version set version = version + 1")  # so that other nodes forget the tokens
            target = f"tenant {number} of organization {organization}"
            audit.record(tx, "tenant.remove", at=at, tenant_id=audit.INSTALLATION, target=target)

        await in_slices(self._store, find, _SLICES, end)
        self._tenancy.forget()


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


_SLICES: Final[Sequence[Slice[int]]] = (
    _of_tenant("console_sessions", condition=_SESSIONS),
    _of_tenant("identities"),
    _of_tenant("access_tokens"),
    _of_tenant("issued_certificates", "fingerprint"),
    _of_tenant("radius_client_history"),
)


def _find(tx: Tx, organization: int, number: int | None) -> int:
    """Return the internal id of a tenant. number: None for any tenant of the organization. Raises NotFound."""
    found = tx.value(
        int,
        "select min(id) from tenants where organization_id = :organization and (:number is null or number = :number)",
        organization=organization,
        number=number,
    )
    if found is None:
        raise NotFound(f"there is no {'' if number is None else f'tenant {number} of '}organization {organization}")
    return found


def _check_removable(tx: Tx, tenant_id: int, organization: int, number: int) -> None:
    """Raise Conflict if a tenant has objects that must be removed first, or if it is the only tenant."""
    counts = {
        table: tx.value(int, f"select count(*) from {table} where tenant_id = :t", t=tenant_id) or 0  # noqa: S608
        for table in _KEPT
    }
    held = [counted(count, *_KEPT[table]) for table, count in counts.items() if count]
    if held:
        erased = tx.value(int, "select 1 from domains where tenant_id = :t and removed_at is not null", t=tenant_id)
        later = (
            "; a domain that was just removed counts until its rows are deleted, for about ten minutes"
            if erased
            else ""
        )
        what = f"tenant {number} of organization {organization}"
        raise Conflict(f"{what} still has {', '.join(held)}: remove them first{later}")
    if tx.value(int, "select count(*) from tenants") == 1:
        raise Conflict("the only tenant of an installation cannot be removed")
