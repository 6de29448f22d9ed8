"""The list, the names and the removal of tenants. `token create` and `domain add` create them.

A tenant is removed only if it has no domains, RADIUS clients, password policies, authorities and administrators: each
of these has a command that removes it. Access tokens, sessions in the console and records of certificates are removed
together with the tenant. The audit trail stays.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sallyport.areas.tenancy import tenant_repo
from sallyport.areas.tenancy.service import Tenancy
from sallyport.areas.tenancy.tenant_repo import ListedTenant
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, NotFound, invalid_field
from sallyport.base.text import counted
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.slices import in_slices

MAX_NAME_LENGTH: Final = 255
_KEPT: Final[Mapping[str, tuple[str, str]]] = {
    "domains": ("domain", ""),
    "radius_clients": ("RADIUS client", ""),
    "password_policies": ("password policy", "password policies"),
    "authorities": ("authority", "authorities"),
    "administrators": ("administrator", ""),
}
"""The tables with rows that keep a tenant from being removed, and the nouns of their rows."""


class Tenants:
    """The tenants of the installation, for its administrators."""

    def __init__(self, store: Store, tenancy: Tenancy, clock: Clock) -> None:
        self._store = store
        self._tenancy = tenancy
        self._clock = clock

    async def listed(self) -> Sequence[ListedTenant]:
        """Return all tenants, ordered by orgId and tenantId. Raises StoreError."""
        return await self._store.search(lambda tx: tenant_repo.listed(tx, self._clock()))

    async def rename(self, organization: int, number: int | None, name: str) -> None:
        """Rename a tenant, or its organization if `number` is None. Raises NotFound, Invalid, StoreError."""
        if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise invalid_field("name", f"must have 1 to {MAX_NAME_LENGTH} printable characters")
        at = self._clock()

        def transaction(tx: Tx) -> None:
            tenant_id = _find(tx, organization, number)
            if number is None:
                kind, table, key = f"organization {organization}", "organizations", organization
            else:
                kind, table, key = f"tenant {number} of organization {organization}", "tenants", tenant_id
            before = tenant_repo.rename(tx, table, key, name)
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
            tenant_repo.remove(tx, tenant_id, organization)
            target = f"tenant {number} of organization {organization}"
            audit.record(tx, "tenant.remove", at=at, tenant_id=audit.INSTALLATION, target=target)

        await in_slices(self._store, find, tenant_repo.SLICES, end)
        self._tenancy.forget()


def _find(tx: Tx, organization: int, number: int | None) -> int:
    """Return the internal id of a tenant. number: None for any tenant of the organization. Raises NotFound."""
    found = tenant_repo.find(tx, organization, number)
    if found is None:
        raise NotFound(f"there is no {'' if number is None else f'tenant {number} of '}organization {organization}")
    return found


def _check_removable(tx: Tx, tenant_id: int, organization: int, number: int) -> None:
    """Raise Conflict if a tenant has objects that must be removed first, or if it is the only tenant."""
    counts = {table: tenant_repo.count(tx, table, tenant_id) for table in _KEPT}
    held = [counted(count, *_KEPT[table]) for table, count in counts.items() if count]
    if held:
        erased = tenant_repo.has_erased_domain(tx, tenant_id)
        later = (
            "; a domain that was just removed counts until its rows are deleted, for about ten minutes"
            if erased
            else ""
        )
        what = f"tenant {number} of organization {organization}"
        raise Conflict(f"{what} still has {', '.join(held)}: remove them first{later}")
    if tenant_repo.is_only(tx):
        raise Conflict("the only tenant of an installation cannot be removed")
