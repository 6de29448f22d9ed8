"""HTTP operation of sessions: /network_device/ListSessions."""

from collections.abc import Callable

from sallyport.areas.sessions.bodies import ListSessions, SessionList
from sallyport.areas.sessions.repo import FOREVER, SessionQuery, SessionRow
from sallyport.areas.sessions.service import Sessions
from sallyport.base.clock import iso
from sallyport.base.validation import moment
from sallyport.base.wire import Row
from sallyport.radius.packet import as_text
from sallyport.web.operation import Operations, Plain
from sallyport.web.paging import totals
from sallyport.web.scope import READERS, Caller, Gate

ValueName = Callable[[str, int], str | None]
"""A function that returns the name of an attribute's value, such as "Ethernet" for ("NAS-Port-Type", 15)."""


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
        return Plain({"sessions": [entry(row, value_name) for row in rows], **totals(total)})

    return sessions


def entry(row: SessionRow, value_name: ValueName) -> Row:
    """Return a session in the form of `SessionEntry`."""

    def named(attribute: str, number: int | None) -> str:
        return "" if number is None else value_name(attribute, number) or str(number)

    return {
        "sessionId": row.id,
        "acctSessionId": as_text(row.acct_session_id),
        "userName": row.user_name or "",
        "ip_address": row.ip_address or "",
        "client_ip": row.client_ip or "",
        "device_id": row.device_id,
        "device_name": row.device_name or "",
        "station": row.station or "",
        "calledStation": row.called_station or "",
        "framedIp": row.framed_ip or "",
        "framedIpv6": row.framed_ipv6 or "",
        "framedIpv6Prefix": row.framed_ipv6_prefix or "",
        "delegatedIpv6Prefix": row.delegated_ipv6_prefix or "",
        "nasPort": row.nas_port,
        "nasPortId": row.nas_port_id or "",
        "nasPortType": named("NAS-Port-Type", row.nas_port_type),
        "state": row.state,
        "startedAt": iso(row.started),
        "updatedAt": iso(row.updated),
        "stoppedAt": "" if row.stopped is None else iso(row.stopped),
        "sessionTime": row.session_time,
        "inputOctets": row.input_octets,
        "outputOctets": row.output_octets,
        "inputPackets": row.input_packets,
        "outputPackets": row.output_packets,
        "terminateCause": named("Acct-Terminate-Cause", row.terminate_cause),
    }
