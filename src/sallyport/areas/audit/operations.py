"""The HTTP operation of the audit trail: /api/v1/audit/list."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from sallyport.areas.audit.bodies import AuditList, ListAudit
from sallyport.areas.audit.repo import FOREVER, AuditQuery, AuditRow
from sallyport.areas.audit.service import Audit
from sallyport.base.answer import answer
from sallyport.base.fair import in_parts
from sallyport.base.text import counted
from sallyport.base.wire import JSON
from sallyport.web.operation import Operations, Plain
from sallyport.web.paging import totals
from sallyport.web.scope import READERS, Caller, Gate

PAGE: Final = 1 << 20
"""Maximum number of characters of the changes on a page. More would hold up the event loop."""


def operations(service: Audit, gate: Gate) -> Operations:
    """Declare the operation of the audit trail."""
    trail = Operations("Audit trail", gate)

    @trail.post("/api/v1/audit/list", roles=READERS)
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
        entries = await shown(rows)
        return Plain(
            {
                "code": 200,
                "status": "Success",
                "message": counted(total, "entry", "entries"),
                **totals(total),
                "entries": entries,
            }
        )

    return trail


async def shown(rows: Sequence[AuditRow]) -> list[dict[str, JSON]]:
    """Return the entries of a page with the fields of `AuditEntry`.

    An entry of a rule or a policy can be a hundred times as long as others. If a page has more than PAGE characters,
    the values of the longest entries are truncated.
    """
    most = _fair_share([len(row.changes) for row in rows], PAGE)
    return await in_parts(partial(answer, most=most), rows)


def _fair_share(lengths: Sequence[int], total: int) -> int:
    """Return the greatest length such that texts cut to this length have at most the total length."""
    for number, length in enumerate(sorted(lengths)):
        share = total // (len(lengths) - number)
        if length > share:
            return share
        total -= length
    return max(lengths, default=0)
