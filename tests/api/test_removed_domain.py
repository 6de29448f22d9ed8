"""If a domain is removed between the checks of a request and its write, the write is refused.

Each operation of the story is sent twice. The first time the domain is marked as removed in the store. The service does
not know this yet, so the request passes all checks before the write. The second time the domain is no longer marked.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sallyport.web.examples import STORY
from tests.api import slow_removal
from tests.api.operations import HOLDER, OPERATIONS, READER
from tests.api.story import Caller
from tests.api.test_examples import ABSENT, CONFLICTS
from tests.areas import only_sqlite
from tests.running_service import RunningService, running_service

NO_OPEN_IMPORT = "select count(*) = 0 from directory_jobs where state in ('QUEUED', 'RUNNING')"
TRAIL = "select count(*) from audit_trail where action <> 'client.latch'"
"""The service writes this action on its own, some time after the logins of a client."""
NO_WRITES = {
    *(each.path for each in OPERATIONS if each.roles in (READER, HOLDER)),
    "/ad/CheckEnrolments",
    "/ad/CheckFirstFactor",
    "/ad/CheckMFAProvider",
    "/api/v1/directory/check",
}
OF_TENANT = {
    "/ad/AddDomain",
    "/ad/RemoveDomain",
    "/network_device/DeleteClient",
    "/ad/UpdateAuthority",
    "/ad/DeleteAuthority",
    "/ad/FetchRevocationLists",
    "/api/v1/instances/addPasswordPolicy",
    "/api/v1/instances/updatePasswordPolicy",
    "/api/v1/instances/deletePasswordPolicy",
}
"""Operations on objects of the tenant, which remain when the domain is removed, and on another domain."""
WITHOUT_EFFECT = {
    "/ad/ImportConfiguration": "the example only makes a plan",
    "/network_device/UpdateClient": "the example changes the client's name and none of its domains",
    "/api/v1/endpointUsers/updateEpmUserInfo": "the example changes nothing",
    "/api/v1/epmGroupManagement/editEPMGroupStatus": "the group has this status already",
    "/network_device/ChangeSession": "the audit trail has each request to a NAS",
    "/network_device/DisconnectSession": "the audit trail has each request to a NAS",
}
BY_AGENTS = {"/api/v1/agent/report", "/api/v1/agent/privilegeStatus", "/api/v1/agent/rotation"}
"""Operations of an agent whose report is in progress. They may still write rows, which are deleted with the domain. The
next request of the agent is refused.
"""
ALLOWED = NO_WRITES | OF_TENANT | WITHOUT_EFFECT.keys() | BY_AGENTS
OF_OPEN_IMPORTS = {"/api/v1/cancelImport", "/api/v1/confirmImport"}
"""Operations on an import that has not ended. Such an import prevents the removal of its domain. In the story the
import has already ended, so these operations answer 409.
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Return a service at its first start, with which the story begins. It does not look for removed domains during the
    test: it would delete the rows of the marked domain."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOCKOUT_FAILURES": "1"}
    wrapper = (sys.executable, slow_removal.__file__)
    with running_service(tmp_path_factory.mktemp("fresh"), settings, wrapper=wrapper) as service:
        yield service


@only_sqlite  # a rolled-back write uses up an id in PostgreSQL, and the story has fixed ids
def test_no_write_follows_a_removal(fresh: RunningService) -> None:
    """Each operation that writes rows of a removed domain is refused: with 404, with 403 if the service has read the
    domains meanwhile, or with 401 if the key of an agent or a wallet is used. No refusal changes the audit trail.
    """
    caller, wrong = Caller(fresh, fresh.request("GET", "/openapi.json").json()["paths"]), []
    for method, path, _ in STORY:
        caller.happens(path)
        if path not in OF_OPEN_IMPORTS | OF_TENANT:
            caller.wait_for(NO_OPEN_IMPORT)
            known, trail = dict(caller.answers), fresh.rows(TRAIL)
            with removed(fresh):
                answer = caller.send(method, path)
            caller.answers = known
            refused = answer.status_code in {401, 403, 404} and trail == fresh.rows(TRAIL)
            if not refused and path not in ALLOWED | CONFLICTS:
                wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        answer = caller.send(method, path)
        if answer.status_code != 200 and path not in OF_OPEN_IMPORTS | CONFLICTS | ABSENT:
            wrong.append(f"{method} {path} in a present domain: {answer.status_code} {answer.text[:200]}")
    assert not wrong, "\n".join(wrong)


@contextmanager
def removed(service: RunningService) -> Iterator[None]:
    """Mark the first domain as removed in the store until the block ends, without notifying the service."""
    mark(service, 1)
    try:
        yield
    finally:
        mark(service, None)
        service.call("domain.restore")  # reloads the domains: the request may have done so while the mark was set


def mark(service: RunningService, at: int | None) -> None:
    """Set or delete the mark that the domain is removed."""
    service.execute("update domains set removed_at = ? where id = 1", at)
