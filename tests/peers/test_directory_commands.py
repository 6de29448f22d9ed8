"""Tests of OpenLDAP with the commands of an admin: `sallyport directory add`, `set`, `check`, `people` and `groups`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import Service, add_domain
from tests.peers.authority import Authority
from tests.peers.programs import needs
from tests.peers.slapd import BASE, PEOPLE, SERVICE, SERVICE_PASSWORD, STAFF, Slapd, slapd

pytestmark = [pytest.mark.peer, needs("slapd", "ldapmodify", "ldapsearch")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """Yield a directory with a certificate of its own authority."""
    with slapd(tmp_path_factory.mktemp("slapd"), Authority("The directory's CA")) as directory:
        yield directory


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service."""
    running = Service(tmp_path_factory.mktemp("service"))
    running.start()
    try:
        yield running
        running.stop()
    finally:
        running.kill()


@pytest.fixture
def options(directory: Slapd, tmp_path: Path) -> dict[str, str]:
    """Return the options that make a working directory."""
    (tmp_path / "password").write_text(SERVICE_PASSWORD + "\n")
    (tmp_path / "ca.pem").write_text(directory.authority.pem)
    return {
        "--url": directory.secure_url,
        "--base-dn": BASE,
        "--bind-dn": SERVICE,
        "--secret-file": str(tmp_path / "password"),
        "--ca-certificate": str(tmp_path / "ca.pem"),
    }


def flat(options: dict[str, str]) -> list[str]:
    """Return the arguments of a command."""
    return [word for pair in options.items() for word in pair]


def test_a_directory_is_added_read_and_changed(service: Service, options: dict[str, str]) -> None:
    """A directory is tested before it is saved, and the output names the next command.

    After a read, people and groups are listed. A setting can be changed without giving the secret again.
    """
    place = ("--domain", str(add_domain(service, "ldap")))
    added = service.cli("directory", "add", "hq", *place, *flat(options))
    assert (added.returncode, added.stdout) == (0, ""), added.stderr
    assert "the directory answers" in added.stderr and "sallyport directory sync hq" in added.stderr
    again = service.cli("directory", "add", "HQ", *place, *flat(options))
    assert again.returncode == 1 and "directory set" in again.stderr
    assert service.cli("directory", "check", "hq", *place).returncode == 0
    service.ok("directory", "sync", "hq", *place, "--wait")
    (shown,) = json.loads(service.ok("directory", "list", *place, "--json"))
    assert (shown["settings"]["baseDN"], shown["hasSecret"], shown["kind"]) == (BASE, True, "ldap")
    people = json.loads(service.ok("directory", "people", *place, "--json"))
    assert {each["userName"] for each in people} == set(PEOPLE)
    members = json.loads(service.ok("directory", "people", *place, "--group", "VPN users", "--json"))
    assert {each["userName"] for each in members} == {"ann", "zoë"}
    groups = json.loads(service.ok("directory", "groups", *place, "--search", "vpn", "--json"))
    assert [each["groupName"] for each in groups] == ["vpn users"]
    service.ok("directory", "set", "hq", *place, "--filter", "(uid=a*)")
    service.ok("directory", "sync", "hq", *place, "--full", "--wait")
    (changed,) = json.loads(service.ok("directory", "list", *place, "--json"))
    assert changed["settings"] == {**shown["settings"], "filter": "(uid=a*)"} and changed["hasSecret"]
    message = (
        service.ok("directory", "list") + service.ok("directory", "show", "hq", *place) + added.stderr + service.log()
    )
    assert SERVICE_PASSWORD not in message


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"--base-dn": f"dc=nowhere,{BASE}"}, "no entry with the name of the base DN"),
        ({"--bind-dn": f"cn=nobody,{BASE}"}, "refuses the account that reads"),
        ({"--ca-certificate": ""}, "; trust it by --ca-certificate"),
        ({"--url": "ldap://localhost:1"}, "no connection"),
        ({"--filter": "(uid=nobody)"}, "shows no account"),
        ({"--base-dn": f"ou=empty,{STAFF}"}, "no entry with the name of the base DN"),
    ],
)
def test_an_error_is_shown_before_the_directory_is_saved(
    service: Service, options: dict[str, str], wrong: dict[str, str], message: str
) -> None:
    """If a directory cannot be read, neither `add` nor `set` saves it. With --no-check it is saved."""
    place = ("--domain", add_domain(service, "".join(filter(str.isalnum, str(wrong)))))
    refused = service.cli("directory", "add", "hq", *place, *flat({**options, **wrong}))
    assert refused.returncode == 1 and message in refused.stderr and "--no-check" in refused.stderr
    assert json.loads(service.ok("directory", "list", *place, "--json")) == []
    service.ok("directory", "add", "hq", *place, *flat(options))
    before = service.ok("directory", "list", *place, "--json")
    secret = {"--secret-file": options["--secret-file"]}
    refused = service.cli("directory", "set", "hq", *place, *flat({**wrong, **secret}))
    assert refused.returncode == 1 and message in refused.stderr
    assert service.ok("directory", "list", *place, "--json") == before
    service.ok("directory", "set", "hq", *place, *flat({**wrong, **secret}), "--no-check")
    assert service.ok("directory", "list", *place, "--json") != before
    failed = service.cli("directory", "check", "hq", *place)
    assert failed.returncode == 1 and message in failed.stderr


def test_the_secret_is_not_sent_elsewhere(service: Service, options: dict[str, str]) -> None:
    """If the server or the account is changed, the secret must be given again, on standard input or in a file.

    The stored secret is not sent to the new server.
    """
    place = ("--domain", add_domain(service, "elsewhere"))
    service.ok("directory", "add", "hq", *place, *flat(options))
    for moved in (("--url", "ldaps://127.0.0.1:1"), ("--bind-dn", "cn=x"), ("--ca-certificate", "")):
        refused = service.cli("directory", "set", "hq", *place, *moved)
        assert refused.returncode == 1 and "--secret-file FILE" in refused.stderr
    secret = SERVICE_PASSWORD.encode() + b"\n"
    given = ("--url", options["--url"].replace("localhost", "127.0.0.1"), "--bind-password", "-")
    changed = service.cli("directory", "set", "hq", *place, *given, input=secret)
    assert changed.returncode == 0, changed.stderr
    wrong = service.cli("directory", "set", "hq", *place, "--bind-password", "-", input=b"wrong\n")
    assert wrong.returncode == 1 and "refuses the account that reads" in wrong.stderr and "wrong" not in wrong.stderr


def test_without_a_service(service: Service, options: dict[str, str], tmp_path: Path) -> None:
    """If the service is not running, a directory is tested and saved in the store."""
    (tmp_path / "own").mkdir()
    stopped = Service(tmp_path / "own")
    stopped.ok("db", "migrate")
    stopped.ok("domain", "add", "corp", "--org", "1", "--tenant", "1")
    added = stopped.cli("directory", "add", "hq", "--domain", "corp", *flat(options))
    assert added.returncode == 0 and "the directory answers" in added.stderr
