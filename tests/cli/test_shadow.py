"""`sallyport shadow`: read the logs of another server, and compare."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.areas.shadow.files import Packet, database, several, write
from tests.cli import Service, add_client, add_domain, add_user


def office(service: Service, name: str, address: str) -> str:
    """Add a domain with the user ann and a RADIUS client, and return its ID."""
    domain = add_domain(service, name)
    add_user(service, domain, "ann")
    add_client(service, name, address, domain)
    service.ok("rule", "add", "all", "--action", "allow", "--everyone", "--domain", domain)
    return domain


def test_the_status_is_that_of_the_limit(service: Service, tmp_path: Path) -> None:
    """A report with too many differing logins has the status 1. Notes are on standard error."""
    domain = office(service, "limited", "192.0.2.61")
    packets = several([Packet("ann", nas="192.0.2.61")] * 9 + [Packet("eve", nas="192.0.2.61")])
    path = write(tmp_path / "IN2601.log", packets, database)
    done = service.cli("shadow", "report", str(path), "--domain", domain, "--zone", "UTC", "--limit", "10%")
    assert (done.returncode, "unknown user" in done.stdout) == (0, True)
    assert "20 lines read: 10 logins, 10 of them new" in done.stderr
    assert "10 logins: 9 the same, 1 stricter, 0 laxer, 0 unknown" in done.stderr
    done = service.cli("shadow", "report", "--domain", domain, "--limit", "9.5%")
    assert (done.returncode, "1 of 10 logins differ, more than 9.5 %" in done.stderr) == (1, True)


def test_the_logins_behind_a_number(service: Service, tmp_path: Path) -> None:
    """The report lists causes, logins, users or NAS. JSON has all of them."""
    domain = office(service, "listed", "192.0.2.62")
    packets = several([Packet("ann"), Packet("eve"), Packet("eve")])
    path = write(tmp_path / "a.log", [replace(each, nas="192.0.2.62") for each in packets])
    service.ok("shadow", "report", str(path), "--domain", domain)
    rows = service.ok("shadow", "report", "--domain", domain, "--logins", "--result", "stricter", "--columns", "place")
    assert rows.split()[2:] == ["a.log:5", "a.log:3"]
    assert "eve" in service.ok("shadow", "report", "--domain", domain, "--users").splitlines()[2]
    assert "192.0.2.62" in service.ok("shadow", "report", "--domain", domain, "--devices")
    found = json.loads(service.ok("shadow", "report", "--domain", domain, "--device", "192.0.2.62", "--json"))
    assert (found["logins"], found["counts"]["stricter"]) == (3, 2)
    service.ok("shadow", "clear", "--domain", domain)
    assert json.loads(service.ok("shadow", "report", "--domain", domain, "--json"))["logins"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--limit", "101%"), "'101%' is not a share from 0% to 100%"),
        (("--limit", "some"), "'some' is not a share"),
        (("--zone", "Mars/Base"), "'Mars/Base' is no time zone; give one such as Europe/Berlin"),
        (("--format", "syslog"), "must be nps, detail, linelog or ise"),
        (("/there/is/no.log",), "does not exist"),
    ],
)
def test_wrong_usage(service: Service, arguments: tuple[str, ...], message: str) -> None:
    """Wrong usage has the status 2, and the message has the accepted values."""
    done = service.cli("shadow", "report", "--domain", "default", *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_file_of_another_format(service: Service, tmp_path: Path) -> None:
    """The message tells what to do, and the status is that of a refusal."""
    domain = add_domain(service, "unread")
    (tmp_path / "a.log").write_text("hello\n")
    done = service.cli("shadow", "report", str(tmp_path / "a.log"), "--domain", domain)
    assert (done.returncode, "give --format: nps, detail, linelog, ise" in done.stderr) == (1, True)
