"""The setting `egress` of a running service: a tenant cannot scan the machine of the service."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.running_service import RunningService, running_service

ADVICE = "address not allowed; to allow it, add 127.0.0.1/32 to the setting egress, and reload the service"
KINDS = ("ldap", "radius", "radsec")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with the default of `egress`. It has a domain for each kind of first factor."""
    with running_service(tmp_path_factory.mktemp("guarded"), {"SALLYPORT_EGRESS": None}) as service:
        service.ok("cert", "init", "--host", "radius.example.com")
        for kind in KINDS:
            service.ok("domain", "add", kind, "--org", "1", "--tenant", "1")
        yield service


@pytest.fixture(scope="module")
def certificate(guarded: RunningService) -> Path:
    """Return the path of a certificate for RadSec. Its key is in the same directory."""
    guarded.ok("cert", "issue", "proxy.example.com")
    (found,) = guarded.data_dir.rglob("proxy.example.com*.pem")
    return found


def set_first_factor(service: RunningService, kind: str, port: int, certificate: Path) -> None:
    """Configure the first factor of the domain `kind`, with a server at a loopback port."""
    if kind == "ldap":
        options = ["ldap", "--ldap-server", f"ldap://127.0.0.1:{port}", "--base-dn", "dc=example"]
    elif kind == "radsec":
        options = ["radius", "--radius-server", f"127.0.0.1:{port}", "--radius-tls", str(certificate)]
    else:
        options = ["radius", "--radius-server", f"127.0.0.1:{port}", "--radius-secret", "-"]
    service.ok("domain", "first-factor", kind, *options, input="a secret of the tests")


def tried(service: RunningService, kind: str, port: int, certificate: Path) -> list[str]:
    """Return the steps of CheckFirstFactor for a server at a loopback port."""
    set_first_factor(service, kind, port, certificate)
    domain_id = next(
        row["domainId"] for row in json.loads(service.ok("domain", "list", "--json")) if row["domainName"] == kind
    )
    body = {"orgId": 1, "tenantId": 1, "domainId": domain_id, "userName": "ann", "password": "hello"}
    result = service.post("/ad/CheckFirstFactor", body)
    return [str(step).replace(str(port), "PORT") for step in result["steps"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tenant_cannot_scan_ports(guarded: RunningService, certificate: Path, kind: str) -> None:
    """The answer is the same for an open and a closed port of this machine, and the open port gets no connection."""
    with closing(socket.create_server(("127.0.0.1", 0))) as there, closing(socket.socket()) as gone:
        gone.bind(("127.0.0.1", 0))
        there.setblocking(False)
        steps = [tried(guarded, kind, each.getsockname()[1], certificate) for each in (there, gone)]
        with pytest.raises(BlockingIOError):
            there.accept()
    assert steps[0] == steps[1]
    assert any("address not allowed" in step for step in steps[0])
    assert not any("SALLYPORT" in step or "/32" in step for step in steps[0])


def test_the_command_line_names_the_network_to_add(guarded: RunningService, certificate: Path) -> None:
    """`domain check`, `doctor` and the log tell an admin of the installation how to allow a server."""
    set_first_factor(guarded, "ldap", 3389, certificate)
    checked = guarded.cli("domain", "check", "ldap", "--user", "ann", "--password", "-", input="hello")
    assert f"127.0.0.1: {ADVICE}" in checked.stdout
    assert f"directory: 127.0.0.1 port 3389: {ADVICE}" in guarded.cli("doctor").stdout
    assert "egress_denied" in guarded.log()


def test_the_doctor_checks_addresses_of_radius_servers(guarded: RunningService, certificate: Path) -> None:
    """The doctor reports a RADIUS server whose address is not allowed as a problem, although it does not connect to
    it.
    """
    set_first_factor(guarded, "radius", 1645, certificate)
    assert f"RADIUS server: 127.0.0.1 port 1645: {ADVICE}" in guarded.cli("doctor").stdout
