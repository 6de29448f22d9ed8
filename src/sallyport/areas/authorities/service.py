"""The authorities of all tenants, and their changes."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import trio

from sallyport.areas.authorities import repo
from sallyport.areas.authorities.authority import Anchor, Authority, AuthorityTable
from sallyport.areas.authorities.bundle import read_bundle
from sallyport.areas.authorities.overlaps import warnings_of
from sallyport.base.answer import answer
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration

NONE: Final[tuple[Authority, ...]] = ()


class Authorities:
    """The authorities of all tenants, in memory. A change applies to the next login when its call returns.

    is_local: whether a domain has the first factor local.
    """

    def __init__(self, configuration: Configuration, is_local: Callable[[int], bool], clock: Clock = now_us) -> None:
        self._configuration = configuration
        self._is_local = is_local
        self._clock = clock
        self._table = configuration.hold(self._load, AuthorityTable())
        self.before_deletion: Callable[[int], Awaitable[None]] | None = None
        """A function that deletes the many rows of an authority, by its id, before the authority itself."""

    def _load(self, tx: Tx) -> AuthorityTable:
        return repo.load(tx, self._table.value)

    @property
    def table(self) -> AuthorityTable:
        """The authorities of all tenants. The object is replaced by each change."""
        return self._table.value

    def of_domain(self, domain_id: int) -> tuple[Authority, ...]:
        """Return the authorities of a domain, in the order of their names."""
        return self._table.value.by_domain.get(domain_id, NONE)

    def of_tenant(self, tenant_id: int) -> tuple[Authority, ...]:
        """Return the authorities of a tenant, in the order of their names."""
        return self._table.value.by_tenant.get(tenant_id, NONE)

    def present(self, tenant_id: int, authority_id: int) -> Authority:
        """Return an authority of a tenant. Raises NotFound."""
        found = self._table.value.by_id.get(authority_id)
        if found is None or found.tenant_id != tenant_id:
            raise NotFound(repo.NOT_FOUND)
        return found

    def warnings(self, authorities: Iterable[Authority]) -> dict[int, list[str]]:
        """Return the warnings about authorities, by their ids."""
        now, table = self._clock(), self._table.value
        return {each.id: warnings_of(each, table, now, self._is_local) for each in authorities}

    async def add(self, tenant_id: int, name: str, certificates: str, fields: Mapping[str, object]) -> Authority:
        """Add an authority, and return it. certificates: its bundle in PEM. fields: the other fields of `Authority`.
        Raises Invalid, Conflict, NotFound."""
        pem, anchors = await trio.to_thread.run_sync(read_bundle, certificates)
        new = replace(Authority(0, tenant_id, name, pem, anchors), **fields)  # type: ignore[arg-type]
        return await self._configuration.change(lambda tx: self.add_in(tx, new))

    def add_in(self, tx: Tx, new: Authority) -> Authority:
        """Add an authority in a transaction of the configuration, and return it. Raises Conflict, NotFound."""
        at = self._clock()
        _check_owned(tx, new.tenant_id, new.domain_ids)
        added = repo.put(tx, new, at)
        _record(tx, "authority.add", added, at, {}, _shown(added))
        return added

    async def update(
        self, tenant_id: int, authority_id: int, certificates: str | None, fields: Mapping[str, object]
    ) -> Authority:
        """Change an authority, and return it. certificates: the new bundle in PEM, or None to keep it. fields: the new
        values by the fields of `Authority`. Raises NotFound, Invalid, Conflict."""
        bundle: tuple[str, tuple[Anchor, ...]] | None = None
        if certificates is not None:
            bundle = await trio.to_thread.run_sync(read_bundle, certificates)
        new = fields if bundle is None else {**fields, "certificates": bundle[0], "anchors": bundle[1]}
        return await self._configuration.change(lambda tx: self.update_in(tx, tenant_id, authority_id, new))

    def update_in(self, tx: Tx, tenant_id: int, authority_id: int, fields: Mapping[str, object]) -> Authority:
        """Change an authority in a transaction of the configuration, and return it. Raises NotFound, Conflict."""
        before, at = repo.get(tx, tenant_id, authority_id), self._clock()
        new = replace(before, **fields)  # type: ignore[arg-type]
        if "domain_ids" not in fields:
            new = replace(new, domain_ids=repo.present_domains(tx, before))
        if new == before:
            return before
        _check_owned(tx, tenant_id, new.domain_ids)
        changed = repo.put(tx, new, at)
        _record(tx, "authority.update", before, at, _shown(before), _shown(changed))
        return changed

    async def delete(self, tenant_id: int, authority_id: int) -> Authority:
        """Remove an authority, and return it. Raises NotFound."""
        self.present(tenant_id, authority_id)
        await self.release(authority_id)
        return await self._configuration.change(lambda tx: self.delete_in(tx, tenant_id, authority_id))

    async def release(self, authority_id: int) -> None:
        """Delete the many rows of an authority, before the authority itself."""
        if self.before_deletion is not None:
            await self.before_deletion(authority_id)

    def delete_in(self, tx: Tx, tenant_id: int, authority_id: int) -> Authority:
        """Remove an authority in a transaction of the configuration, and return it. Raises NotFound."""
        found = repo.get(tx, tenant_id, authority_id)
        repo.delete(tx, found)
        _record(tx, "authority.remove", found, self._clock(), _shown(found), {})
        return found


def _check_owned(tx: Tx, tenant_id: int, domain_ids: Sequence[int]) -> None:
    """Check that domains exist and belong to the tenant: one may have been removed meanwhile. Raises NotFound."""
    for each in domain_ids:
        if audit.tenant_of(tx, each) != tenant_id:
            raise NotFound("domain not found")


def _record(
    tx: Tx, action: str, authority: Authority, at: int, before: Mapping[str, JSON], after: Mapping[str, JSON]
) -> None:
    target = f"authority {authority.id} {authority.name}"
    changes = audit.changed(before, after)
    audit.record(tx, action, at=at, tenant_id=authority.tenant_id, target=target, changes=changes)


def _shown(authority: Authority) -> dict[str, JSON]:
    """Return the fields of an authority for the audit trail. The certificates are shown by their keys and subjects."""
    fields = answer(authority, warnings={})
    del fields["warnings"]
    return fields
