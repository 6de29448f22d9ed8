"""`sallyport doctor` prints one line for each finding and changes nothing. The exit status is 1 if there is a
problem.
"""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from sallyport import __version__
from sallyport.base.clock import SECOND, iso, now_us
from sallyport.base.wire import Row
from sallyport.cli.checks.certificates import of_signing
from sallyport.cli.checks.service import of_list, of_old_data, of_schedule
from sallyport.settings.listening import process_name
from tests.cli import SECRET, Service, add_client, add_domain, add_user
from tests.radius.eap.certificates import Authority
from tests.radius_client import RadiusClient
from tests.running_service import RunningService


def findings(service: RunningService, status: int = 0) -> list[tuple[str, str, str]]:
    """Return the (level, check, finding) of each line, and assert the exit status."""
    done = service.cli("doctor", "--json")
    assert done.returncode == status, done
    return [(row["level"], row["check"], row["finding"]) for row in json.loads(done.stdout)]


def of_check(service: RunningService, check: str, status: int = 0) -> list[tuple[str, str]]:
    """Return the (level, finding) of each line of one check."""
    return [(level, text) for level, name, text in findings(service, status) if name == check]


def test_without_an_installation_nothing_is_created(stopped: RunningService) -> None:
    """The doctor reports that there is no installation. It creates neither the data directory nor a database."""
    done = stopped.cli("doctor", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sallyport: no Sallyport installation in ")
    assert not stopped.data_dir.exists()


def test_a_running_service_has_no_problem(service: Service) -> None:
    """The doctor finds that the service holds each port. The table has the same findings as JSON."""
    found = findings(service)
    assert "problem" not in {level for level, _, _ in found}
    assert [text.rpartition(": ")[2] for _, check, text in found if check == "ports"] == ["bound by the service"] * 3
    assert ("ok", f"runs as process {service.process_id}") in of_check(service, "service")
    table = service.program("doctor")
    assert table.returncode == 0
    assert "bound by the service" in table.stdout


def test_a_stopped_service_is_checked(stopped: RunningService) -> None:
    """If no service runs, integrity, schema and devices are checked, and the ports are free."""
    stopped.start()
    stopped.stop()
    found = findings(stopped)
    assert ("ok", "integrity", "whole") in found
    assert ("ok", "devices", "default: 0") in found
    assert [text.rpartition(": ")[2] for _, check, text in found if check == "ports"] == ["free"] * 3


def test_weak_clients_are_named_without_their_secrets(service: Service) -> None:
    """The doctor warns of well-known and short secrets, of ranges that never latch, and of overlapping ranges. It does
    not print the secrets.
    """
    add_client(service, "known", "127.9.0.1", secret="testing123")
    add_client(service, "short", "127.9.0.2", secret="fifteen-octets!")
    add_client(service, "range", "127.9.0.0/24")
    add_client(service, "loose", "127.10.0.1", requireMessageAuthenticator="no", limitProxyState="no")
    warnings = {text for level, text in of_check(service, "clients") if level == "warning"}
    for part in (
        "known (127.9.0.1): the secret is a well-known example secret",
        "short (127.9.0.2): the secret is shorter than 16 octets",
        "range (127.9.0.0/24): require_message_authenticator is auto, which has no effect",
        "range (127.9.0.0/24): contains known, short",
        "loose (127.10.0.1): require_message_authenticator is no",
        "loose (127.10.0.1): limit_proxy_state is no",
    ):
        assert any(text.startswith(part) for text in warnings), part
    text = service.ok("doctor") + service.ok("doctor", "--json")
    assert not any(secret in text for secret in ("testing123", "fifteen-octets!", SECRET))


def test_unsigned_proxy_state_is_reported(service: Service) -> None:
    """The doctor names a client that forwards requests and has never sent a signed one, until it does."""
    add_domain(service, "forwarded")
    add_user(service, "forwarded", "ann")
    add_client(service, "nps", "127.11.0.1", "forwarded")
    assert [level for level, _ in of_check(service, "Proxy-State")] == ["ok"]
    with RadiusClient(service.ports.auth, SECRET, source="127.11.0.1") as client:
        client.login("ann", "hello", signed=False, PROXY_STATE=b"7")
        assert any("nps (127.11.0.1)" in text for _, text in of_check(service, "Proxy-State"))
        client.login("ann", "hello", PROXY_STATE=b"8")
    assert [level for level, _ in of_check(service, "Proxy-State")] == ["ok"]


def test_a_domain_without_provider_or_client_is_a_warning(service: Service) -> None:
    """The doctor warns of an enforcing domain without an MFA provider, and of a domain without a RADIUS client."""
    add_domain(service, "lonely", org=77, enforcementMode="enforce")
    warnings = warnings_of_domains(service)
    assert any(text.startswith("lonely: this domain has no MFA provider") for text in warnings)
    assert any(text.startswith("lonely: no RADIUS client belongs to it; run sallyport client add") for text in warnings)


def test_a_rule_that_allows_by_claims_is_a_warning(service: Service) -> None:
    """A rule that blocks by a claim is none, and neither is one that is only for stations, which no factor follows."""
    add_domain(service, "wlan")
    add_client(service, "aps", "198.51.100.64/26", "wlan")
    for action, name in (("allow", "office"), ("block", "guests")):
        service.ok("rule", "add", name, "--domain", "wlan", "--action", action, "--ssid", "corp", "--port", "x")
    of_stations = ("--kind", "unknown", "--kind", "station", "--ssid", "lobby", "--vlan", "9")
    service.ok("rule", "add", "lobby", "--domain", "wlan", "--action", "allow", *of_stations)
    (found,) = [text for _, text in of_check(service, "domains") if "claims" in text or "allows by" in text]
    assert "office allows by ssid, port: it exempts no unsigned login" in found
    assert "; require signatures" in found


def test_a_rule_with_a_tag_that_nothing_has_is_a_warning(service: Service) -> None:
    """A tag of a RADIUS client is enough, because its devices take it over. A disabled rule is no warning."""
    add_domain(service, "tagged")
    add_client(service, "berlin", "198.51.100.130", "tagged")
    service.ok("client", "set", "berlin", "--tag", "site=Berlin/Floor 2")
    for name, tag, *more in (("office", "site=BERLIN"), ("typo", "site=Berlim"), ("later", "site=Rome", "--disabled")):
        service.ok("rule", "add", name, "--domain", "tagged", "--action", "block", "--tag", tag, *more)
    (found,) = [text for text in warnings_of_domains(service) if "names the tag" in text]
    assert "typo names the tag site=Berlim, which no device and no RADIUS client of the domain has" in found


def test_a_profile_whose_files_cannot_be_made_is_a_warning(service: Service) -> None:
    """The finding has the reason, which is that of `profile show`."""
    domain = add_domain(service, "profiled")
    service.ok("profile", "set", "Office", "--domain", domain, "--ssid", "Office")
    why = json.loads(service.ok("profile", "show", "Office", "--domain", domain, "--json"))["problem"]
    assert why
    text = f"profiled: profile Office has no files: {why}; sallyport profile set changes it"
    assert ("warning", text) in of_check(service, "profiles")
    service.ok("profile", "remove", "Office", "--domain", domain)


def test_a_certificate_that_signs_profiles_and_expires_soon_is_a_warning(tmp_path: Path) -> None:
    """The finding names the setting and the day."""
    now = datetime.now(UTC)
    ends = {"soon": now + timedelta(days=10), "late": now + timedelta(days=100)}
    made = {name: Authority(tmp_path).certificate(name, until=each).file for name, each in ends.items()}
    (found,) = of_signing(made["soon"], now)
    assert (found.level.value, list(of_signing(made["late"], now))) == ("warning", [])
    assert found.text.startswith("profile_certificate ") and f"soon expires at {ends['soon']:%Y-%m-%d}" in found.text


def test_break_glass_is_a_warning(service: Service) -> None:
    """The doctor warns of break-glass while a domain would otherwise enforce, and names the command that ends it."""
    add_domain(service, "open", enforcementMode="enforce")
    service.ok("domain", "mode", "--all", "monitor")
    assert any(text.startswith("break-glass is active") for text in warnings_of_domains(service))
    service.ok("domain", "mode", "--all", "restore")
    assert not any(text.startswith("break-glass") for text in warnings_of_domains(service))


def test_a_client_of_a_tenant_without_domains_is_a_warning(service: Service) -> None:
    """The doctor warns of a client whose tenant has no domain. Logins from such a client are refused, and no domain has
    an event for them.
    """
    add_client(service, "early", "127.14.0.1", org=81)
    warnings = [text for level, text in of_check(service, "clients") if level == "warning"]
    assert (
        "early (127.14.0.1): its tenant has no domain, so its logins are rejected; run sallyport domain add" in warnings
    )


def test_a_domain_without_first_factor_is_a_warning(service: Service) -> None:
    """If a domain has no first factor, the warning names the clients that vouch for its users, or says that none
    may.
    """
    add_domain(service, "trusting", org=78, firstFactor="none")
    assert (
        "trusting: its first factor is none, and no client may vouch for passwords: run sallyport domain "
        "first-factor trusting, or sallyport client set --password-verified"
    ) in warnings_of_domains(service)
    secret = "a long secret of the tests"
    service.ok("client", "add", "nps", "--address", "127.13.0.1", "--org", "78", "--tenant", "1", "--secret", secret,
               "--domain", "trusting", "--password-verified")  # fmt: skip
    warnings = warnings_of_domains(service)
    assert (
        "trusting: the service checks no password here; these clients may vouch for any user: nps; set a first factor "
        "unless they check passwords: sallyport domain first-factor"
    ) in warnings


def test_an_unconfigured_first_factor_is_a_warning(service: Service) -> None:
    """In a domain whose first factor is not configured, no login works. If two tenants have a domain of the same name,
    the check `reach` still works.
    """
    for org in (79, 80):
        add_domain(service, "twice", org=org, firstFactor="ldap")
    assert (
        "twice: its first factor ldap is not configured: no login works; run sallyport domain first-factor twice"
        in warnings_of_domains(service)
    )
    assert [level for level, _ in of_check(service, "reach")] == ["ok"]


def warnings_of_domains(service: Service) -> list[str]:
    """Return the warnings of the check `domains`."""
    return [text for level, text in of_check(service, "domains") if level == "warning"]


def test_unknown_senders_are_listed(service: Service) -> None:
    """The finding has the address of a sender that is not a client, and the number of its packets."""
    with RadiusClient(service.ports.auth, SECRET, source="127.12.0.1") as client:
        client.send(client.packet("ann", "hello"))
    assert any(text.startswith("127.12.0.1: 1 packet") for _, text in of_check(service, "senders"))


def test_a_readable_missing_or_broken_master_key_is_a_problem(stopped: RunningService) -> None:
    """A key file that still has an earlier version of the key is a warning. A key that is readable by others, missing
    or broken is a problem.
    """
    stopped.ok("db", "migrate")
    key = stopped.data_dir / "master.key"
    key.chmod(0o644)
    assert [level for level, _ in of_check(stopped, "master key", status=1)] == ["problem"]
    key.chmod(0o600)
    key.write_text(f"2:{'00' * 32}\n1:{key.read_text()}")
    assert [level for level, _ in of_check(stopped, "master key", status=0)] == ["warning"]
    key.write_text("short")
    assert [level for level, _ in of_check(stopped, "master key", status=1)] == ["problem"]
    key.unlink()
    assert [level for level, _ in of_check(stopped, "master key", status=1)] == ["problem"]
    assert not key.exists()


def test_a_master_key_apart_from_the_data(tmp_path: Path) -> None:
    """The finding names the file that the environment gives. A missing file is a problem."""
    apart = tmp_path / "apart.key"
    stopped = RunningService(tmp_path, {"SALLYPORT_MASTER_KEY_FILE": str(apart)})
    apart.write_text("5a" * 32)
    stopped.ok("db", "migrate")
    assert of_check(stopped, "master key", status=0) == [("ok", f"from {apart}")]
    assert not (stopped.data_dir / "master.key").exists()
    apart.unlink()
    assert [level for level, _ in of_check(stopped, "master key", status=1)] == ["problem"]


def test_a_taken_port_is_a_problem(stopped: RunningService) -> None:
    """If a RADIUS port is taken, the finding names the program that uses it."""
    stopped.start()
    stopped.stop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", stopped.ports.auth))
        finding = dict(of_check(stopped, "ports", status=1))["problem"]
    assert f"in use by {process_name(os.getpid())}; stop it, or change SALLYPORT_RADIUS_AUTH_BIND" in finding


@pytest.mark.parametrize(
    ("statement", "check", "level"),
    [
        ("insert into _sqlite_migrations (migration_set, name, applied_at) values ('sallyport', 'm9999', '')",
         "database", "problem"),
        ("delete from _sqlite_migrations", "database", "problem"),
        ("insert into events (at, domain_id, user_name, ip_address, client_ip, device_id, device_name, station, method,"
         " factor, decision, applied_decision, would_have_been, reason, latency_us)"
         " values (9000000000000000, 1, '', '', '', 0, '', '', '', '', '', '', '', '', 0)", "records", "problem"),
    ],
)  # fmt: skip
def test_an_incompatible_database_is_a_problem(stopped: RunningService, statement: str, check: str, level: str) -> None:
    """A newer schema, a missing schema and events with a future time are problems."""
    stopped.ok("db", "migrate")
    with closing(sqlite3.connect(stopped.data_dir / "sallyport.db")) as connection, connection:
        connection.execute(statement)
    assert [each for each, _ in of_check(stopped, check, status=1)] == [level]


def test_a_damaged_database_is_a_problem(stopped: RunningService) -> None:
    """The doctor detects that octets in the middle of the file were overwritten."""
    stopped.ok("db", "migrate")
    path = stopped.data_dir / "sallyport.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    octets = bytearray(path.read_bytes())
    octets[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    path.write_bytes(octets)
    assert "problem" in {level for level, _, _ in findings(stopped, status=1)}


def test_unreadable_settings_are_the_only_finding(stopped: RunningService) -> None:
    """The other checks need the settings. So if a setting is unknown, this problem is the only finding."""
    (stopped.directory / "sallyport.toml").write_text('data_dri = "x"\n')
    found = findings(stopped, status=1)
    assert [(level, check) for level, check, _ in found] == [("problem", "settings")]


def test_a_readable_data_directory_and_an_unknown_variable_are_warnings(stopped: RunningService) -> None:
    service = RunningService(stopped.directory, {"SALLYPORT_RADUIS": "1"})
    service.ok("db", "migrate")
    service.data_dir.chmod(0o755)
    assert [level for level, _ in of_check(service, "data directory")] == ["warning"]
    assert [level for level, _ in of_check(service, "settings")] == ["ok", "warning"]


def test_version_prints_the_version_of_the_package(stopped: RunningService) -> None:
    assert stopped.ok("--version") == f"sallyport, version {__version__}"


def test_the_package_is_a_command() -> None:
    """`python -m sallyport` is the command `sallyport`, and its usage errors name it so."""
    done = subprocess.run([sys.executable, "-m", "sallyport", "nope"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    error, remedy = done.stderr.splitlines()
    assert error == 'sallyport: There is no command "nope". Did you mean "node"?'
    assert remedy == "Try: python -m sallyport --help"


def test_clients_without_a_device_are_named(stopped: RunningService) -> None:
    """The doctor names a client that has registered no device, until an authentic request of it registers one."""
    service = stopped
    service.start()
    add_domain(service, "heard")
    add_user(service, "heard", "ann")
    add_client(service, "early", "127.14.0.1", "heard")
    assert any("early" in text for level, text in of_check(service, "silence") if level == "warning")
    with RadiusClient(service.ports.auth, SECRET, source="127.14.0.1") as client:
        client.login("ann", "hello")
    assert not any("early" in text for _, text in of_check(service, "silence"))
    assert any("127.14.0.1" in text for level, text in of_check(service, "devices") if level == "warning")


def test_unreachable_providers_and_directories_are_problems(service: Service) -> None:
    """The finding has the address of the server but no secret. Servers that can be reached are counted."""
    with closing(socket.create_server(("127.0.0.1", 0))) as there, closing(socket.socket()) as gone:
        gone.bind(("127.0.0.1", 0))
        here, away = there.getsockname()[1], gone.getsockname()[1]
        for name, port in (("reached", here), ("unreached", away)):
            number = int(add_domain(service, name))
            body = {"orgId": 1, "tenantId": 1, "domainId": number, "provider": "webhook", "secret": "s" * 32}
            service.post("/ad/SetMFAProvider", {**body, "url": f"http://127.0.0.1:{port}/hook"})
        reached = of_check(service, "reach", status=1)
    assert ("ok", "1 of 2 servers can be connected to") in reached
    (text,) = [text for level, text in reached if level == "problem"]
    assert text.startswith(f"unreached: MFA provider webhook: 127.0.0.1 port {away}")
    service.post("/ad/DeleteMFAProvider", {"orgId": 1, "tenantId": 1, "domainId": number})


def test_an_unreachable_identity_provider_is_a_problem(service: Service) -> None:
    """The finding names the provider of the settings file, and its address."""
    file = service.directory / "sallyport.toml"
    file.write_text(
        '[identity_providers.company]\nissuer = "http://127.0.0.1:1/realm"\nclient_id = "a"\n'
        'client_secret_env = "A"\nroles = [{ group = "g", role = "installation" }]\n'
    )
    try:
        problems = [text for level, text in of_check(service, "reach", status=1) if level == "problem"]
    finally:
        file.unlink()
    assert any(text.startswith("identity provider company: 127.0.0.1 port 1: ") for text in problems)


def test_unread_and_failed_directories_are_named(service: Service, tmp_path: Path) -> None:
    """The doctor reports a directory that was never read, an import that failed, and an expired CA certificate. A
    directory that is filled from files is ok.
    """
    domain = add_domain(service, "books")
    file = tmp_path / "people.ldif"
    file.write_text("dn: uid=ann,dc=x\nobjectClass: person\nuid: ann\n")
    service.ok("directory", "import-ldif", str(file), "--domain", domain, "--wait")
    gone = {"directoryName": "hq", "domainId": domain, "appUrl": "ldap://127.0.0.1:1", "baseDN": "dc=x"}
    gone["caCertificate"] = expired_authority("Old Root")
    service.post("/api/v1/saveDirectoryConfig", [gone])
    checked = of_check(service, "directories", status=1)
    assert ("ok", "books: LDIF: from files") in checked
    assert ("warning", "books: hq: never read: run sallyport directory sync") in checked
    assert any(level == "problem" and "caCertificate Old Root expired" in text for level, text in checked)
    assert service.cli("directory", "sync", "hq", "--domain", domain, "--wait").returncode == 1
    (text,) = [text for _, text in of_check(service, "directories", status=1) if " failed at " in text]
    assert "127.0.0.1" in text and text.endswith(
        "last read never, as far as the service knows; run sallyport directory check, then sync"
    )
    service.post("/api/v1/saveDirectoryConfig", [{**gone, "caCertificate": ""}])


def expired_authority(name: str) -> str:
    """Return the PEM certificate of an authority whose lifetime was one day and which has expired."""
    key, then = ec.generate_private_key(ec.SECP256R1()), datetime(2020, 1, 1, tzinfo=UTC)
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder(own, own, key.public_key(), 7, then, then + timedelta(days=1))
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


@pytest.mark.parametrize(("minutes", "late"), [(-1, False), (-60, True), (5, False)])
def test_an_overdue_import_is_a_problem(minutes: int, late: bool) -> None:
    """An import that is a minute late is not overdue, and one that is an hour late is."""
    due = {"nextRun": iso(now_us() + minutes * 60 * SECOND)}
    assert [each.level for each in of_schedule("corp: hq", due)] == ["problem"] * late


@pytest.mark.parametrize(("action", "level"), [("deny", "problem"), ("allow", "warning")])
def test_old_data_of_a_cloud_directory_are_named(action: str, level: str) -> None:
    """They are a problem if logins are refused because of them."""
    domain: Row = {"directoryMaxAgeHours": 24, "staleDirectoryAction": action}
    found = of_old_data("corp: entra", {"readAt": "2026-01-01T00:00:00Z"}, domain)
    assert found.level == level
    assert "corp: entra: the data of 2026-01-01T00:00:00Z are older than 24 hours" in found.text


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        ("valid", "no answer in 60 s", "is valid, but the last fetch has failed: no answer in 60 s; check"),
        ("expired", "", "is expired: the authority has not published a newer list; check"),
    ],
)
def test_a_revocation_list_that_is_not_renewed_is_named(state: str, error: str, text: str) -> None:
    """A valid list with a failed fetch is told from one that has expired."""
    found: Row = {"address": "http://pki.example.com/ca.crl", "state": state, "error": error}
    assert text in of_list("Intune", found).text
