"""The command audit.list, which reads the audit trail of the whole installation."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from sallyport.areas.audit.operations import shown
from sallyport.areas.audit.repo import FOREVER, AuditQuery
from sallyport.areas.audit.service import Audit
from sallyport.base.validation import Moment
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, Command, Tenants, command
from sallyport.web.scope import AddressOrText

PAGE = 100

MOST_LEFT_OUT = 100_000

Stored = Annotated[int, Field(ge=0, le=FOREVER)]
"""A number that the store can have."""


class ListAudit(Arguments):
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
    offset: int = Field(default=0, ge=0, le=MOST_LEFT_OUT)
    limit: int = Field(default=PAGE, ge=1, le=PAGE)


def commands(service: Audit, tenants: Tenants, find_domain: Callable[[str], int]) -> dict[str, Command]:
    """Return the commands of the audit trail, by name. find_domain: a function that takes the name or id of a domain
    and returns the id of the domain. The function raises NotFound if the domain does not exist."""

    async def listing(wanted: ListAudit) -> JSON:
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

    return {"audit.list": command(ListAudit, listing)}
