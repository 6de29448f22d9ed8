"""Readings and imports of directories: their start, progress, confirmation and cancellation."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.directories.finding import (
    address_of,
    all_directories,
    directory_at,
)
from sallyport.console.pages.reading import number, of, one, rights
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
STATUS: Final = "/api/v1/getImportStatus"
OPEN: Final = ("QUEUED", "RUNNING")
MAX_NAMED: Final = 100
"""Directories in one request for the state of imports."""
STATES: Final = {
    "QUEUED": "waits", "RUNNING": "runs", "DONE": "done", "FAILED": "failed", "CANCELLED": "cancelled",
}  # fmt: skip
JOB_KINDS: Final = {
    "ldif": "LDIF file",
    "agent": "run of the agent",
    "reading": "reading",
    "mapping": "new mapping",
    "removal": "removal",
}
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


@pages.show("/directories/{directory}/read", "Read a directory", roles=OPERATORS, template="directory_read.html")
async def ask_to_read(visit: Visit) -> Context:
    """Show the form that starts the reading of a directory."""
    domain = visit.domain()
    return {"domain": domain, "directory": await directory_at(visit, domain)}


@pages.submit("/directories/{directory}/read", roles=OPERATORS)
async def read(visit: Visit) -> Redirect:
    """Queue an import that reads the directory."""
    domain = visit.domain()
    found = await directory_at(visit, domain)
    body: Row = {"directoryName": found["directoryName"], "full": bool(visit.fields.get("full"))}
    queued = await visit.call("/api/v1/directory/sync", body, domain=domain.id)
    return Redirect(of(f"/directories/imports/{queued['jobId']}", domain), "The reading is queued.")


@pages.show("/directories/imports/add", "Import an LDIF file", roles=OPERATORS, template="directory_ldif.html")
async def new_import(visit: Visit) -> Context:
    """Show the form for an LDIF file."""
    return {"domain": visit.domain(), "directory": visit.query.get("directory", "")}


@pages.submit("/directories/imports/add", roles=OPERATORS, has_file=True)
async def add_import(visit: Visit) -> Redirect:
    """Store the file, and queue its import."""
    domain = visit.domain()
    queued = await visit.upload("/api/v1/integrations/directory/importLdif")
    job_id = str(queued["message"]).rpartition(" ")[2]
    return Redirect(of(f"/directories/imports/{job_id}", domain), "The import is queued.")


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
@pages.show(
    "/directories/imports/{job}/confirm", "Continue an import", roles=OPERATORS, template="directory_confirm.html"
)
async def ask(visit: Visit) -> Context:
    """Show the import that would be cancelled, or that waits for a confirmation, with what it would remove."""
    domain = visit.domain()
    return {"domain": domain, "job": await _job(visit, domain)}


@pages.submit("/directories/imports/{job}/cancel", roles=OPERATORS)
async def cancel(visit: Visit) -> Redirect:
    """Cancel an import."""
    return await _decided(visit, "/api/v1/cancelImport", "The import is cancelled.")


@pages.submit("/directories/imports/{job}/confirm", roles=OPERATORS)
async def confirm_import(visit: Visit) -> Redirect:
    """Continue an import that would remove most of its directory."""
    return await _decided(visit, "/api/v1/confirmImport", "The import continues.")


async def _decided(visit: Visit, path: str, notice: str) -> Redirect:
    """Run an operation on the import of the path, and return to the page of the import."""
    domain, job_id = visit.domain(), number(visit.at["job"], "import")
    await visit.call(path, {"jobId": job_id}, domain=domain.id)
    return Redirect(of(f"/directories/imports/{job_id}", domain), notice)


async def jobs_of(visit: Visit, domain: Domain, names: list[str]) -> list[Row]:
    """Return the last imports of directories, the newest first."""
    found = list[Row]()
    for at in range(0, len(names), MAX_NAMED):
        body = [{"DirectoryName": name} for name in names[at : at + MAX_NAMED]]
        found += entries((await visit.call(STATUS, body, domain=domain.id))["jobs"])
    found.sort(key=lambda each: -int(str(each["jobId"])))
    return [_job_row(each, domain) for each in found]


async def _job(visit: Visit, domain: Domain) -> Row:
    found = {str(each["directoryName"]): address_of(each, domain) for each in await all_directories(visit, domain)}
    job = one(await jobs_of(visit, domain, list(found)), "jobId", visit.at["job"], "import")
    return {**job, "directoryAddress": found.get(str(job["directoryName"]))}


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
