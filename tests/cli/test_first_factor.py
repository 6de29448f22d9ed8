"""`sallyport domain first-factor` and `sallyport domain check` set, show and test a first factor."""

import json
import ssl
from hashlib import sha256
from pathlib import Path

import pytest

from sallyport.base.clock import from_iso, now_us
from tests.cli import Service, add_domain, add_user
from tests.peers.authority import Authority
from tests.running_service import RunningService

SECRET_TEXT = "MC4CAQAwBQYDK2VwBCIEIHunter2"


@pytest.fixture(scope="module")
def corp(service: Service) -> str:
    """Return the name of a domain with a user."""
    add_domain(service, "corp")
    add_user(service, "corp", "ann")
    return "corp"


def shown(service: Service, domain: str) -> dict[str, object]:
    """Return the first factor of a domain as it is shown."""
    settings: dict[str, object] = json.loads(service.ok("domain", "first-factor", domain))
    return settings


def test_the_default_first_factor_is_local(service: Service, corp: str) -> None:
    """If no kind is given, the command shows the setting, whose default is local."""
    assert shown(service, corp) == {"domainId": service.domains()["corp"]["domainId"], "firstFactor": "local"}


def test_an_ldap_first_factor_is_set(service: Service) -> None:
    """Every option is stored in its field. The password is read from standard input and is not shown."""
    domain = add_domain(service, "ldap")
    service.ok(
        "domain", "first-factor", str(domain), "ldap", "--ldap-server", "ldap://dc1.example.com", "--ldap-server",
        "ldaps://dc2.example.com:3269", "--start-tls", "--base-dn", "dc=example,dc=com", "--bind-dn", "cn=s",
        "--bind-password", "-", "--user-filter", "(uid={user})", "--cache-seconds", "60", "--timeout-seconds", "7",
        "--winbind", "--winbind-domain", "CORP", "--code-digits", "8",
        input="t0psecret\n",
    )  # fmt: skip
    settings = shown(service, str(domain))
    assert settings["firstFactor"] == "ldap"
    assert settings["ldap"] == {
        "servers": ["ldap://dc1.example.com", "ldaps://dc2.example.com:3269"], "startTls": True,
        "baseDN": "dc=example,dc=com", "bindDN": "cn=s", "userFilter": "(uid={user})", "cacheSeconds": 60,
        "timeoutSeconds": 7, "winbind": True, "winbindDomain": "CORP", "codeDigits": 8,
    }  # fmt: skip


def test_a_certificate_is_shown_by_its_content(service: Service, tmp_path: Path) -> None:
    """Instead of its PEM, a certificate is shown with its subject, its fingerprint and its expiry."""
    authority = Authority("The directory's CA")
    file = tmp_path / "ca.pem"
    file.write_text(authority.pem * 2)
    servers = ("--ldap-server", "ldaps://dc1.example.com", "--base-dn", "dc=example,dc=com")
    domain = add_domain(service, "trusting")
    service.ok("domain", "first-factor", str(domain), "ldap", *servers, "--ca-certificate", str(file))
    ldap = shown(service, str(domain))["ldap"]
    assert isinstance(ldap, dict)
    digest = sha256(ssl.PEM_cert_to_DER_cert(authority.pem)).hexdigest()
    one, other = ldap["caCertificate"]
    assert one == other and (one["subject"], one["sha256"]) == (authority.subject, digest)
    assert from_iso(one["notAfter"]) > now_us()


def test_a_radius_first_factor_is_set(service: Service) -> None:
    """A server is a name, an IPv4 address or an IPv6 address, with or without a port. All servers have the same secret,
    which is not shown.
    """
    domain = add_domain(service, "radius")
    servers = (
        "--radius-server",
        "r1.example.com",
        "--radius-server",
        "192.0.2.7:1645",
        "--radius-server",
        "[2001:db8::7]:1812",
    )
    service.ok("domain", "first-factor", str(domain), "radius", *servers, "--radius-secret", "-", input="t0psecret\n")
    settings = json.dumps(shown(service, str(domain)))
    assert '"r1.example.com"' in settings and '"2001:db8::7"' in settings and "1645" in settings
    assert "t0psecret" not in settings


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("local", "--base-dn", "dc=x"), 2, "options are for the kind ldap"),
        (("--radius-server", "h"), 2, "options are for the kind radius"),
        (("ldap", "--bind-password", "secret"), 2, "--bind-password"),
        (("kerberos",), 2, "kerberos"),
        (("ldap",), 1, "--ldap-server is needed"),
        (("ldap", "--ldap-server", "dc1", "--base-dn", "dc=x"), 1, '--ldap-server: "dc1"'),
    ],
)
def test_invalid_options_are_refused(
    service: Service, corp: str, arguments: tuple[str, ...], status: int, text: str
) -> None:
    """An option of another kind, a password that is given as an argument, and an invalid value are refused. Nothing is
    changed.
    """
    done = service.cli("domain", "first-factor", corp, *arguments)
    assert (done.returncode, text in done.stderr) == (status, True), done.stderr
    assert shown(service, corp)["firstFactor"] == "local"


@pytest.mark.parametrize("kept", ["c.pem", "c.key"])
def test_a_refused_certificate_or_key_is_not_repeated(service: Service, tmp_path: Path, kept: str) -> None:
    """If the service refuses the files of RadSec, the message names the option, and repeats neither the key nor a file
    that may contain one."""
    domain = add_domain(service, f"radsec-{kept}")
    key, certificate = Authority("An authority").key_for("client").split(b"-----BEGIN CERT")
    (tmp_path / "c.key").write_bytes(key)
    (tmp_path / "c.pem").write_bytes(b"-----BEGIN CERT" + certificate)
    (tmp_path / kept).write_text(f"-----BEGIN PRIVATE KEY-----\n{SECRET_TEXT}\n-----END PRIVATE KEY-----\n")
    words = ("--radius-server", "192.0.2.1", "--radius-tls", str(tmp_path / "c.pem"), "--radius-tls-name", "home")
    refused = service.cli("domain", "first-factor", str(domain), "radius", *words)
    assert refused.returncode != 0
    assert SECRET_TEXT not in refused.stderr and "BEGIN" not in refused.stderr
    assert "--radius-tls" in refused.stderr


def test_check_accepts_a_right_password(service: Service, corp: str) -> None:
    """The exit status is 0 for a right password, 1 for an unknown domain, and 2 for wrong usage."""
    right = service.cli("domain", "check", corp, "--user", "ann", "--password", "-", input="hello\n")
    assert (right.returncode, right.stdout.splitlines()[-1]) == (0, "the password is right")
    piped = service.cli("domain", "check", corp, "--user", "ann", input="hello\n")
    assert piped.returncode == 2
    assert "standard input is no terminal: add --password - to read the password from it" in piped.stderr
    assert service.cli("domain", "check", "nowhere", "--user", "a", "--password", "-", input="x\n").returncode == 1


@pytest.mark.parametrize(
    ("user", "typed", "reason"), [("ann", "nothello", "wrong password"), ("nobody", "hello", "unknown user")]
)
def test_check_reports_why_a_login_is_refused(service: Service, corp: str, user: str, typed: str, reason: str) -> None:
    """If the login would be refused, the exit status is 1. The output has the reason but not the password."""
    wrong = service.cli("domain", "check", corp, "--user", user, "--password", "-", input=typed + "\n")
    assert (wrong.returncode, wrong.stdout.splitlines()[-1]) == (1, f"refused: {reason}")
    assert "nothello" not in wrong.stdout + wrong.stderr


def test_check_works_without_a_service(stopped: RunningService) -> None:
    """While no service runs, the check reports that it cannot connect to the LDAP server."""
    stopped.ok("db", "migrate")
    stopped.ok("domain", "add", "corp", "--org", "1", "--tenant", "1")
    directory = ("--ldap-server", "ldap://127.0.0.1:1", "--base-dn", "dc=x")
    stopped.ok("domain", "first-factor", "corp", "ldap", *directory)
    done = stopped.cli("domain", "check", "corp", "--user", "ann", "--password", "-", input="hello\n")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "refused: first factor unreachable"
    assert "127.0.0.1 port 1: no connection" in done.stdout
