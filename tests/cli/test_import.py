"""`sallyport client import`: a clients.conf becomes clients, all or none, and nothing before it is asked for."""

import json
from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.cli import TENANT, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.service import RunningService

GOOD = "a-Secret-of-22-octets!"
BETTER = "another-Secret-of-octets"


def conf(service: RunningService, *clients: tuple[str, str, str], more: str = "") -> Path:
    """A clients.conf of (name, address, secret)."""
    path = service.directory / "clients.conf"
    sections = [
        f"client {name} {{\n  ipaddr = {address}\n  secret = {secret}\n{more}}}\n" for name, address, secret in clients
    ]
    path.write_text("".join(sections), encoding="latin-1")
    return path


def names(service: RunningService) -> dict[str, str]:
    """The clients that are there, with their addresses."""
    return {name: str(each["address"]) for name, each in service.clients().items()}


def plan(service: RunningService, path: Path, *options: str) -> dict[str, tuple[str, str]]:
    """What an import says of each client: (action, changes or reason)."""
    done = service.cli("client", "import", str(path), *TENANT, "--json", *options)
    rows = json.loads(done.stdout)["clients"]
    return {row["name"]: (row["action"], row["reason"] or ", ".join(row["changes"])) for row in rows}


def test_a_dry_run_shows_the_plan_and_changes_nothing(service: Service) -> None:
    """New, unchanged, changed; and the clients are those of before."""
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


def test_an_import_holds_at_once_and_again_changes_nothing(service: Service) -> None:
    """The next packet is answered with the file's secret, and a second import finds everything unchanged."""
    add_user(service, add_domain(service, "imported"), "ann", "pw")
    path = conf(service, ("gate", "127.3.0.10", GOOD))
    service.ok("client", "import", str(path), *TENANT, "--domain", "imported")
    with RadiusClient(service.ports.auth, GOOD, source="127.3.0.10") as client:
        assert client.login("ann", "pw") == ACCESS_ACCEPT
    assert plan(service, path, "--domain", "imported") == {"gate": ("unchanged", "")}
    service.ok("client", "import", str(conf(service, ("gate", "127.3.0.10", BETTER))), *TENANT)
    with RadiusClient(service.ports.auth, BETTER, source="127.3.0.10") as client:
        assert client.login("ann", "pw") == ACCESS_ACCEPT


def test_a_thousand_at_once(service: Service) -> None:
    """They are judged beside logins, and each is in the audit trail; what is wrong is told as for one."""
    clients = [(f"many-{number}", f"127.5.{number >> 8}.{number & 255}", GOOD) for number in range(1000)]
    service.ok("client", "import", str(conf(service, *clients)), *TENANT)
    assert sum(name.startswith("many-") for name in names(service)) == 1000
    told = service.rows(
        "select target, changes from audit_trail where action = 'client.add' and target like '% many-%'"
    )
    assert len({target for target, _ in told}) == 1000
    assert not any(GOOD in changes for _, changes in told)
    settings = {"require_message_authenticator": "auto", "limit_proxy_state": "auto"}
    rows = [{"name": name, "address": "nowhere", "secret": "x", **settings} for name, *_ in clients[:100]]
    with pytest.raises(AssertionError, match=r"invalid address; clients\.0\.address: an IP address"):
        service.call("client.import", org=1, tenant=1, clients=rows)


def test_what_the_file_does_not_say_stays(service: Service) -> None:
    """An update keeps domains, product and what the client has shown, where the file is silent about them."""
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


def test_one_refusal_keeps_everything_back(service: Service) -> None:
    """All or none: what can be imported waits for what cannot, until it is left out on purpose."""
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
    assert "that of the RADIUS client owner" in refused.stdout
    assert "used twice" in refused.stdout
    assert "host names are not resolved" in refused.stdout
    assert "--skip-refused" in refused.stderr
    assert "fine" not in names(service)
    assert service.cli("client", "import", str(path), *TENANT, "--dry-run").returncode == 1
    service.ok("client", "import", str(path), *TENANT, "--skip-refused")
    assert names(service)["fine"] == "127.3.0.31"
    assert "thief" not in names(service)


def test_another_tenants_range_is_refused(service: Service) -> None:
    """An import cannot take addresses away from another tenant, from outside or from inside."""
    add_client(service, "theirs", "127.4.0.0/24", org=9, tenant=4)
    for address in ("127.4.0.7", "127.4.0.0/16"):
        done = service.cli("client", "import", str(conf(service, ("grab", address, GOOD))), *TENANT)
        assert done.returncode == 1
        assert "another tenant" in done.stdout


def test_weak_duplicate_and_overlapping_entries_are_named(service: Service) -> None:
    """Findings go to standard error, each with its client and its place in the file."""
    path = conf(service, ("lan", "127.5.0.0/16", "testing123"), ("inner", "127.5.0.9", GOOD))
    told = service.cli("client", "import", str(path), *TENANT, "--dry-run").stderr
    assert "one that everybody knows" in told
    assert "never becomes yes for a range" in told
    assert "contains 'inner'" in told
    assert "clients.conf:1" in told


def test_secrets_are_never_printed(service: Service) -> None:
    """Neither plan nor findings nor log hold a secret or its octets in hex."""
    path = conf(service, ("quiet", "127.3.0.40", GOOD), ("loud", "127.3.0.41", "testing123-7"), more="  junk = 1\n")
    told = service.log()
    for options in (("--dry-run",), ("--json",), ()):
        done = service.cli("client", "import", str(path), *TENANT, *options)
        told += done.stdout + done.stderr
    for secret in (GOOD, "testing123-7"):
        assert secret not in told
        assert secret.encode().hex() not in told


@pytest.mark.parametrize(("text", "status"), [("client lan {\n ipaddr = 10.0.0.1\n", 1), (None, 2), ("# nothing\n", 0)])
def test_files_that_are_none(service: Service, text: str | None, status: int) -> None:
    """A broken file is told with its line, a missing one is wrong usage, an empty one is done at once."""
    path = service.directory / "other.conf"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    done = service.cli("client", "import", str(path), *TENANT)
    assert done.returncode == status
    assert status == 2 or "other.conf:" in done.stderr or "no clients" in done.stderr


def test_without_a_service(stopped: RunningService) -> None:
    """The import works on the store itself."""
    stopped.ok("db", "migrate")
    stopped.ok("client", "import", str(conf(stopped, ("early", "127.3.0.1", GOOD))), *TENANT)
    assert [row["name"] for row in json.loads(stopped.ok("client", "list", "--json"))] == ["early"]
