"""The pages of domains, people and the network in real Chromium, with the data of real requests."""

import re
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pyotp import TOTP

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.console.chromium import Chromium
from tests.console.test_chromium import base_of, opens_on_a_phone, sign_in
from tests.peers.programs import needs
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, pytest.mark.system, needs("chromium")]
SECRET = "a secret of this module"
PASSWORD = "password of alice"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a running service with a user, a provider, a RADIUS client, and a device that has sent a login."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOCKOUT_FAILURES": "3"}
    with running_service(tmp_path_factory.mktemp("pages"), settings) as service:
        service.add_client("vpn", "127.0.0.1", SECRET, "default")
        service.add_user("alice", PASSWORD)
        service.add_user("bob", PASSWORD)
        service.run("/ad/SetMFAProvider", {"provider": "totp"}, domain="default")
        with service.radius(SECRET) as client:
            assert client.login("alice", PASSWORD, NAS_IDENTIFIER=b"vpn-1") == ACCESS_ACCEPT
        yield service


def opens_every_page(page: Page, base: str, token: str) -> list[str]:
    """Follow the links of the menu and of the first row of each list. Return the addresses of all pages with an
    error."""
    sign_in(page, base, token)
    found, wrong, seen = ["/"], list[str](), set[str]()
    while found:
        path = found.pop()
        seen.add(path)
        answer = page.goto(base + path)
        if answer is None or not answer.ok:
            wrong.append(path)
        links = page.locator("#menu a, main a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
        kinds = {re.sub(r"\d+", "N", each.partition("?")[0]) for each in (*seen, *found)}
        for link in links:
            kind = re.sub(r"\d+", "N", link.partition("?")[0])
            if link.startswith("/") and not re.match(r"/(docs|logins|sign-)", link) and kind not in kinds:
                kinds.add(kind)
                found.append(link)
    assert {"/people/person", "/devices/1/delete", "/clients/1/trust"} <= {each.partition("?")[0] for each in seen}
    return wrong


def test_every_link_leads_to_a_page(chromium: Chromium, service: RunningService) -> None:
    """No page that can be reached from the menu is missing or has an error, in the answer or in the browser."""
    assert chromium.run(opens_every_page, base_of(service), service.token) == []


def test_the_pages_fit_on_a_phone(chromium: Chromium, service: RunningService) -> None:
    """At a width of 360 px, no page scrolls sideways."""
    paths = [
        "/domains", "/domains/1", "/domains/1/preview", "/domains/1/mode?to=enforce", "/people",
        "/people/person?user=alice", "/lockouts", "/prompt-pauses", "/devices", "/devices/1", "/stations", "/sessions",
        "/clients", "/clients/1", "/clients/add", "/not-enrolled", "/not-enrolled/mail?group=staff",
    ]  # fmt: skip
    assert chromium.run(opens_on_a_phone, base_of(service), service.token, paths) == []


def enforces(page: Page, base: str, token: str) -> str:
    """Find out who would be refused, and switch to enforce for an hour in spite of it. Return the text of the domain's
    page."""
    sign_in(page, base, token)
    page.get_by_role("link", name="Domains", exact=True).click()
    page.get_by_role("link", name="default").click()
    page.get_by_role("link", name="Switch to enforce").click()
    expect(page.get_by_role("region", name="Users").get_by_role("row", name="alice")).to_contain_text("not enrolled")
    page.get_by_label("Revert the change").select_option(label="after an hour")
    clean = page.get_by_label("Do not switch if")
    expect(clean).to_be_checked()
    clean.uncheck()
    page.get_by_role("button", name="Switch default to enforce").click()
    page.wait_for_url(re.compile(r"/domains/\d+$"))
    return page.locator("main").inner_text()


def returns(page: Page, base: str, token: str) -> str:
    """Switch back to monitor. Return the text of the domain's page."""
    sign_in(page, base, token, "/domains/1")
    page.get_by_role("link", name="Back to monitor now").click()
    page.get_by_role("button", name="Switch default to monitor").click()
    page.wait_for_url(re.compile(r"/domains/\d+$"))
    return page.locator("main").inner_text()


def test_a_domain_is_enforced_with_a_revert(chromium: Chromium, service: RunningService) -> None:
    """The page before the switch names who would be refused. After it they are, until the way back is taken."""
    shown = chromium.run(enforces, base_of(service), service.token)
    assert "Mode: enforce" in shown
    assert "The mode reverts at" in shown
    with service.radius(SECRET) as client:
        assert client.login("alice", PASSWORD) == ACCESS_REJECT
    assert "Mode: monitor" in chromium.run(returns, base_of(service), service.token)
    with service.radius(SECRET) as client:
        assert client.login("alice", PASSWORD) == ACCESS_ACCEPT


PRESSED = """button => {
    button.click();
    const shown = () => [button.getAttribute("aria-busy"), document.querySelector("[data-busy]").textContent];
    return new Promise(resolve => setTimeout(() => resolve(shown()), 400));
}"""


def tries_a_silent_directory(page: Page, base: str, token: str, url: str) -> None:
    """Test the settings of a directory that does not answer. The button is busy, then the page says that the test runs,
    and at last it shows the reason."""
    sign_in(page, base, token, "/directories/add")
    page.get_by_label("Name").fill("Silent")
    page.get_by_label("URL").fill(url)
    page.get_by_label("Base DN").fill("dc=x")
    button = page.get_by_role("button", name="Test only")
    assert button.evaluate(PRESSED) == ["true", "Please wait: Test only"]
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("Nothing is saved", timeout=60_000)
    expect(page.get_by_label("Name")).to_have_value("Silent")


def test_a_slow_action_shows_its_progress(chromium: Chromium, service: RunningService) -> None:
    """A person sees that a test of settings runs, and its result without a further press."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ldap://127.0.0.1:{silent.getsockname()[1]}"
        chromium.run(tries_a_silent_directory, base_of(service), service.token, url)


def unlocks_and_enrols(page: Page, base: str, token: str) -> str:
    """Unlock bob, and enrol an authenticator app with the seed that the page shows. Return the text of his page."""
    sign_in(page, base, token, "/people")
    page.get_by_role("link", name="bob").click()
    page.get_by_role("link", name="Unlock").click()
    page.get_by_role("button", name="Unlock").click()
    expect(page.get_by_role("status")).to_contain_text("bob: unlocked")
    page.get_by_role("link", name="Enrol an authenticator app").click()
    page.get_by_role("button", name="Show the QR code").click()
    expect(page.get_by_role("img", name="QR code of the secret")).to_be_visible()
    seed = page.locator("code.secret").first.inner_text()
    page.get_by_label("First code of the app").fill(TOTP(seed).now())
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("status")).to_contain_text("The authenticator app of bob is valid")
    return page.locator("main").inner_text()


def test_a_person_is_unlocked_and_enrolled(chromium: Chromium, service: RunningService) -> None:
    """After the form was sent, a user with too many wrong passwords logs in again."""
    with service.radius(SECRET) as client:
        for number in range(3):
            assert client.login("bob", f"wrong {number}") == ACCESS_REJECT
        assert client.login("bob", PASSWORD) == ACCESS_REJECT
        shown = chromium.run(unlocks_and_enrols, base_of(service), service.token)
        assert client.login("bob", PASSWORD) == ACCESS_ACCEPT
    assert "Locked out" not in shown
    assert "enrolled" in shown


def checks_while_typing(page: Page, base: str, token: str) -> None:
    """Type a password on the page of a policy, and press no button."""
    sign_in(page, base, token)
    page.goto(f"{base}/policies/add")
    page.get_by_label("Name", exact=True).fill("typed")
    page.get_by_label("Minimum length", exact=True).fill("10")
    page.get_by_role("button", name="Add the policy").click()
    checked = page.locator("#checked")
    expect(checked).to_be_empty()
    page.get_by_label("Password", exact=True).press_sequentially("hunter2")
    expect(checked).to_contain_text("fewer than 10 characters")
    page.get_by_label("Password", exact=True).press_sequentially(" and more")
    expect(checked).to_contain_text("The password meets the policy.")
    expect(checked).not_to_contain_text("fewer")


def test_a_password_is_checked_while_it_is_typed(chromium: Chromium, service: RunningService) -> None:
    """The answer of the server appears without a button, and the field keeps its text and the focus."""
    chromium.run(checks_while_typing, base_of(service), service.token)
