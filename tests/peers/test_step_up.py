"""Logins that a person proves on the page, with real peers: pam_radius as the device, and Chromium with its virtual
authenticator as the browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.areas.factors.test_pages_chromium import arrive
from tests.console.chromium import Chromium
from tests.peers.programs import needs
from tests.peers.second_factor import SECRET, enrol, event, next_code, populate, provide
from tests.peers.step_ups import (
    LINK,
    MAX_ACTIONS,
    MAX_ENROLMENT_S,
    MAX_LOGIN_S,
    WELCOME,
    Person,
    enrols,
    log_in_through_pam,
    logging_in,
    passkey,
    service_with_pages,
)
from tests.peers.test_pam_radius import PAM_SERVICE, configure, may_mount, module
from tests.running_service import RunningService

PASSWORD = "correct horse"
pytestmark = [
    pytest.mark.peer,
    needs("pamtester", "chromium"),
    pytest.mark.skipif(module() is None, reason="pam_radius_auth (libpam-radius-auth) is not installed"),
    pytest.mark.skipif(not may_mount(), reason="a mount namespace of its own is not permitted"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with pages of people whose domain enforces."""
    with service_with_pages(tmp_path_factory.mktemp("service")) as service:
        populate(service)
        yield service


def test_a_passkey_for_a_linux_login(tmp_path: Path, service: RunningService, chromium: Chromium) -> None:
    """PAM shows the link. Chromium proves with the passkey, and the digits let bob in.

    A person needs five actions: the password, the link, Continue, the passkey, the digits. With 0.2 s for a key and 2 s
    for a decision, the login takes at most 15 s.
    """
    service.add_user("bob", PASSWORD)
    key = passkey(service, "bob")
    provide(service, "own", binding="code", factors="passkey,totp")
    pam = configure(tmp_path, service, SECRET, wait_s=10)
    facts, person = log_in_through_pam(pam, chromium, "bob", PASSWORD, key, Person())
    assert "bob" in facts and PAM_SERVICE in facts
    assert event(service, "bob") == ("accept", "accept", "", "local+own")
    assert person.actions <= MAX_ACTIONS and person.seconds < MAX_LOGIN_S


def test_an_enrolment_takes_a_minute_at_most(service: RunningService, chromium: Chromium) -> None:
    """A person opens the link of an operator, and makes a passkey. With 0.2 s for a key and 2 s for a decision, this
    takes at most 60 s."""
    service.add_user("erik", PASSWORD)
    provide(service, "own", binding="code", factors="passkey,totp")
    link = service.ok("user", "enrol", "erik", "--domain", "default", "--link").split()[-1]
    said, person = chromium.run(enrols, link, PASSWORD, Person())
    assert said == "The passkey my laptop was added." and person.seconds < MAX_ENROLMENT_S


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
