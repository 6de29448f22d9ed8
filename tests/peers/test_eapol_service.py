"""Tests of eapol_test with a service that was set up only by `cert init`, `cert issue` and `user add`."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.docs.commands import ROOT
from tests.peers.authority import Authority
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.programs import needs
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("eapol_test")]

SECRET, PASSWORD = "between NAS and server", "correct horse"
TWICE = "MPPE keys OK: 2  mismatch: 0"
TLS13, TLS12 = "tls_disable_tlsv1_3=0", "tls_disable_tlsv1_3=1"


class Site:
    """A running service with a certificate, a RADIUS client, and the user ann with a password and a certificate."""

    def __init__(self, service: RunningService) -> None:
        self.service = service
        service.ok("cert", "init", "--host", "radius.example.com")
        self.p12 = service.directory / "ann.p12"
        self.p12_password = service.ok("cert", "issue", "ann", "--p12", str(self.p12)).splitlines()[-1]
        service.add_client("nas", "127.0.0.1", SECRET)
        service.add_user("ann", PASSWORD)
        self.certificates = service.data_dir / "certs"

    def eapol(self, directory: Path, lines: Sequence[str], *options: str) -> str:
        """Run eapol_test with these network lines, and return its output."""
        network = "\n".join([f'ca_cert="{self.certificates / "ca.pem"}"', *lines])
        return eapol_test(directory, self.service.ports.auth, SECRET, network, *options)

    def event(self) -> tuple[object, ...]:
        """Return the user, method and applied decision of the newest event."""
        sql = "select user_name, method, applied_decision from events order by id desc limit 1"
        return self.service.rows(sql)[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield one service for all tests."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0"}
    with running_service(tmp_path_factory.mktemp("service"), settings) as service:
        yield Site(service)


METHODS = {
    "eap-peap-mschapv2": ("eap=PEAP", 'phase2="auth=MSCHAPV2"'),
    "eap-peap-gtc": ("eap=PEAP", 'phase2="auth=GTC"'),
    "eap-ttls-pap": ("eap=TTLS", 'phase2="auth=PAP"'),
    "eap-ttls-chap": ("eap=TTLS", 'phase2="auth=CHAP"'),
    "eap-ttls-mschapv2": ("eap=TTLS", 'phase2="auth=MSCHAPV2"'),
    "eap-ttls-eap-mschapv2": ("eap=TTLS", 'phase2="autheap=MSCHAPV2"'),
}


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("method", METHODS)
def test_passwords(site: Site, tmp_path: Path, method: str, version: str) -> None:
    """The right password logs in with the right keys, and logs in again by the same TLS session.

    A wrong password is refused. The event names ann.
    """
    lines = [*METHODS[method], 'identity="ann"', 'anonymous_identity="anonymous"', f'phase1="{version}"']
    output = site.eapol(tmp_path, [*lines, f'password="{PASSWORD}"'], "-r", "1")
    assert SUCCESS in output, output
    assert TWICE in output
    assert site.event() == ("ann", f"{method.rpartition('-')[0].removesuffix('-eap')}-resumed", "accept")
    assert SUCCESS not in site.eapol(tmp_path, [*lines, 'password="wrong"'])
    assert site.event() == ("ann", method, "reject")


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_certificates(site: Site, tmp_path: Path, version: str) -> None:
    """ann's certificate logs in."""
    file = site.certificates / "clients" / "ann.pem"
    shown = [f'client_cert="{file}"', f'private_key="{file.with_suffix(".key")}"']
    output = site.eapol(tmp_path, ["eap=TLS", 'identity="anonymous"', *shown, f'phase1="{version}"'], "-r", "1")
    assert SUCCESS in output, output
    assert TWICE in output
    assert site.event() == ("ann", "eap-tls", "accept")


@pytest.mark.parametrize("hidden", ["@default", "DEFAULT\\"])
@pytest.mark.parametrize("method", ["eap-peap-mschapv2", "eap-ttls-pap", "eap-tls"])
def test_an_outer_identity_without_a_user(site: Site, tmp_path: Path, method: str, hidden: str) -> None:
    """A supplicant may hide its user behind the realm alone."""
    file = site.certificates / "clients" / "ann.pem"
    shown = ["eap=TLS", f'client_cert="{file}"', f'private_key="{file.with_suffix(".key")}"', f'identity="{hidden}"']
    typed = ['identity="ann"', f'anonymous_identity="{hidden}"', f'password="{PASSWORD}"']
    output = site.eapol(tmp_path, shown if method == "eap-tls" else [*METHODS[method], *typed])
    assert SUCCESS in output, output
    assert site.event() == ("ann", method, "accept")


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("page", ["docs/guides/eap.md", "docs/operate/troubleshooting.md"])
def test_an_untrusted_server_leaves_what_the_documents_say(site: Site, tmp_path: Path, page: str, version: str) -> None:
    """A supplicant without the authority ends the login. The event has the reason, and the log the event, that the
    pages name."""
    other = Authority("another CA")
    (tmp_path / "other.pem").write_text(other.pem)
    lines = ["eap=PEAP", 'phase2="auth=MSCHAPV2"', 'identity="ann"', f'password="{PASSWORD}"', f'phase1="{version}"']
    network = "\n".join([f'ca_cert="{tmp_path / "other.pem"}"', *lines])
    assert SUCCESS not in eapol_test(tmp_path, site.service.ports.auth, SECRET, network)
    (reason,) = site.service.rows("select reason from events order by id desc limit 1")[0]
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert f"`{reason}`" in text
    assert "eap_conversation_failed" in site.service.log() and "`eap_conversation_failed`" in text


def test_a_certificate_that_is_taken_back(site: Site, tmp_path: Path) -> None:
    """`cert revoke` applies to the next login, without a restart."""
    site.service.ok("cert", "issue", "bob")
    site.service.add_user("bob", PASSWORD)
    file = site.certificates / "clients" / "bob.pem"
    lines = ["eap=TLS", 'identity="bob"', f'client_cert="{file}"', f'private_key="{file.with_suffix(".key")}"']
    assert SUCCESS in site.eapol(tmp_path, lines)
    site.service.ok("cert", "revoke", "bob")
    assert SUCCESS not in site.eapol(tmp_path, lines)
    assert site.event()[2] == "reject"
    assert "it is revoked" in site.service.log()


def test_a_station_by_its_address(site: Site, tmp_path: Path) -> None:
    """A switch sends the address of a printer by EAP-MD5.

    It is rejected until the printer is on the list. Another station is still rejected after that.
    """
    mac = "aabbccddeeff"
    lines = ["eap=MD5", f'identity="{mac}"', f'password="{mac}"']
    asked = ("-n", "-M", "aa:bb:cc:dd:ee:ff")
    assert SUCCESS not in site.eapol(tmp_path, lines, *asked)
    site.service.ok("bypass", "add", mac, "--domain", "default")
    output = site.eapol(tmp_path, lines, *asked)
    assert SUCCESS in output, output
    assert site.event() == (mac, "mab", "accept")
    assert SUCCESS not in site.eapol(tmp_path, lines, "-n", "-M", "aa:bb:cc:dd:ee:00")


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_a_certificate_from_pkcs12(site: Site, tmp_path: Path, version: str) -> None:
    """Only the printed password opens the file that `cert issue --p12` writes."""
    lines = ["eap=TLS", 'identity="anonymous"', f'private_key="{site.p12}"', f'phase1="{version}"']
    output = site.eapol(tmp_path, [*lines, f'private_key_passwd="{site.p12_password}"'])
    assert SUCCESS in output, output
    assert site.event() == ("ann", "eap-tls", "accept")
    assert SUCCESS not in site.eapol(tmp_path, [*lines, 'private_key_passwd="another"'])


def test_rules_about_the_method_and_the_certificate(site: Site, tmp_path: Path) -> None:
    """The rule for a certificate with the usage of a client decides a login by EAP-TLS, and the rule for an inner
    method a login by PEAP. Another inner method gets no VLAN."""
    rule = {"action": "allow", "users": ["ann"]}
    site.service.add_rule("default", name="laptops", vlan="31", certificates=["eku=CLIENTAUTH"], **rule)
    site.service.add_rule("default", name="peap", vlan="32", methods=["peap-mschapv2"], **rule)
    file = site.certificates / "clients" / "ann.pem"
    shown = ["eap=TLS", 'identity="ann"', f'client_cert="{file}"', f'private_key="{file.with_suffix(".key")}"']
    typed = ['identity="ann"', f'password="{PASSWORD}"']
    for method, lines, vlan in (
        ("eap-tls", shown, b"31"),
        ("eap-peap-mschapv2", [*METHODS["eap-peap-mschapv2"], *typed], b"32"),
        ("eap-ttls-pap", [*METHODS["eap-ttls-pap"], *typed], b""),
    ):
        output = site.eapol(tmp_path, lines)
        assert SUCCESS in output, output
        assert site.event() == ("ann", method, "accept")
        values = re.findall(r"\(Tunnel-Private-Group-Id\) length=\d+\n +Value: (\S+)", output)
        assert [value[-4:] for value in values] == ([vlan.hex()] if vlan else []), output
