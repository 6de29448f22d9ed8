"""Request and answer bodies of imports."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import AliasChoices, Field

from sallyport.areas.directory.imports.job import Job, Removals
from sallyport.base.clock import iso, iso_or_empty
from sallyport.base.model import Model
from sallyport.base.wire import Row
from sallyport.web.bodies import DomainId, Id, Name, OfDomain, ScopedIfGiven

JobId = Annotated[int, Field(description="Id of the import.")]
_READINGS: Final = {"reading", "agent"}


class ImportStatus(ScopedIfGiven):
    """An element of the body of getImportStatus. It selects the imports to list."""

    DirectoryName: Name = Field(
        validation_alias=AliasChoices("DirectoryName", "directoryName"),
        description="Name of a directory, or directoryName of a domain. A domain selects all its directories.",
    )
    domainId: DomainId | None = Field(
        default=None, description="Id of the domain. If it is absent, all domains of the tenant are searched."
    )

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


class JobCounts(Model):
    """How many entries of an import had each result."""

    total: int = Field(description="Number of entries in the source. It is 0 until the number is known.")
    added: int = Field(description="Entries added.")
    updated: int = Field(description="Entries changed.")
    removed: int = Field(description="Entries removed.")
    skipped: int = Field(description="Number of entries that are unchanged, or that are not a person, group or unit.")
    failed: int = Field(description="Number of entries that could not be used.")


class JobError(Model):
    """An entry that could not be used, and the reason."""

    where: str = Field(description="The entry: its line in the file, its distinguished name, or both.")
    message: str = Field(description="Reason.")


class JobEntry(Model):
    """An import with its state, its counts and its errors."""

    jobId: JobId
    domainId: DomainId
    directoryName: str = Field(description="Name of the directory.")
    kind: str = Field(
        description=(
            "Source of the import: ldif (a file), agent (a directory agent), reading (the service reads the "
            "directory), mapping (a changed field mapping), removal (the directory is removed)."
        )
    )
    state: str = Field(description="QUEUED, RUNNING, DONE, FAILED or CANCELLED.")
    fileName: str = Field(
        description="Name of the imported file, or `run N` for entries from a directory agent. It may be empty."
    )
    counts: JobCounts = Field(description="Numbers of entries.")
    errors: list[JobError] = Field(description="First entries that could not be used, at most 20.")
    message: str = Field(description="Reason why the import ended. It may be empty.")
    needsConfirmation: bool = Field(
        description="true: the import has stopped because it would remove most of the directory. confirmImport "
        "continues the import."
    )
    createdAt: str = Field(description="Time of the request, ISO 8601.")
    startedAt: str = Field(description="Time of the start, ISO 8601. It is empty before the start.")
    endedAt: str = Field(description="Time of the end, ISO 8601. It is empty before the end.")


def job_entry(job: Job) -> Row:
    """Return an import as the fields of `JobEntry`."""
    return {
        "jobId": job.id,
        "domainId": job.domain_id,
        "directoryName": job.directory_name,
        "kind": job.kind,
        "state": job.state,
        "fileName": job.file_name,
        "counts": {name: getattr(job, name) for name in JobCounts.model_fields},
        "errors": [{"where": where, "message": message} for where, message in json.loads(job.errors)],
        "message": job.message,
        "needsConfirmation": job.removals == Removals.STOPPED,
        "createdAt": iso(job.created_at),
        "startedAt": iso_or_empty(job.started_at),
        "endedAt": iso_or_empty(job.ended_at),
    }


class JobList(Model):
    """Response body of the operation `getImportStatus`."""

    message: str = Field(description="Result in words.")
    status: str = Field(default="Success", description="Success. The answer to a failed request contains Failure.")
    jobs: list[JobEntry] = Field(description="Last imports of the directories, newest first.")


class OneImport(OfDomain):
    """Request body of the operations `cancelImport` and `confirmImport`."""

    jobId: Id = Field(description="Id of the import, as getImportStatus gives it.")


def ended_readings(jobs: Iterable[Row]) -> list[Row]:
    """Return the jobs that have read a directory and have ended, the newest first. jobs: the entries of
    getImportStatus."""
    return [each for each in jobs if each["kind"] in _READINGS and each["endedAt"]]
