"""HTTP operation of logins: /ad/GetAuthLog."""

from collections.abc import Mapping

from sallyport.areas.domains.service import Domains
from sallyport.areas.events.bodies import EventList, GetAuthLog
from sallyport.areas.events.repo import FOREVER, EventQuery, EventRow
from sallyport.areas.events.service import Events, parse_cursor
from sallyport.base.clock import iso
from sallyport.base.validation import moment
from sallyport.base.wire import JSON
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
        return Plain({"events": [entry(row, name, nodes) for row in rows], "totalCount": total, "cursor": cursor})

    return logins


def entry(row: EventRow, domain: str, nodes: Mapping[int, str]) -> dict[str, JSON]:
    """Return an event in the form of `EventEntry`. domain: the name of the event's domain. nodes: the names of nodes by
    id."""
    return {
        "eventId": row.id,
        "time": iso(row.at),
        "user": row.user_name,
        "domain": domain,
        "ip_address": row.ip_address,
        "client_ip": row.client_ip,
        "device_name": row.device_name,
        "device_id": row.device_id,
        "station": row.station,
        "method": row.method,
        "factor": row.factor,
        "decision": row.decision,
        "appliedDecision": row.applied_decision,
        "wouldHaveBeen": row.would_have_been,
        "reason": row.reason,
        "ruleId": row.rule_id,
        "rule": row.rule_name,
        "firstFactorMs": row.first_us / 1000 or None,
        "secondFactorMs": row.second_us / 1000 or None,
        "attributes": [*(row.attributes or "").splitlines()],
        "detail": row.detail or "",
        "latencyMs": row.latency_us / 1000,
        "node": nodes.get(row.node_id, ""),
    }
