"""Pages about the signed-in person: the sessions that the person may end."""

from functools import partial

from sallyport.areas.signin.person import Session
from sallyport.base.clock import iso
from sallyport.base.fair import in_parts
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.reading import number_at
from sallyport.console.table import SIZE, Table, is_export, page_of
from sallyport.console.visit import Pages, Visit
from sallyport.web.bodies import LONG
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import INSTALLATIONS, READERS

pages = Pages()
EVERYONE = READERS | INSTALLATIONS
END = "/account/sessions/{session}/end"
COLUMNS = (
    Column("id", "Session", link=lambda row: f"/account/sessions/{row['id']}/end"),
    Column("name", "Name"),
    Column("role", "Role"),
    Column("from", "From", "code"),
    Column("browser", "Browser", is_chosen=False),
    Column("began", "Signed in", "time"),
    Column("seen", "Last request", "age"),
    Column("ends", "Ends", "time"),
    Column("this", "This session", "flag"),
)


@pages.show("/account", "Your sessions", roles=EVERYONE, template="account.html", menu="Administration")
async def account(visit: Visit) -> Context:
    """List the sessions of the console that the person may end."""
    page, sort = page_of(visit), visit.query.get("sort", "")
    is_ascending = bool(sort) and not sort.startswith("-")
    size = LONG if is_export(visit) else SIZE
    found, total = await visit.services.sessions.visible_to(
        visit.person, sort.removeprefix("-"), descending=not is_ascending, offset=(page - 1) * size, limit=size
    )
    rows = await in_parts(partial(_row, visit=visit), found)
    next_url = visit.url(page=page + 1) if is_export(visit) and page * size < total else ""
    return {"table": Table(visit, COLUMNS, rows, total, page, size, can_sort=True, next_url=next_url)}


@pages.show(END, "End a session", roles=EVERYONE, template="session_end.html")
async def confirm(visit: Visit) -> Context:
    """Show the session that would end."""
    return {"session": _row(await _session(visit), visit)}


@pages.submit(END, roles=EVERYONE)
async def end(visit: Visit) -> Redirect:
    """End the session."""
    session = await _session(visit)
    await visit.services.sessions.end(session.id, visit.person)
    return Redirect("/account", f"The session of {session.name} from {session.source} has ended.")


async def _session(visit: Visit) -> Session:
    return await visit.services.sessions.visible(visit.person, number_at(visit, "session"))


def _row(each: Session, visit: Visit) -> Row:
    return {
        "id": each.id,
        "name": each.name,
        "role": each.role,
        "from": each.source,
        "browser": each.agent,
        "began": iso(each.created_at),
        "seen": iso(each.seen_at),
        "ends": iso(each.ends_at),
        "this": each.id == visit.person.session.id,
    }
