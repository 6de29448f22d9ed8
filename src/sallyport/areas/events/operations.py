"""HTTP operation of logins: /ad/GetAuthLog."""

from sallyport.areas.domains.service import Domains
from sallyport.areas.events.bodies import EventList, GetAuthLog
from sallyport.areas.events.event import FOREVER, EventQuery
from sallyport.areas.events.service import Events, parse_cursor
from sallyport.base.answer import answers
from sallyport.base.validation import moment
from sallyport.web.operation import Operations, Plain
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
