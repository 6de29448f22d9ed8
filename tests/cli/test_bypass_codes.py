"""`sallyport user bypass-codes`: make, list and remove."""

import json
import re

from tests.cli import Service, add_domain, add_user


def test_codes_of_a_user(service: Service) -> None:
    """Codes are printed alone on standard output, in groups of four digits. The note says how they can be used."""
    domain = add_domain(service, "with bypass codes")
    add_user(service, domain, "ann")
    made = service.cli("user", "bypass-codes", "ann", "--domain", domain, "--codes", "2", "--hours", "1")
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"(\d{4} \d{4}\n){2}", made.stdout)
    assert "2 bypass codes of ann made; each can be used once, until 20" in made.stderr
    assert "no MFA provider of the domain takes bypass codes" in made.stderr
    listed = json.loads(service.ok("user", "bypass-codes", "ann", "--domain", domain, "--list", "--json"))
    assert [(each["userName"], each["state"]) for each in listed] == [("ann", "valid")] * 2
    again = json.loads(service.ok("user", "bypass-codes", "ann", "--domain", domain, "--uses", "5", "--json"))
    assert again["uses"] == 5 and re.fullmatch(r"\d{8}", again["codes"][0])
    assert "1 bypass code" in service.cli("user", "bypass-codes", "ann", "--domain", domain, "--remove").stderr


def test_wrong_uses(service: Service) -> None:
    """Options that contradict each other are a wrong use. An unknown user is an error."""
    domain = add_domain(service, "without bypass codes")
    for options in (("--list", "--remove"), ("--list", "--codes", "2"), ("--codes", "11")):
        assert service.cli("user", "bypass-codes", "ann", "--domain", domain, *options).returncode == 2
    refused = service.cli("user", "bypass-codes", "ann", "--domain", domain)
    assert refused.returncode == 1 and 'user "ann" not found' in refused.stderr
