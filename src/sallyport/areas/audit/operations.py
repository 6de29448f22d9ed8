"""Operations of the audit trail: /api/v1/audit/list of a tenant; local: audit.list of the whole installation."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Final

from pydantic import Field

from sallyport.areas.audit.bodies import AuditList, ListAudit
from sallyport.areas.audit.repo import FOREVER, AuditQuery, AuditRow
from sallyport.areas.audit.service import Audit
from sallyport.base.answer import answer
from sallyport.base.fair import in_parts
from sallyport.base.text import counted
from sallyport.base.validation import Moment
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations, Tenants
from sallyport.web.bodies import AddressOrText, Plain, totals
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate

MAX_CHARACTERS: Final = 1 << 20
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

    An entry of a rule or a policy can be a hundred times as long as others. If a page has more than
    MAX_CHARACTERS, the values of the longest entries are truncated.
    """
    most = _fair_share([len(row.changes) for row in rows], MAX_CHARACTERS)
    return await in_parts(partial(answer, most=most), rows)


def _fair_share(lengths: Sequence[int], total: int) -> int:
    """Return the greatest length such that texts cut to this length have at most the total length."""
    for number, length in enumerate(sorted(lengths)):
        share = total // (len(lengths) - number)
        if length > share:
            return share
        total -= length
    return max(lengths, default=0)


PAGE = 100  # entries in one answer of the local operation

MAX_LEFT_OUT = 100_000

Stored = Annotated[int, Field(ge=0, le=FOREVER)]
"""A number that the store can have."""


class ListWholeAudit(Arguments):
    """Arguments of the command audit.list. The command returns the entries of a domain or of the whole installation,
    the newest first.

    domain: the name or domainId of the domain, or None for the whole installation. after: the time (in microseconds)
    and the id of the last entry on the previous page, or None for the first page. offset: the number of entries that
    are left out at the beginning.
    """

    domain: str | None = None
    search: AddressOrText = ""
    action: str = ""
    actor: str = ""
    since: Moment = Field(default=0, validation_alias="from")
    until: Moment = Field(default=FOREVER, validation_alias="to")
    after: tuple[Stored, Stored] | None = None
    offset: int = Field(default=0, ge=0, le=MAX_LEFT_OUT)
    limit: int = Field(default=PAGE, ge=1, le=PAGE)


def local_operations(service: Audit, tenants: Tenants, find_domain: Callable[[str], int]) -> LocalOperations:
    """Return the local operations of the audit trail.

    find_domain: a function that returns the id of the domain with a name or id. It raises NotFound if the domain does
    not exist.
    """
    local = LocalOperations()

    @local("audit.list")
    async def listing(wanted: ListWholeAudit) -> JSON:
        query = AuditQuery(
            domain_id=None if wanted.domain is None else find_domain(wanted.domain),
            search=wanted.search,
            action=wanted.action,
            actor=wanted.actor,
            since=wanted.since,
            until=wanted.until,
            before=wanted.after,
            offset=wanted.offset,
            limit=wanted.limit,
        )
        rows = await service.newest(query)
        numbers = await tenants.numbers()
        found: list[JSON] = []
        for row, entry in zip(rows, await shown(rows), strict=True):
            organization, tenant = numbers.get(row.tenant_id, (None, None))
            found.append({**entry, "org": organization, "tenant": tenant})
        return {"entries": found, "after": list[JSON]([rows[-1].at, rows[-1].id]) if rows else None}

    return local
