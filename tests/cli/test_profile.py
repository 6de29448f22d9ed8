"""`sallyport profile`: set, list, show, save, link and remove."""

import json
import stat
from pathlib import Path

from tests.cli import Service, add_domain


def test_a_profile_is_set_saved_and_removed(service: Service, tmp_path: Path) -> None:
    """The files are saved for everybody to read, and printed one on a line. A link is printed alone."""
    domain = add_domain(service, "with profiles")
    if not (service.data_dir / "certs" / "ca.pem").exists():
        service.ok("cert", "init", "--host", "radius.example.org")
    service.ok("profile", "set", "Office", "--domain", domain, "--ssid", "Office", "--ssid", "Büro", "--wired", "yes")
    ca = str(service.data_dir / "certs" / "ca.pem")
    service.ok("profile", "set", "Office", "--domain", domain, "--method", "ttls-pap", "--anchor", ca)
    shown = service.ok("profile", "show", "Office", "--domain", domain)
    assert "TTLS" in shown and "office-wired.xml" in shown and "SHA-1" in shown and "server names: radius." in shown
    (row,) = json.loads(service.ok("profile", "list", "--domain", domain, "--json"))
    assert (row["ssids"], row["method"], row["wired"]) == (["Office", "Büro"], "ttls-pap", True)
    assert row.items() <= json.loads(service.ok("profile", "show", "office", "--domain", domain, "--json")).items()
    saved = service.ok("profile", "save", "Office", "--domain", domain, "--to", str(tmp_path), "--user", "ann")
    paths = [Path(line) for line in saved.splitlines()]
    assert len(paths) == 11 and all(stat.S_IMODE(each.stat().st_mode) == 0o644 for each in paths)
    assert 'identity="ann"' in (tmp_path / "office-wpa_supplicant.conf").read_text()
    one = service.ok("profile", "save", "Office", "--domain", domain, "--to", str(tmp_path), "--file", "office-1.xml")
    assert one.splitlines() == [str(tmp_path / "office-1.xml")]
    link = service.ok("profile", "link", "Office", "--domain", domain, "--days", "1").strip()
    assert link.startswith("http") and "/profile/" in link and "\n" not in link
    assert service.ok("profile", "link", "Office", "--domain", domain, "--days", "0") == ""
    service.ok("profile", "remove", "Office", "--domain", domain)
    assert json.loads(service.ok("profile", "list", "--domain", domain, "--json")) == []


def test_wrong_options_are_named(service: Service, tmp_path: Path) -> None:
    """The message names the option whose value was refused."""
    domain = add_domain(service, "without profiles")
    (tmp_path / "x.pem").write_text("no certificate")
    for given, status, text in (
        ((), 1, "--ssid: give an SSID"),
        (("--ssid", "x" * 33), 1, "must have 1 to 32 octets"),
        (("--ssid", "x", "--server-name", "*.example.org"), 1, '--server-name: "*.example.org" is not accepted'),
        (("--ssid", "x", "--anchor", str(tmp_path / "x.pem")), 1, "certificates in PEM"),
        (("--ssid", "x", "--method", "leap"), 2, "ttls-mschapv2"),
    ):
        refused = service.cli("profile", "set", "Office", "--domain", domain, *given)
        assert refused.returncode == status and text in refused.stderr, refused.stderr
    refused = service.cli("profile", "link", "Office", "--domain", domain)
    assert refused.returncode == 1 and 'profile "Office" not found' in refused.stderr
