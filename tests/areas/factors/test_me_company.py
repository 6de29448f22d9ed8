"""The sign-in at the company as a proof at /me: what it permits, and attacks on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from sallyport.areas.factors.me.session import FRESH_US
from sallyport.areas.factors.openid.service import OfDomains
from sallyport.base.clock import SECOND
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from tests.areas import Areas, SetClock
from tests.areas.factors.authenticator import ORIGIN, Authenticator
from tests.areas.factors.people import Browser, running_site
from tests.areas.factors.stepups import opened, question
from tests.areas.factors.test_me import DONE, actions, enrolled
from tests.console.provider import CLIENT, SECRET, Provider, providing

OWN = {"factors": "passkey,oidc,totp,bypass", "clientId": CLIENT, "clientSecret": SECRET, "ownCodes": "3"}


class Company:
    """A site whose domain has an identity provider."""

    def __init__(self, site: Areas, provider: Provider) -> None:
        self.site = site
        self.provider = provider
        http = HttpFactory(egress=ANYWHERE)
        sign_ins = site.app.factors.sign_ins
        sign_ins._of_domains = OfDomains(site.app._own_fields, lambda _domain: http, sign_ins._of_domains.account)
        self.signed_in()

    async def configure(self, **changed: str) -> None:
        """Set the provider `own` of the domain."""
        await self.site.providers.set(self.site.domain, "own", OWN | {"issuer": self.provider.issuer} | changed, 60)

    def signed_in(self, user: str = "ann", **claims: object) -> None:
        """Let the provider's user be this one, and the sign-in be now."""
        self.provider.claims = {"preferred_username": user, "auth_time": self.site.clock() // SECOND, **claims}

    async def back(self, browser: Browser) -> str:
        """Leave for the provider, and return the address to which it leads the browser back."""
        address = await browser.leave("/me/openid")
        assert address, browser.page
        return await self.provider.visit(address)

    async def prove(self, browser: Browser) -> str:
        """Sign in at the company, and return the page after it."""
        return await browser.get(await self.back(browser))


@pytest.fixture
async def company(tmp_path: Path, clock: SetClock) -> AsyncIterator[Company]:
    """Yield a site with the user ann, whose domain has an identity provider."""
    async with running_site(tmp_path, clock) as site, providing(lambda: clock() // SECOND) as provider:
        found = Company(site, provider)
        await found.configure()
        yield found


async def test_a_person_signs_in_at_the_company(company: Company) -> None:
    """A person without another factor signs in, adds an app and makes bypass codes, and adds no passkey: a sign-in
    that may be phished does not buy one. The trail names the factor."""
    browser = Browser(company.site)
    assert "Sign in at your company" in await browser.sign_in()
    assert "You are <strong>ann</strong>" in await company.prove(browser)
    assert "not strong enough" in await browser.do("add-passkey")
    assert "not strong enough" in await browser.do("save-passkey", credential="{}")
    await browser.add_app()
    assert DONE in browser.page
    assert "not shown again" in await browser.do("make-codes")
    sql = "select changes from audit_trail where action = 'user.sign-in'"
    assert "oidc" in str(await company.site.store.read(lambda tx: tx.rows(sql)))
    assert (await actions(company.site))[0] == ("user.sign-in", "person")


async def test_a_method_that_resists_phishing_counts_as_a_passkey(company: Company) -> None:
    """The domain names the method. Without it, a person with a passkey changes nothing after a sign-in at the
    company."""
    await company.configure(resistantAmr="hwk")
    _, device = await enrolled(company.site)
    browser = Browser(company.site)
    await browser.sign_in()
    company.signed_in(amr=["pwd", "otp"])
    assert "or by a sign-in at your company" in await company.prove(browser)
    for wanted in ("add-passkey", "add-app", "make-codes"):
        assert "not strong enough" in await browser.do(wanted), wanted
    company.signed_in(amr=["hwk"])
    await company.prove(browser)
    assert DONE in await browser.add_passkey(Authenticator(), "second")
    assert device is not None


async def test_the_proof_is_fresh_for_five_minutes(company: Company) -> None:
    """After it, the person signs in again, and the page then offers the forms."""
    browser = Browser(company.site)
    await browser.sign_in()
    await company.prove(browser)
    assert "Add an app" in browser.page
    company.site.clock.now += FRESH_US
    assert "Confirm that it is you" in await browser.get() and "Add an app" not in browser.page
    assert "confirm first" in (await browser.do("add-app")).lower()
    assert "Sign in at your company" in await browser.do("prove")
    await company.prove(browser)  # the provider did not ask again
    assert browser.status == 400 and "Add an app" not in browser.page
    company.signed_in()
    assert "Add an app" in await company.prove(browser)


async def test_another_user_at_the_company_proves_nothing(company: Company) -> None:
    """The provider's user must be the person. The sign-in stays at its second step."""
    browser = Browser(company.site)
    await browser.sign_in()
    company.signed_in("eve")
    assert "another user" in await company.prove(browser)
    assert browser.status == 400
    assert "One step is left" in await browser.get()


async def test_the_redirect_belongs_to_its_browser_and_its_sign_in(company: Company) -> None:
    """An attacker with the password of ann who lets ann sign in at the company gets nothing, and ann neither. The same
    redirect works once."""
    attacker, victim = Browser(company.site, "198.51.100.1"), Browser(company.site)
    await attacker.sign_in()
    back = await company.back(attacker)
    assert "Your sign-in has ended" in await victim.get(back)
    await victim.sign_in()
    assert "has expired" in await victim.get(back) and victim.status == 400
    assert "One step is left" in await victim.get() and "One step is left" in await attacker.get()
    assert all(company.provider.codes.values())  # no code was redeemed
    again = await company.back(victim)
    assert "You are <strong>ann</strong>" in await victim.get(again)
    assert "has expired" in await victim.get(again)


async def test_the_redirect_of_another_domain_and_of_a_login(company: Company) -> None:
    """The state of a sign-in at /me counts only for its domain, and proves no login. The state of a login proves
    nothing at /me."""
    site, browser = company.site, Browser(company.site)
    await browser.sign_in()
    back = httpx.URL(await company.back(browser))
    for path in ("/me/openid/99", "/mfa/openid/99", "/me/openid/x"):
        assert "has expired" in await browser.get(str(back.copy_with(path=path)))
    fields = site.app._own_fields(site.domain)
    page = await opened(site.app.factors.stepups, question(site), fields)
    shown = await browser.post("/mfa", code=page.code)
    assert "/mfa/openid/" in shown
    login = f"/mfa/openid/{site.domain}/{question(site).challenge_id}"
    of_login = httpx.URL(await company.provider.visit(await browser.leave(login)))
    assert "has expired" in await browser.get(str(of_login.copy_with(path=f"/me/openid/{site.domain}")))
    assert "has expired" in await browser.get(str(httpx.URL(f"{ORIGIN}/me/openid/{site.domain}?state=me1.2.3.4")))
    assert (await browser.get("/me/openid/1"), browser.status)[1] == 400


async def test_a_stranger_is_led_to_the_sign_in(company: Company) -> None:
    """Without a right password, the addresses lead to no provider."""
    browser = Browser(company.site)
    for path in ("/me/openid", f"/me/openid/{company.site.domain}?state=me1.2.3.4&code=x"):
        assert await browser.leave(path) == ""
        assert "Your sign-in has ended" in browser.page


async def test_a_domain_without_the_factor_offers_no_sign_in(company: Company) -> None:
    """After the admin has removed the factor, the page does not offer it, and a begun sign-in ends."""
    browser = Browser(company.site)
    await browser.sign_in()
    back = await company.back(browser)
    await company.configure(factors="totp")
    assert "no second factor yet" in await browser.get(back)
    assert "no second factor yet" in await Browser(company.site).sign_in()


async def test_a_provider_that_is_away(company: Company) -> None:
    """The page says it, and still offers the other factors."""
    await company.configure(issuer="http://127.0.0.1:1")
    _, device = await enrolled(company.site)
    browser = Browser(company.site)
    await browser.sign_in()
    assert await browser.leave("/me/openid") == ""
    assert "cannot be used now" in browser.page and "Use a passkey" in browser.page
    assert "phone" in await browser.use_passkey(device)


async def test_a_locked_person_proves_nothing(tmp_path: Path, clock: SetClock) -> None:
    """The lock-outs of logins count before the browser leaves, and when it comes back."""
    async with (
        running_site(tmp_path, clock, lockout_failures=2) as site,
        providing(lambda: clock() // SECOND) as provider,
    ):
        company = Company(site, provider)
        await company.configure()
        browser = Browser(site)
        await browser.sign_in()
        back = await company.back(browser)
        for number in range(2):
            await Browser(site).sign_in(password=f"wrong {number}")
        assert "too many failures" in (await browser.get(back)).lower()
        assert await browser.leave("/me/openid") == ""
