"""`sallyport role`: set, list, show and remove."""

import json

from tests.cli import Service, add_domain


def test_a_role_is_set_shown_and_removed(service: Service) -> None:
    """A set for a product is added to the default set. The list has a line for each set."""
    domain = add_domain(service, "with roles")
    service.ok("role", "set", "staff", "--domain", domain, "--vlan", "20", "--reply", "Session-Timeout=600")
    service.ok("role", "set", "staff", "--domain", domain, "--product", "aruba wireless", "--template")
    service.ok("rule", "add", "all", "--domain", domain, "--action", "mfa_required", "--role", "staff")
    shown = service.ok("role", "show", "staff", "--domain", domain)
    assert "Session-Timeout = 600" in shown and "Aruba-User-Role = staff" in shown
    assert "used by: rule" in shown
    lines = service.ok("role", "list", "--domain", domain).splitlines()
    assert "all others" in lines[-2] and "Aruba Wireless" in lines[-1]
    (role,) = json.loads(service.ok("role", "list", "--domain", domain, "--json"))
    assert json.loads(service.ok("role", "show", "staff", "--domain", domain, "--json")) == role
    assert "role staff" in service.ok("rule", "list", "--domain", domain)
    refused = service.program("role", "remove", "staff", "--domain", domain)
    assert refused.returncode == 1 and "is used by rule" in refused.stderr
    service.ok("role", "remove", "staff", "--domain", domain, "--product", "Aruba Wireless")
    service.ok("rule", "update", str(_rule(service, domain)), "--domain", domain, "--role", "")
    service.ok("role", "remove", "staff", "--domain", domain)
    assert json.loads(service.ok("role", "list", "--domain", domain, "--json")) == []


def test_wrong_options_are_named(service: Service) -> None:
    """A template needs a product, and an attribute has the form NAME=VALUE. The message names the option."""
    domain = add_domain(service, "without roles")
    for given, status, text in (
        (("--template",), 1, "--product: template needs a product that has one: Aruba Wireless"),
        (("--reply", "Filter-Id"), 2, "give NAME=VALUE"),
        (("--product", "Cisco IOSS"), 0, 'must have this product. Did you mean "Cisco IOS"?'),
        (("--vlan", "4095"), 1, "must be a number from 1 to 4094"),
    ):
        refused = service.program("role", "set", "staff", "--domain", domain, *given)
        assert refused.returncode == status and text in refused.stderr
    refused = service.program("rule", "add", "r", "--domain", domain, "--action", "block", "--user", "x", "--role", "s")
    assert refused.returncode == 1 and "must be a role of the domain" in refused.stderr


def _rule(service: Service, domain: str) -> int:
    (rule,) = json.loads(service.ok("rule", "list", "--domain", domain, "--json"))
    return int(rule["ruleId"])
