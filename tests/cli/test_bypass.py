"""`sallyport bypass`: add, list and remove."""

import json

from tests.cli import Service, add_domain


def test_stations_are_added_listed_and_removed(service: Service) -> None:
    """Stations are given as arguments or in a file, in any notation. A line of the file may give the station a name."""
    domain = add_domain(service, "bypassed")
    lines = "# the second floor\n\n02-00-00-00-00-02, camera\n0200.0000.0003\n"
    service.ok("bypass", "add", "020000000001", "--domain", domain, "--name", "printer", "--file", "-", input=lines)
    rows = json.loads(service.ok("bypass", "list", "--domain", domain, "--json"))
    assert {(row["station"][-1], row["name"]) for row in rows} == {("1", "printer"), ("2", "camera"), ("3", "printer")}
    service.ok("bypass", "remove", "02:00:00:00:00:02", "--domain", domain)
    assert "camera" not in service.ok("bypass", "list", "--domain", domain)


def test_an_invalid_station_is_refused(service: Service) -> None:
    """The exit status is 1 for text that is not a MAC address, and 2 if no station is given. No station is added."""
    domain = add_domain(service, "not bypassed")
    assert service.program("bypass", "add", "printer", "--domain", domain).returncode == 1
    assert service.program("bypass", "add", "--domain", domain).returncode == 2
    assert json.loads(service.ok("bypass", "list", "--domain", domain, "--json")) == []
