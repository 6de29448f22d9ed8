"""Directories: the list, the page of a directory, and its removal."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.directories.finding import (
    SEARCH,
    address_of,
    all_directories,
    directory_at,
    schedule_of,
    schedules_of,
)
from sallyport.console.pages.directories.imports import JOBS, jobs_of
from sallyport.console.pages.reading import every, of, rights
from sallyport.console.table import complete
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
KINDS: Final = {
    "ldap": "LDAP or Active Directory",
    "graph": "Entra ID",
    "okta": "Okta",
    "agent": "Directory agent",
    "ldif": "LDIF files",
}
READ: Final = frozenset({"ldap", "graph", "okta"})
"""The kinds of directories that the service reads itself."""
COLUMNS: Final = (
    Column("directoryName", "Directory", link=lambda row: str(row["address"])),
    Column("kindText", "Kind"),
    Column("appUrl", "URL", "code"),
    Column("when", "Schedule"),
    Column("nextRun", "Next reading", "time"),
    Column("readAt", "Age of the data", "age"),
    Column("lastState", "Last import"),
    Column("lastEnd", "Ended", "age"),
    Column("hasSecret", "Secret stored", "flag", is_chosen=False),
    Column("createdAt", "Added", "time", is_chosen=False),
)
MAPPED: Final = (Column("field", "Field"), Column("attribute", "Attributes", "code"), Column("groupName", "Only group"))
EMPTY: Final = (
    "No directory yet. Add your Active Directory, LDAP server, Entra ID or Okta, so that rules can use its groups; or "
    "import LDIF files."
)


@pages.show("/directories", "Directories", roles=READERS, template="directories.html", menu="People")
async def directories(visit: Visit) -> Context:
    """List the directories of a domain with their schedules, and the last imports."""
    domain = visit.domain()
    found = await all_directories(visit, domain)
    schedules = {str(each["directoryName"]): each for each in await schedules_of(visit, domain)}
    jobs = await jobs_of(visit, domain, [str(each["directoryName"]) for each in found])
    rows = [_row(each, domain, schedules.get(str(each["directoryName"])), jobs) for each in found]
    return {
        "domain": domain,
        "table": complete(visit, COLUMNS, rows, filters=SEARCH, empty=EMPTY),
        "jobs": jobs[:20],
        "job_columns": JOBS,
        **rights(visit),
    }


@pages.show("/directories/{directory}", "Directory", roles=READERS, template="directory.html")
async def directory(visit: Visit) -> Context:
    """Show a directory with its settings, its schedule, its mapping and its imports."""
    domain = visit.domain()
    found = await directory_at(visit, domain)
    name = str(found["directoryName"])
    schedule = await schedule_of(visit, domain, found)
    mappings = await every(visit, "/api/v1/mapping/list", "mappings", {}, domain=domain.id)
    mapped = [
        {"field": field, "attribute": attribute, "groupName": each["groupName"]}
        for each in mappings
        if each["directoryName"] == name and isinstance(each["fieldMappings"], dict)
        for field, attribute in sorted(each["fieldMappings"].items())
    ]
    jobs = await jobs_of(visit, domain, [name])
    return {
        "title": f"Directory {name}",
        "domain": domain,
        "directory": _row(found, domain, schedule, jobs),
        "is_read": found["kind"] in READ,
        "schedule": schedule,
        "mapped": mapped,
        "mapped_columns": MAPPED,
        "jobs": jobs,
        "job_columns": JOBS,
        **rights(visit),
    }


@pages.show("/directories/{directory}/remove", "Remove a directory", roles=OPERATORS, template="directory_remove.html")
async def confirm(visit: Visit) -> Context:
    """Show what would be removed."""
    domain = visit.domain()
    return {"domain": domain, "directory": _row(await directory_at(visit, domain), domain, None, [])}


@pages.submit("/directories/{directory}/remove", roles=OPERATORS)
async def remove(visit: Visit) -> Redirect:
    """Remove a directory in the background."""
    domain = visit.domain()
    found = await directory_at(visit, domain)
    await visit.call("/api/v1/deleteDirectoryConfig", [{"directoryName": found["directoryName"]}], domain=domain.id)
    return Redirect(of("/directories", domain), f"{found['directoryName']} is being removed in the background.")


def _row(directory: Row, domain: Domain, schedule: Row | None, jobs: list[Row]) -> Row:
    last = next((each for each in jobs if each["directoryName"] == directory["directoryName"]), None)
    when = "on request" if directory["kind"] in READ else ""
    if schedule is not None:
        times = schedule["timesOfDay"]
        at = f"at {', '.join(map(str, times))} {schedule['timeZone']}" if isinstance(times, list) and times else ""
        when = at or f"every {schedule['everyMinutes']} min"
    return {
        **directory,
        "address": address_of(directory, domain),
        "kindText": KINDS[str(directory["kind"])],
        "when": when,
        "nextRun": None if schedule is None else schedule["nextRun"],
        "lastState": None if last is None else last["stateText"],
        "lastEnd": None if last is None else last["endedAt"],
    }
