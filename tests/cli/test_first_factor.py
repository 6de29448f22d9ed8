"""`sallyport domain first-factor` and `sallyport domain check`: set, shown, tried out."""

import json

import pytest

from tests.cli import Service, add_domain, add_user
from tests.login.first.ldap.checkers import needs_bonsai
from tests.service import RunningService


@pytest.fixture(scope="module")
def corp(service: Service) -> str:
    """A domain with a user."""
    add_domain(service, "corp")
    add_user(service, "corp", "ann")
    return "corp"


def shown(service: Service, domain: str) -> dict[str, object]:
    """What is set."""
    told: dict[str, object] = json.loads(service.ok("domain", "first-factor", domain))
    return told


def test_without_a_kind_it_is_shown(service: Service, corp: str) -> None:
    """A new domain has its own users' passwords."""
    assert shown(service, corp) == {"domainId": service.domains()["corp"]["domainId"], "firstFactor": "local"}


@needs_bonsai
def test_a_directory(service: Service) -> None:
    """Every option is a field; the password comes from standard input, and is not shown."""
    domain = add_domain(service, "ldap")
    service.ok(
        "domain", "first-factor", str(domain), "ldap", "--ldap-server", "ldap://dc1.example.com", "--ldap-server",
        "ldaps://dc2.example.com:3269", "--start-tls", "--base-dn", "dc=example,dc=com", "--bind-dn", "cn=s",
        "--bind-password", "-", "--user-filter", "(uid={user})", "--cache-seconds", "60", "--timeout-seconds", "7",
        "--winbind", "--winbind-domain", "CORP", "--code-digits", "8",
        input="t0psecret\n",
    )  # fmt: skip
    told = shown(service, str(domain))
    assert told["firstFactor"] == "ldap"
    assert told["ldap"] == {
        "servers": ["ldap://dc1.example.com", "ldaps://dc2.example.com:3269"], "startTls": True,
        "baseDN": "dc=example,dc=com", "bindDN": "cn=s", "userFilter": "(uid={user})", "cacheSeconds": 60,
        "timeoutSeconds": 7, "winbind": True, "winbindDomain": "CORP", "codeDigits": 8,
    }  # fmt: skip


def test_a_radius_server(service: Service) -> None:
    """With a port or without, and with an IPv6 address; one secret for all."""
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
    told = json.dumps(shown(service, str(domain)))
    assert '"r1.example.com"' in told and '"2001:db8::7"' in told and "1645" in told
    assert "t0psecret" not in told


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("local", "--base-dn", "dc=x"), 2, "options of ldap"),
        (("--radius-server", "h"), 2, "options of radius"),
        (("ldap", "--bind-password", "secret"), 2, "--bind-password"),
        (("kerberos",), 2, "kerberos"),
        (("ldap",), 1, "--ldap-server is needed"),
        (("ldap", "--ldap-server", "dc1", "--base-dn", "dc=x"), 1, '--ldap-server: "dc1"'),
    ],
)
def test_wrong_usage(service: Service, corp: str, arguments: tuple[str, ...], status: int, text: str) -> None:
    """Options of another kind, a password on the command line, and values that the service refuses change nothing."""
    done = service.cli("domain", "first-factor", corp, *arguments)
    assert (done.returncode, text in done.stderr) == (status, True), done.stderr
    assert shown(service, corp)["firstFactor"] == "local"


def test_a_trial(service: Service, corp: str) -> None:
    """Exit status 0 reports a right password; wrong usage is 2, an unknown domain 1."""
    right = service.cli("domain", "check", corp, "--user", "ann", "--password", "-", input="hello\n")
    assert (right.returncode, right.stdout.splitlines()[-1]) == (0, "the password is right")
    assert service.cli("domain", "check", corp, "--user", "ann", input="hello\n").returncode == 2
    assert service.cli("domain", "check", "nowhere", "--user", "a", "--password", "-", input="x\n").returncode == 1


@pytest.mark.parametrize(
    ("user", "typed", "reason"), [("ann", "nothello", "wrong password"), ("nobody", "hello", "unknown user")]
)
def test_a_trial_that_fails(service: Service, corp: str, user: str, typed: str, reason: str) -> None:
    """Exit status 1 and the reason, without the password."""
    wrong = service.cli("domain", "check", corp, "--user", user, "--password", "-", input=typed + "\n")
    assert (wrong.returncode, wrong.stdout.splitlines()[-1]) == (1, f"refused: {reason}")
    assert "nothello" not in wrong.stdout + wrong.stderr


@needs_bonsai
def test_without_a_service(stopped: RunningService) -> None:
    """A trial works on the store alone too, and tells that nobody listens there."""
    stopped.ok("db", "migrate")
    stopped.ok("domain", "add", "corp", "--org", "1", "--tenant", "1")
    directory = ("--ldap-server", "ldap://127.0.0.1:1", "--base-dn", "dc=x")
    stopped.ok("domain", "first-factor", "corp", "ldap", *directory)
    told = stopped.cli("domain", "check", "corp", "--user", "ann", "--password", "-", input="hello\n")
    assert told.returncode == 1
    assert told.stdout.splitlines()[-1] == "refused: first factor unreachable"
    assert "127.0.0.1 port 1: no connection" in told.stdout
