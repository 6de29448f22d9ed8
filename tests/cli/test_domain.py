"""`sallyport domain`: what it prints, and that a mode holds for the next login."""

import json
from collections.abc import Iterator

import pytest

from tests.cli import OTHER_TENANT, SECRET, TENANT, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.service import RunningService


@pytest.fixture(scope="module")
def corp(service: Service) -> Iterator[int]:
    """A domain with a user, whose logins come from 127.6.0.1."""
    domain = add_domain(service, "corp")
    add_user(service, "corp", "ann")
    add_client(service, "gate", "127.6.0.1", "corp")
    yield int(domain)


def would_have_been(service: RunningService, domain: int) -> str:
    """What the event of a login that is made now says of the mode."""
    with RadiusClient(service.ports.auth, SECRET, source="127.6.0.1") as client:
        client.login("ann", "hello")
    body = {"orgId": 1, "tenantId": 1, "domainId": domain}
    told: str = service.post("/ad/GetAuthLog", body)["events"][0]["wouldHaveBeen"]
    return told


def test_add_prints_the_id_alone(service: Service) -> None:
    """Standard output is the domainId and a line end; the API lists the domain under it."""
    added = service.program("domain", "add", "printed", *TENANT, "--realm", "p.example", "--fallback", "allow")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout.strip().isdecimal()
    assert added.stdout.endswith("\n")
    body = {"orgId": 1, "tenantId": 1, "pageId": 1, "pageSize": 100}
    entries = service.post("/ad/GetAllDomains", body)["domains"]
    entry = next(each for each in entries if each["domainId"] == int(added.stdout))
    assert (entry["domainName"], entry["realms"], entry["fallbackAction"]) == ("printed", ["p.example"], "allow")


def test_list_says_whose_a_domain_is(service: Service) -> None:
    """Organization, tenant and mode are in the list, as a table and as JSON."""
    made = service.ok("domain", "add", "theirs", *OTHER_TENANT, "--mode", "enforce")
    rows = json.loads(service.ok("domain", "list", "--json"))
    row = next(each for each in rows if each["id"] == int(made))
    assert (row["name"], row["org"], row["tenant"], row["mode"]) == ("theirs", 9, 4, "enforce")
    assert "theirs" in service.ok("domain", "list")


def test_a_mode_holds_for_the_next_login(service: Service, corp: int) -> None:
    """An event of monitor mode says what would have been, one of enforce mode does not; by name and by id."""
    assert would_have_been(service, corp) == "accept"
    switched = service.cli("domain", "mode", "CORP", "enforce")
    assert (switched.returncode, switched.stdout) == (0, "")
    assert "no MFA provider" in switched.stderr
    assert would_have_been(service, corp) == ""
    service.ok("domain", "mode", str(corp), "monitor")
    assert would_have_been(service, corp) == "accept"


def test_the_break_glass_reaches_every_domain(service: Service, corp: int) -> None:
    """`mode --all monitor` switches the domains of all tenants at once."""
    service.call("domain.mode", domain="corp", mode="enforce")
    add_domain(service, "remote", org=9, tenant=4, mode="enforce")
    service.ok("domain", "mode", "--all", "monitor")
    assert {row["mode"] for row in json.loads(service.ok("domain", "list", "--json"))} == {"monitor"}
    assert would_have_been(service, corp) == "accept"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("mode", "nowhere", "monitor"), 1),
        (("mode", "twice", "monitor"), 1),
        (("mode", "--all", "enforce"), 2),
        (("mode", "corp"), 2),
        (("mode", "corp", "maybe"), 2),
        (("mode", "--all", "corp", "monitor"), 2),
        (("add", "twice", *TENANT), 1),
        (("add", "third", "--org", "1"), 2),
    ],
)
def test_refusals(service: Service, corp: int, arguments: tuple[str, ...], status: int) -> None:
    """An unknown, ambiguous or taken name is refused with 1, what is not understood with 2."""
    if not any(row["name"] == "twice" for row in service.call("domain.list")):
        add_domain(service, "twice")
        add_domain(service, "twice", org=9, tenant=4)
    refused = service.cli("domain", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")


def test_without_a_service(stopped: RunningService) -> None:
    """The break-glass works where the service is down, too."""
    stopped.ok("domain", "add", "early", *TENANT, "--mode", "enforce")
    stopped.ok("domain", "mode", "--all", "monitor")
    assert {row["mode"] for row in json.loads(stopped.ok("domain", "list", "--json"))} == {"monitor"}
