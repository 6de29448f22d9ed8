"""Pages about the sessions of users at the network devices. A session can also be changed or ended there."""

from typing import Final

from sallyport.areas.sessions.session import SessionRow
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.reading import number_at, replies, rights
from sallyport.console.table import Filter, listed, recent, wanted
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
SESSIONS: Final = "/network_device/ListSessions"
STATES: Final = (("true", "live"), ("false", "past"))
FILTERS: Final = (
    Filter("search", "Search"),
    Filter("userName", "User"),
    Filter("live", "State", STATES),
    Filter("deviceId", "Device id"),
    Filter("from", "Began from"),
    Filter("to", "Began before"),
)


def session_columns(domain_id: int) -> tuple[Column, ...]:
    """Return the columns of sessions."""
    return row_columns(
        SessionRow,
        *("startedAt", "userName", "state", "device_name", "station", "framedIp", "sessionTime", "stoppedAt"),
        "terminateCause",
        links={
            "startedAt": lambda row: f"/sessions/{row['sessionId']}?domain={domain_id}",
            "userName": lambda row: person_url(domain_id, str(row["userName"])),
            "device_name": lambda row: f"/devices/{row['device_id']}?domain={domain_id}",
        },
    )


@pages.show("/sessions", "Sessions", roles=READERS, template="sessions.html", menu="Network")
async def sessions(visit: Visit) -> Context:
    """List the sessions of a domain, the newest first."""
    domain, asked = visit.domain(), wanted(visit, FILTERS)
    newer = await recent(visit, SESSIONS, "sessions", "startedAt", ("search",), domain=domain.id)
    table = await listed(
        visit,
        session_columns(domain.id),
        SESSIONS,
        "sessions",
        {**asked, **newer},
        domain=domain.id,
        filters=FILTERS,
        empty="No session yet. Switch on accounting at the devices, and point it to the accounting port.",
        most=1000,
    )
    table.searched_since = str(newer.get("from", ""))
    return {"domain": domain, "table": table}


@pages.show("/sessions/{session}", "Session", roles=READERS, template="session.html")
async def session(visit: Visit) -> Context:
    """Show one session."""
    domain, found = visit.domain(), await _session(visit)
    shown = [column for column in session_columns(domain.id) if column.key not in ("startedAt", "device_name")]
    title = f"Session of {found['userName'] or 'an unnamed user'}"
    return {"title": title, "domain": domain, "session": found, "columns": shown, **rights(visit)}


@pages.show("/sessions/{session}/disconnect", "End a session", roles=OPERATORS, template="disconnect.html")
async def confirm(visit: Visit) -> Context:
    """Show the session that would end."""
    domain, found = visit.domain(), await _session(visit)
    return {
        "sessions": [found] if found["state"] == "live" else [],
        "columns": session_columns(domain.id),
        "results": None,
        "back": f"/sessions/{found['sessionId']}?domain={domain.id}",
    }


@pages.submit("/sessions/{session}/disconnect", roles=OPERATORS, is_slow=True)
async def disconnect(visit: Visit) -> Context:
    """Ask the device to end the session, and show its answer."""
    domain, number = visit.domain(), number_at(visit, "session")
    answer = await visit.call("/network_device/DisconnectSession", {"sessionId": number}, domain=domain.id)
    back = f"/sessions?domain={domain.id}"
    return {"results": entries(answer["results"]), "message": answer["message"], "back": back}


@pages.show("/sessions/{session}/change", "Change a session", roles=OPERATORS, template="session_change.html")
async def ask_change(visit: Visit) -> Context:
    """Show the form of the attributes to set in a session."""
    return await _change(visit, [], "")


@pages.submit("/sessions/{session}/change", roles=OPERATORS, is_slow=True)
async def change(visit: Visit) -> Context:
    """Ask the device to change the session (Change of Authorization), and show its answer."""
    body: Row = {"sessionId": number_at(visit, "session"), "replyAttributes": replies(visit.fields.get("replies", ""))}
    answer = await visit.call("/network_device/ChangeSession", body, domain=visit.domain().id)
    return await _change(visit, entries(answer["results"]), str(answer["message"]))


async def _change(visit: Visit, results: list[Row], message: str) -> Context:
    domain, found = visit.domain(), await _session(visit)
    columns = session_columns(domain.id)
    back = f"/sessions/{found['sessionId']}?domain={domain.id}"
    return {"session": found, "columns": columns, "results": results, "message": message, "back": back}


async def _session(visit: Visit) -> Row:
    """Return the session of the path. Raises NotFound."""
    body: dict[str, JSON] = {"sessionId": number_at(visit, "session")}
    found = entries((await visit.call(SESSIONS, body, domain=visit.domain().id))["sessions"])
    if not found:
        raise NotFound("session not found")
    return found[0]
