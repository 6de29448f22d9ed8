"""`sallyport client import` imports all clients of a clients.conf, or none of them."""

import json
from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.cli import TENANT, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.running_service import RunningService

GOOD = "a-Secret-of-22-octets!"
BETTER = "another-Secret-of-octets"


def conf(service: RunningService, *clients: tuple[str, str, str], more: str = "") -> Path:
    """Write a clients.conf of (name, address, secret) and return its path."""
    path = service.directory / "clients.conf"
    sections = [
        f"client {name} {{\n  ipaddr = {address}\n  secret = {secret}\n{more}}}\n" for name, address, secret in clients
    ]
    path.write_text("".join(sections), encoding="latin-1")
    return path


def names(service: RunningService) -> dict[str, str]:
    """Return the names and addresses of the clients."""
    return {name: str(each["address"]) for name, each in service.clients().items()}


def plan(service: RunningService, path: Path, *options: str) -> dict[str, tuple[str, str]]:
    """Return the (action, changes or reason) of each client in an import."""
    done = service.cli("client", "import", str(path), *TENANT, "--json", *options)
    rows = json.loads(done.stdout)["clients"]
    return {row["name"]: (row["action"], row["reason"] or ", ".join(row["changes"])) for row in rows}


def test_a_dry_run_shows_the_plan_and_changes_nothing(service: Service) -> None:
    """The plan marks each client as new, changed or unchanged."""
    service.ok(
        "client", "import", str(conf(service, ("kept", "127.3.0.1", GOOD), ("moved", "127.3.0.2", GOOD))), *TENANT
    )
    before = names(service)
    path = conf(service, ("kept", "127.3.0.1", GOOD), ("moved", "127.3.0.3", BETTER), ("fresh", "127.3.0.4", GOOD))
    assert plan(service, path, "--dry-run") == {
        "kept": ("unchanged", ""),
        "moved": ("changed", "address, secret"),
        "fresh": ("new", ""),
    }
    shown = service.program("client", "import", str(path), *TENANT, "--dry-run")
    assert shown.returncode == 0
    assert "nothing was changed" in shown.stderr
    assert names(service) == before


def test_an_import_applies_at_once_and_can_be_repeated(service: Service) -> None:
    """The next packet of a client is answered with the secret from the file. A second import finds every client
    unchanged.
    """
    add_user(service, add_domain(service, "imported"), "ann", "pw")
    path = conf(service, ("gate", "127.3.0.10", GOOD))
    service.ok("client", "import", str(path), *TENANT, "--domain", "imported")
    with RadiusClient(service.ports.auth, GOOD, source="127.3.0.10") as client:
        assert client.login("ann", "pw") == ACCESS_ACCEPT
    assert plan(service, path, "--domain", "imported") == {"gate": ("unchanged", "")}
    service.ok("client", "import", str(conf(service, ("gate", "127.3.0.10", BETTER))), *TENANT)
    with RadiusClient(service.ports.auth, BETTER, source="127.3.0.10") as client:
        assert client.login("ann", "pw") == ACCESS_ACCEPT


def test_a_thousand_clients_are_imported(service: Service) -> None:
    """Each imported client is in the audit trail, without its secret. An invalid value is refused, and the message
    names the client and the field.
    """
    clients = [(f"many-{number}", f"127.5.{number >> 8}.{number & 255}", GOOD) for number in range(1000)]
    service.ok("client", "import", str(conf(service, *clients)), *TENANT)
    assert sum(name.startswith("many-") for name in names(service)) == 1000
    entries = service.rows(
        "select target, changes from audit_trail where action = 'client.add' and target like '% many-%'"
    )
    assert len({target for target, _ in entries}) == 1000
    assert not any(GOOD in changes for _, changes in entries)
    settings = {"require_message_authenticator": "auto", "limit_proxy_state": "auto"}
    rows = [{"name": name, "address": "nowhere", "secret": "x", **settings} for name, *_ in clients[:100]]
    with pytest.raises(AssertionError, match=r"invalid address; clients\.0\.address must be an IP address"):
        service.call("client.import", org=1, tenant=1, clients=rows)


def test_fields_that_the_file_lacks_are_kept(service: Service) -> None:
    """An update keeps the domains, the product and the latch of a client."""
    add_domain(service, "own")
    add_client(service, "ise", "127.3.0.20", "own", secret=GOOD, product="Cisco ISE")
    with RadiusClient(service.ports.auth, GOOD, source="127.3.0.20") as client:
        client.login("nobody", "x")

    def row() -> dict[str, object]:
        return dict(service.clients()["ise"])

    before = row()
    assert before["signatureRequired"] is True
    service.ok("client", "import", str(conf(service, ("ise", "127.3.0.20", BETTER))), *TENANT)
    assert row() == before


def test_one_refused_client_stops_the_import(service: Service) -> None:
    """If one client is refused, nothing is imported without --skip-refused."""
    add_client(service, "owner", "127.3.0.30")
    path = conf(
        service,
        ("fine", "127.3.0.31", GOOD),
        ("thief", "127.3.0.30", GOOD),
        ("fine", "127.3.0.32", GOOD),
        ("named", "nas.example.com", GOOD),
    )
    refused = service.cli("client", "import", str(path), *TENANT)
    assert refused.returncode == 1
    assert "the RADIUS client owner has the same address" in refused.stdout
    assert "used twice" in refused.stdout
    assert "host names are not resolved" in refused.stdout
    assert "--skip-refused" in refused.stderr
    assert "fine" not in names(service)
    assert service.cli("client", "import", str(path), *TENANT, "--dry-run").returncode == 1
    service.ok("client", "import", str(path), *TENANT, "--skip-refused")
    assert names(service)["fine"] == "127.3.0.31"
    assert "thief" not in names(service)


def test_another_tenants_range_is_refused(service: Service) -> None:
    """Addresses inside of another tenant's range are refused, and so are ranges around it."""
    add_client(service, "theirs", "127.4.0.0/24", org=9, tenant=4)
    for address in ("127.4.0.7", "127.4.0.0/16"):
        done = service.cli("client", "import", str(conf(service, ("grab", address, GOOD))), *TENANT)
        assert done.returncode == 1
        assert "another tenant" in done.stdout


def test_weak_and_overlapping_entries_are_warned_about(service: Service) -> None:
    """Each warning is on standard error and names its client and the place in the file."""
    path = conf(service, ("lan", "127.5.0.0/16", "testing123"), ("inner", "127.5.0.9", GOOD))
    errors = service.cli("client", "import", str(path), *TENANT, "--dry-run").stderr
    assert "a well-known example secret" in errors
    assert "has no effect for a network" in errors
    assert "contains 'inner'" in errors
    assert "clients.conf:1" in errors


def test_secrets_are_never_printed(service: Service) -> None:
    """Neither the plan nor the warnings nor the log contain a secret, not even in hexadecimal."""
    path = conf(service, ("quiet", "127.3.0.40", GOOD), ("loud", "127.3.0.41", "testing123-7"), more="  junk = 1\n")
    output = service.log()
    for options in (("--dry-run",), ("--json",), ()):
        done = service.cli("client", "import", str(path), *TENANT, *options)
        output += done.stdout + done.stderr
    for secret in (GOOD, "testing123-7"):
        assert secret not in output
        assert secret.encode().hex() not in output


@pytest.mark.parametrize(("text", "status"), [("client lan {\n ipaddr = 10.0.0.1\n", 1), (None, 2), ("# nothing\n", 0)])
def test_broken_missing_and_empty_files_are_reported(service: Service, text: str | None, status: int) -> None:
    """The exit status is 1 for a broken file, whose line is printed. It is 2 for a missing file and 0 for an empty
    one.
    """
    path = service.directory / "other.conf"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    done = service.cli("client", "import", str(path), *TENANT)
    assert done.returncode == status
    assert status == 2 or "other.conf:" in done.stderr or "no clients" in done.stderr


def test_clients_are_imported_without_a_service(stopped: RunningService) -> None:
    stopped.ok("db", "migrate")
    stopped.ok("client", "import", str(conf(stopped, ("early", "127.3.0.1", GOOD))), *TENANT)
    assert [row["name"] for row in json.loads(stopped.ok("client", "list", "--json"))] == ["early"]
