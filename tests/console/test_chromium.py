"""The console in real Chromium: the two ways to sign in, the script, and what the browser refuses."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import httpx
import pytest
from playwright.sync_api import Page
from pyotp import TOTP, parse_uri

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.console.chromium import Chromium
from tests.console.visitor import PASSWORD
from tests.peers.programs import needs
from tests.running_service import RunningService, running_service

OF_A_DOMAIN = [
    "/rules", "/rules/add", "/rules/effect", "/rules/test", "/reauthorizations", "/reauthorizations/start", "/roles",
    "/roles/set", "/profiles", "/profiles/set", "/authorities", "/authorities/add", "/bypass", "/bypass/add",
    "/bypass/unknown", "/directories", "/directories/add", "/instances", "/endpoint-groups", "/endpoint-groups/add",
    "/endpoint-users", "/server-certificates", "/server-certificates/set",
    "/endpoint-users/add", "/agents", "/agents/settings", "/policies", "/policies/add", "/dids", "/dids/add",
    "/schemas", "/credentials", "/wallets", "/wallets/add", "/presentations", "/keys", "/keys/add", "/audit",
]  # fmt: skip
pytestmark = [pytest.mark.peer, needs("chromium")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a running service for the tests of this module."""
    with running_service(tmp_path_factory.mktemp("console"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        yield service


def base_of(service: RunningService) -> str:
    """Return the address of the console."""
    return f"http://127.0.0.1:{service.ports.http}"


def add_administrator(service: RunningService, name: str) -> str:
    """Add an installation administrator with PASSWORD, and return the present code."""
    made = service.ok("admin", "add", name, "--password", "-", input=f"{PASSWORD}\n")
    return TOTP(parse_uri(made.splitlines()[-1]).secret).now()  # type: ignore[union-attr]


def sign_in(page: Page, base: str, token: str, path: str = "/") -> None:
    """Sign in with a token, and open a page."""
    page.goto(f"{base}{path}")
    page.get_by_label("Access token").fill(token)
    page.get_by_label("Access token").press("Enter")
    page.wait_for_url(f"{base}{path}")


def uses_the_console(page: Page, base: str, token: str) -> tuple[str, str, str, str]:
    """Sign in, use the menu and the keyboard, and sign out. Return the shown time of the sign-in, the value of its
    element, the field that the key / has moved to, and the last title."""
    sign_in(page, base, token, "/account")
    began = page.locator("td[data-title='Signed in'] time").first
    shown, value = began.inner_text(), began.get_attribute("datetime") or ""
    page.get_by_role("link", name="Home").click()
    page.wait_for_url(f"{base}/")
    page.keyboard.press("/")
    page.keyboard.type("a/b")
    searched = page.locator("input[type=search]").input_value()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{base}/sign-in")
    page.goto(f"{base}/account")
    return shown, value, searched, page.title()


def test_a_person_signs_in_with_a_token(chromium: Chromium, service: RunningService) -> None:
    """The pages work under their policy without an error, times have the viewer's zone, the key / moves to the
    search field, and the sign-out ends the session.
    """
    shown, value, searched, title = chromium.run(uses_the_console, base_of(service), service.token)
    there = datetime.fromisoformat(value).astimezone(UTC)
    assert there.strftime("%Y-%m-%d %H:%M:%S") == shown  # the zone of the test machine is UTC
    assert searched == "a/b"
    assert title.startswith("Sign in")


def signs_in_as_administrator(page: Page, base: str, name: str, code: str) -> str:
    """Sign in with a name, a password and a code. Return the text at the top of the page."""
    page.goto(base)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code of the authenticator app").fill(code)
    page.get_by_label("Code of the authenticator app").press("Enter")
    page.wait_for_url(f"{base}/")
    return page.locator("header").inner_text()


def test_an_administrator_signs_in_with_a_code(chromium: Chromium, service: RunningService) -> None:
    """`sallyport admin add` prints the URI of a seed, and a code of that seed opens the console."""
    code = add_administrator(service, "root")
    assert "root (installation)" in chromium.run(signs_in_as_administrator, base_of(service), "root", code)


def registers(page: Page, base: str, name: str, code: str, address: str) -> str:
    """Find an unknown address from the home page, register it, and return the secret that is shown."""
    signs_in_as_administrator(page, base, name, code)
    page.get_by_role("listitem").filter(has_text=address).get_by_role("link", name="Register it").click()
    page.get_by_role("button", name="Register").click()
    return page.locator("code.secret").inner_text()


def test_an_unknown_sender_gets_an_answer(chromium: Chromium, service: RunningService) -> None:
    """From the home page, an administrator registers a device that gets no answer. With the secret that the console
    shows, its next login is accepted.
    """
    source = "127.0.0.88"
    service.ok("user", "add", "carol", "--domain", "default", "--password", "-", input="hello, carol\n")
    with service.radius("wrong", source=source) as client:
        client.sock.send(client.packet("carol", "hello, carol", NAS_IDENTIFIER=b"switch-88"))
    code = add_administrator(service, "ops")
    secret = chromium.run(registers, base_of(service), "ops", code, source)
    with service.radius(secret, source=source) as client:
        assert client.login("carol", "hello, carol") == ACCESS_ACCEPT


def opens_on_a_phone(page: Page, base: str, token: str, paths: list[str]) -> list[str]:
    """Return the pages that are wider than a screen of 360 px, and those whose menu does not open."""
    sign_in(page, base, token)
    page.set_viewport_size({"width": 360, "height": 740})
    wide = []
    for path in paths:
        page.goto(base + path)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(path)
        page.get_by_role("link", name="Menu", exact=True).click()
        if not page.get_by_role("link", name="Close the menu").is_visible():
            wide.append(f"menu of {path}")
    return wide


def test_the_pages_fit_on_a_phone(chromium: Chromium, service: RunningService) -> None:
    """At a width of 360 px, no page scrolls sideways, and the menu opens."""
    paths = ["/", "/account", "/logins", *OF_A_DOMAIN]
    assert chromium.run(opens_on_a_phone, base_of(service), service.token, paths) == []


EVIL = "<img src=x onerror=alert(1)>"


def watches(page: Page, base: str, token: str, listens: Path) -> tuple[int, str]:
    """Open the live log, and wait for the row of a login that arrives meanwhile. Return the number of images on the
    pages, and the text of the login's page.

    listens: a file that is made when the page listens.
    """
    sign_in(page, base, token, "/logins?search=img")
    page.get_by_text("live", exact=True).wait_for()
    listens.touch()
    row = page.locator("tbody tr").first
    row.wait_for()
    images = page.locator("tbody img").count()
    row.get_by_role("link").first.click()
    page.get_by_role("heading", name="Steps").wait_for()
    return images + page.locator("main img").count(), page.locator("main").inner_text()


def test_a_login_appears_in_the_open_page(chromium: Chromium, service: RunningService, tmp_path: Path) -> None:
    """A login appears in the open live log. Its user name is text, although it is HTML, and its page has the reason. A
    login that does not match the filter does not appear."""
    service.add_client("nas", "127.0.0.1", "secret")
    listens = tmp_path / "listens"

    def log_in() -> None:
        while not listens.exists():
            time.sleep(0.01)
        with service.radius("secret") as client:
            client.login("somebody else", "wrong")
            client.login(EVIL, "wrong")

    thread = Thread(target=log_in)
    thread.start()
    images, text = chromium.run(watches, base_of(service), service.token, listens)
    thread.join()
    assert images == 0
    assert EVIL in text
    assert "unknown user" in text


def frames(page: Page, base: str, token: str, other: str) -> bool:
    """Sign in, and open the console in a frame of another site. Return whether the frame shows the console."""
    sign_in(page, base, token)
    page.goto(f"{other}/healthz")
    with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
        page.set_content(f"<iframe src='{base}/'></iframe>")
    return page.frame_locator("iframe").get_by_text("Needs attention").count() > 0


def test_another_site_cannot_frame_the_console(chromium: Chromium, service: RunningService) -> None:
    """Chromium refuses the frame, and says that the policy of the console is the reason."""
    base = base_of(service)
    shows, logged = chromium.logged(frames, base, service.token, base.replace("127.0.0.1", "localhost"))
    assert not shows
    assert any("frame-ancestors" in each for each in logged)


def posts_from_elsewhere(page: Page, base: str, token: str, other: str) -> bool:
    """Sign in, let another site send the form of the sign-out, and return whether the session still works."""
    sign_in(page, base, token)
    page.goto(f"{other}/healthz")
    page.set_content(f"<form method=post action='{base}/sign-out'><button>Win a prize</button></form>")
    page.get_by_role("button").click()
    page.wait_for_load_state()
    page.goto(f"{base}/account")
    return page.url == f"{base}/account"


def test_another_site_cannot_send_a_form(chromium: Chromium, service: RunningService) -> None:
    """A form of another site does not reach the session of the person."""
    base = base_of(service)
    still_works, _ = chromium.logged(posts_from_elsewhere, base, service.token, base.replace("127.0.0.1", "localhost"))
    assert still_works


def test_the_service_starts_with_the_console(service: RunningService) -> None:
    """The address of the API leads a browser to the sign-in."""
    answer = httpx.get(base_of(service), follow_redirects=True, trust_env=False)
    assert answer.status_code == 200
    assert "Access token" in answer.text
