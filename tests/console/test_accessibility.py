"""Every page of the console under axe-core, with the data of the demo's kind: light and dark, wide and narrow."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from pyotp import TOTP, parse_uri

from sallyport.console.pages import ALL
from tests.console.axe import violations_of
from tests.console.chromium import Chromium
from tests.console.visitor import PASSWORD
from tests.peers.npm_verifiers import needs_axe
from tests.peers.programs import needs
from tests.running_service import RunningService, running_service

pytestmark = [pytest.mark.peer, pytest.mark.system, needs("chromium"), needs_axe]

UNKNOWN = "127.0.0.77"
PAGES = ["/domains/1/provider?provider=own", "/domains/1/first-factor/set?kind=web"]
OLD = [
    *(re.sub(r"\{[^}]*\}", "1", page.path) for area in ALL for page in area.pages if not page.is_quiet),
    "/logins?search=nothing", "/devices/delete?device=1", f"/senders/register?address={UNKNOWN}",
    "/domains/1/provider?provider=own", "/domains/1/first-factor/set?kind=web",
]  # fmt: skip
PARTS = 8
"""Number of tests among which the pages are divided, so that each is far from the time limit of a test on a machine
that runs other tests too."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with a device, logins and an unknown sender."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.add_client("nas", "127.0.0.1", "secret")
        with service.radius("secret") as client, service.radius("other", source=UNKNOWN) as unknown:
            for user in ("ann", "bob"):
                client.login(user, "wrong", CALLING_STATION_ID=b"02-00-00-00-00-01")
            unknown.sock.send(unknown.packet("ann", "hello", NAS_IDENTIFIER=b"switch-77"))
        yield service


def violations(page: Page, base: str, name: str, seed: str, paths: list[str]) -> list[str]:
    """Sign in as an installation administrator, and return the violations of the sign-in and of the pages."""
    found = list[str]()

    def check(path: str) -> None:
        expect(page.get_by_text("This takes a moment.")).to_have_count(0)  # a slow page is shown when it is ready
        found.extend(violations_of(page, path, must_fit=False))

    page.goto(f"{base}/sign-in")
    check("/sign-in")
    for label, value in (("Name", name), ("Password", PASSWORD)):
        page.get_by_label(label).fill(value)
    page.get_by_label("Code of the authenticator app").fill(TOTP(seed).now())
    page.get_by_label("Code of the authenticator app").press("Enter")
    page.wait_for_url(f"{base}/")
    for path in paths:
        page.goto(base + path)
        check(path)
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_has_a_violation(chromium: Chromium, service: RunningService, part: int) -> None:
    """People who use a keyboard or a screen reader can use each page: names of fields, order of headings, contrast."""
    name = f"root-{part}"
    made = service.ok("admin", "add", name, "--password", "-", input=f"{PASSWORD}\n")
    seed = parse_uri(made.splitlines()[-1]).secret
    base = f"http://127.0.0.1:{service.ports.http}"
    found, _ = chromium.logged(violations, base, name, seed, PAGES[part::PARTS])
    assert found == []
