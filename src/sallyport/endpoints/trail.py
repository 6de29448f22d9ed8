"""Who changed which endpoint, group or user, in the audit trail."""

from collections.abc import Mapping

from sallyport.base.command import JSON
from sallyport.store import audit
from sallyport.store.model import Tx


def note(
    tx: Tx, action: str, domain_id: int, target: str, changes: Mapping[str, JSON] | None = None, *, at: int
) -> None:
    """Note a change in a domain, in the change's own transaction; see `audit.record`."""
    tenant_id = audit.tenant_of(tx, domain_id)
    audit.record(tx, action, at=at, tenant_id=tenant_id, domain_id=domain_id, target=target, changes=changes)
