"""/api/v1/agent/directory/*: the messages of directory agents."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from sallyport.areas.directory.runs.bodies import SendBatch
from tests.api.world import Tenant

BEGIN = "/api/v1/agent/directory/begin"
BATCH = "/api/v1/agent/directory/batch"
FINISH = "/api/v1/agent/directory/finish"
STATUS = "/api/v1/getImportStatus"
USERS = "/ad/GetAllAdUsers"
GROUPS = "/ad/GetAllGroupsByDomain"
PATIENCE_S = 30.0

ANN = {"kind": "person", "externalId": "1", "dn": "uid=ann,dc=x", "name": "ann", "attributes": {"mail": ["ann@x"]}}
BEN = {"kind": "person", "externalId": "2", "dn": "uid=ben,dc=x", "name": "ben", "status": "disabled"}
OPS = {"kind": "group", "externalId": "3", "dn": "cn=ops,dc=x", "name": "ops", "members": ["uid=ann,dc=x"]}
MORE = {**OPS, "members": ["UID=ben, DC=x"], "continued": True}


def until(done: Callable[[], Any]) -> Any:
    """Call `done` until it returns a true value, and return that value."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := done()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def job(tenant: Tenant, name: str, job_id: int) -> dict[str, Any]:
    """Wait until an import has ended, and return it."""

    def over() -> dict[str, Any] | None:
        jobs = tenant.ask(STATUS, DirectoryName=name)["jobs"]
        found: dict[str, Any] = next(each for each in jobs if each["jobId"] == job_id)
        return found if found["state"] in {"DONE", "FAILED", "CANCELLED"} else None

    result: dict[str, Any] = until(over)
    return result


def send(tenant: Tenant, *batches: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Send a whole run of the directory `hq`, wait until its import has ended, and return the import."""
    run = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq")["runId"]
    for number, entries in enumerate(batches, 1):
        sent = {"domainId": tenant.domain, "runId": run, "sequence": number, "entries": entries}
        assert tenant.ask(BATCH, **sent)["sequence"] == number + 1
    finished = tenant.ask(FINISH, domainId=tenant.domain, runId=run, sequence=len(batches) + 1, **fields)
    return job(tenant, "hq", finished["jobId"])


def names(tenant: Tenant) -> list[str]:
    """Return the names of the domain's people."""
    return [each["userName"] for each in tenant.ask(USERS, domainId=tenant.domain)["users"]]


def test_a_run_is_applied_at_its_end(tenant: Tenant) -> None:
    """The service applies nothing of a run before the run ends.

    The members of a group may come in two parts. The next run starts with the cursor of the last one.
    """
    done = send(tenant, [ANN, BEN], [OPS, MORE], cursor="place 7", complete=True)
    assert done["state"] == "DONE"
    assert done["counts"] == {"total": 3, "added": 3, "updated": 0, "removed": 0, "skipped": 0, "failed": 0}
    users = tenant.ask(USERS, domainId=tenant.domain)["users"]
    shown = [(user["userName"], user["email"], user["status"], user["source"], user["groups"]) for user in users]
    assert shown == [("ann", "ann@x", "active", "agent", ["ops"]), ("ben", "", "disabled", "agent", ["ops"])]
    (group,) = tenant.ask(GROUPS, domainId=tenant.domain)["groups"]
    assert (group["groupName"], group["memberCount"], group["directoryName"]) == ("ops", 2, "hq")
    assert tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq")["cursor"] == "place 7"
    again = send(tenant, [{"kind": "unchanged", "externalId": "1"}, {**OPS, "members": []}], complete=True)
    assert again["counts"] == {"total": 2, "added": 0, "updated": 1, "removed": 1, "skipped": 1, "failed": 0}
    assert names(tenant) == ["ann"]


def test_a_repeated_batch(tenant: Tenant) -> None:
    """A repeated batch succeeds and is stored once.

    A batch that is out of order, or an early end, is answered with 409, and the message has the expected number. A
    repeated end returns the same job.
    """
    run = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq")["runId"]
    batch = {"domainId": tenant.domain, "runId": run, "sequence": 1, "entries": [ANN]}
    for _ in range(2):
        assert tenant.ask(BATCH, **batch)["sequence"] == 2
    answer = tenant.world.post(BATCH, tenant.token, json={**batch, "sequence": 3})
    assert (answer.status_code, answer.json()["sequence"]) == (409, 2)
    assert tenant.refused(FINISH, domainId=tenant.domain, runId=run + 999, sequence=1)[0] == 404
    answer = tenant.world.post(FINISH, tenant.token, json={"domainId": tenant.domain, "runId": run, "sequence": 1})
    assert (answer.status_code, answer.json()["sequence"]) == (409, 2)
    resumed = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq", runId=run)
    assert (resumed["runId"], resumed["sequence"]) == (run, 2)
    ended = [tenant.ask(FINISH, domainId=tenant.domain, runId=run, sequence=2)["jobId"] for _ in range(2)]
    assert ended[0] == ended[1]
    assert job(tenant, "hq", ended[0])["counts"]["added"] == 1
    assert tenant.refused(BATCH, **batch)[0] == 404


def test_an_unfinished_run_is_discarded(tenant: Tenant) -> None:
    """A new run of a directory discards an unfinished one."""
    first = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq")["runId"]
    second = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq")
    assert second["sequence"] == 1 and second["runId"] != first
    sent = {"domainId": tenant.domain, "runId": first, "sequence": 1, "entries": [ANN]}
    assert tenant.refused(BATCH, **sent) == (404, "run not found: start a new run")


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"kind": "hunter2"}, id="unknown kind"),
        pytest.param({**ANN, "dn": "hunter2"}, id="no name"),
        pytest.param({**ANN, "name": ""}, id="empty login name"),
        pytest.param({**ANN, "name": "a\0"}, id="NUL in login name"),
        pytest.param({**ANN, "name": " hunter2"}, id="blank before login name"),
        pytest.param({**ANN, "aliases": ["hunter\u202e2"]}, id="unprintable alias"),
        pytest.param({**ANN, "status": "hunter2"}, id="unknown status"),
        pytest.param({**ANN, "attributes": {"mail": "hunter2"}}, id="value without array"),
        pytest.param({**ANN, "attributes": {"mail": ["x" * 1025]}}, id="long value"),
        pytest.param({**ANN, "attributes": {"mail": ["a\0"]}}, id="NUL in value"),
        pytest.param({**OPS, "members": [{}]}, id="member without text"),
        pytest.param("hunter2", id="text"),
    ],
)
def test_a_wrong_entry(tenant: Tenant, entry: object) -> None:
    """A batch with a wrong entry is refused and nothing of it is stored. The error does not repeat the values."""
    run = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq")["runId"]
    sent = {"domainId": tenant.domain, "runId": run, "sequence": 1, "entries": [ANN, entry]}
    status, message = tenant.refused(BATCH, **sent)
    assert status == 400 and "hunter2" not in message
    resumed = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq", runId=run)
    assert resumed["sequence"] == 1


def test_a_list_of_wrong_values() -> None:
    """For each list, the error names only one wrong value, because 200,000 errors would hold the interpreter lock for
    150 ms.
    """
    wrong = [{**OPS, "members": [None] * 100}, {**ANN, "aliases": [""] * 9, "memberOf": [{}] * 9}]
    with pytest.raises(ValidationError) as refused:
        SendBatch.model_validate({"domainId": 1, "runId": 1, "sequence": 1, "entries": wrong})
    assert refused.value.error_count() == 3


def test_no_secret_is_kept(tenant: Tenant) -> None:
    """Passwords, keys and codes that an agent sends are not stored."""
    send(tenant, [{**ANN, "attributes": {"mail": ["ann@x"], "userPassword": ["hunter2"], "ntHash": ["hunter2"]}}])
    kept = tenant.world.service.rows(
        "select attributes from directory_attributes join directory_users on id = user_id where domain_id = ?",
        tenant.domain,
    )
    assert kept == [('{"mail": ["ann@x"]}',)]


def test_another_domains_run(tenant: Tenant) -> None:
    """A run cannot be continued from another domain. An agent cannot send a run of a directory that the service reads
    itself.
    """
    other = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    run = tenant.ask(BEGIN, domainId=tenant.domain, directoryName="hq")["runId"]
    sent = {"domainId": other, "runId": run, "sequence": 1, "entries": [ANN]}
    assert tenant.refused(BATCH, **sent)[0] == 404
    assert tenant.refused(FINISH, domainId=other, runId=run, sequence=1)[0] == 404
    tenant.ask("/api/v1/saveDirectoryConfig", domainId=str(other), directoryName="ad", appUrl="ldaps://dc1.example.org")
    assert tenant.refused(BEGIN, domainId=other, directoryName="AD")[0] == 409
