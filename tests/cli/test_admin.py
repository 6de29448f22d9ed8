"""`sallyport admin`: local administrators of the console, and sessions."""

import json

import pytest
from pyotp import parse_uri

from tests.cli import TENANT, Service

PASSWORD = "a horse and 42 batteries"


def add(service: Service, name: str, *options: str) -> str:
    """Add an administrator, and return the last line of the output."""
    return service.ok("admin", "add", name, *options, "--password", "-", input=f"{PASSWORD}\n").splitlines()[-1]


def rows(service: Service) -> dict[str, dict[str, object]]:
    """Return the administrators by name."""
    return {each["name"]: each for each in json.loads(service.ok("admin", "list", "--json"))}


def test_add_prints_the_seed_once(service: Service) -> None:
    """The output is a QR code and the URI for an authenticator app. The list has no secret."""
    uri = add(service, "root")
    seed = parse_uri(uri).secret  # type: ignore[union-attr]
    assert "issuer=Sallyport" in uri
    assert rows(service)["root"]["role"] == "installation"
    assert seed not in service.ok("admin", "list") + json.dumps(rows(service))


def test_an_administrator_of_a_tenant_has_a_role(service: Service) -> None:
    """With a tenant, the administrator has the role of a token there."""
    add(service, "ann", *TENANT, "--role", "auditor")
    assert (rows(service)["ann"]["role"], rows(service)["ann"]["tenant"]) == ("auditor", 1)


@pytest.mark.parametrize(
    ("options", "status", "why"),
    [
        (("--org", "1"), 2, "--org and --tenant go together"),
        (("--role", "admin"), 2, "--role needs --org and --tenant"),
        (("--password", "secret"), 2, "--password accepts only -"),
        (("--org", "99", "--tenant", "99", "--password", "-"), 1, "no tenant 99"),
        ((), 2, "standard input is no terminal"),
    ],
    ids=["half a tenant", "role alone", "password as argument", "unknown tenant", "no terminal"],
)
def test_wrong_usage_says_what_to_do(service: Service, options: tuple[str, ...], status: int, why: str) -> None:
    """No administrator is made, and the message names the option."""
    done = service.cli("admin", "add", "nobody", *options, input=f"{PASSWORD}\n")
    assert done.returncode == status
    assert why in done.stderr
    assert "nobody" not in rows(service)


def test_a_weak_password_is_refused_with_the_rules(service: Service) -> None:
    """The message has the rules and not the password."""
    done = service.cli("admin", "add", "weak", "--password", "-", input="hunter2\n")
    assert done.returncode == 1
    assert "fewer than 12 characters" in done.stderr
    assert "hunter2" not in done.stderr


def test_password_totp_and_remove(service: Service) -> None:
    """A new password and a new seed are set by name. A removed administrator is not listed any more."""
    first = add(service, "bob")
    service.ok("admin", "password", "bob", "--password", "-", input=f"{PASSWORD}2\n")
    assert service.ok("admin", "totp", "bob").splitlines()[-1] != first
    service.ok("admin", "remove", "BOB")
    assert "bob" not in rows(service)
    assert service.cli("admin", "remove", "bob").returncode == 1


def test_sessions_are_listed_and_revoked(service: Service) -> None:
    """A session that does not exist is refused."""
    assert json.loads(service.ok("admin", "sessions", "--json")) == []
    done = service.cli("admin", "revoke", "12345")
    assert (done.returncode, "no such session of the console" in done.stderr) == (1, True)


def test_identities_are_listed_and_removed(service: Service) -> None:
    """Without an identity provider, the list is empty, and the removal names the command that lists."""
    assert json.loads(service.ok("admin", "identities", "--json")) == []
    done = service.cli("admin", "forget", "12345")
    assert (done.returncode, "there is no identity 12345: `admin identities` lists them" in done.stderr) == (1, True)
