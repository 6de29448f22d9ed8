"""Commands that create a tenant, and commands that refuse an unknown one."""

import json
from pathlib import Path

import click
import pytest

from tests.cli import OTHER_TENANT, Service
from tests.cli.permissions import arguments, leaves
from tests.running_service import RunningService

MAKERS = ("token create", "domain add")
NUMBERS = {"--org": "77", "--tenant": "78"}
MORE = {
    "admin add": ("--password", "-"),
    "cert renew": ("laptop",),
    "client add": ("--address", "192.0.2.77"),
    "client set": ("--name", "other"),
    "policy validate": ("--password", "-"),
}
"""Arguments that a command needs in addition to its required parameters."""


def scoped(command: click.Command) -> bool:
    """Return whether a command takes --org and --tenant."""
    return set(NUMBERS) <= {option for each in command.params for option in each.opts}


COMMANDS = {" ".join(words): command for words, command in leaves() if scoped(command)}


def tenants(service: RunningService) -> set[tuple[int, int]]:
    """Return the tenants of the installation."""
    return {(each["org"], each["tenant"]) for each in service.call("tenant.list")}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(MAKERS)))
def test_an_unknown_tenant_is_refused(service: Service, tmp_path: Path, name: str) -> None:
    """For an unknown tenant the exit status is 1, and the tenant is not created."""
    before, file = tenants(service), tmp_path / "input"
    file.write_text("")
    given = arguments(COMMANDS[name], str(tmp_path / "new" if name.startswith("cert ") else file))
    for option, number in NUMBERS.items():
        if option in given:
            del given[given.index(option) : given.index(option) + 2]
        given[:0] = [option, number]
    done = service.cli(*name.split(), *given, *MORE.get(name, ()), input="hello\n")
    assert done.returncode == 1, done.stderr
    assert tenants(service) == before


@pytest.mark.parametrize("name", MAKERS)
def test_a_new_tenant_is_reported(service: Service, name: str) -> None:
    """`token create` and `domain add` create a missing tenant and report it on standard error."""
    org = str(100 + MAKERS.index(name))
    done = service.cli(*name.split(), *["new"] * (name == "domain add"), "--org", org, "--tenant", "3")
    assert done.returncode == 0
    assert f"organization {org} is new\ntenant 3 of organization {org} is new\n" in done.stderr
    assert (int(org), 3) in tenants(service)


def test_a_refused_domain_creates_no_tenant(tmp_path: Path) -> None:
    """The domain and its tenant are created together. If the domain exceeds the limit, the tenant is not created."""
    service = RunningService(tmp_path, {"SALLYPORT_LIMITS": "domains=1"})
    service.ok("db", "migrate")
    before = service.ok("domain", "list", "--json")
    full = RunningService(tmp_path, {"SALLYPORT_LIMITS": "domains=0"})
    done = full.cli("domain", "add", "new", *OTHER_TENANT)
    assert (done.returncode, "limit reached: domains" in done.stderr) == (1, True)
    assert "is new" not in done.stderr
    assert full.ok("domain", "list", "--json") == before
    full.start()
    try:
        assert tenants(full) == {(1, 1)}
    finally:
        full.kill()


def test_a_mistyped_tenant_is_removed(service: Service) -> None:
    """The note about a new tenant names the command that removes it. The command asks, unless --yes is given."""
    scope = ("--org", "4711", "--tenant", "3")
    made = service.cli("domain", "add", "typo", *scope)
    assert "`sallyport tenant remove` removes the new tenant" in made.stderr
    refused = service.cli("tenant", "remove", *scope, "--yes")
    assert refused.returncode == 1 and "still has 1 domain: remove them first" in refused.stderr
    service.ok("token", "create", "--org", "4712", "--tenant", "3")
    scope = ("--org", "4712", "--tenant", "3")
    asked = service.cli("tenant", "remove", *scope, input="n\n")
    assert asked.returncode == 1 and (4712, 3) in tenants(service)
    assert "is removed" in service.cli("tenant", "remove", *scope, "--yes").stderr
    assert (4712, 3) not in tenants(service)


def test_tenants_are_listed_and_renamed(service: Service) -> None:
    """The list has the names and the numbers of objects of each tenant."""
    service.ok("token", "create", "--org", "4713", "--tenant", "3")
    service.ok("tenant", "rename", "Branch", "--org", "4713", "--tenant", "3")
    service.ok("tenant", "rename", "Example", "--org", "4713")
    rows = json.loads(service.ok("tenant", "list", "--json"))
    (row,) = [each for each in rows if each["org"] == 4713]
    assert row.pop("created").endswith("Z")
    assert row == {
        "org": 4713, "tenant": 3, "organization": "Example", "name": "Branch", "domains": 0, "clients": 0, "tokens": 1,
    }  # fmt: skip
    assert "Branch" in service.ok("tenant", "list")
