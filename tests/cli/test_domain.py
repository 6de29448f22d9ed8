"""`sallyport domain`: its output, and changes of the mode that apply to the next login."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.cli import OTHER_TENANT, SECRET, TENANT, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.running_service import RunningService


@pytest.fixture(scope="module")
def corp(service: Service) -> Iterator[int]:
    """Yield a domain with a user and a client at the address 127.6.0.1."""
    domain = add_domain(service, "corp", fallbackAction="allow")
    add_user(service, "corp", "ann")
    add_client(service, "gate", "127.6.0.1", "corp")
    yield int(domain)


def would_have_been(service: RunningService, domain: int) -> str:
    """Log in, and return the field wouldHaveBeen of the event."""
    with RadiusClient(service.ports.auth, SECRET, source="127.6.0.1") as client:
        client.login("ann", "hello")
    body = {"orgId": 1, "tenantId": 1, "domainId": domain}
    outcome: str = service.post("/ad/GetAuthLog", body)["events"][0]["wouldHaveBeen"]
    return outcome


def test_add_prints_the_id_alone(service: Service) -> None:
    """Standard output is the domainId and a line end. The API lists the domain with this ID."""
    added = service.program("domain", "add", "printed", *TENANT, "--realm", "p.example", "--fallback", "allow")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout.strip().isdecimal()
    assert added.stdout.endswith("\n")
    body = {"orgId": 1, "tenantId": 1, "pageId": 1, "pageSize": 100}
    entries = service.post("/ad/GetAllDomains", body)["domains"]
    entry = next(each for each in entries if each["domainId"] == int(added.stdout))
    assert (entry["domainName"], entry["realms"], entry["fallbackAction"]) == ("printed", ["p.example"], "allow")


def test_adding_an_enforcing_domain_warns_of_a_missing_provider(service: Service) -> None:
    """Standard output is still only the ID. The warning is on standard error."""
    added = service.cli("domain", "add", "strict", *TENANT, "--mode", "enforce")
    assert (added.returncode, added.stdout.strip().isdecimal()) == (0, True)
    assert "warning: this domain has no MFA provider" in added.stderr


def test_the_list_has_organization_tenant_and_mode(service: Service) -> None:
    made = service.ok("domain", "add", "theirs", *OTHER_TENANT, "--mode", "enforce")
    rows = json.loads(service.ok("domain", "list", "--json"))
    row = next(each for each in rows if each["domainId"] == int(made))
    assert (row["domainName"], row["org"], row["tenant"], row["enforcementMode"]) == ("theirs", 9, 4, "enforce")
    assert "theirs" in service.ok("domain", "list")


def test_a_mode_applies_to_the_next_login(service: Service, corp: int) -> None:
    """In monitor mode an event has the decision that enforce mode would make. In enforce mode it does not. The domain
    is given by its name or its ID.
    """
    assert would_have_been(service, corp) == "accept"
    switched = service.cli("domain", "mode", "CORP", "enforce")
    assert (switched.returncode, switched.stdout) == (0, "")
    assert "no MFA provider" in switched.stderr
    assert would_have_been(service, corp) == ""
    service.ok("domain", "mode", str(corp), "monitor")
    assert would_have_been(service, corp) == "accept"


def test_break_glass_switches_every_domain(service: Service, corp: int) -> None:
    """`mode --all monitor` switches the domains of all tenants at once."""
    service.set_mode("corp", "enforce")
    add_domain(service, "remote", org=9, tenant=4, enforcementMode="enforce")
    service.ok("domain", "mode", "--all", "monitor")
    assert {row["enforcementMode"] for row in json.loads(service.ok("domain", "list", "--json"))} == {"monitor"}
    assert would_have_been(service, corp) == "accept"


def test_the_list_shows_break_glass(service: Service, corp: int) -> None:
    """During break-glass the list names the former mode and the command that ends it. A pending revert does not read as
    the end of break-glass."""
    service.ok("domain", "mode", "corp", "enforce", "--revert-after", "10")
    switched = service.cli("domain", "mode", "--all", "monitor").stderr
    line = next(each for each in switched.splitlines() if "domain corp" in each)
    assert "; break-glass, until you run domain mode --all restore; then enforce, until" in line
    listed = service.cli("domain", "list")
    assert "break-glass is active: " in listed.stderr and "corp" in listed.stderr
    assert (
        next(row for row in json.loads(service.ok("domain", "list", "--json")) if row["domainName"] == "corp")[
            "breakGlass"
        ]
        == "enforce"
    )
    confirmed = service.cli("domain", "confirm", "corp").stderr
    assert "; break-glass, until you run domain mode --all restore; then enforce\n" in confirmed
    restored = service.cli("domain", "mode", "--all", "restore").stderr
    assert f"domain corp ({corp}): enforce, fallback " in restored
    ended = service.cli("domain", "list")
    assert "break-glass is active" not in ended.stderr
    service.ok("domain", "mode", "corp", "monitor")


def test_break_glass_is_restored(service: Service, corp: int) -> None:
    """`mode --all restore` undoes repeated break-glass, except for domains whose mode was set by hand since then. Both
    commands apply to the next login.
    """

    def modes() -> dict[str, str]:
        return {name: service.domains()[name]["enforcementMode"] for name in ("corp", "hand")}

    add_domain(service, "hand", enforcementMode="enforce")
    service.ok("domain", "mode", "corp", "enforce")
    for _ in range(2):
        service.ok("domain", "mode", "--all", "monitor")
    assert would_have_been(service, corp) == "accept"
    service.ok("domain", "mode", "hand", "monitor")
    restored = service.cli("domain", "mode", "--all", "restore")
    assert (restored.returncode, "domain corp" in restored.stderr, "domain hand" in restored.stderr) == (0, True, False)
    assert modes() == {"corp": "enforce", "hand": "monitor"}
    assert would_have_been(service, corp) == ""
    again = service.cli("domain", "mode", "--all", "restore")
    assert (again.returncode, again.stderr) == (0, "nothing to restore\n")
    service.ok("domain", "mode", "corp", "monitor")


def test_enforcing_is_previewed(service: Service, corp: int) -> None:
    """`preview` prints tables, or with --json the answer of the API. `mode enforce` prints the summary. With
    `--require-clean` it refuses if a login would be denied.
    """
    would_have_been(service, corp)
    previewed = service.cli("domain", "preview", "corp", "--days", "1")
    assert (previewed.returncode, "no provider" in previewed.stdout) == (0, True)
    assert "users: 1 accept, 0 challenge, 0 reject, 0 unknown" in previewed.stderr
    impact = json.loads(service.ok("domain", "preview", str(corp), "--json"))
    body = {"orgId": 1, "tenantId": 1, "domainId": corp}
    assert impact["users"] == service.post("/ad/PreviewEnforcement", body)["users"]
    refused = service.cli("domain", "mode", "corp", "enforce", "--require-clean", "--fallback", "deny")
    assert (refused.returncode, "would deny" in refused.stderr) == (1, True)
    assert would_have_been(service, corp) == "accept"
    clean = service.cli("domain", "mode", "corp", "enforce", "--require-clean")
    assert (clean.returncode, "logins between" in clean.stderr) == (0, True)
    service.ok("domain", "mode", "corp", "monitor")


def test_a_temporary_mode_is_confirmed(service: Service, corp: int) -> None:
    """`mode --revert-after` prints when the mode ends. `confirm` keeps the mode."""
    tried = service.cli("domain", "mode", "corp", "enforce", "--revert-after", "2h")
    assert (tried.returncode, "unless confirmed" in tried.stderr) == (0, True)
    ends = service.domains()["corp"]["revertsAt"]
    assert ends in tried.stderr
    kept = service.cli("domain", "confirm", "corp")
    assert (kept.returncode, "unless confirmed" in kept.stderr, "enforce" in kept.stderr) == (0, False, True)
    service.ok("domain", "mode", "corp", "monitor")


def test_a_wrong_time_of_a_revert_names_the_accepted_ones(service: Service, corp: int) -> None:
    """The message says that a number is one of minutes, and how to give another unit."""
    done = service.cli("domain", "mode", "corp", "enforce", "--revert-after", "1y")
    accepted = "must be minutes from 1 to 10080, or a time such as 90m, 12h or 2d"
    assert done.stderr.splitlines()[0] == f'sallyport: --revert-after: "1y" is not accepted: {accepted}'


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("mode", "nowhere", "monitor"), 1),
        (("mode", "twice", "monitor"), 1),
        (("mode", "--all", "enforce"), 2),
        (("mode", "--all", "monitor", "--require-clean"), 2),
        (("mode", "--all", "monitor", "--revert-after", "5"), 2),
        (("mode", "--all", "restore", "--fallback", "deny"), 2),
        (("mode", "corp", "restore"), 2),
        (("mode", "corp", "enforce", "--revert-after", "0"), 2),
        (("mode", "corp", "enforce", "--revert-after", "10081"), 2),
        (("confirm", "nowhere"), 1),
        (("preview", "nowhere"), 1),
        (("preview", "corp", "--days", "366"), 2),
        (("mode", "corp"), 2),
        (("mode", "corp", "maybe"), 2),
        (("mode", "--all", "corp", "monitor"), 2),
        (("add", "twice", *TENANT), 1),
        (("add", "third", "--org", "1"), 2),
    ],
)
def test_invalid_arguments_are_refused(service: Service, corp: int, arguments: tuple[str, ...], status: int) -> None:
    """The exit status is 1 for an unknown, ambiguous or taken name, and 2 for wrong usage."""
    if "twice" not in service.domains():
        add_domain(service, "twice")
        add_domain(service, "twice", org=9, tenant=4)
    refused = service.cli("domain", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")


def test_modes_are_set_without_a_service(stopped: RunningService) -> None:
    """While the service is stopped, `mode` sets the mode of one domain or of all domains. It prints no log line."""
    stopped.ok("db", "migrate")
    stopped.ok("domain", "add", "early", *TENANT, "--mode", "enforce")
    glass = stopped.cli("domain", "mode", "--all", "monitor")
    assert glass.returncode == 0
    assert "break_glass_activated" not in glass.stderr
    single = stopped.cli("domain", "mode", "early", "monitor")
    assert (single.returncode, single.stderr) == (0, "domain early (2): monitor, fallback deny\n")
    assert {row["enforcementMode"] for row in json.loads(stopped.ok("domain", "list", "--json"))} == {"monitor"}


def test_an_expired_mode_is_reverted_at_the_next_start(stopped: RunningService) -> None:
    """If a temporary mode expired while the service was stopped, it is reverted first at the next start. A mode that
    has not expired stays.
    """
    stopped.ok("db", "migrate")
    for name in ("due", "waiting"):
        stopped.ok("domain", "add", name, *TENANT)
        stopped.ok("domain", "mode", name, "enforce", "--revert-after", "5")
    with closing(sqlite3.connect(stopped.data_dir / "sallyport.db")) as database, database:
        database.execute("update domains set reverts_at = 2, revert_set_at = 1 where name = 'due'")
    stopped.start()
    modes = {name: (each["enforcementMode"], bool(each["revertsAt"])) for name, each in stopped.domains().items()}
    assert (modes["due"], modes["waiting"]) == (("monitor", False), ("enforce", True))


def test_disconnect_on_revoke_is_set(service: Service) -> None:
    """The option is set by `add` or later by `set`. `set` takes the domain's ID, or its name in any letter case."""

    def disconnects(name: str) -> object:
        return {each["domainName"]: each for each in json.loads(service.ok("domain", "list", "--json"))}[name][
            "disconnectOnRevoke"
        ]

    made = service.ok("domain", "add", "strict", *OTHER_TENANT, "--disconnect-on-revoke")
    service.ok("domain", "add", "lenient", *OTHER_TENANT)
    assert (disconnects("strict"), disconnects("lenient")) == (True, False)
    service.ok("domain", "set", made, "--disconnect-on-revoke", "no")
    service.ok("domain", "set", "Lenient", "--disconnect-on-revoke", "yes")
    assert (disconnects("strict"), disconnects("lenient")) == (False, True)
    assert service.cli("domain", "set", made).returncode == 2
    assert service.cli("domain", "set", "nowhere", "--disconnect-on-revoke", "yes").returncode == 1


def test_a_renamed_domain_keeps_its_former_name_as_realm(service: Service) -> None:
    """After a domain is renamed, logins with the former and with the new name as realm are accepted."""
    add_domain(service, "formerly")
    add_user(service, "formerly", "ann")
    add_domain(service, "first-of-moved")
    add_client(service, "moved", "127.6.0.9", "first-of-moved", "formerly")
    done = service.program("domain", "rename", "formerly", "nowadays")
    assert (done.returncode, done.stdout) == (0, "")
    assert "realms formerly" in done.stderr
    with RadiusClient(service.ports.auth, SECRET, source="127.6.0.9") as client:
        assert {client.login(f"ann@{realm}", "hello") for realm in ("formerly", "nowadays")} == {ACCESS_ACCEPT}


def test_realms_are_added_and_removed(service: Service) -> None:
    """A realm that another domain of the tenant has is refused. The message has the ID of that domain, and nothing is
    changed.
    """
    add_domain(service, "of-realms")
    other = add_domain(service, "other-realms", realms=["taken.example"])
    service.ok("domain", "set", "of-realms", "--realm", "a.example", "--realm", "b.example")
    service.ok("domain", "set", "of-realms", "--realm", "B.EXAMPLE", "--remove-realm", "A.example")
    refused = service.cli("domain", "set", "of-realms", "--realm", "c.example", "--realm", "Taken.example")
    assert refused.returncode == 1
    assert f"belongs to domain {other}" in refused.stderr
    assert service.domains()["of-realms"]["realms"] == ["B.EXAMPLE"]
    elsewhere = service.program("domain", "add", "of-others", *OTHER_TENANT, "--realm", "taken.example")
    assert elsewhere.returncode == 0


def test_the_issuer_of_totp_keys_is_set(service: Service) -> None:
    """The default issuer is the name of the domain. A text is refused if it has a colon or a leading space, or if it is
    too long.
    """
    add_domain(service, "issuing")
    add_user(service, "issuing", "ann")
    assert "otpauth://totp/issuing:ann?" in service.ok("user", "totp", "ann", "--domain", "issuing")
    service.ok("domain", "set", "issuing", "--issuer-name", "Example VPN")
    shown = service.ok("user", "totp", "ann", "--domain", "issuing")
    assert "otpauth://totp/Example%20VPN:ann?" in shown
    assert "&issuer=Example%20VPN&" in shown
    for wrong in ("a:b", "x" * 65, "é" * 33, " x"):
        refused = service.cli("domain", "set", "issuing", "--issuer-name", wrong)
        assert (refused.returncode, "--issuer-name" in refused.stderr) == (1, True)
    service.ok("domain", "set", "issuing", "--issuer-name", "")
    assert "&issuer=issuing&" in service.ok("user", "totp", "ann", "--domain", "issuing")


def test_require_clean_refuses_an_unreachable_provider(service: Service) -> None:
    """If the provider is unreachable, the message has the cause. The domain stays in monitor mode, and its logins are
    accepted.
    """
    add_domain(service, "unreached")
    add_user(service, "unreached", "ann")
    add_client(service, "unreached-gate", "127.6.0.10", "unreached")
    fields = ("--ikey", "DI1", "--host", "api-nowhere.invalid", "--secret", "-")
    service.ok("provider", "set", "unreached", "duo", *fields, input="a-key")
    refused = service.cli("domain", "mode", "unreached", "enforce", "--require-clean", "--accept-unknown")
    assert refused.returncode == 1
    assert "the MFA provider does not work: api-nowhere.invalid: the name has no address" in refused.stderr
    body = {"orgId": 1, "tenantId": 1, "domainId": service.domains()["unreached"]["domainId"]}
    asked = {**body, "enforcementMode": "enforce", "requireClean": True}
    assert "the name has no address" in service.post("/ad/updateDomainEnforcement", asked, status=409)["error"]
    assert service.domains()["unreached"]["enforcementMode"] == "monitor"
    with RadiusClient(service.ports.auth, SECRET, source="127.6.0.10") as client:
        assert client.login("ann", "hello") == ACCESS_ACCEPT


def test_require_clean_names_users_that_would_be_denied(service: Service) -> None:
    """The enrolments are looked up first. The users that are not enrolled are printed, with the next step."""
    add_domain(service, "surveyed")
    for name in ("ann", "bob"):
        add_user(service, "surveyed", name)
    add_client(service, "surveyed-gate", "127.6.0.11", "surveyed")
    with RadiusClient(service.ports.auth, SECRET, source="127.6.0.11") as client:
        for name in ("ann", "bob"):
            assert client.login(name, "hello") == ACCESS_ACCEPT
    service.ok("provider", "set", "surveyed", "totp")
    refused = service.cli("domain", "mode", "surveyed", "enforce", "--require-clean")
    assert refused.returncode == 1
    assert "looked up 2 of 2 enrolments" in refused.stderr
    assert "enforcing would deny 2 users or devices" in refused.stderr
    assert "next: enrol the users" in refused.stderr
    listed = {line.split()[0] for line in refused.stderr.splitlines() if "not enrolled" in line}
    assert listed == {"ann", "bob"}
    assert refused.stdout == ""
    assert service.domains()["surveyed"]["enforcementMode"] == "monitor"


def test_a_domain_is_removed_with_everything_in_it(service: Service) -> None:
    """`domain remove` lists the rows that will be deleted. Without a terminal it needs --yes."""
    domain = add_domain(service, "old")
    add_user(service, "old", "ann")
    listed = service.program("domain", "remove", "old", "--dry-run")
    assert (listed.returncode, listed.stdout.split()[-3:]) == (0, ["1", "endpoint", "users"])
    asked = service.program("domain", "remove", "old")
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "endpoint users" in asked.stderr
    assert f"domain old ({domain}) would be removed with everything listed; to remove it, add --yes" in asked.stderr
    removed = service.program("domain", "remove", "OLD", "--yes", "--json")
    assert (removed.returncode, json.loads(removed.stdout)) == (
        0,
        {"domainId": int(domain), "domainName": "old", "deleted": [{"kind": "endpoint users", "count": 1}]},
    )
    assert removed.stderr == (
        f"domain old ({domain}) is removed\nthe service deletes the domain's rows in the background, "
        "and forgets the domain after ten minutes\n"
    )
    again = service.program("domain", "remove", "old", "--yes")
    assert (again.returncode, again.stdout) == (1, "")
    assert 'domain "old" not found' in again.stderr


def test_the_default_domain_of_a_client_is_not_removed(service: Service, corp: int) -> None:
    """The refusal names the client. It comes before the list of rows and the question."""
    refused = service.program("domain", "remove", str(corp))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        "the domain is the default of 1 RADIUS client: gate; first give each client another default domain"
        in refused.stderr
    )
