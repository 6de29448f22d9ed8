"""/api/v1/directory/setSchedule, listSchedules and sync."""

import json
from typing import Any

import pytest

from tests.api.test_directory_runs import job
from tests.api.world import Tenant

SAVE = "/api/v1/saveDirectoryConfig"
SET = "/api/v1/directory/setSchedule"
LIST = "/api/v1/directory/listSchedules"
SYNC = "/api/v1/directory/sync"


def save(tenant: Tenant) -> None:
    """Save a directory that has no server."""
    tenant.ask(SAVE, domainId=tenant.domain, directoryName="hq", appUrl="ldap://127.0.0.1:1", baseDN="dc=x")


def test_schedules(tenant: Tenant) -> None:
    """A schedule is set, shown with its next time, changed and deleted. Each change has an audit entry."""
    save(tenant)
    where = {"domainId": tenant.domain, "directoryName": "hq"}
    answered = tenant.ask(SET, **where, everyMinutes="90")
    assert (answered["code"], answered["status"], answered["message"]) == (200, "Success", "schedule set")
    assert tenant.ask(LIST, domainId=tenant.domain) == {
        "code": 200,
        "status": "Success",
        "message": "1 schedule",
        "schedules": [
            {
                "directoryName": "hq", "everyMinutes": 90, "timesOfDay": [], "timeZone": "UTC", "fullEvery": 24,
                "nextRun": answered["nextRun"], "lastJobId": 0, "lastState": "", "lastEnd": "",
            }
        ],
    }  # fmt: skip
    tenant.ask(SET, **where, timesOfDay=["22:15", "8:00"], timeZone="Europe/Berlin", fullEvery=0)
    (shown,) = tenant.ask(LIST, domainId=tenant.domain)["schedules"]
    assert (shown["everyMinutes"], shown["timesOfDay"], shown["fullEvery"]) == (0, ["08:00", "22:15"], 0)
    assert tenant.refused(SET, **where, everyMinute=5) == (400, "unknown field: did you mean everyMinutes?")
    assert tenant.refused(SET, **where) == (400, "give everyMinutes or timesOfDay")
    assert len(tenant.ask(LIST, domainId=tenant.domain)["schedules"]) == 1
    assert tenant.ask(SET, **where, timesOfDay=[])["nextRun"] == ""
    assert tenant.ask(LIST, domainId=tenant.domain)["schedules"] == []
    trail = [each["action"] for each in tenant.ask("/api/v1/audit/list", pageSize=100)["entries"]]
    assert trail.count("directory.schedule") == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"everyMinutes": 4}, "everyMinutes"),
        ({"everyMinutes": -1}, "everyMinutes"),
        ({"everyMinutes": 10_081}, "everyMinutes"),
        ({"everyMinutes": "often"}, "everyMinutes"),
        ({"timesOfDay": ["24:00"]}, "timesOfDay"),
        ({"timesOfDay": ["8"]}, "timesOfDay"),
        ({"timesOfDay": ["08:00"] * 25}, "timesOfDay"),
        ({"timesOfDay": "08:00"}, "timesOfDay"),
        ({"timesOfDay": ["08:00"], "timeZone": "../../etc/passwd"}, "timeZone"),
        ({"timesOfDay": ["08:00"], "timeZone": "Mars/Olympus"}, "timeZone"),
        ({"everyMinutes": 60, "fullEvery": 1001}, "fullEvery"),
    ],
)
def test_malformed_schedules(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    """A malformed schedule is refused, and the error names the field."""
    save(tenant)
    assert tenant.refused(SET, domainId=tenant.domain, directoryName="hq", **body) == (400, f"invalid {field}")
    assert tenant.ask(LIST, domainId=tenant.domain)["schedules"] == []


def test_minutes_and_times_exclude_each_other(tenant: Tenant) -> None:
    """A schedule cannot have both an interval in minutes and times of day."""
    save(tenant)
    body = {"domainId": tenant.domain, "directoryName": "hq", "everyMinutes": 60, "timesOfDay": ["08:00"]}
    status, message = tenant.refused(SET, **body)
    assert (status, "not both" in message) == (400, True)


def test_an_import_on_request(tenant: Tenant) -> None:
    """`sync` queues an import at once. An unknown directory is answered with 404."""
    save(tenant)
    queued = tenant.ask(SYNC, domainId=tenant.domain, directoryName="hq")
    ended = job(tenant, "hq", queued["jobId"])
    answered = "127.0.0.1 port 1: no connection: port 1 is closed; check the port, and that the server runs"
    assert (ended["state"], ended["message"]) == ("FAILED", answered)
    assert tenant.refused(SYNC, domainId=tenant.domain, directoryName="x") == (404, "directory not found")
    other = tenant.world.tenant()
    assert other.refused(SYNC, domainId=other.domain, directoryName="hq") == (404, "directory not found")
    assert other.refused(SET, domainId=other.domain, directoryName="hq", everyMinutes=60) == (
        404,
        "directory not found",
    )
    assert other.refused(SET, domainId=tenant.domain, directoryName="hq", everyMinutes=60) == (
        403,
        "domain not in tenant",
    )


def test_by_the_command_line(tenant: Tenant) -> None:
    """`sallyport directory schedule` sets, shows and deletes a schedule. Options that exclude each other are wrong
    usage.
    """
    save(tenant)
    service, domain = tenant.world.service, ("--domain", str(tenant.domain))
    service.ok("directory", "schedule", "hq", *domain, "--at", "02:30", "--at", "13:00", "--zone", "Europe/Berlin")
    (row,) = json.loads(service.ok("directory", "schedule", *domain, "--json"))
    (shown,) = tenant.ask(LIST, domainId=tenant.domain)["schedules"]
    assert row == shown and (row["timesOfDay"], row["timeZone"]) == (["02:30", "13:00"], "Europe/Berlin")
    assert service.cli("directory", "schedule", *domain, "--every", "60").returncode == 2
    assert service.cli("directory", "schedule", "hq", *domain, "--every", "60", "--at", "08:00").returncode == 1
    service.ok("directory", "schedule", "hq", *domain, "--off")
    assert tenant.ask(LIST, domainId=tenant.domain)["schedules"] == []
