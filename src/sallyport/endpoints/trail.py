"""Who changed which endpoint, group or user, in the audit trail."""

from collections.abc import Mapping, Sequence

from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import Tx


def note(
    tx: Tx, action: str, domain_id: int, target: str, changes: Mapping[str, JSON] | None = None, *, at: int
) -> None:
    """Note a change in a domain, in the change's own transaction; see `audit.record`."""
    tenant_id = audit.tenant_of(tx, domain_id)
    audit.record(tx, action, at=at, tenant_id=tenant_id, domain_id=domain_id, target=target, changes=changes)


def note_all(tx: Tx, action: str, domain_id: int, targets: Sequence[str], *, at: int) -> None:
    """Note that the same was done to many things of a domain."""
    tenant_id, entries = audit.tenant_of(tx, domain_id), [(target, "{}") for target in targets]
    audit.record_all(tx, action, entries, at=at, tenant_id=tenant_id, domain_id=domain_id)
