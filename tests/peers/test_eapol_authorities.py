"""Tests of eapol_test with authorities of a domain: three with the same subject names, one of which is hostile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.areas.authorities.made import MadeAuthority, issued
from tests.peers.eapol import KEYS, SUCCESS, eapol_test
from tests.peers.programs import needs
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("eapol_test")]

SECRET = "between NAS and server"
NAME = "Corp Issuing CA"
VERSIONS = pytest.mark.parametrize("version", ["tls_disable_tlsv1_3=1", "tls_disable_tlsv1_3=0"], ids=["1.2", "1.3"])


class Site:
    """A running service whose domain has three authorities of one name: one for people, one for machines, and a hostile
    one, which may speak only for the SIDs of another company."""

    def __init__(self, service: RunningService, directory: Path) -> None:
        self.service = service
        self._directory = directory
        service.ok("cert", "init", "--host", "radius.example.com")
        service.add_client("nas", "127.0.0.1", SECRET)
        for user in ("ann", "host/pc1"):
            service.add_user(user, "correct horse")
        self.authorities = {"people": MadeAuthority(NAME), "machines": self._rsa(), "hostile": MadeAuthority(NAME)}
        for name, made in self.authorities.items():
            scope = ["--sid-prefix", "S-1-5-21-9-9-9"] if name == "hostile" else ["--kind", name]
            self.add(name, made, *scope)

    @staticmethod
    def _rsa() -> MadeAuthority:
        return MadeAuthority(NAME, key=rsa.generate_private_key(65537, 2048))

    def add(self, name: str, made: MadeAuthority, *options: str) -> None:
        """Add an authority to the domain."""
        file = self._directory / f"{name}.pem"
        file.write_text(made.pem)
        self.service.ok("authority", "add", name, "--domain", "default", "--file", str(file), *options)

    def log_in(self, directory: Path, authority: str, user: str, version: str, *options: str) -> str:
        """Log in with a certificate that an authority issues for a user. Return the output of eapol_test."""
        file = directory / "client.pem"
        issued(self.authorities[authority], file, user)
        lines = (
            f'ca_cert="{self.service.data_dir / "certs" / "ca.pem"}"', "eap=TLS", 'identity="anonymous"',
            f'client_cert="{file}"', f'private_key="{file}"', f'phase1="{version}"',
        )  # fmt: skip
        return eapol_test(directory, self.service.ports.auth, SECRET, "\n".join(lines), *options)

    def event(self) -> tuple[object, ...]:
        """Return the user, reason, authority and decision of the newest event."""
        sql = "select user_name, reason, authority, named_by, applied_decision from events order by id desc limit 1"
        return self.service.rows(sql)[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield one service for all tests."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        yield Site(service, tmp_path_factory.mktemp("authorities"))


@VERSIONS
@pytest.mark.parametrize(("authority", "user"), [("people", "ann"), ("machines", "host/pc1")])
def test_each_authority_speaks_for_its_users(
    site: Site, tmp_path: Path, authority: str, user: str, version: str
) -> None:
    """The login gets the right keys, and resumes its session. The event names the authority."""
    output = site.log_in(tmp_path, authority, user, version, "-r", "1")
    assert SUCCESS in output, output
    assert "MPPE keys OK: 2  mismatch: 0" in output
    assert site.event() == (user, "no provider", authority, "cn", "accept")


@VERSIONS
@pytest.mark.parametrize(
    ("authority", "user"), [("hostile", "ann"), ("hostile", "host/pc1"), ("machines", "ann"), ("people", "host/pc1")]
)
def test_no_authority_speaks_for_others(site: Site, tmp_path: Path, authority: str, user: str, version: str) -> None:
    """A certificate for a user of another authority is refused with the reason, whatever its issuer is called."""
    output = site.log_in(tmp_path, authority, user, version)
    assert SUCCESS not in output and KEYS not in output
    assert site.event() == (user, "authority may not speak for this user", authority, "cn", "reject")


def test_the_own_authority_of_the_installation_is_none_of_the_domain(site: Site, tmp_path: Path) -> None:
    """A certificate of `cert issue` is refused, because the domain has authorities of its own."""
    site.service.ok("cert", "issue", "ann")
    file = site.service.data_dir / "certs" / "clients" / "ann.pem"
    lines = (
        f'ca_cert="{site.service.data_dir / "certs" / "ca.pem"}"', "eap=TLS", 'identity="anonymous"',
        f'client_cert="{file}"', f'private_key="{file.with_suffix(".key")}"',
    )  # fmt: skip
    assert SUCCESS not in eapol_test(tmp_path, site.service.ports.auth, SECRET, "\n".join(lines))
    assert site.event()[1:] == ("client certificate refused", None, None, "reject")
