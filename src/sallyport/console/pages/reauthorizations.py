"""Pages about re-authorizations: which live sessions would change, the start of a run, and the answers of devices."""

from collections.abc import Mapping
from typing import Final

from sallyport.areas.reauthorization.reauthorization import Reauthorization, SessionChange
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.pages.reading import number_at, of, rights
from sallyport.console.table import listed
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, READERS

pages = Pages()
PLACE: Final = "/reauthorizations"
EFFECTS: Final[Mapping[JSON, str]] = {
    "disconnect": "the session ends",
    "change": "other attributes are set",
    "undecided": "undecided, nothing is sent",
}
EMPTY: Final = "No re-authorization yet. After a change of rules, roles, stations or groups, see which sessions differ."
NOTHING: Final = "No live session differs from what the current rules would give its login."
CHANGES: Final = row_columns(SessionChange, "userName", "deviceName", "station", "effect", "reason", "before", "after")[
    :7
]
RESULTS: Final = row_columns(
    SessionChange, "userName", "deviceName", "station", "effect", "reason", "outcome", "errorText", "before", "after"
)


@pages.show(PLACE, "Re-authorizations", roles=READERS, template="reauthorizations.html", menu="Sign-in policy")
async def runs(visit: Visit) -> Context:
    """List the last re-authorizations of a domain."""
    domain = visit.domain()
    answer = await visit.call("/ad/ListReauthorizations", {}, domain=domain.id)
    columns = row_columns(
        Reauthorization,
        *("startedAt", "state", "examined", "changed", "done", "waiting", "undecided", "startedBy"),
        links={"startedAt": lambda row: of(f"{PLACE}/{row['reauthorizationId']}", domain)},
    )[:8]
    found = entries(answer["reauthorizations"])
    return {"domain": domain, "runs": found, "columns": columns, "empty": EMPTY, **rights(visit)}


@pages.show(
    f"{PLACE}/start", "Sessions that differ", roles=READERS, template="reauthorization_start.html", is_slow=True
)
async def preview(visit: Visit) -> Context:
    """Show the live sessions that would change."""
    domain = visit.domain()
    found = await visit.call("/ad/PreviewReauthorization", {}, domain=domain.id)
    rows = [_shown(each) for each in entries(found["sessions"])]
    return {"domain": domain, "found": found, "rows": rows, "columns": CHANGES, "empty": NOTHING, **rights(visit)}


@pages.submit(f"{PLACE}/start", roles=ADMINS)
async def start(visit: Visit) -> Redirect:
    """Start a re-authorization."""
    domain = visit.domain()
    body: Row = {"disconnect": bool(visit.fields.get("disconnect"))}
    made = await visit.call("/ad/StartReauthorization", body, domain=domain.id)
    return Redirect(of(f"{PLACE}/{made['reauthorizationId']}", domain), "The re-authorization is started.")


@pages.show(PLACE + "/{run}", "Re-authorization", roles=READERS, template="reauthorization.html")
async def run(visit: Visit) -> Context:
    """Show a re-authorization, and its sessions with the answers of the devices."""
    domain, found = visit.domain(), await _run(visit)
    body: Row = {"reauthorizationId": found["reauthorizationId"]}
    path = "/ad/ListReauthorizedSessions"
    empty = "No session differs so far."
    table = await listed(visit, RESULTS, path, "sessions", body, domain=domain.id, empty=empty, most=1000)
    table.rows = [_shown(each) for each in table.rows]
    return {"domain": domain, "run": found, "table": table, **rights(visit)}


@pages.show(PLACE + "/{run}/stop", "Stop a re-authorization", roles=ADMINS, template="confirm.html")
async def confirm(visit: Visit) -> Context:
    """Show the re-authorization that would stop."""
    domain, found = visit.domain(), await _run(visit)
    return {
        "text": "Requests that were not sent yet are not sent any more. Sessions that have changed stay changed.",
        "facts": [("Domain", domain.name), ("Waiting requests", found["waiting"])],
        "button": "Stop the re-authorization",
        "back": of(f"{PLACE}/{found['reauthorizationId']}", domain),
    }


@pages.submit(PLACE + "/{run}/stop", roles=ADMINS)
async def stop(visit: Visit) -> Redirect:
    """Stop a re-authorization."""
    domain, number = visit.domain(), number_at(visit, "run")
    await visit.call("/ad/StopReauthorization", {"reauthorizationId": number}, domain=domain.id)
    return Redirect(of(f"{PLACE}/{number}", domain), "The re-authorization is stopped.")


def _shown(change: Row) -> Row:
    lines: Row = {name: [*str(change[name]).splitlines()] for name in ("before", "after")}
    return {**change, **lines, "effect": EFFECTS[change["effect"]]}


async def _run(visit: Visit) -> Row:
    """Return the re-authorization of the path. Raises NotFound."""
    number = number_at(visit, "run")
    answer = await visit.call("/ad/ListReauthorizations", {}, domain=visit.domain().id)
    found = [each for each in entries(answer["reauthorizations"]) if each["reauthorizationId"] == number]
    if not found:
        raise NotFound("re-authorization not found")
    return found[0]
