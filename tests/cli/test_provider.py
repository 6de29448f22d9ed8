"""`sallyport provider`: the MFA provider of a domain."""

import json
import socket
from pathlib import Path

import pytest

from tests.cli import Service, add_domain

KEY = "hunter2-is-what-nobody-may-see"
NOT_ASKED = {"workedAt": "", "failsSince": "", "lastError": ""}
"""The state of a provider that was not asked yet."""


@pytest.fixture(scope="module")
def guarded(service: Service) -> str:
    """Return the name of a domain without a provider."""
    add_domain(service, "guarded")
    return "guarded"


def test_a_provider_is_set_shown_checked_and_removed(service: Service, guarded: str, tmp_path: Path) -> None:
    """The secret is read from a file and never shown. `check` reports the cause of a failure."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (tmp_path / "key").write_text(f"{KEY}\n")
    url = f"http://127.0.0.1:{port}/hook"
    done = service.program("provider", "set", guarded, "webhook", "--url", url, "--secret", str(tmp_path / "key"))
    assert (done.returncode, done.stdout) == (0, "")
    assert f"sallyport provider check {guarded}" in done.stderr
    shown = json.loads(service.ok("provider", "show", guarded, "--json"))
    assert shown == {"provider": "webhook", "timeoutSeconds": 60, "url": url, **NOT_ASKED}
    checked = service.program("provider", "check", guarded)
    assert checked.returncode == 1
    assert f"port {port} is closed" in checked.stdout
    after = json.loads(service.ok("provider", "show", guarded, "--json"))
    assert after["failsSince"] and f"port {port} is closed" in after["lastError"]
    assert KEY not in done.stdout + done.stderr + checked.stdout + checked.stderr + service.log()
    service.ok("provider", "set", guarded, "TOTP", "--timeout-seconds", "30")
    assert "codes are checked by this service" in service.ok("provider", "check", guarded)
    service.ok("provider", "remove", guarded)
    assert "no MFA provider" in service.cli("provider", "show", guarded).stderr


def test_factors_of_the_service_need_pages(service: Service, guarded: str) -> None:
    """Without the pages of people, the provider own takes codes only. The command shows what is used."""
    refused = service.cli("provider", "set", guarded, "own", "--binding", "address")
    assert refused.returncode == 1
    assert "the pages of people are off: set people_bind" in refused.stderr
    done = service.program("provider", "set", guarded, "own", "--factors", "totp,bypass", "--digits", "8")
    assert done.returncode == 0
    assert "totp,bypass with binding code; the pages of people are off; no server is asked" in done.stderr
    shown = json.loads(service.ok("provider", "show", guarded, "--json"))
    assert [shown[name] for name in ("provider", "binding", "factors", "digits")] == ["own", "code", "totp,bypass", 8]
    wrong = service.cli("provider", "set", guarded, "own", "--factors", "totp,password")
    assert "--factors" in wrong.stderr and "must be one or more of" in wrong.stderr


def test_the_secret_is_the_first_line_of_standard_input(service: Service, guarded: str) -> None:
    fields = ("--ikey", "DI1", "--host", "api-1.duosecurity.com", "--secret", "-")
    service.ok("provider", "set", guarded, "duo", *fields, input=f"{KEY}\nmore")
    shown = json.loads(service.ok("provider", "show", guarded, "--json"))
    settings = {"provider": "duo", "timeoutSeconds": 60, "ikey": "DI1", "host": "api-1.duosecurity.com"}
    assert shown == {**settings, **NOT_ASKED}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("duo", "--url", "https://x.example", "--secret", "-"), "--url is no option of duo; its options are: --ikey"),
        (
            ("duo", "--okta-domain", "x.example", "--secret", "-"),
            "--okta-domain is no option of duo; its options are: --ikey",
        ),
        (("okta", "--ikey", "DI1", "--secret", "-"), "--ikey is no option of okta; its options are: --okta-domain"),
        (("duo", "--ikey", "DI1", "--host", "x.example"), "duo needs its skey: --secret - (standard input)"),
        (("duo", "--ikey", "DI1", "--secret", KEY), "--secret takes - (standard input) or a file"),
        (("duo", "--field", f"skey={KEY}"), "skey is a secret"),
        (("totp", "--secret", "-"), "totp has no secret"),
        (("acme", "--secret", "-"), "needs --secret-field NAME"),
        (("webhok", "--secret", "-"), 'Did you mean "webhook"?'),
    ],
    ids=[
        "other's option",
        "an option with the name of an argument",
        "an option in place of that one",
        "no secret",
        "secret as an argument",
        "secret as a field",
        "no secret field",
        "installed",
        "a typing error",
    ],
)
def test_invalid_options_are_refused(service: Service, guarded: str, arguments: tuple[str, ...], message: str) -> None:
    """The message names the wrong option and the accepted ones. It does not repeat a secret."""
    refused = service.cli("provider", "set", guarded, *arguments)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert KEY not in refused.stderr


def test_removing_the_provider_of_an_enforcing_domain_needs_confirmation(service: Service) -> None:
    """Removing the provider of an enforcing domain must be confirmed, because the fallback action then decides."""
    add_domain(service, "strict-guard")
    service.ok("provider", "set", "strict-guard", "totp")
    service.ok("domain", "mode", "strict-guard", "enforce")
    refused = service.cli("provider", "remove", "strict-guard")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    service.ok("provider", "remove", "strict-guard", "--yes")


def test_a_provider_beside_the_default_one(service: Service, tmp_path: Path) -> None:
    """`add` leaves the default provider. A rule names the added one, which is then not removed."""
    add_domain(service, "moving")
    (tmp_path / "key").write_text(f"{KEY}\n")
    service.ok("provider", "set", "moving", "totp")
    url = ("--url", "https://hook.example.com/x", "--secret", str(tmp_path / "key"))
    added = service.program("provider", "add", "moving", "webhook", *url)
    assert "--provider webhook --domain moving" in added.stderr
    shown = json.loads(service.ok("provider", "show", "moving", "--provider", "webhook", "--json"))
    assert (shown["provider"], shown["url"]) == ("webhook", "https://hook.example.com/x")
    assert json.loads(service.ok("provider", "show", "moving", "--json"))["provider"] == "totp"
    assert "codes are checked" in service.ok("provider", "check", "moving", "--provider", "totp")
    rule = ("rule", "add", "admins", "--domain", "moving", "--group", "admins", "--action", "mfa_required")
    number = service.ok(*rule, "--provider", "webhook").strip()
    assert "admins  webhook" in service.ok("rule", "list", "--domain", "moving")
    listed = json.loads(service.ok("provider", "list", "moving", "--json"))
    assert [(each["provider"], each["isDefault"], each["strongest"], each["usedBy"]) for each in listed] == [
        ("totp", True, "any", []), ("webhook", False, "any", [f"rule {number} admins"]),
    ]  # fmt: skip
    assert "webhook" in service.ok("provider", "list", "moving")
    refused = service.cli("provider", "remove", "moving", "--provider", "webhook")
    assert refused.returncode == 1 and f"named by rule {number} admins" in refused.stderr
    assert (
        '--strength: "two_channels" is not accepted: must be at most any'
        in service.cli(*rule, "--strength", "two_channels").stderr
    )
    assert "must be an MFA provider of the domain; existing: totp, webhook" in (
        service.cli(*rule, "--provider", "duo").stderr
    )
    tested = service.ok("rule", "test", "--domain", "moving", "--user", "ann", "--group", "admins")
    assert "second factor: webhook" in tested
    service.ok("rule", "remove", number, "--domain", "moving")
    assert "webhook of moving is removed" in service.cli("provider", "remove", "moving", "--provider", "webhook").stderr
    assert len(json.loads(service.ok("provider", "list", "moving", "--json"))) == 1
    assert KEY not in added.stdout + added.stderr + service.log()
