"""`sallyport token`: a token is printed once. It is valid at once, and it is revoked at once."""

import json
import re

import pytest

from tests.cli import TENANT, Service
from tests.running_service import RunningService

TOKEN = re.compile(r"sp_[A-Za-z0-9_-]{43}\n")


def allows(service: RunningService, token: str, org: int = 1, tenant: int = 1) -> int:
    """Return the status of a request that has the token."""
    body = {"orgId": org, "tenantId": tenant, "pageId": 1, "pageSize": 10}
    return service.request("POST", "/ad/GetAllDomains", token=token.strip(), json=body).status_code


def test_create_prints_the_token_alone(service: Service) -> None:
    """Standard output is only the token and a line end, so that a script can read it."""
    made = service.program("token", "create", *TENANT, "--role", "auditor", "--name", "reporting")
    assert made.returncode == 0
    assert TOKEN.fullmatch(made.stdout)
    assert made.stderr == ""


def test_a_new_token_is_valid_at_once_in_a_new_tenant(service: Service) -> None:
    """`token create` creates a new organization and tenant. The next request with the token is accepted there and
    refused elsewhere.
    """
    token = service.ok("token", "create", "--org", "7", "--tenant", "3")
    assert allows(service, token, org=7, tenant=3) == 200
    assert allows(service, token, org=1, tenant=1) == 403


@pytest.mark.parametrize("field", ["name", "id"])
def test_a_revoked_token_is_refused_at_the_next_request(service: Service, field: str) -> None:
    """A token is selected by its name or its ID. After it is revoked, the next request is refused."""
    token = service.ok("token", "create", *TENANT, "--name", f"by-{field}")
    assert allows(service, token) == 200
    rows = json.loads(service.ok("token", "list", "--json"))
    named = next(str(row[field]) for row in rows if row["name"] == f"by-{field}")
    revoked = service.cli("token", "revoke", named)
    assert (revoked.returncode, revoked.stdout) == (0, "")
    assert allows(service, token) == 401


def test_list_shows_states_and_no_token(service: Service) -> None:
    """The list has the role, status and expiry of each token, but not the token."""
    token = service.ok("token", "create", *TENANT, "--name", "for-90-days", "--expires", "90d", "--role", "operator")
    table = service.ok("token", "list")
    found = service.ok("token", "list", "--json", "--org", "1")
    row = next(each for each in json.loads(found) if each["name"] == "for-90-days")
    assert row["role"] == "operator"
    assert row["status"] == "active"
    assert row["expires"] > row["created"]
    assert "for-90-days" in table
    assert token not in table + found


def test_the_exit_status_is_1_for_refusals_and_2_for_wrong_usage(service: Service) -> None:
    assert service.cli("token", "revoke", "nobody").returncode == 1
    assert service.cli("token", "create", *TENANT, "--expires", "soon").returncode == 2
    assert service.cli("token", "create", *TENANT, "--role", "wizard").returncode == 2
    assert service.cli("token", "create", "--org", "1").returncode == 2
    assert service.cli("token", "create", "--org", "0", "--tenant", "1").returncode == 2


def test_an_ambiguous_name_is_refused(service: Service) -> None:
    """If two active tokens have the same name, neither is revoked. The message asks for the ID."""
    for _ in range(2):
        service.ok("token", "create", *TENANT, "--name", "twins")
    revoked = service.cli("token", "revoke", "twins")
    assert revoked.returncode == 1
    assert "by id" in revoked.stderr


def test_a_token_is_created_without_a_service(stopped: RunningService) -> None:
    """Standard output is only the token. A service that is started later accepts it."""
    stopped.ok("db", "migrate")
    made = stopped.cli("token", "create", *TENANT, "--name", "early")
    assert TOKEN.fullmatch(made.stdout), made
    assert {"first start", "early"} == {row["name"] for row in json.loads(stopped.ok("token", "list", "--json"))}
    stopped.start()
    assert allows(stopped, made.stdout) == 200
