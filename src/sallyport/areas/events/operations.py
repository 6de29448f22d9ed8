"""Operations of logins: /ad/GetAuthLog; local: event.export, which returns events, oldest first."""

from collections.abc import Callable

from pydantic import Field

from sallyport.areas.domains.domain import Domain
from sallyport.areas.domains.service import Domains
from sallyport.areas.events.bodies import EventList, GetAuthLog
from sallyport.areas.events.event import FOREVER, EventQuery, ExportQuery
from sallyport.areas.events.service import Events, parse_cursor
from sallyport.base.answer import answers
from sallyport.base.validation import Moment, moment
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate


def operations(service: Events, domains: Domains, gate: Gate) -> Operations:
    """Return the HTTP operation of logins."""
    logins = Operations("Logins", gate)

    @logins.post("/ad/GetAuthLog", roles=READERS)
    async def get_auth_log(body: GetAuthLog, caller: Caller) -> Plain[EventList]:
        """List the logins of a domain, newest first, with the decision, the decision that was sent, and the decision of
        enforce mode.

        To get the next page, send the `cursor` of an answer with the next request. New logins do not shift these pages.
        """
        page, before = body.page(), parse_cursor(body.cursor)
        query = EventQuery(
            domain_id=body.domainId,
            search=body.search,
            device_id=body.deviceId,
            event_id=body.eventId,
            trace_id=body.traceId,
            user=body.user,
            station=body.station,
            device_name=body.device,
            applied_decision=body.appliedDecision,
            reason=body.reason,
            since=moment("from", body.since, 0),
            until=moment("to", body.until, FOREVER),
            before=before,
            offset=0 if before else page.offset,
            limit=page.size,
        )
        rows, cursor, total = await service.walk(query, counts=body.withTotal)
        nodes, name = await service.nodes(), domains.table.present(body.domainId).name
        return Plain({"events": answers(rows, domain=name, nodes=nodes), "totalCount": total, "cursor": cursor})

    return logins


PAGE = 200
"""Maximum number of events in an answer. Such an answer blocks the event loop for 2 ms."""


class ExportEvents(Arguments):
    """Arguments of event.export.

    domain: the name or the domainId of a domain. since, until: the range of times; `until` is exclusive. cursor: the
    cursor that the previous answer contains. last_id: the `last_id` that the first answer contains. It excludes events
    that were written after the export began.
    """

    domain: str
    since: Moment = Field(default=0, validation_alias="from")
    until: Moment = Field(default=FOREVER, validation_alias="to")
    cursor: str = ""
    limit: int = Field(default=PAGE, ge=1, le=PAGE)
    last_id: int | None = None


def local_operations(service: Events, domain: Callable[[str], Domain]) -> LocalOperations:
    """Return the local operations for events by their names.

    domain: a function that returns the domain with a name or domainId, or raises NotFound.
    """
    local = LocalOperations()

    @local("event.export")
    async def export(wanted: ExportEvents) -> JSON:
        of = domain(wanted.domain)
        last_id = await service.last_id() if wanted.last_id is None else wanted.last_id
        stretch = ExportQuery(of.id, last_id, wanted.since, wanted.until, parse_cursor(wanted.cursor), wanted.limit)
        rows, cursor = await service.oldest(stretch)
        nodes = await service.nodes()
        return {"events": list[JSON](answers(rows, domain=of.name, nodes=nodes)), "cursor": cursor, "last_id": last_id}

    return local
