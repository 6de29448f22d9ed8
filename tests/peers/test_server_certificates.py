"""Two realms with different server certificates, seen by eapol_test."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.programs import needs
from tests.radius.eap.certificates import Authority
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("eapol_test")]

SECRET, PASSWORD = "between NAS and server", "correct horse"
TLS13, TLS12 = "tls_disable_tlsv1_3=0", "tls_disable_tlsv1_3=1"


@dataclass
class Site:
    """A running service, and the authorities of the server certificates by outer identity."""

    service: RunningService
    authorities: dict[str, Authority]

    def log_in(self, directory: Path, outer: str, authority: Path, version: str) -> bool:
        """Return whether a supplicant that trusts only this authority logs in."""
        network = [
            f'ca_cert="{authority}"', "eap=PEAP", 'phase2="auth=MSCHAPV2"', f'phase1="{version}"',
            'identity="ann"', f'anonymous_identity="{outer}"', f'password="{PASSWORD}"',
        ]  # fmt: skip
        return SUCCESS in eapol_test(directory, self.service.ports.auth, SECRET, "\n".join(network))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a service whose domain has a certificate for itself, and one for its realm."""
    directory = tmp_path_factory.mktemp("service")
    with running_service(directory, {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.ok("cert", "init", "--host", "radius.example.com")
        service.ok("domain", "set", "default", "--realm", "eu.example")
        service.add_client("nas", "127.0.0.1", SECRET)
        service.add_user("ann", PASSWORD)
        authorities = dict[str, Authority]()
        for outer, realm in (("anonymous", ()), ("@eu.example", ("--realm", "eu.example"))):
            (directory / outer).mkdir()
            authorities[outer] = Authority(directory / outer, f"authority of {outer}")
            file = str(authorities[outer].certificate("radius.example").file)
            service.ok("cert", "add", "--domain", "default", *realm, "--file", file, "--key-file", file)
        yield Site(service, authorities)


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_two_realms(site: Site, tmp_path: Path, version: str) -> None:
    """Each realm gets its certificate, which only the devices with its authority accept."""
    for outer in site.authorities:
        accepted = [name for name, each in site.authorities.items() if site.log_in(tmp_path, outer, each.file, version)]
        assert accepted == [outer]
        assert not site.log_in(tmp_path, outer, site.service.data_dir / "certs" / "ca.pem", version)


def test_rotation_and_removal(site: Site, tmp_path: Path) -> None:
    """The next login gets the new certificate, and after the removal that of the installation. No restart is
    needed."""
    (tmp_path / "new").mkdir()
    new = Authority(tmp_path / "new", "new authority")
    file = str(new.certificate("radius.example").file)
    realm = ("--domain", "default", "--realm", "eu.example")
    site.service.ok("cert", "add", *realm, "--file", file, "--key-file", file)
    assert site.log_in(tmp_path, "@eu.example", new.file, TLS13)
    site.service.ok("cert", "remove", *realm)
    assert site.log_in(tmp_path, "@eu.example", site.authorities["anonymous"].file, TLS13)
    site.service.ok("cert", "remove", "--domain", "default")
    assert site.log_in(tmp_path, "@eu.example", site.service.data_dir / "certs" / "ca.pem", TLS13)
