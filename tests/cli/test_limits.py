"""The setting `limits` of a running service: refusals over HTTP and on the command line, and the doctor's warning."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running_service import RunningService, running_service

LIMITS = {"domains": 2, "endpoint_users": 1, "waiting_imports": 0, "schemas": 0, "directories": 1}
TENANT = {"orgId": 1, "tenantId": 1}


def refusal(name: str) -> str:
    """Return the message of an operation that must be refused."""
    return f"limit reached: {name}; delete some, or ask the administrator to raise the setting limits.{name}"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with small limits. Its tenant 1 has already reached the limit of domains."""
    limits = ", ".join(f"{name}={most}" for name, most in LIMITS.items())
    with running_service(tmp_path_factory.mktemp("small"), {"SALLYPORT_LIMITS": limits}) as service:
        service.ok("domain", "add", "second", "--org", "1", "--tenant", "1")
        yield service


def test_a_domain_over_the_limit_is_refused(small: RunningService) -> None:
    """The error body of domain operations has code 409 and names the limit and the setting."""
    answer = small.post("/ad/AddDomain", {**TENANT, "domainName": "third"}, status=409)
    assert answer == {"error": refusal("domains"), "code": 409}


def test_an_endpoint_user_over_the_limit_is_refused(small: RunningService) -> None:
    """The error body of other operations has code 409 and names the limit and the setting."""
    path, user = "/api/v1/endpointUsers/addEpmUserInfo", {"domainId": 1}
    small.post(path, {**user, "userName": "ann"})
    answer = small.post(path, {**user, "userName": "bob"}, status=409)
    assert (answer["code"], answer["status"], answer["message"]) == (409, "Failure", refusal("endpoint_users"))


def test_the_limit_applies_to_the_command_line(small: RunningService) -> None:
    """A command of an admin of the installation is refused with the same message and exit status 1."""
    done = small.cli("domain", "add", "third", "--org", "1", "--tenant", "1")
    assert (done.returncode, refusal("domains") in done.stderr) == (1, True)


LDIF = b"dn: uid=ann,dc=x\nobjectClass: person\nuid: ann\n"


def test_an_upload_over_the_limit_of_imports_is_refused(small: RunningService) -> None:
    """The file of a refused upload is not kept."""
    form = {"orgId": "1", "tenantId": "1", "domainId": "1"}
    path, files = "/api/v1/integrations/directory/importLdif", {"file": ("people.ldif", LDIF)}
    answer = small.request("POST", path, data=form, files=files)
    assert (answer.status_code, answer.json()["message"]) == (409, refusal("waiting_imports"))
    assert kept_files(small) == []


def test_a_command_over_the_limit_of_imports_is_refused(small: RunningService, tmp_path: Path) -> None:
    """After a refused command, no copy of the file is left."""
    file = tmp_path / "people.ldif"
    file.write_bytes(LDIF)
    done = small.cli("directory", "import-ldif", str(file), "--domain", "default")
    assert (done.returncode, refusal("waiting_imports") in done.stderr) == (1, True)
    assert kept_files(small) == []


def kept_files(service: RunningService) -> list[Path]:
    """Return the files of imports that are in the data directory."""
    return list((service.data_dir / "directory").glob("*"))


def test_each_tenant_has_its_own_limit(small: RunningService) -> None:
    """If one tenant has reached its limit, another tenant can still add a domain."""
    small.ok("domain", "add", "theirs", "--org", "1", "--tenant", "2")


def test_the_doctor_warns_of_a_tenant_near_its_limit(small: RunningService) -> None:
    """A tenant that uses 90 % of a limit is named in a warning, with the limit and the setting."""
    output = small.cli("doctor").stdout
    assert "organization 1, tenant 1: 2 of 2 domains; raise the setting limits.domains, or delete some" in output
