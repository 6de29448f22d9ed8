"""The directories of people and groups: past readings and schedules."""

from collections.abc import Iterator
from typing import Final

from cryptography import x509

from sallyport.base.clock import SECOND, from_iso, now_us
from sallyport.base.command import entries
from sallyport.base.wire import Row
from sallyport.certs.authority import common_name
from sallyport.certs.directory import present
from sallyport.cli.checks.certificates import of_time
from sallyport.cli.checks.model import Examination, Finding, ok, problem, warning

LATE_US: Final = 600 * SECOND
"""A due reading is requested within half a minute."""
STATUS: Final = "/api/v1/getImportStatus"
_READINGS: Final = {"reading", "agent"}


def check_directories(examination: Examination) -> Iterator[Finding]:
    """The last reading of each directory succeeded, none is overdue, and its certificates are valid."""
    for domain in examination.domains:
        number = str(domain["domainId"])
        line = examination.line
        listed = line.run("/api/v1/directory/listSchedules", domain=number)
        schedules = {each["directoryName"]: each for each in entries(listed["schedules"])}
        for each in line.rows("directory.list", domain=number):
            name = f"{domain['domainName']}: {each['directoryName']}"
            wanted: Row = {"DirectoryName": each["directoryName"]}
            yield _of_readings(name, each, entries(line.run(STATUS, [wanted], domain=number)["jobs"]))
            schedule = schedules.get(each["directoryName"])
            if schedule is not None and examination.process_id is not None:
                yield from of_schedule(name, schedule)
            yield from _of_authorities(name, each)


def _of_readings(name: str, directory: Row, jobs: list[Row]) -> Finding:
    """Return the result of the last reading. A directory that is filled from files is not read."""
    if directory["kind"] == "ldif":
        return ok(f"{name}: from files")
    over = [each for each in jobs if each["kind"] in _READINGS and each["endedAt"]]
    if not over:
        how = "its agent has sent nothing yet" if directory["kind"] == "agent" else "sallyport directory sync"
        return warning(f"{name}: never read: {how}")
    last = over[0]
    if last["state"] != "FAILED":
        return ok(f"{name}: read at {last['endedAt']}")
    read = next((f"at {each['endedAt']}" for each in over if each["state"] == "DONE"), "never, as far as is known")
    return problem(f"{name}: import {last['jobId']} failed at {last['endedAt']}: {last['message']}; last read {read}")


def of_schedule(name: str, schedule: Row) -> Iterator[Finding]:
    """Whether a reading is overdue. schedule: an entry of listSchedules."""
    if from_iso(str(schedule["nextRun"])) < now_us() - LATE_US:
        yield problem(f"{name}: the reading that was due at {schedule['nextRun']} was not asked for")


def _of_authorities(name: str, directory: Row) -> Iterator[Finding]:
    """Check the authorities of the directory's certificate."""
    settings = directory["settings"]
    pem = settings.get("caCertificate") if isinstance(settings, dict) else None
    try:
        authorities = x509.load_pem_x509_certificates(str(pem).encode()) if pem else []
    except ValueError:
        yield problem(f"{name}: caCertificate holds no certificates in PEM")
        return
    for each in authorities:
        yield from of_time(f"{name}: caCertificate {common_name(each)}", each.not_valid_before_utc, each, present())
