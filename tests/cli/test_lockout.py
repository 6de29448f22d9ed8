"""`sallyport lockout`: list and remove."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import Service
from tests.radius_client import RadiusClient

REJECT, ACCEPT = 3, 2
SECRET = "a long secret"


@pytest.fixture
def nas(service: Service) -> Iterator[RadiusClient]:
    """Yield a client of the domain vault. The first test creates the domain with the user kim."""
    if "vault" not in service.domains():
        service.ok("domain", "add", "vault", "--org", "1", "--tenant", "1")
        service.ok("user", "add", "kim", "--domain", "vault", "--password", "-", input="hello\n")
        address = ("--address", "127.0.0.77", "--secret", SECRET)
        service.ok("client", "add", "door", *address, "--org", "1", "--tenant", "1", "--domain", "vault")
    with service.radius(SECRET, source="127.0.0.77") as client:
        yield client


def lock_out(nas: RadiusClient) -> None:
    """Send ten wrong passwords for kim, and assert that the right password is then refused."""
    for number in range(10):
        assert nas.login("kim", f"wrong {number}") == REJECT
    assert nas.login("kim", "hello") == REJECT


def test_a_lockout_is_listed_and_removed(service: Service, nas: RadiusClient) -> None:
    """After `remove` the user can log in. A second `remove` reports that there is no lockout."""
    assert json.loads(service.ok("lockout", "list", "--json")) == []
    lock_out(nas)
    (row,) = json.loads(service.ok("lockout", "list", "--json"))
    assert (row["domain"], row["kind"], row["name"], row["failures"]) == ("vault", "user", "kim", 10)
    assert "kim" in service.ok("lockout", "list", "--domain", "vault")
    done = service.cli("lockout", "remove", "--domain", "vault", "--user", "kim")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "kim is unlocked\n")
    assert nas.login("kim", "hello") == ACCEPT
    done = service.cli("lockout", "remove", "--domain", "vault", "--user", "kim")
    assert (done.returncode, done.stderr) == (0, "the user or station was not locked out\n")


def test_a_restore_restores_the_lockouts(service: Service, nas: RadiusClient, tmp_path: Path) -> None:
    """After a restore, the lockouts of the restored store apply at once, and no others."""
    before, locked = str(tmp_path / "before.db"), str(tmp_path / "locked.db")
    service.ok("db", "backup", before)
    lock_out(nas)
    service.ok("db", "backup", locked)
    service.ok("db", "restore", before, "--yes")
    assert nas.login("kim", "hello") == ACCEPT
    service.ok("db", "restore", locked, "--yes")
    assert nas.login("kim", "hello") == REJECT
    service.ok("lockout", "remove", "--domain", "vault", "--user", "KIM")
    assert nas.login("kim", "hello") == ACCEPT


def test_invalid_arguments_are_refused(service: Service) -> None:
    """`remove` takes either a user or a station. An unknown domain is refused."""
    assert service.cli("lockout", "remove", "--domain", "default").returncode == 2
    assert service.cli("lockout", "remove", "--domain", "default", "--user", "a", "--station", "b").returncode == 2
    assert service.cli("lockout", "list", "--domain", "nowhere").returncode == 1
