"""Directories: their settings, imports, schedules, field mappings, and the people and groups that were imported."""

from typing import Final

from sallyport.base.command import entries
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON, Row
from sallyport.console.declare import Context, Pages, Redirect
from sallyport.console.pages.reading import every, lines, number, of, one, rights
from sallyport.console.table import Column, Filter, complete, listed
from sallyport.console.visit import Visit
from sallyport.domains.domain import Domain
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
STATUS: Final = "/api/v1/getImportStatus"
OPEN: Final = ("QUEUED", "RUNNING")
MOST_NAMED: Final = 100
"""Directories in one request for the state of imports."""
STATES: Final = {
    "QUEUED": "waits", "RUNNING": "runs", "DONE": "done", "FAILED": "failed", "CANCELLED": "cancelled",
}  # fmt: skip
KINDS: Final = {
    "ldap": "LDAP or Active Directory",
    "graph": "Entra ID",
    "okta": "Okta",
    "agent": "Directory agent",
    "ldif": "LDIF files",
}
JOB_KINDS: Final = {
    "ldif": "LDIF file",
    "agent": "run of the agent",
    "reading": "reading",
    "mapping": "new mapping",
    "removal": "removal",
}
READ: Final = frozenset({"ldap", "graph", "okta"})
"""The kinds of directories that the service reads itself."""
COLUMNS: Final = (
    Column("directoryName", "Directory", link=lambda row: str(row["address"])),
    Column("kindText", "Kind"),
    Column("appUrl", "URL", "code"),
    Column("when", "Schedule"),
    Column("nextRun", "Next reading", "time"),
    Column("lastState", "Last import"),
    Column("lastEnd", "Ended", "time"),
    Column("hasSecret", "Secret stored", "flag", is_chosen=False),
    Column("createdAt", "Added", "time", is_chosen=False),
)
JOBS: Final = (
    Column("jobId", "Import", "number", link=lambda row: str(row["address"])),
    Column("directoryName", "Directory"),
    Column("kindText", "Kind"),
    Column("stateText", "State"),
    Column("counted", "Entries"),
    Column("message", "Note"),
    Column("createdAt", "Requested", "time"),
    Column("endedAt", "Ended", "time"),
)
ERRORS: Final = (Column("where", "Entry", "code"), Column("message", "Reason"))
MAPPED: Final = (Column("field", "Field"), Column("attribute", "Attributes", "code"), Column("groupName", "Only group"))
COMPARED: Final = (
    Column("dn", "Person", "code"),
    Column("field", "Field"),
    Column("before", "Now"),
    Column("after", "With this mapping"),
)
PEOPLE: Final = (
    Column("userName", "User name"),
    Column("displayName", "Name"),
    Column("email", "Mail"),
    Column("status", "Account"),
    Column("groups", "Groups"),
    Column("directoryName", "Directory"),
    Column("upn", "userPrincipalName", is_chosen=False),
    Column("dn", "DN", "code", is_chosen=False),
    Column("source", "Kind", is_chosen=False),
)
GROUPS: Final = (
    Column("groupName", "Group", link=lambda row: str(row["address"])),
    Column("memberCount", "Direct members", "number"),
    Column("directoryName", "Directory"),
    Column("dn", "DN", "code"),
    Column("groupId", "Id", "number", is_chosen=False),
)
SEARCH: Final = (Filter("search", "Name"),)
EMPTY: Final = (
    "No directory yet. Add your Active Directory, LDAP server, Entra ID or Okta, so that rules can use its groups; or "
    "import LDIF files with: sallyport directory import-ldif FILE --domain DOMAIN"
)
TEXTS: Final = ("kind", "appUrl", "baseDN", "filter", "bindDN", "accountName", "tenant", "clientId", "caCertificate")


@pages.show("/directories", "Directories", roles=READERS, template="directories.html", menu="People")
async def directories(visit: Visit) -> Context:
    """List the directories of a domain with their schedules, and the last imports."""
    domain = visit.domain()
    found = await _all(visit, domain)
    schedules = {str(each["directoryName"]): each for each in await _schedules(visit, domain)}
    jobs = await _jobs(visit, domain, [str(each["directoryName"]) for each in found])
    rows = [_row(each, domain, schedules.get(str(each["directoryName"])), jobs) for each in found]
    return {
        "domain": domain,
        "table": complete(visit, COLUMNS, rows, filters=SEARCH, empty=EMPTY),
        "jobs": jobs[:20],
        "job_columns": JOBS,
        **rights(visit),
    }


@pages.show("/directories/people", "People of the directories", roles=READERS, template="directory_people.html")
async def people(visit: Visit) -> Context:
    """List the people of all directories of a domain. If the address contains a group, list only the people of this
    group."""
    domain, group = visit.domain(), visit.query.get("group", "")
    body: Row = {"search": visit.query.get("search", "")}
    path = "/ad/GetAllUsersByGroup" if group else "/ad/GetAllAdUsers"
    if group:
        body["groupId"] = number(group, "group")
    empty = "No person yet: import a directory."
    table = await listed(visit, PEOPLE, path, "users", body, domain=domain.id, filters=SEARCH, empty=empty, most=1000)
    table.kept = ("domain", "group")
    table.rows = [{**each, "groups": each["groups"] or None} for each in table.rows]
    return {"domain": domain, "table": table, "group": group}


@pages.show("/directories/groups", "Groups of the directories", roles=READERS, template="directory_groups.html")
async def groups(visit: Visit) -> Context:
    """List the groups of a domain's directories."""
    domain = visit.domain()
    body: Row = {"search": visit.query.get("search", "")}
    path = "/ad/GetAllGroupsByDomain"
    empty = "No group yet: import a directory."
    table = await listed(visit, GROUPS, path, "groups", body, domain=domain.id, filters=SEARCH, empty=empty, most=1000)
    members = of("/directories/people", domain)
    table.rows = [{**each, "address": f"{members}&group={each['groupId']}"} for each in table.rows]
    return {"domain": domain, "table": table}


# --- settings ---------------------------------------------------------------------------------------------------------


@pages.show("/directories/add", "Add a directory", roles=OPERATORS, template="directory_form.html")
async def new(visit: Visit) -> Context:
    """Show the form of a new directory."""
    return _form(visit.domain(), None)


@pages.submit("/directories/add", roles=OPERATORS)
async def add(visit: Visit) -> Redirect | Context:
    """Test the settings of a new directory, and add it if it can be read."""
    domain = visit.domain()
    name = visit.fields.get("directoryName", "").strip()
    known = [str(each["directoryName"]).casefold() for each in await _all(visit, domain)]
    if name.casefold() in known:
        raise Invalid.about("the domain already has a directory of this name", "directoryName")
    tried = await _tried(visit, domain, name)
    if tried is not None:
        return {**_form(domain, None), "tried": tried}
    await visit.call("/api/v1/saveDirectoryConfig", [_body(visit, name)], domain=domain.id)
    return Redirect(of("/directories", domain), f"The directory {name} is added. Read it now, or set a schedule.")


@pages.show("/directories/{directory}", "Directory", roles=READERS, template="directory.html")
async def directory(visit: Visit) -> Context:
    """Show a directory with its settings, its schedule, its mapping and its imports."""
    domain = visit.domain()
    found = await _directory(visit, domain)
    name = str(found["directoryName"])
    schedule = next((each for each in await _schedules(visit, domain) if each["directoryName"] == name), None)
    mappings = await every(visit, "/api/v1/mapping/list", "mappings", {}, domain=domain.id)
    mapped = [
        {"field": field, "attribute": attribute, "groupName": each["groupName"]}
        for each in mappings
        if each["directoryName"] == name and isinstance(each["fieldMappings"], dict)
        for field, attribute in sorted(each["fieldMappings"].items())
    ]
    jobs = await _jobs(visit, domain, [name])
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


@pages.show("/directories/{directory}/edit", "Settings of a directory", roles=OPERATORS, template="directory_form.html")
async def edit(visit: Visit) -> Context:
    """Show the form of the settings."""
    domain = visit.domain()
    found = await _directory(visit, domain)
    return {**_form(domain, found), "title": f"Settings of {found['directoryName']}"}


@pages.submit("/directories/{directory}/edit", roles=OPERATORS)
async def change(visit: Visit) -> Redirect | Context:
    """Test the settings, and save them if the directory can be read with them."""
    domain = visit.domain()
    found = await _directory(visit, domain)
    name = str(found["directoryName"])
    tried = await _tried(visit, domain, name)
    if tried is not None:
        return {**_form(domain, found), "title": f"Settings of {name}", "tried": tried}
    await visit.call("/api/v1/saveDirectoryConfig", [_body(visit, name)], domain=domain.id)
    return Redirect(_address(found, domain), "The settings are saved. The next reading uses them.")


@pages.show("/directories/{directory}/remove", "Remove a directory", roles=OPERATORS, template="directory_remove.html")
async def confirm(visit: Visit) -> Context:
    """Show what would be removed."""
    domain = visit.domain()
    return {"domain": domain, "directory": _row(await _directory(visit, domain), domain, None, [])}


@pages.submit("/directories/{directory}/remove", roles=OPERATORS)
async def remove(visit: Visit) -> Redirect:
    """Remove a directory in the background."""
    domain = visit.domain()
    found = await _directory(visit, domain)
    await visit.call("/api/v1/deleteDirectoryConfig", [{"directoryName": found["directoryName"]}], domain=domain.id)
    return Redirect(of("/directories", domain), f"{found['directoryName']} is being removed in the background.")


# --- readings and imports ---------------------------------------------------------------------------------------------


@pages.show("/directories/{directory}/read", "Read a directory", roles=OPERATORS, template="directory_read.html")
async def ask_to_read(visit: Visit) -> Context:
    """Show the form that starts the reading of a directory."""
    domain = visit.domain()
    return {"domain": domain, "directory": await _directory(visit, domain)}


@pages.submit("/directories/{directory}/read", roles=OPERATORS)
async def read(visit: Visit) -> Redirect:
    """Queue an import that reads the directory."""
    domain = visit.domain()
    found = await _directory(visit, domain)
    body: Row = {"directoryName": found["directoryName"], "full": bool(visit.fields.get("full"))}
    queued = await visit.call("/api/v1/directory/sync", body, domain=domain.id)
    return Redirect(of(f"/directories/imports/{queued['jobId']}", domain), "The reading is queued.")


@pages.show(
    "/directories/{directory}/schedule", "Schedule of a directory", roles=OPERATORS, template="directory_schedule.html"
)
async def timing(visit: Visit) -> Context:
    """Show the form of the schedule."""
    domain = visit.domain()
    found = await _directory(visit, domain)
    schedules = await _schedules(visit, domain)
    present = next((each for each in schedules if each["directoryName"] == found["directoryName"]), None)
    return {"domain": domain, "directory": found, "schedule": present}


@pages.submit("/directories/{directory}/schedule", roles=OPERATORS)
async def set_timing(visit: Visit) -> Redirect:
    """Set the schedule."""
    domain, fields = visit.domain(), visit.fields
    found = await _directory(visit, domain)
    body: Row = {
        "directoryName": found["directoryName"],
        "everyMinutes": fields.get("everyMinutes") or 0,
        "timesOfDay": lines(fields.get("timesOfDay", "").replace(",", "\n")),
        "timeZone": fields.get("timeZone") or "UTC",
        "fullEvery": fields.get("fullEvery") or 24,
    }
    answer = await visit.call("/api/v1/directory/setSchedule", body, domain=domain.id)
    text = "The schedule is set." if answer["nextRun"] else "The directory is read on request only."
    return Redirect(_address(found, domain), text)


@pages.show("/directories/imports/{job}", "Import", roles=READERS, template="directory_job.html", is_quiet=True)
async def job(visit: Visit) -> Context:
    """Show an import with its progress and the entries that could not be used."""
    domain = visit.domain()
    found = await _job(visit, domain)
    return {
        "title": f"Import {found['jobId']}",
        "domain": domain,
        "job": found,
        "is_open": found["state"] in OPEN,
        "errors": entries(found["errors"]),
        "error_columns": ERRORS,
        **rights(visit),
    }


@pages.show("/directories/imports/{job}/cancel", "Cancel an import", roles=OPERATORS, template="directory_cancel.html")
async def ask_to_cancel(visit: Visit) -> Context:
    """Show the import that would be cancelled."""
    domain = visit.domain()
    return {"domain": domain, "job": await _job(visit, domain)}


@pages.submit("/directories/imports/{job}/cancel", roles=OPERATORS)
async def cancel(visit: Visit) -> Redirect:
    """Cancel an import."""
    domain, job_id = visit.domain(), number(visit.at["job"], "import")
    await visit.call("/api/v1/cancelImport", {"jobId": job_id}, domain=domain.id)
    return Redirect(of(f"/directories/imports/{job_id}", domain), "The import is cancelled.")


@pages.show(
    "/directories/imports/{job}/confirm", "Continue an import", roles=OPERATORS, template="directory_confirm.html"
)
async def ask_to_confirm(visit: Visit) -> Context:
    """Show an import that waits for a confirmation, and what it would remove."""
    domain = visit.domain()
    return {"domain": domain, "job": await _job(visit, domain)}


@pages.submit("/directories/imports/{job}/confirm", roles=OPERATORS)
async def confirm_import(visit: Visit) -> Redirect:
    """Continue an import that would remove most of its directory."""
    domain, job_id = visit.domain(), number(visit.at["job"], "import")
    await visit.call("/api/v1/confirmImport", {"jobId": job_id}, domain=domain.id)
    return Redirect(of(f"/directories/imports/{job_id}", domain), "The import continues.")


# --- mappings ---------------------------------------------------------------------------------------------------------


@pages.show("/directories/{directory}/mapping", "Field mapping", roles=OPERATORS, template="directory_mapping.html")
async def mapping(visit: Visit) -> Context:
    """Show the form of the mapping."""
    domain = visit.domain()
    return await _mapping(visit, domain)


@pages.submit("/directories/{directory}/mapping", roles=OPERATORS)
async def set_mapping(visit: Visit) -> Redirect | Context:
    """Save the field mapping. If the person asks for a preview, only show how it would change ten people."""
    domain, fields = visit.domain(), visit.fields
    shown = await _mapping(visit, domain)
    found = await _directory(visit, domain)
    taken: dict[str, JSON] = {}
    for line in map(str, lines(fields.get("fieldMappings", ""))):
        field, sign, attribute = line.partition("=")
        if not sign:
            raise Invalid.about(f'"{line}" is not understood: write FIELD=ATTRIBUTE', "fieldMappings")
        taken[field.strip()] = attribute.strip()
    body: Row = {"directoryName": found["directoryName"], "fieldMappings": taken}
    if group := fields.get("group"):
        body = {"groupID": number(group, "group"), "fieldMappings": taken}
    if fields.get("do") == "preview":
        answer = await visit.call("/api/v1/mapping/preview", body, domain=domain.id)
        return {**shown, "compared": _compared(entries(answer["users"]))}
    body["apply"] = bool(fields.get("apply"))
    await visit.call("/api/v1/reConfigure", body, domain=domain.id)
    when = "It is applied to the stored people now." if body["apply"] else "The next import uses it."
    return Redirect(_address(found, domain), f"The mapping is saved. {when}")


async def _mapping(visit: Visit, domain: Domain) -> dict[str, object]:
    found = await _directory(visit, domain)
    stored = found["fieldMappings"]
    pairs = sorted(stored.items()) if isinstance(stored, dict) else []
    groups = await every(visit, "/ad/GetAllGroupsByDomain", "groups", {}, domain=domain.id)
    own = [each for each in groups if each["directoryName"] == found["directoryName"]]
    choices = [("", "everyone in the directory"), *((str(each["groupId"]), str(each["groupName"])) for each in own)]
    return {
        "title": f"Field mapping of {found['directoryName']}",
        "domain": domain,
        "directory": found,
        "text": "\n".join(f"{field}={attribute}" for field, attribute in pairs),
        "groups": choices[:MOST_NAMED],
        "compared": None,
        "compared_columns": COMPARED,
    }


def _compared(users: list[Row]) -> list[Row]:
    """Return a row for each field that a mapping would change, with the values before and after."""
    found = list[Row]()
    for user in users:
        before, after = user["before"], user["after"]
        if isinstance(before, dict) and isinstance(after, dict):
            found += [
                {"dn": user["dn"], "field": field, "before": before.get(field), "after": after.get(field)}
                for field in sorted({*before, *after})
                if before.get(field) != after.get(field)
            ]
    return found


# --- rows -------------------------------------------------------------------------------------------------------------


async def _all(visit: Visit, domain: Domain) -> list[Row]:
    return await every(visit, "/api/v1/directory/list", "directories", {}, domain=domain.id)


async def _directory(visit: Visit, domain: Domain) -> Row:
    return one(await _all(visit, domain), "directoryId", visit.at["directory"], "directory")


async def _schedules(visit: Visit, domain: Domain) -> list[Row]:
    return entries((await visit.call("/api/v1/directory/listSchedules", domain=domain.id))["schedules"])


async def _jobs(visit: Visit, domain: Domain, names: list[str]) -> list[Row]:
    """Return the last imports of directories, the newest first."""
    found = list[Row]()
    for at in range(0, len(names), MOST_NAMED):
        body = [{"DirectoryName": name} for name in names[at : at + MOST_NAMED]]
        found += entries((await visit.call(STATUS, body, domain=domain.id))["jobs"])
    found.sort(key=lambda each: -int(str(each["jobId"])))
    return [_job_row(each, domain) for each in found]


async def _job(visit: Visit, domain: Domain) -> Row:
    names = [str(each["directoryName"]) for each in await _all(visit, domain)]
    return one(await _jobs(visit, domain, names), "jobId", visit.at["job"], "import")


def _job_row(job: Row, domain: Domain) -> Row:
    counts = job["counts"] if isinstance(job["counts"], dict) else {}
    named = ("added", "updated", "removed", "failed")
    parts = [f"{counts[name]} {name}" for name in named if counts.get(name)]
    waits = job["needsConfirmation"]
    return {
        **job,
        "address": of(f"/directories/imports/{job['jobId']}", domain),
        "kindText": JOB_KINDS.get(str(job["kind"]), str(job["kind"])),
        "stateText": "needs a confirmation" if waits else STATES[str(job["state"])],
        "counted": ", ".join(parts) or ("unchanged" if job["state"] == "DONE" else ""),
    }


def _address(directory: Row, domain: Domain) -> str:
    return of(f"/directories/{directory['directoryId']}", domain)


def _row(directory: Row, domain: Domain, schedule: Row | None, jobs: list[Row]) -> Row:
    last = next((each for each in jobs if each["directoryName"] == directory["directoryName"]), None)
    when = "on request" if directory["kind"] in READ else ""
    if schedule is not None:
        times = schedule["timesOfDay"]
        at = f"at {', '.join(map(str, times))} {schedule['timeZone']}" if isinstance(times, list) and times else ""
        when = at or f"every {schedule['everyMinutes']} min"
    return {
        **directory,
        "address": _address(directory, domain),
        "kindText": KINDS[str(directory["kind"])],
        "when": when,
        "nextRun": None if schedule is None else schedule["nextRun"],
        "lastState": None if last is None else last["stateText"],
        "lastEnd": None if last is None else last["endedAt"],
    }


# --- the form ---------------------------------------------------------------------------------------------------------


def _form(domain: Domain, directory: Row | None) -> dict[str, object]:
    settings = directory["settings"] if directory is not None and isinstance(directory["settings"], dict) else {}
    stored = {"kind": "", "appUrl": "", "accountName": "", **(directory or {}), **settings}
    values = {name: stored.get(name, "") for name in TEXTS}
    return {
        "domain": domain,
        "directory": directory,
        "values": {**values, "startTls": settings.get("startTls") == "true"},
        "kinds": [("", "by the URL"), *KINDS.items()],
        "tried": None,
    }


def _body(visit: Visit, name: str) -> Row:
    """Return the submitted settings. If a secret in the form is empty, the stored secret stays."""
    fields = visit.fields
    body: Row = {"directoryName": name, **{key: fields.get(key, "") for key in TEXTS if key != "kind"}}
    body["startTls"] = bool(fields.get("startTls"))
    body["appUrl"] = " ".join(str(body["appUrl"]).split())
    if fields.get("kind"):
        body["kind"] = fields["kind"]
    if fields.get("secret"):
        body["bindPassword"] = fields["secret"]
    return body


async def _tried(visit: Visit, domain: Domain, name: str) -> Row | None:
    """Test the submitted settings, and return the result to show. Return None if the caller must save the settings.

    They are saved if the test succeeds, or if the person wants to save them without a test. If the person asks only for
    a test, the result is always returned.
    """
    do, kind = visit.fields.get("do"), visit.fields.get("kind", "")
    if do == "save" or kind in ("agent", "ldif"):
        return None
    tried = await visit.call("/api/v1/directory/check", _body(visit, name), domain=domain.id)
    return None if tried["usable"] and do != "test" else tried
