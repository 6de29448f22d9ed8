"""The HTTP operation of the audit trail: /api/v1/audit/list."""

import json

from sallyport.audit.bodies import AuditList, ListAudit
from sallyport.audit.repo import FOREVER, AuditQuery, AuditRow
from sallyport.audit.service import Audit
from sallyport.base.clock import iso
from sallyport.base.text import counted
from sallyport.base.wire import JSON
from sallyport.web.operation import Operations, Plain
from sallyport.web.paging import totals
from sallyport.web.scope import READERS, Caller, Gate


def operations(service: Audit, gate: Gate) -> Operations:
    """Declare the operation of the audit trail."""
    audit = Operations("Audit trail", gate)

    @audit.post("/api/v1/audit/list", roles=READERS)
    async def list_audit(body: ListAudit, caller: Caller) -> Plain[AuditList]:
        """List the changes in the tenant with their actors, the newest first. The entry of a change is written in the
        same transaction as the change."""
        page = body.page()
        rows, total = await service.page(
            AuditQuery(
                tenant_id=caller.tenant_id,
                domain_id=body.domainId,
                search=body.search,
                action=body.action,
                actor=body.actor,
                since=body.since or 0,
                until=FOREVER if body.until is None else body.until,
                offset=page.offset,
                limit=page.size,
            )
        )
        return Plain(
            {
                "code": 200,
                "status": "Success",
                "message": counted(total, "entry", "entries"),
                **totals(total),
                "entries": [entry(row) for row in rows],
            }
        )

    return audit


def entry(row: AuditRow) -> dict[str, JSON]:
    """Return an entry with the fields of `AuditEntry`."""
    return {
        "auditId": row.id,
        "time": iso(row.at),
        "actorKind": row.actor_kind,
        "actor": row.actor,
        "tokenId": row.token_id,
        "action": row.action,
        "target": row.target,
        "domainId": row.domain_id,
        "changes": json.loads(row.changes),
    }
