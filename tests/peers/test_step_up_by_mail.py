"""Logins that wait at their device while a real SMTP server brings the page: eapol_test as the NAS and the station, and
Chromium with its virtual authenticator as the browser."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sallyport.areas.login.first.web import NO_EAP
from tests.areas.factors.test_pages_chromium import Passkey, arrive
from tests.console.chromium import Chromium
from tests.mail_server import MailServer, mail_server
from tests.peers.eapol import SUCCESS, eapol_test
from tests.peers.programs import needs
from tests.peers.second_factor import PASSWORD, SECRET, event, populate, provide
from tests.peers.step_ups import LINK, passkey, service_with_pages
from tests.running_service import RunningService

pytestmark = [pytest.mark.peer, needs("eapol_test", "chromium")]
STATION, ELSEWHERE = "9.9.9.9", "8.8.4.4"
"""Global addresses. The NAS names one in the packet, and the proxy one in a header: no traffic leaves loopback."""
TUNNEL = ("-N31:s:9.9.9.9[4500]", "-N61:d:5", "-N87:s:tunnel 7")
"""The attributes of strongSwan: Calling-Station-Id with the address of the client, Virtual as NAS-Port-Type."""
ENTRY = "dn: uid={0},dc=x\nobjectClass: inetOrgPerson\nuid: {0}\ncn: {0}\nmail: {0}@corp.example\n"
USERS = ("ann", "bob", "carl", "dora")
ACCEPTED = "(Access-Accept)"
"""What eapol_test prints of the answer. It does not take the keys of an answer that comes after 30 s."""


@dataclass
class Office:
    """A service that sends the pages of logins by mail, and the mailboxes of its people."""

    service: RunningService
    mails: MailServer

    @contextmanager
    def logging_in(self, directory: Path, user: str, *options: str) -> Iterator[Future[str]]:
        """Log in by TTLS with PAP, which has no room for a challenge. Yield the output of eapol_test, when it is
        there."""
        certificate = self.service.data_dir / "certs" / "ca.pem"
        lines = (f'eap=TTLS\nidentity="{user}"\npassword="{PASSWORD}"', f'phase2="auth=PAP"\nca_cert="{certificate}"')
        network, port = "\n".join(lines), self.service.ports.auth
        with ThreadPoolExecutor(1) as pool:
            yield pool.submit(eapol_test, directory, port, SECRET, network, "-t", "50", *options)

    def link(self) -> str:
        """Return the address in the next mail."""
        mail = self.mails.received(60)
        found = LINK.search(mail.text)
        assert found, mail.text
        return found[0]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Yield a service whose people have mail addresses in a directory."""
    folder = tmp_path_factory.mktemp("service")
    with mail_server() as mails:
        smtp = {
            "SALLYPORT_SMTP_HOST": "127.0.0.1", "SALLYPORT_SMTP_PORT": str(mails.port), "SALLYPORT_SMTP_TLS": "none",
            "SALLYPORT_SMTP_FROM": "sallyport@example.org",
        }  # fmt: skip
        with service_with_pages(folder, smtp) as service:
            service.ok("cert", "init", "--host", "radius.example.com")
            populate(service, *USERS)
            (folder / "people.ldif").write_text("\n".join(ENTRY.format(each) for each in USERS))
            service.ok("directory", "import-ldif", str(folder / "people.ldif"), "--domain", "default", "--wait")
            yield Office(service, mails)


def waits_for_the_browser(page: Page) -> None:
    """Open an empty page, so that the login does not wait for the start of the browser."""
    page.goto("about:blank")


def proves(page: Page, link: str, source: str, key: Passkey) -> tuple[str, str]:
    """Open the mailed address in a browser at an address, and prove with a passkey. Return the texts of the page before
    and after."""
    arrive(page, [key], source)
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    facts = page.inner_text("main")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Confirmed")
    return facts, page.inner_text("main")


@pytest.mark.parametrize(
    ("user", "binding", "source", "options"),
    [
        pytest.param("ann", "address", STATION, TUNNEL, id="address: VPN over IKEv2"),
        pytest.param("bob", "unbound", ELSEWHERE, (), id="unbound: Wi-Fi"),
    ],
)
def test_a_passkey_while_the_login_waits(
    tmp_path: Path, office: Office, chromium: Chromium, user: str, binding: str, source: str, options: tuple[str, ...]
) -> None:
    """The mail has the address of the page and nothing of the packet. The proof lets the waiting login continue, and
    nothing is typed."""
    key = passkey(office.service, user)
    chromium.run(waits_for_the_browser)
    provide(office.service, "own", binding=binding, factors="passkey", pageByMail=True)
    with office.logging_in(tmp_path, user, *options) as login:
        facts, after = chromium.run(proves, office.link(), source, key)
        output = login.result(90)
    assert ACCEPTED in output, output[-2000:]
    assert user in facts and "return to your device" in after
    assert event(office.service, user) == ("accept", "accept", "", "local+own")


def refuses(page: Page, link: str) -> tuple[str, int, str]:
    """Open the address of a login elsewhere. Return the text, the number of passkeys it asks for, and the page after
    "This is not me"."""
    arrive(page, source=ELSEWHERE)
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    text, asks = page.inner_text("main"), page.get_by_role("button", name="Use a passkey").count()
    page.get_by_role("button", name="This is not me").click()
    return text, asks, page.inner_text("main")


def test_the_victim_elsewhere_refuses_the_login(tmp_path: Path, office: Office, chromium: Chromium) -> None:
    """An attacker has the password and logs in from another address. The mailed page takes no proof there, and "This is
    not me" rejects the waiting login."""
    passkey(office.service, "carl")
    chromium.run(waits_for_the_browser)
    provide(office.service, "own", binding="address", factors="passkey", pageByMail=True)
    with office.logging_in(tmp_path, "carl", *TUNNEL) as login:
        text, asks, after = chromium.run(refuses, office.link())
        output = login.result(90)
    assert SUCCESS not in output
    assert "does not have the address of the device" in text and asks == 0 and "Login refused" in after
    assert event(office.service, "carl")[1:3] == ("reject", "not me")


def test_an_address_that_cannot_be_compared_brings_no_mail(tmp_path: Path, office: Office) -> None:
    """With the binding `address`, a login from a private address is refused at once."""
    passkey(office.service, "dora")
    provide(office.service, "own", binding="address", factors="passkey", pageByMail=True)
    with office.logging_in(tmp_path, "dora", "-N31:s:10.0.0.7", "-N61:d:5") as login:
        assert SUCCESS not in login.result(90)
    assert event(office.service, "dora")[1:3] == ("reject", "unbound login") and office.mails.inbox.empty()


@pytest.mark.parametrize("method", ['eap=PEAP\nphase2="auth=GTC"', 'eap=TTLS\nphase2="autheap=GTC"'])
def test_gtc_with_the_first_factor_web(tmp_path: Path, office: Office, method: str) -> None:
    """GTC in a tunnel brings no page: eapol_test would answer its second prompt with the stored password. The login is
    refused before the tunnel, and the event says why."""
    oidc = {
        "issuer": "https://login.example.com",
        "clientId": "vpn",
        "clientSecret": "secret",
        "userIs": "directory_id",
    }
    provide(office.service, "own", binding="code", factors="oidc", userClaim="oid", **oidc)
    office.service.ok("domain", "first-factor", "default", "web")
    try:
        network = f'{method}\nidentity="ann"\npassword="{PASSWORD}"'
        assert SUCCESS not in eapol_test(tmp_path, office.service.ports.auth, SECRET, network)
        assert event(office.service, "ann")[1:3] == (
            "reject",
            "the domain's first factor cannot check this kind of login",
        )
        (shown,) = office.service.rows("select detail from events order by id desc limit 1")
        assert shown == (NO_EAP,)
    finally:
        office.service.ok("domain", "first-factor", "default", "local")
