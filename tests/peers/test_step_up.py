"""Logins that a person proves on the page, with real peers: pam_radius as the device, and Chromium with its virtual
authenticator as the browser."""

import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page

from sallyport.base.clock import now_us
from tests.areas.factors.authenticator import Authenticator, cbor
from tests.areas.factors.test_pages_chromium import Passkey, arrive, passkey_of
from tests.console.chromium import Chromium
from tests.console.conftest import chromium
from tests.peers.programs import find, needs
from tests.peers.second_factor import PASSWORD, SECRET, enrol, event, next_code, populate, provide
from tests.peers.test_pam_radius import IN_NAMESPACE, PAM_SERVICE, configure, may_mount, module
from tests.ports import free_port
from tests.running_service import RunningService, running_service
from tests.web.serving import make_certificate

KEY_S, DECISION_S = 0.2, 2.0
"""Time of a person for a key, and for a decision, in seconds."""
MAX_ACTIONS, MAX_S = 5, 15.0
WELCOME = re.compile("successfully authenticated")
LINK = re.compile(r"https://localhost:\d+/mfa/[A-Z0-9]{10}")
INSERT = (
    "insert into passkeys (domain_id, user_key, user_name, user_handle, rp_id, credential_id, public_key, sign_count, "
    "backup_eligible, backed_up, transports, name, created_at) values (1, ?, ?, ?, 'localhost', ?, ?, 0, 0, 0, "
    "'internal', 'laptop', ?)"
)

__all__ = ["chromium"]
pytestmark = [
    pytest.mark.peer,
    needs("pamtester", "chromium"),
    pytest.mark.skipif(module() is None, reason="pam_radius_auth (libpam-radius-auth) is not installed"),
    pytest.mark.skipif(not may_mount(), reason="a mount namespace of its own is not permitted"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with pages of people whose domain enforces."""
    folder, port = tmp_path_factory.mktemp("service"), free_port()
    tls = make_certificate(folder)
    settings = {
        "SALLYPORT_PEOPLE_BIND": f"127.0.0.1:{port}", "SALLYPORT_PUBLIC_URL": f"https://localhost:{port}",
        "SALLYPORT_TLS_CERTIFICATE": str(tls.certificate), "SALLYPORT_TLS_KEY": str(tls.key),
        "SALLYPORT_REJECT_DELAY_S": "0",
    }  # fmt: skip
    with running_service(folder, settings) as service:
        yield service


def passkey(service: RunningService, user: str) -> Passkey:
    """Give a user a passkey, and return it for the browser."""
    device = Authenticator(host="localhost", handle=secrets.token_bytes(32))
    values = (user, user, device.handle, device.credential_id, cbor(device.public), now_us())
    service.execute(INSERT, *values)
    return passkey_of(device)


@dataclass
class Terminal:
    """A login at a Linux machine. shown: what PAM has written so far."""

    process: subprocess.Popen[bytes]
    shown: str = ""

    def type(self, text: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def wait_for(self, pattern: re.Pattern[str]) -> str:
        """Return the text that PAM writes and that fits a pattern."""
        assert self.process.stdout is not None
        while (found := pattern.search(self.shown)) is None:
            octets = os.read(self.process.stdout.fileno(), 4096)
            assert octets, self.shown
            self.shown += octets.decode()
        return found[0]


@contextmanager
def logging_in(pam: Path, user: str) -> Iterator[Terminal]:
    """Begin a login through PAM."""
    inside = [find("unshare"), "--mount", "--propagation", "private", "sh", "-c", IN_NAMESPACE, "sh", str(pam)]
    command = [*inside, find("pamtester"), PAM_SERVICE, user, "authenticate"]
    environ = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ
    ) as process:
        try:
            yield Terminal(process)
        finally:
            process.kill()


def uses_a_passkey(page: Page, link: str, key: Passkey) -> tuple[str, str]:
    """Open the link and prove. Return the digits, and what the page shows about the login."""
    arrive(page, [key])
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    facts = page.inner_text("dl")
    page.get_by_role("button", name="Use a passkey").click()
    return page.locator(".digits").inner_text(), facts


def test_a_passkey_for_a_linux_login(tmp_path: Path, service: RunningService, chromium: Chromium) -> None:
    """PAM shows the link. Chromium proves with the passkey, and the digits let bob in.

    A person needs five actions: the password, the link, Continue, the passkey, the digits. With 0.2 s for a key and 2 s
    for a decision, the login takes at most 15 s.
    """
    populate(service, "bob")
    key = passkey(service, "bob")
    provide(service, "own", binding="code", factors="passkey,totp")
    pam = configure(tmp_path, service, SECRET, wait_s=10)
    with logging_in(pam, "bob") as terminal:
        terminal.type(PASSWORD)
        digits, facts = chromium.run(uses_a_passkey, terminal.wait_for(LINK), key)
        terminal.type(digits)
        terminal.wait_for(WELCOME)
    assert "bob" in facts and PAM_SERVICE in facts
    assert event(service, "bob") == ("accept", "accept", "", "local+own")
    keys, decisions = len(PASSWORD) + 1 + len(digits) + 1, 3  # the link, Continue, the passkey
    assert decisions + 2 <= MAX_ACTIONS and keys * KEY_S + decisions * DECISION_S < MAX_S


def says_not_me(page: Page, link: str) -> str:
    """Open the link, and say that the login is another person's."""
    arrive(page)
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="This is not me").click()
    return page.inner_text("main")


def test_not_me_rejects_a_linux_login(tmp_path: Path, service: RunningService, chromium: Chromium) -> None:
    """After "This is not me", the next answer of the attacker is rejected, and the event says why."""
    service.add_user("carl", PASSWORD)
    passkey(service, "carl")
    provide(service, "own", binding="code", factors="passkey")
    pam = configure(tmp_path, service, SECRET, wait_s=10)
    with logging_in(pam, "carl") as terminal:
        terminal.type(PASSWORD)
        text = chromium.run(says_not_me, terminal.wait_for(LINK))
        terminal.type("123456")
        assert terminal.process.wait(30) != 0
    assert "Login refused" in text
    assert event(service, "carl")[1:3] == ("reject", "not me")


def test_a_code_of_the_app_needs_no_page(tmp_path: Path, service: RunningService) -> None:
    """A person types the code of the app at the prompt that shows the link."""
    service.add_user("dora", PASSWORD)
    passkey(service, "dora")
    seed = enrol(service, "dora")
    provide(service, "own", binding="code", factors="passkey,totp")
    pam = configure(tmp_path, service, SECRET, wait_s=10)
    with logging_in(pam, "dora") as terminal:
        terminal.type(PASSWORD)
        terminal.wait_for(LINK)
        terminal.type(next_code(seed))
        terminal.wait_for(WELCOME)
    assert event(service, "dora")[1] == "accept"
