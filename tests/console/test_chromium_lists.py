"""Lists, times and the menu in real Chromium: what the script adds, on a large screen and on a phone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.console.chromium import Chromium
from tests.console.test_chromium import base_of, sign_in
from tests.peers.programs import needs
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, pytest.mark.system, needs("chromium")]
SECRET, PASSWORD = "a secret of this module", "password of alice"
LOGINS = 12


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a running service in which two devices have sent logins."""
    with running_service(tmp_path_factory.mktemp("lists"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.add_client("vpn", "127.0.0.1", SECRET, "default")
        service.add_client("wlc", "127.0.0.2", SECRET, "default")
        for user in ("alice", "bob"):
            service.add_user(user, PASSWORD)
        with service.radius(SECRET) as client:
            for _ in range(LOGINS):
                assert client.login("alice", PASSWORD, NAS_IDENTIFIER=b"vpn-1") == ACCESS_ACCEPT
        with service.radius(SECRET, source="127.0.0.2") as client:
            assert client.login("bob", PASSWORD, NAS_IDENTIFIER=b"wlc-1") == ACCESS_ACCEPT
        yield service


def filters_while_typing(page: Page, base: str, token: str) -> tuple[str, str, str]:
    """Type into a filter of the live log, and press no button. Return the address, the address of the export, and the
    field that has the focus."""
    sign_in(page, base, token, "/logins")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(LOGINS + 1)
    expect(page.get_by_role("button", name="Show")).to_be_hidden()
    page.get_by_role("searchbox", name="User").press_sequentially("bob")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("bob")
    expect(page.locator("[data-state]")).to_have_text("live")
    export = page.get_by_role("link", name="CSV").get_attribute("href") or ""
    focus = page.evaluate("document.activeElement.id")
    address = page.url
    page.get_by_role("combobox", name="Answer").select_option("reject")
    expect(page.locator(".empty")).to_contain_text("Nothing matches these filters")
    return address, export, focus


def test_a_list_follows_its_filters(chromium: Chromium, service: RunningService) -> None:
    """The rows, the address and the export follow the filters without a button, and the field keeps the focus."""
    address, export, focus = chromium.run(filters_while_typing, base_of(service), service.token)
    assert address.endswith("/logins?user=bob")
    assert "user=bob" in export
    assert focus == "filter-user"


def chooses_devices(page: Page, base: str, token: str) -> list[bool]:
    """Choose all devices, and none. Return whether the button is disabled before, between and after."""
    sign_in(page, base, token, "/devices")
    button = page.get_by_role("button", name="Delete the chosen devices")
    found = [button.is_disabled()]
    for is_chosen in (True, False):
        page.get_by_label("Choose all rows of this page").set_checked(is_chosen)
        found.append(button.is_disabled())
    return found


def test_nothing_chosen_is_not_deleted(chromium: Chromium, service: RunningService) -> None:
    """The button is disabled while no device is chosen."""
    assert chromium.run(chooses_devices, base_of(service), service.token) == [True, False, True]


def shows_times(page: Page, base: str, token: str) -> tuple[str, str, str]:
    """Return the head and the first cell of the column of times in the live log, and the last request of a device."""
    sign_in(page, base, token, "/logins")
    head, cell = page.locator("th.time").inner_text(), page.locator("td.time").first.inner_text()
    page.goto(f"{base}/devices")
    return head, cell, page.locator("td[data-title='Last request']").first.inner_text()


def test_times_have_a_zone_or_an_age(chromium: Chromium, service: RunningService) -> None:
    """A column of times names the zone once. The last request of a device is relative to now."""
    head, cell, last = chromium.run(shows_times, base_of(service), service.token)
    assert re.fullmatch(r"Time \((UTC|GMT)\)", head)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", cell)
    assert re.fullmatch(r"\d+ (second|minute)s? ago", last)


def measures_the_menu(page: Page, base: str, token: str) -> tuple[int, int, list[bool]]:
    """Return the height of the menu's content and of its place at 900 px. Also return whether two groups are open on
    another page: one that the person has opened, and one of which the person has only seen a page."""
    page.set_viewport_size({"width": 1280, "height": 900})
    sign_in(page, base, token)
    content, place = page.locator("#menu").evaluate("menu => [menu.scrollHeight, menu.clientHeight]")
    page.locator("summary", has_text="Credentials").click()
    expect(page.get_by_role("link", name="Wallets")).to_be_visible()
    page.goto(f"{base}/endpoint-groups")
    page.get_by_role("link", name="Devices", exact=True).click()
    page.wait_for_url(f"{base}/devices")
    visible = [page.get_by_role("link", name=name).is_visible() for name in ("Wallets", "Endpoint groups")]
    return content, place, visible


def test_the_menu_fits_on_the_screen(chromium: Chromium, service: RunningService) -> None:
    """The menu does not scroll at a height of 900 px, and groups stay as the person has left them."""
    content, place, are_open = chromium.run(measures_the_menu, base_of(service), service.token)
    assert content <= place
    assert are_open == [True, False]


def measures_the_log(page: Page, base: str, token: str) -> float:
    """Return the mean height of a row of the live log on a phone, in pixels."""
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, base, token, "/logins")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(LOGINS + 1)
    return float(page.locator("tbody").evaluate("body => body.getBoundingClientRect().height")) / rows.count()


def test_the_live_log_is_compact_on_a_phone(chromium: Chromium, service: RunningService) -> None:
    """A login takes at most four lines, so that a screen shows about ten."""
    assert chromium.run(measures_the_log, base_of(service), service.token) < 100


def goes_back_from_the_api(page: Page, base: str, token: str) -> str:
    """Open the API page from the menu, and follow the link back."""
    sign_in(page, base, token)
    page.get_by_role("link", name="API", exact=True).click()
    page.get_by_role("link", name="Back to the console").click()
    page.wait_for_url(f"{base}/")
    return page.locator("h1").inner_text()


def test_the_api_page_has_a_way_back(chromium: Chromium, service: RunningService) -> None:
    """The API page leads back to the console, in which the person is still signed in."""
    assert chromium.run(goes_back_from_the_api, base_of(service), service.token) == "Home"
