"""`sallyport authority`: add, list, show, set and remove."""

import json
from pathlib import Path

from sallyport.web.examples import EXAMPLE_AUTHORITY
from tests.cli import Service, add_domain


def test_an_authority_is_added_changed_and_removed(service: Service, tmp_path: Path) -> None:
    """Domains are named, lists are repeated options, and an empty option empties a list."""
    file = tmp_path / "ca.pem"
    file.write_text(EXAMPLE_AUTHORITY)
    add_domain(service, "with authorities")
    given = ("--kind", "machines", "--by", "sid", "--by", "dns", "--realm", "corp.example", "--revocation", "hard")
    number = service.ok("authority", "add", "Intune", "--domain", "with authorities", "--file", str(file), *given)
    listed = service.ok("authority", "list", "--domain", "with authorities")
    assert "Intune" in listed and "with authorities" in listed and "sid, dns" in listed
    shown = json.loads(service.ok("authority", "show", "intune", "--json"))
    assert (shown["authorityId"], shown["kinds"], shown["realms"]) == (int(number), ["machines"], ["corp.example"])
    service.ok("authority", "set", "Intune", "--realm", "", "--strong-only", "yes", "--name", "MDM")
    text = service.ok("authority", "show", "MDM")
    assert "CN=Example Issuing CA" in text and "hard" in text and "corp.example" not in text
    assert json.loads(service.ok("authority", "lists", "MDM", "--json")) == []
    assert "fetching 0 revocation lists" in service.program("authority", "lists", "MDM", "--fetch").stderr
    service.ok("authority", "set", "MDM", "--revocation", "soft", "--crl-address", "http://127.0.0.1:9/ca.crl")
    while "http://127.0.0.1:9/ca.crl is missing: 127.0.0.1" not in (found := service.program("doctor").stdout):
        assert "revocation is soft" in found
    service.ok("authority", "remove", "MDM")
    assert json.loads(service.ok("authority", "list", "--domain", "with authorities", "--json")) == []


def test_wrong_files_are_refused(service: Service, tmp_path: Path) -> None:
    """The message names the option or the file, and what to do."""
    add_domain(service, "without authorities")
    file = tmp_path / "ca.der"
    for octets, text in (
        (b"no PEM", "--file must be certificates in PEM"),
        (b"\x30\x82\xff", "openssl x509 -inform DER"),
        (b"-" * 70_000, "must have at most 65536 octets"),
    ):
        file.write_bytes(octets)
        refused = service.program("authority", "add", "x", "--domain", "without authorities", "--file", str(file))
        assert (refused.returncode, text in refused.stderr) == (1, True), refused.stderr
    refused = service.program("authority", "set", "x")
    assert (refused.returncode, "nothing to change" in refused.stderr) == (2, True)
