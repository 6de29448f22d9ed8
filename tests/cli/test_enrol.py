"""`sallyport user enrol`, `not-enrolled` and `enrolments`."""

import json

from tests.cli import Service, add_domain, add_user


def test_users_without_a_factor(service: Service) -> None:
    """They are listed with the state of their links. This service has no site of people, so that it makes none."""
    domain = add_domain(service, "not enrolled")
    add_user(service, domain, "ann")
    listed = json.loads(service.ok("user", "not-enrolled", "--domain", domain, "--json"))
    assert [(each["userName"], each["link"]) for each in listed] == [("ann", "")]
    assert json.loads(service.ok("user", "not-enrolled", "--domain", domain, "--group", "x", "--json")) == []
    assert json.loads(service.ok("user", "enrolments", "--domain", domain, "--json")) == []
    for wanted in (("ann", "--link"), ("ann", "--mail"), ("--group", "staff", "--mail")):
        refused = service.cli("user", "enrol", *wanted, "--domain", domain)
        assert refused.returncode == 1 and "people_bind" in refused.stderr


def test_wrong_uses(service: Service) -> None:
    """The command needs a user or a group, and one way. Links of a group are sent by mail only."""
    domain = add_domain(service, "wrong enrolments")
    for wanted in ((), ("ann",), ("ann", "--link", "--mail"), ("ann", "--group", "g", "--mail"), ("--group", "g"),
                   ("--group", "g", "--link")):  # fmt: skip
        assert service.cli("user", "enrol", *wanted, "--domain", domain).returncode == 2, wanted
