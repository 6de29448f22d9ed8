"""Logins that a person proves on the page, with radclient as the device, Chromium as the browser, and real identity
providers: the digits come back in a second request, with the State of the challenge."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Page, Route

from tests.areas.factors.test_pages_chromium import Passkey, arrive
from tests.console.chromium import Chromium
from tests.console.provider import CLIENT, SECRET
from tests.peers.companies import Company, needs_oidc_provider, oidc_provider, oidc_provider_mock
from tests.peers.programs import needs
from tests.peers.second_factor import (
    ACCEPTED,
    CHALLENGED,
    PASSWORD,
    REJECTED,
    Device,
    event,
    populate,
    provide,
    state_of,
)
from tests.peers.step_ups import LINK, passkey, service_with_pages
from tests.running_service import RunningService

pytestmark = [pytest.mark.peer, needs("radclient", "chromium")]
NPM = pytest.param("npm", marks=[pytest.mark.system, needs_oidc_provider], id="oidc-provider")
SIGN_IN = "Sign in at your company"
REFUSED = "The answer of the identity provider is not valid"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with pages of people whose domain enforces."""
    with service_with_pages(tmp_path_factory.mktemp("service")) as service:
        populate(service)
        yield service


def challenged(service: RunningService, device: Device, user: str) -> tuple[str, str]:
    """Log a new user in with the password. Return the link of the challenge, and its State."""
    if user not in {each["userName"] for each in service.users()}:
        service.add_user(user, PASSWORD)
    output = device.pap(user, PASSWORD)
    assert CHALLENGED in output, output
    link = LINK.search(output)
    assert link, output
    return link[0], state_of(output)


def shown(page: Page, link: str, key: Passkey) -> str:
    """Open the link and use the passkey. Return the digits."""
    arrive(page, [key])
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Use a passkey").click()
    return page.locator(".digits").inner_text()


# --- digits -------------------------------------------------------------------------------------------------------


def test_the_digits_come_back(tmp_path: Path, service: RunningService, chromium: Chromium) -> None:
    """The challenge has the address and a State. The digits of the page, with this State, admit once."""
    service.add_user("fay", PASSWORD)
    key, device = passkey(service, "fay"), Device(tmp_path, service.ports.auth)
    provide(service, "own", binding="code", factors="passkey")
    link, state = challenged(service, device, "fay")
    digits = chromium.run(shown, link, key)
    assert len(digits) == 6 and ACCEPTED in device.pap("fay", digits, state)
    assert event(service, "fay") == ("accept", "accept", "", "local+own")
    assert REJECTED in device.pap("fay", digits, state)


def test_three_wrong_numbers_end_the_login(tmp_path: Path, service: RunningService, chromium: Chromium) -> None:
    """The victim of a forwarded link has proved, and the attacker guesses: after three numbers, also the right one is
    refused."""
    service.add_user("gus", PASSWORD)
    key, device = passkey(service, "gus"), Device(tmp_path, service.ports.auth)
    provide(service, "own", binding="code", factors="passkey")
    link, state = challenged(service, device, "gus")
    digits = chromium.run(shown, link, key)
    wrong = "000000" if digits != "000000" else "000001"
    for _ in range(2):
        output = device.pap("gus", wrong, state)
        assert CHALLENGED in output, output
        state = state_of(output)
    assert REJECTED in device.pap("gus", wrong, state)
    assert event(service, "gus")[1:3] == ("reject", "wrong code")
    assert REJECTED in device.pap("gus", digits, state)


# --- the company's identity provider ------------------------------------------------------------------------------


@pytest.fixture
def company(request: pytest.FixtureRequest, tmp_path: Path, service: RunningService) -> Iterator[Company]:
    """Yield a provider, with which the domain lets people sign in."""
    running = oidc_provider if request.param == "npm" else oidc_provider_mock
    with running(tmp_path, f"{service.environ['SALLYPORT_PUBLIC_URL']}/mfa/openid/1") as company:
        own = {"binding": "code", "factors": "oidc", "userSuffix": company.suffix}
        provide(service, "own", issuer=company.issuer, clientId=CLIENT, clientSecret=SECRET, **own)
        yield company


def signs_in(page: Page, link: str, company: Company, names: list[str]) -> list[str]:
    """Sign in at the provider with these accounts, one after the other. Return the text of the page after each."""
    texts = list[str]()
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    for name in names:
        page.get_by_role("link", name=SIGN_IN).click()
        company.sign_in(page, name)
        page.wait_for_url("**/mfa/openid/1?*")
        texts.append(page.inner_text("main"))
    return texts


@pytest.mark.parametrize("company", [NPM, pytest.param("mock", id="oidc-provider-mock")], indirect=True)
def test_the_company_sign_in_admits(
    tmp_path: Path, service: RunningService, chromium: Chromium, company: Company
) -> None:
    """A colleague's account proves nothing. The account of the login shows the digits, which admit."""
    device = Device(tmp_path, service.ports.auth)
    link, state = challenged(service, device, "ann")
    (refused, proved), _ = chromium.logged(signs_in, link, company, ["eve", "ann"])
    assert "signed in as another user" in refused and "Type this number" in proved
    digits = re.search(r"^\d{6}$", proved, re.MULTILINE)
    assert digits and ACCEPTED in device.pap("ann", digits[0], state)
    assert event(service, "ann") == ("accept", "accept", "", "local+own")


def returns_without_asking(page: Page, link: str, other_link: str, company: Company) -> str:
    """Sign in for one login. For another one, remove `prompt` and `max_age` from the address of the provider, so that
    it lets the browser through. Return the text of the last page."""
    signs_in(page, link, company, ["ida"])

    def without_asking(route: Route) -> None:
        to = route.fetch(max_redirects=0).headers["location"]
        route.fulfill(status=303, headers={"location": re.sub(r"&(prompt|max_age)=[^&]*", "", to)})

    page.route("**/mfa/openid/1/*", without_asking)
    page.goto(other_link)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name=SIGN_IN).click()
    page.wait_for_url("**/mfa/openid/1?*")
    return page.inner_text("main")


@pytest.mark.parametrize("company", [NPM], indirect=True)
def test_an_old_session_at_the_provider_proves_nothing(
    tmp_path: Path, service: RunningService, chromium: Chromium, company: Company
) -> None:
    """The provider is asked to let the person sign in again. A script in the browser may remove this from the
    address."""
    first, second = (challenged(service, Device(tmp_path, service.ports.auth), "ida")[0] for _ in range(2))
    text, _ = chromium.logged(returns_without_asking, first, second, company)
    assert REFUSED in text and "Type this number" not in text


def returns_from_another_issuer(page: Page, link: str, company: Company) -> tuple[list[str], str]:
    """Sign in, and let the redirect name another issuer. Return the addresses of the redirects of the provider, and the
    page."""
    to = list[str]()

    def rename(route: Route) -> None:
        response = route.fetch(max_redirects=0)
        while "/auth/" in response.headers.get("location", ""):
            response = page.request.get(urljoin(response.url, response.headers["location"]), max_redirects=0)
        if "location" in response.headers:
            to.append(urljoin(response.url, response.headers["location"]))
            renamed = re.sub(r"iss=[^&]*", "iss=https%3A%2F%2Fevil.test", to[-1])
            route.fulfill(status=303, headers={"location": renamed})
        else:
            route.fulfill(response=response)

    page.route(f"{company.issuer}/interaction/*", rename)
    (text,) = signs_in(page, link, company, ["jon"])
    return to, text


@pytest.mark.parametrize("company", [NPM], indirect=True)
def test_a_redirect_of_another_issuer_is_refused(
    tmp_path: Path, service: RunningService, chromium: Chromium, company: Company
) -> None:
    """oidc-provider names itself in the redirect (RFC 9207). If the redirect names another issuer, the code is not
    redeemed."""
    link, _ = challenged(service, Device(tmp_path, service.ports.auth), "jon")
    (addresses, text), _ = chromium.logged(returns_from_another_issuer, link, company)
    assert "iss=http%3A%2F%2F127.0.0.1" in addresses[-1]
    assert REFUSED in text and "Type this number" not in text
