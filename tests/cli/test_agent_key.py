"""`sallyport agent key`: enrolment keys, and the configuration files of agents."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sallyport.agent import file
from tests.cli import OTHER_TENANT, TENANT, Service, add_domain

CREATE = ("agent", "key", "create")


def listed(service: Service, domain: str) -> list[dict[str, Any]]:
    """Return the enrolment keys of a domain."""
    rows: list[dict[str, Any]] = json.loads(service.ok("agent", "key", "list", "--domain", domain, "--json"))
    return rows


@pytest.mark.parametrize("kind", ["endpoint", "directory"])
def test_the_printed_file_is_accepted_by_the_agent(service: Service, tmp_path: Path, kind: str) -> None:
    """The command prints a configuration file with the service's address, the key and the table of the agent. The agent
    accepts it.
    """
    add_domain(service, f"files-{kind}")
    text = service.ok(*CREATE, *TENANT, "--domain", f"files-{kind}", "--kind", kind)
    assert kind in tomllib.loads(text)
    path = tmp_path / "agent.toml"
    path.write_text(text)
    path.chmod(0o600)
    read = file.read(path, kind)
    assert read.service == f"http://127.0.0.1:{service.ports.http}"
    assert read.credentials.enrolment_key is not None
    assert read.credentials.enrolment_key.reveal().startswith(b"spk_")
    assert [each["agent"] for each in listed(service, f"files-{kind}")] == [kind]


def test_key_only_prints_the_key_alone(service: Service) -> None:
    """With --key-only, standard output is only the key and a line end, also in a pipe. No list shows the key."""
    add_domain(service, "alone")
    made = service.program(*CREATE, *TENANT, "--domain", "alone", "--key-only", "--uses", "3", "--expires", "7d")
    assert made.returncode == 0 and len(made.stdout) == 48
    (entry,) = listed(service, "alone")
    assert (entry["uses"], entry["status"]) == (3, "active")
    assert made.stdout.strip() not in service.ok("agent", "key", "list", "--domain", "alone")


def test_a_key_is_bound_to_an_instance_by_name(service: Service) -> None:
    """An unknown instance is refused, and so is a domain of another tenant."""
    domain = add_domain(service, "bound")
    body = {"instanceName": "web1"}
    there = int(service.run("/api/v1/instances/addInstance", body, domain=domain)["instanceId"])
    service.ok(*CREATE, *TENANT, "--domain", "bound", "--instance", "web1")
    assert [each["instanceId"] for each in listed(service, "bound")] == [there]
    assert service.cli(*CREATE, *TENANT, "--domain", "bound", "--instance", "web2").returncode == 1
    assert service.cli(*CREATE, *OTHER_TENANT, "--domain", "bound").returncode == 1
    assert len(listed(service, "bound")) == 1


def test_a_key_is_revoked_by_its_number(service: Service) -> None:
    """A key can be revoked only in its own domain."""
    add_domain(service, "revoking")
    service.ok(*CREATE, *TENANT, "--domain", "revoking", "--key-only")
    number = str(listed(service, "revoking")[0]["keyId"])
    assert service.cli("agent", "key", "revoke", number, "--domain", "default").returncode == 1
    service.ok("agent", "key", "revoke", number, "--domain", "revoking")
    assert listed(service, "revoking")[0]["status"] == "revoked"
