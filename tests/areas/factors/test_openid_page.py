"""The company sign-in on the pages of step-ups: the whole way through a browser, and attacks on it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from sallyport.areas.factors.openid.page import SignInFactor
from sallyport.areas.mfa.fields import Binding, OwnFields
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Code, Strength
from tests.areas import Areas
from tests.areas.factors.pages import Browser, Site, digits_of, site_of, text_of
from tests.areas.factors.sign_ins import Bench
from tests.areas.factors.stepups import ELSEWHERE, STATION, node, opened, question
from tests.console.provider import providing

OWN, ADDRESS = OwnFields(factors="oidc,totp"), OwnFields(factors="oidc", binding=Binding.ADDRESS)


@dataclass
class Way:
    """A step-up of ann that a browser has opened. link: the address that leads to the provider."""

    bench: Bench
    site: Site
    asked: str
    link: str

    async def away(self, browser: Browser) -> str:
        """Leave for the provider. Return the address to which it leads the browser back."""
        answer = await browser.get(self.link)
        assert answer.status_code == 303, text_of(answer)
        return await self.bench.provider.visit(answer.headers["location"])

    async def state(self) -> tuple[State, Strength]:
        """Return the state of the step-up."""
        return await self.site.stepups.state_of(self.asked, within_s=0)


@asynccontextmanager
async def way(
    areas: Areas, browser: Browser, bench: Bench, site: Site, fields: OwnFields = OWN, number: int = 1
) -> AsyncIterator[Way]:
    """Open a step-up in a browser."""
    asked = question(areas, number)
    page = await opened(site.stepups, asked, fields)
    shown = await browser.send(code=page.code)
    link = re.search(r'href="(/mfa/openid/[^"]+)"', shown.text)
    assert link, text_of(shown)
    yield Way(bench, site, asked.challenge_id, link[1])


@pytest.fixture
async def bench(areas: Areas) -> AsyncIterator[Bench]:
    """Yield a bench with a provider."""
    async with providing(lambda: areas.clock() // 1_000_000) as provider:
        yield Bench(areas, provider, node(areas, factors=("oidc",)))


@pytest.fixture
def site(bench: Bench, areas: Areas) -> Site:
    """Return the pages, which offer the company sign-in."""
    site = site_of(areas, "oidc", "totp")
    factor = SignInFactor(bench.sign_ins, site.pages)
    site.pages.add(factor)
    site.more.append(factor.routes)
    return site


async def test_a_person_signs_in_and_gets_the_digits(areas: Areas, bench: Bench, site: Site) -> None:
    """The page leads to the provider, and shows the digits when the browser is back. A reload shows them again, and
    asks the provider nothing. The forms of the page work."""
    async with site.browser() as browser, way(areas, browser, bench, site) as ann:
        back = await ann.away(browser)
        done = await browser.get(back)
        assert bench.provider.server is not None
        requests = bench.provider.server.requests
        again = await browser.get(back)
        assert bench.provider.server.requests == requests
        assert (done.status_code, len(digits_of(done)), digits_of(again)) == (200, 6, digits_of(done))
        assert await ann.state() == (State.PROVEN, Strength.TWO_CHANNELS)
        assert await site.stepups.check_digits(ann.asked, Code(digits_of(done)))
        login = re.search(r'name="login" value="([^"]+)"', done.text)
        assert login
        assert "Login refused" in text_of(await browser.send(login=login[1], do="deny"))
    assert {route for _, route, _ in site.measured} == {"/mfa", "/mfa/openid/{domain}", "/mfa/openid/{domain}/{stepup}"}


async def test_a_named_method_from_the_address_of_the_station_resists_phishing(
    areas: Areas, bench: Bench, site: Site
) -> None:
    """From another address, the same sign-in ends the login."""
    bench.configure(resistantAmr="hwk")
    bench.signed_in(amr=["hwk"])
    async with site.browser(STATION) as here, site.browser(ELSEWHERE) as there:
        async with way(areas, here, bench, site, ADDRESS) as ann:
            await here.get(await ann.away(here))
            assert await ann.state() == (State.PROVEN, Strength.PHISHING_RESISTANT)
        async with way(areas, here, bench, site, ADDRESS, 2) as ann:
            there.client.cookies.update(here.client.cookies)
            refused = await there.get(await ann.away(there))
            assert (refused.status_code, (await ann.state())[0]) == (403, State.UNBOUND)


async def test_another_user_at_the_provider_may_sign_in_again(areas: Areas, bench: Bench, site: Site) -> None:
    """The page says why, and the login still waits."""
    bench.signed_in("eve")
    async with site.browser() as browser, way(areas, browser, bench, site) as ann:
        refused = await browser.get(await ann.away(browser))
        assert refused.status_code == 403
        assert "signed in as another user" in text_of(refused)
        assert (await ann.state())[0] is State.OPEN
        bench.signed_in("ann")
        await browser.get(await ann.away(browser))
        assert (await ann.state())[0] is State.PROVEN


@pytest.mark.parametrize("cookie", [False, True], ids=["no cookie", "own cookie"])
async def test_the_redirect_of_another_browser_is_refused(areas: Areas, bench: Bench, site: Site, cookie: bool) -> None:
    """A victim cannot finish what the attacker has begun, and the attacker cannot use what the victim brings."""
    async with site.browser() as attacker, site.browser() as victim, way(areas, attacker, bench, site) as login:
        if cookie:
            await victim.send(code="ABCDE23456")
        leaves = await victim.get(login.link)
        back = await login.away(attacker)
        refused = await victim.get(back)
        assert (leaves.status_code, refused.status_code) == (404, 404)
        assert (await login.state())[0] is State.OPEN
        assert all(bench.provider.codes.values())  # no code was redeemed


async def test_the_redirect_of_another_login_is_refused(areas: Areas, bench: Bench, site: Site) -> None:
    """In one browser, the code of one login and the state of another prove neither."""
    async with (
        site.browser() as browser,
        way(areas, browser, bench, site, number=1) as one,
        way(areas, browser, bench, site, number=2) as two,
    ):
        first, second = await one.away(browser), await two.away(browser)
        code = dict(parse_qsl(urlsplit(first).query))["code"]
        mixed = str(httpx.URL(second).copy_set_param("code", code))
        assert (await browser.get(mixed)).status_code == 401
        assert [(await each.state())[0] for each in (one, two)] == [State.OPEN, State.OPEN]


@pytest.mark.parametrize("domain", ["0", "99", "x", "\u0661", "9" * 40])
async def test_the_redirect_uri_of_another_domain_is_refused(
    areas: Areas, bench: Bench, site: Site, domain: str
) -> None:
    """The service does not redeem a code at the address of another domain."""
    async with site.browser() as browser, way(areas, browser, bench, site) as ann:
        back = httpx.URL(await ann.away(browser))
        refused = await browser.get(str(back.copy_with(path=f"/mfa/openid/{domain}")))
        assert (refused.status_code, (await ann.state())[0]) == (403, State.OPEN)
        assert all(bench.provider.codes.values())


async def test_a_redirect_after_the_end_of_the_login_changes_nothing(areas: Areas, bench: Bench, site: Site) -> None:
    """After "not me", the page says that the login is refused, and redeems no code."""
    async with site.browser() as browser, way(areas, browser, bench, site) as ann:
        back = await ann.away(browser)
        await site.stepups.deny(ann.asked, browser.client.cookies["__Host-sallyport-people"])
        late = await browser.get(back)
        assert "Login refused" in text_of(late)
        assert all(bench.provider.codes.values())
        assert (await browser.get(ann.link)).status_code == 200


async def test_only_a_login_that_accepts_the_factor_leads_away(areas: Areas, bench: Bench, site: Site) -> None:
    """The link of a login whose domain does not accept the factor leads nowhere, and a form is no proof."""
    async with site.browser() as browser, way(areas, browser, bench, site) as ann:
        asked = question(areas, 2)
        page = await opened(site.stepups, asked, OwnFields(factors="totp"))
        await browser.send(code=page.code)
        other = f"{ann.link.rpartition('/')[0]}/{asked.challenge_id}"
        assert (await browser.get(other)).status_code == 400
        assert (await browser.send(code=page.code, do="oidc")).status_code == 400


async def test_a_provider_that_is_away_leaves_the_other_factors(areas: Areas, bench: Bench, site: Site) -> None:
    """The page names the failure, and still offers the app."""
    async with site.browser() as browser, way(areas, browser, bench, site) as ann:
        bench.configure(issuer="http://127.0.0.1:1")
        answer = await browser.get(ann.link)
        assert answer.status_code == 503
        assert "cannot be used now" in text_of(answer) and "Confirm with the app" in text_of(answer)
