"""HTTP operation of sessions: /network_device/ListSessions."""

from sallyport.areas.sessions.bodies import ListSessions, SessionList
from sallyport.areas.sessions.service import Sessions
from sallyport.areas.sessions.session import FOREVER, SessionQuery, ValueName
from sallyport.base.answer import answers
from sallyport.base.validation import moment
from sallyport.web.bodies import Plain, totals
from sallyport.web.operation import Operations
from sallyport.web.scope import READERS, Caller, Gate


def operations(service: Sessions, value_name: ValueName, gate: Gate) -> Operations:
    """Return the HTTP operation of sessions."""
    sessions = Operations("Network devices", gate)

    @sessions.post("/network_device/ListSessions", roles=READERS)
    async def list_sessions(body: ListSessions, caller: Caller) -> Plain[SessionList]:
        """List the user sessions of a domain, live and past, newest first, from the accounting of its devices."""
        page = body.page()
        query = SessionQuery(
            domain_id=body.domainId,
            live=body.live,
            session_id=body.sessionId,
            device_id=body.deviceId,
            user_name=body.userName,
            since=moment("from", body.since, 0),
            until=moment("to", body.until, FOREVER),
            search=body.search,
            offset=page.offset,
            limit=page.size,
        )
        rows, total = await service.page(query)
        return Plain({"sessions": answers(rows, value_name=value_name), **totals(total)})

    return sessions
