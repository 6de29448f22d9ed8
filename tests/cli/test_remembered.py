"""`sallyport user remembered`, and the setting of a domain."""

import json

from tests.cli import Service, add_domain


def test_a_domain_without_remembered_stations(service: Service) -> None:
    """The list is empty, also for one user. A station that does not exist is an error."""
    domain = add_domain(service, "with remembered stations")
    assert json.loads(service.ok("user", "remembered", "list", "--domain", domain, "--json")) == []
    assert json.loads(service.ok("user", "remembered", "list", "--domain", domain, "--user", "ann", "--json")) == []
    for arguments in (("ann",), ("ann", "7")):
        refused = service.cli("user", "remembered", "remove", *arguments, "--domain", domain)
        assert refused.returncode == 1 and "the user has no such remembered station" in refused.stderr
    assert service.cli("user", "remembered", "remove", "ann", "x", "--domain", domain).returncode == 2


def test_the_setting(service: Service) -> None:
    """`domain set` has the hours."""
    domain = add_domain(service, "that remembers")
    changed = service.cli("domain", "set", domain, "--remember-hours", "12")
    assert "stations remembered for 12 h" in changed.stderr
    assert service.cli("domain", "set", domain, "--remember-hours", "2161").returncode == 2
