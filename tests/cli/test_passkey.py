"""`sallyport user passkey`: list and remove."""

import json

from tests.cli import Service, add_domain


def test_a_domain_without_passkeys(service: Service) -> None:
    """The list is empty, also for one user. A passkey that does not exist is an error."""
    domain = add_domain(service, "with passkeys")
    assert json.loads(service.ok("user", "passkey", "list", "--domain", domain, "--json")) == []
    assert json.loads(service.ok("user", "passkey", "list", "--domain", domain, "--user", "ann", "--json")) == []
    refused = service.cli("user", "passkey", "remove", "ann", "7", "--domain", domain)
    assert refused.returncode == 1 and "the user has no passkey with this id" in refused.stderr
    assert service.cli("user", "passkey", "remove", "ann", "x", "--domain", domain).returncode == 2
