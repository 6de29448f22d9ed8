"""The console in real Chromium: the two ways to sign in, the script, and what the browser refuses."""

from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest
from playwright.sync_api import Page
from pyotp import TOTP, parse_uri

from tests.console.chromium import Chromium
from tests.console.visitor import PASSWORD
from tests.peers.programs import needs
from tests.service import RunningService, running_service

OF_A_DOMAIN = [
    "/rules", "/rules/add", "/rules/effect", "/rules/test", "/bypass", "/bypass/add", "/directories",
    "/directories/add", "/instances", "/endpoint-groups", "/endpoint-groups/add", "/endpoint-users",
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


def sign_in(page: Page, base: str, token: str, path: str = "/") -> None:
    """Sign in with a token, and open a page."""
    page.goto(f"{base}{path}")
    page.get_by_label("Access token").fill(token)
    page.get_by_label("Access token").press("Enter")
    page.wait_for_url(f"{base}{path}")


def uses_the_console(page: Page, base: str, token: str) -> tuple[str, str, str]:
    """Sign in, use the keyboard and the menu, and sign out. Return the shown time of the sign-in, the value of its
    element, and the last title."""
    sign_in(page, base, token, "/account")
    began = page.locator("td[data-title='Signed in'] time").first
    shown, value = began.inner_text(), began.get_attribute("datetime") or ""
    page.get_by_role("link", name="Home").click()
    page.wait_for_url(f"{base}/")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{base}/sign-in")
    page.goto(f"{base}/account")
    return shown, value, page.title()


def test_a_person_signs_in_with_a_token(chromium: Chromium, service: RunningService) -> None:
    """The pages work under their policy without an error, times have the viewer's zone, and the sign-out ends the
    session."""
    shown, value, title = chromium.run(uses_the_console, base_of(service), service.token)
    there = datetime.fromisoformat(value).astimezone(UTC)
    assert there.strftime("%Y-%m-%d %H:%M:%S") == shown  # the zone of the test machine is UTC
    assert title.startswith("Sign in")


def signs_in_as_administrator(page: Page, base: str, code: str) -> str:
    """Sign in with a name, a password and a code. Return the text at the top of the page."""
    page.goto(base)
    page.get_by_label("Name").fill("root")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code of the authenticator app").fill(code)
    page.get_by_label("Code of the authenticator app").press("Enter")
    page.wait_for_url(f"{base}/")
    return page.locator("header").inner_text()


def test_an_administrator_signs_in_with_a_code(chromium: Chromium, service: RunningService) -> None:
    """`sallyport admin add` prints the URI of a seed, and a code of that seed opens the console."""
    made = service.ok("admin", "add", "root", "--password", "-", input=f"{PASSWORD}\n")
    code = TOTP(parse_uri(made.splitlines()[-1]).secret).now()  # type: ignore[union-attr]
    assert "root installation" in chromium.run(signs_in_as_administrator, base_of(service), code)


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
    paths = ["/", "/account", *OF_A_DOMAIN]
    assert chromium.run(opens_on_a_phone, base_of(service), service.token, paths) == []


def frames(page: Page, base: str, token: str, other: str) -> int:
    """Sign in, and open the console in a frame of another site. Return the length of the text that the frame shows."""
    sign_in(page, base, token)
    page.goto(f"{other}/healthz")
    with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
        page.set_content(f"<iframe src='{base}/'></iframe>")
    frame = page.frames[-1]
    return 0 if frame.url.startswith("chrome-error") else len(frame.content())


def test_another_site_cannot_frame_the_console(chromium: Chromium, service: RunningService) -> None:
    """Chromium refuses the frame, and says that the policy of the console is the reason."""
    base = base_of(service)
    length, logged = chromium.logged(frames, base, service.token, base.replace("127.0.0.1", "localhost"))
    assert length == 0
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
