"""eapol_test with certificates of people and computers that exist only in Entra ID or Okta, whose APIs are simulated.
The service is set up as in the guides "Intune certificates and Wi-Fi" and "Okta only"."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio
from cryptography import x509

from tests.areas.authorities.made import MadeAuthority, issued
from tests.areas.directory.reading.graph_server import CLIENT_ID, CLIENT_SECRET, TENANT, GraphServer
from tests.areas.directory.reading.okta_server import TOKEN, OktaServer
from tests.areas.mfa.web import serving
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.programs import needs
from tests.radius.eap.certificates import upn
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("eapol_test")]

SECRET = "between access point and server"
ADA, SID = "ada@corp.example", "S-1-5-21-1-2-3-1104"
EARLY, LATE = "2026-01-01T08:00:00.000Z", "2026-01-02T08:00:00.000Z"
DEVICE = "6a8f5c1e-0d2b-4c3a-9e7f-1b2c3d4e5f60"
DISABLED = "account disabled"


class Office:
    """A running service with the domain corp, which trusts one authority."""

    def __init__(self, service: RunningService, directory: Path) -> None:
        self.service, self.directory = service, directory
        self.authority = MadeAuthority("MDM CA")
        self.file = directory / "ca.pem"
        self.file.write_text(self.authority.pem)
        service.ok("cert", "init", "--host", "radius.corp.example")
        service.ok("domain", "add", "corp", "--org", "1", "--tenant", "1")
        service.ok("domain", "set", "corp", "--realm", "corp.example", "--disconnect-on-revoke", "yes")
        service.add_client("ap", "127.0.0.1", SECRET, "corp")

    def add_directory(self, *options: str, secret: str) -> None:
        """Add the directory `cloud`, and read it."""
        self.service.ok("directory", "add", "cloud", "--domain", "corp", *options, input=secret)
        self.read()

    def read(self) -> None:
        """Read the directory."""
        self.service.ok("directory", "sync", "cloud", "--domain", "corp", "--wait")

    def log_in(self, common_name: str = "Somebody", *names: x509.GeneralName, sid: str = "") -> tuple[object, ...]:
        """Log in with a certificate. Return whether eapol_test succeeded, and the user, reason and naming field of the
        event."""
        file = self.directory / "client.pem"
        issued(self.authority, file, common_name, names=names, sid=sid)
        lines = (
            f'ca_cert="{self.service.data_dir / "certs" / "ca.pem"}"', "eap=TLS", 'identity="anonymous@corp.example"',
            'domain_match="radius.corp.example"', f'client_cert="{file}"', f'private_key="{file}"',
        )  # fmt: skip
        output = eapol_test(self.directory, self.service.ports.auth, SECRET, "\n".join(lines))
        sql = "select user_name, reason, named_by from events order by id desc limit 1"
        return SUCCESS in output, *self.service.rows(sql)[0]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """Yield a service that may connect to this machine."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_EGRESS": "default,127.0.0.0/8"}
    (tmp_path / "service").mkdir()
    with running_service(tmp_path / "service", settings) as service:
        yield Office(service, tmp_path)


async def test_okta(office: Office) -> None:
    """A person logs in by principal name and mail address, with the groups of Okta, and is out after the reading that
    follows the suspension."""
    okta = OktaServer()
    async with serving(okta) as okta.web:
        okta.add_user("00u1", ADA, EARLY, email="ada.lee@corp.example")
        okta.add_group("00g1", "staff", EARLY, "00u1")
        run = trio.to_thread.run_sync
        await run(partial(office.add_directory, "--kind", "okta", "--url", okta.url, "--api-token", "-", secret=TOKEN))
        ok = office.service.ok
        await run(ok, "rule", "add", "staff", "--domain", "corp", "--action", "allow", "--group", "staff")
        authority = ("--file", str(office.file), "--kind", "people", "--by", "upn", "--by", "mail")
        await run(ok, "authority", "add", "mdm", "--domain", "corp", *authority)
        by_mail = partial(office.log_in, "Ada", x509.RFC822Name("ada.lee@corp.example"))
        assert await run(office.log_in, "Ada", upn(ADA)) == (True, "ada", "", "upn")
        assert await run(by_mail) == (True, "ada", "", "mail")
        okta.add_user("00u1", ADA, LATE, "SUSPENDED", email="ada.lee@corp.example")
        await run(office.read)
        assert await run(by_mail) == (False, "ada", DISABLED, "mail")


async def test_entra_id(office: Office) -> None:
    """A person logs in by the SID that Intune writes, and a computer by its device id as common name while it is
    compliant. Both are out after the reading that follows their change."""
    graph = GraphServer()
    async with serving(graph) as graph.web:
        graph.add_user("8a7b", ADA, onPremisesSecurityIdentifier=SID)
        graph.add_group("g1", "Staff", "8a7b")
        graph.add_device("d1", DEVICE, "LAPTOP1", isCompliant=True, isManaged=True)
        run, ok = trio.to_thread.run_sync, office.service.ok
        tenant = ("--kind", "graph", "--url", graph.url, "--entra-tenant", TENANT, "--client-id", CLIENT_ID)
        secret = ("--read-devices", "--client-secret", "-")
        await run(partial(office.add_directory, *tenant, *secret, secret=CLIENT_SECRET))
        named = ("--by", "sid", "--by", "object-id", "--by", "upn", "--kind", "people", "--kind", "machines")
        await run(ok, "authority", "add", "Intune", "--domain", "corp", "--file", str(office.file), *named)
        await run(ok, "domain", "set", "corp", "--certificate-names", "strong")
        rule = ("--domain", "corp", "--action", "allow", "--certificate")
        await run(ok, "rule", "add", "staff", *rule, "authority=Intune", "--kind", "user", "--group", "Staff")
        await run(ok, "rule", "add", "laptops", *rule, "device=compliant", "--kind", "machine")
        tag = x509.UniformResourceIdentifier(f"tag:microsoft.com,2022-09-14:sid:{SID}")
        person, computer = partial(office.log_in, "Ada", tag), partial(office.log_in, DEVICE)
        assert await run(person) == (True, "ada", "", "sid")
        accepted = await run(computer)
        assert accepted[0] and accepted[2:] == ("", "object-id"), accepted
        assert (await run(office.log_in, "Ada", upn(ADA)))[0] is False  # a weak name
        graph.change("users", {"id": "8a7b", "accountEnabled": False})
        graph.change("devices", {"id": "d1", "isCompliant": False})
        await run(office.read)
        assert await run(person) == (False, "ada", DISABLED, "sid")
        assert (await run(computer))[2:] == ("no provider", "object-id")  # the rule does not apply
