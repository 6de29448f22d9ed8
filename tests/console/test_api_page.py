"""The API page in real Chromium: a person authorizes with a token, tries an operation, and sees the answer."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from sallyport.radius.packet import ACCESS_ACCEPT
from tests.console.chromium import Chromium
from tests.console.test_chromium import base_of
from tests.peers.programs import needs
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, needs("chromium")]
LIST = "/network_device/ListDevices"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a running service with a device that has sent a login."""
    with running_service(tmp_path_factory.mktemp("api")) as service:
        service.add_client("nas", "127.0.0.1", "secret", "default")
        service.add_user("ann", "hello")
        with service.radius("secret") as client:
            assert client.login("ann", "hello", NAS_IDENTIFIER=b"vpn-1") == ACCESS_ACCEPT
        yield service


def tries(page: Page, base: str, token: str, domain: int) -> tuple[str, str, str]:
    """Authorize with a token, and execute ListDevices. Return the status, the body of the answer, and the shown
    command line."""
    page.goto(f"{base}/docs")
    page.get_by_role("button", name="Authorize").first.click()
    dialog = page.locator(".modal-ux")
    dialog.get_by_role("textbox").first.fill(token)
    dialog.locator("button.authorize").first.click()
    dialog.locator("button.close-modal").click()
    operation = page.locator(".opblock").filter(has=page.locator(f'[data-path="{LIST}"]'))
    tag = page.locator(".opblock-tag").filter(has_text="Network devices")
    if not operation.is_visible():
        tag.click()
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.locator("textarea.body-param__text").fill(json.dumps({"orgId": 1, "tenantId": 1, "domainId": domain}))
    operation.get_by_role("button", name="Execute").click()
    live = operation.locator(".live-responses-table .response").first
    expect(live).to_be_visible()
    status = live.locator(".response-col_status").inner_text()
    return status, live.locator(".highlight-code").first.inner_text(), operation.locator(".curl").inner_text()


def test_a_person_tries_an_operation(chromium: Chromium, service: RunningService) -> None:
    """The answer is that of the service, with the device of the login. The example uses the address of the service, and
    the page keeps to its policy.
    """
    base, domain = base_of(service), service.domains()["default"]["domainId"]
    status, body, example = chromium.run(tries, base, service.token, domain)
    assert status.split()[0] == "200"
    assert "vpn-1" in body
    assert f"{base}{LIST}" in example.replace("'", "")


def shows(page: Page, base: str, path: str) -> tuple[str, str]:
    """Open the API page at an address of its own. Return the text of the page, and that of the models."""
    page.goto(f"{base}{path}")
    page.locator(".opblock-tag").first.wait_for()
    models = page.locator("section.models")
    if "is-open" not in (models.get_attribute("class") or ""):
        models.get_by_role("button").first.click()
    models.get_by_text("ListDevices", exact=True).wait_for()
    return page.locator("#page").inner_text(), models.inner_text()


def test_the_page_names_no_module(chromium: Chromium, service: RunningService) -> None:
    """The operations and the models have short names, without the modules in which they are declared."""
    text, models = chromium.run(shows, base_of(service), "/docs")
    names: dict[str, Any] = httpx.get(f"{base_of(service)}/openapi.json", trust_env=False).json()["components"]
    assert "Network devices" in text
    assert "DeviceList" in models
    assert not re.search(r"sallyport__|sallyport\.", text + models + json.dumps(names))
