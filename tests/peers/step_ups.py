"""Helpers for step-ups with real peers: a service with pages of people, passkeys for Chromium, and a person who uses
both.

The browser has the address that a trusted proxy on loopback names: no packet leaves this machine.
"""

import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from sallyport.base.clock import now_us
from tests.areas.factors.authenticator import Authenticator, cbor
from tests.areas.factors.test_pages_chromium import Passkey, arrive, passkey_of
from tests.console.chromium import Chromium
from tests.peers.programs import find
from tests.peers.test_pam_radius import IN_NAMESPACE, PAM_SERVICE
from tests.ports import free_port
from tests.running_service import RunningService, running_service
from tests.web.serving import make_certificate

KEY_S, DECISION_S = 0.2, 2.0
"""Time of a person for a key, and for a decision, in seconds."""
MAX_ACTIONS, MAX_LOGIN_S, MAX_ENROLMENT_S = 5, 15.0, 60.0
WELCOME = re.compile("successfully authenticated")
LINK = re.compile(r"https://localhost:\d+/mfa/[A-Z0-9]{10}")
INSERT = (
    "insert into passkeys (domain_id, user_key, user_name, user_handle, rp_id, credential_id, public_key, sign_count, "
    "backup_eligible, backed_up, transports, name, created_at) values (1, ?, ?, ?, 'localhost', ?, ?, 0, 0, 0, "
    "'internal', 'laptop', ?)"
)


@dataclass
class Person:
    """A person at a keyboard. An action is a click, or a line that is typed.

    keys, decisions, actions: the numbers of what the person has done. is_slow: whether the person takes the time for
    it; otherwise `seconds` says what it would take.
    """

    is_slow: bool = False
    keys: int = 0
    decisions: int = 0
    actions: int = 0

    @property
    def seconds(self) -> float:
        """The time that the person needs, without that of the programs."""
        return self.keys * KEY_S + self.decisions * DECISION_S

    def decides(self) -> None:
        """Look at a page, and decide on a click."""
        self.decisions += 1
        self.actions += 1
        self._take(DECISION_S)

    def types(self, text: str) -> str:
        """Type a line, which is returned, with Enter."""
        self.keys += len(text) + 1
        self.actions += 1
        self._take((len(text) + 1) * KEY_S)
        return text

    def _take(self, seconds: float) -> None:
        if self.is_slow:
            time.sleep(seconds)


@contextmanager
def service_with_pages(
    folder: Path, more: Mapping[str, str] | None = None, *, fresh: bool = False
) -> Iterator[RunningService]:
    """Run a service with pages of people at https://localhost, behind a trusted proxy on loopback. more: further
    settings. fresh: see `RunningService`."""
    port, tls = free_port(), make_certificate(folder)
    settings = {
        "SALLYPORT_PEOPLE_BIND": f"127.0.0.1:{port}", "SALLYPORT_PUBLIC_URL": f"https://localhost:{port}",
        "SALLYPORT_TLS_CERTIFICATE": str(tls.certificate), "SALLYPORT_TLS_KEY": str(tls.key),
        "SALLYPORT_TRUSTED_PROXIES": "127.0.0.0/8", "SALLYPORT_REJECT_DELAY_S": "0",
    }  # fmt: skip
    with running_service(folder, settings | dict(more or {}), fresh=fresh) as service:
        yield service


def passkey(service: RunningService, user: str) -> Passkey:
    """Give a user a passkey, and return it for the browser."""
    device = Authenticator(host="localhost", handle=secrets.token_bytes(32))
    service.execute(INSERT, user, user, device.handle, device.credential_id, cbor(device.public), now_us())
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


def uses_a_passkey(page: Page, link: str, key: Passkey, person: Person) -> tuple[str, str, Person]:
    """Open the link and prove. Return the digits, what the page shows about the login, and the person."""
    arrive(page, [key])
    person.decides()
    page.goto(link)
    person.decides()
    page.get_by_role("button", name="Continue").click()
    facts = page.inner_text("dl")
    person.decides()
    page.get_by_role("button", name="Use a passkey").click()
    return page.locator(".digits").inner_text(), facts, person


def log_in_through_pam(
    pam: Path, chromium: Chromium, user: str, password: str, key: Passkey, person: Person
) -> tuple[str, Person]:
    """Log in at a Linux machine with the password, a passkey and the digits of the page. Return what the page shows
    about the login, and the person with what it took."""
    with logging_in(pam, user) as terminal:
        terminal.type(person.types(password))
        digits, facts, person = chromium.run(uses_a_passkey, terminal.wait_for(LINK), key, person)
        terminal.type(person.types(digits))
        terminal.wait_for(WELCOME)
    return facts, person


def enrols(page: Page, link: str, password: str, person: Person) -> tuple[str, Person]:
    """Register a passkey by an enrolment link. Return what the page says, and the person with what it took."""
    arrive(page)
    person.decides()
    page.goto(link)
    person.decides()
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Password").fill(person.types(password))
    page.get_by_label("Password").press("Enter")
    person.decides()
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_label("Name of the passkey").fill(person.types("my laptop"))
    person.decides()
    page.get_by_role("button", name="Make the passkey").click()
    return page.get_by_role("status").inner_text(), person
