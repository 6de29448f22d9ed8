"""The company sign-in in real Chromium, without JavaScript: the cookie of the browser comes back from the provider."""

from dataclasses import replace
from functools import partial

import pytest
import trio
from playwright.sync_api import Page

from sallyport.areas.factors.openid.page import SignInFactor
from sallyport.areas.factors.openid.service import CompanySignIns, OfDomains
from sallyport.areas.factors.stepup.stepup import plain
from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.provider import Code
from sallyport.web.server import Tls
from tests.areas import Areas
from tests.areas.factors.sign_ins import Bench
from tests.areas.factors.stepups import STATION, node, opened, question
from tests.areas.factors.test_pages_chromium import served
from tests.console.axe import violations_of
from tests.console.chromium import Chromium
from tests.console.provider import providing
from tests.peers.npm_verifiers import needs_axe
from tests.peers.programs import needs

pytestmark = [pytest.mark.peer, needs("chromium")]
OWN = OwnFields(factors="oidc,totp")
SIGN_IN = "Sign in at your company"


def signs_in(page: Page, link: str) -> tuple[str, str, str]:
    """Open a link and sign in at the company, in a browser without JavaScript. Return the digits, those after a reload,
    and the path of the page."""
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(ignore_https_errors=True, java_script_enabled=False)
    context.set_extra_http_headers({"X-Forwarded-For": STATION})
    plain_page = context.new_page()
    plain_page.goto(link)
    plain_page.get_by_role("button", name="Continue").click()
    plain_page.get_by_role("link", name=SIGN_IN).click()
    digits, path = plain_page.locator(".digits").inner_text(), plain_page.url.partition("?")[0]
    plain_page.reload()
    again = plain_page.locator(".digits").inner_text()
    context.close()
    return digits, again, path


def violations(page: Page, link: str) -> list[str]:
    """Return the violations of the page with the link to the company, of a login without a checked password, and of the
    page after "This is not me"."""
    page.set_extra_http_headers({"X-Forwarded-For": STATION})
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    found = violations_of(page, "company")
    page.get_by_role("button", name="This is not me").click()
    return found + violations_of(page, "not me without a password")


@pytest.mark.system
@needs_axe
async def test_a_person_signs_in_at_the_company(areas: Areas, certificate: Tls, chromium: Chromium) -> None:
    """The way to the provider and back takes one click. The page has no violation of accessibility."""
    asked, other = question(areas), replace(question(areas, 2), user="bob", is_checked=False)
    async with providing(lambda: areas.clock() // 1_000_000) as provider, served(areas, certificate) as (site, url):
        bench = Bench(areas, provider, node(areas))
        of_domains = OfDomains(bench.fields.get, lambda _domain: bench.http, bench.account)
        factor = SignInFactor(CompanySignIns(of_domains, areas.vault, url, areas.clock), site.pages)
        site.pages.add(factor)
        site.more.append(factor.routes)
        site.stepups.offer("oidc", CompanySignIns(of_domains, areas.vault, url, areas.clock).has)
        pages = [await opened(site.stepups, each, OWN) for each in (asked, other)]
        links = [f"{url}/mfa/{plain(each.code)}" for each in pages]
        work = partial(chromium.run, signs_in, links[0])
        digits, again, path = await trio.to_thread.run_sync(work)
        assert await site.stepups.check_digits(asked.challenge_id, Code(digits))
        assert (again, path) == (digits, f"{url}/mfa/openid/{areas.domain}")
        found = await trio.to_thread.run_sync(partial(chromium.run, violations, links[1]))
        assert found == []
