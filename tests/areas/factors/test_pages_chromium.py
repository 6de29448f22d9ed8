"""The pages of step-ups in real Chromium: its passkeys (virtual authenticator of the DevTools), without JavaScript,
narrow and wide, light and dark, and the rules of axe-core."""

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from ipaddress import ip_network

import pytest
import trio
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from playwright.sync_api import Page, expect
from pyotp import TOTP
from starlette.types import Receive, Scope, Send

from sallyport.areas.factors.pages.mail import MailFactor
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.stepup.stepup import plain
from sallyport.areas.mfa.fields import Binding, OwnFields
from sallyport.areas.mfa.host import StepUpState as State
from sallyport.areas.mfa.provider import Code, Strength
from sallyport.base.clock import SECOND
from sallyport.web.connections import Limits
from sallyport.web.server import Tls
from tests.areas import Areas
from tests.areas.factors.authenticator import Authenticator
from tests.areas.factors.pages import SEED, Site, register, site_of
from tests.areas.factors.stepups import ELSEWHERE, STATION, opened, question
from tests.areas.factors.test_mail_factor import Mails
from tests.console.axe import violations_of
from tests.console.chromium import Chromium
from tests.peers.npm_verifiers import needs_axe
from tests.peers.programs import needs
from tests.web.serving import serving

pytestmark = [pytest.mark.peer, needs("chromium")]
CODE, ADDRESS, UNBOUND = (OwnFields(binding=each) for each in Binding)
LONG = "ÄÖ-" * 80
Passkey = Mapping[str, object]


@asynccontextmanager
async def served(areas: Areas, tls: Tls, *factors: str) -> AsyncIterator[tuple[Site, str]]:
    """Serve the pages over TLS behind a trusted proxy on loopback. Yield them with their URL."""
    made = list[Site]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await made[0].app(url)(scope, receive, send)

    async with serving(app, tls, Limits(drain_s=0.5), [ip_network("127.0.0.0/8")]) as server:
        url = f"https://localhost:{server.address.port}"
        made.append(site_of(areas, *factors, url=url))
        yield made[0], url


def passkey_of(device: Authenticator, host: str = "localhost") -> Passkey:
    """Return the passkey of an authenticator, as the DevTools take it."""
    key = device.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return {
        "credentialId": b64encode(device.credential_id).decode(), "isResidentCredential": True, "rpId": host,
        "privateKey": b64encode(key).decode(), "userHandle": b64encode(device.handle).decode(), "signCount": 0,
    }  # fmt: skip


def arrive(page: Page, passkeys: Sequence[Passkey] = (), source: str = STATION) -> None:
    """Give a browser an address and an authenticator of its platform with passkeys."""
    page.set_extra_http_headers({"X-Forwarded-For": source})
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    made = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    for each in passkeys:
        devtools.send("WebAuthn.addCredential", {"authenticatorId": made["authenticatorId"], "credential": each})


def proves_with_a_passkey(page: Page, link: str, passkey: Passkey) -> tuple[str, str]:
    """Open a link and use the passkey. Return the digits before and after a reload."""
    arrive(page, [passkey])
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Use a passkey").click()
    digits = page.locator(".digits").inner_text()
    page.reload()
    return digits, page.locator(".digits").inner_text()


async def test_a_passkey_in_chromium(areas: Areas, certificate: Tls, chromium: Chromium) -> None:
    """A person opens the link, continues, and uses a passkey. The digits continue the login, also after a reload."""
    asked = question(areas)
    async with served(areas, certificate) as (site, url):
        device = await register(areas, site.passkeys)
        page = await opened(site.stepups, asked, CODE)
        link = f"{url}/mfa/{plain(page.code)}"
        work = partial(chromium.run, proves_with_a_passkey, link, passkey_of(device))
        digits, again = await trio.to_thread.run_sync(work)
        assert await site.stepups.check_digits(asked.challenge_id, Code(digits)) and again == digits
        assert await site.stepups.state_of(asked.challenge_id, within_s=0) == (State.PROVEN, Strength.TWO_CHANNELS)


def proves_at_an_address(page: Page, url: str, code: str, passkey: Passkey) -> tuple[str, str]:
    """Type a code at the page, and use the passkey. Return the texts of the page after each."""
    arrive(page, [passkey])
    page.goto(f"{url}/mfa")
    page.get_by_label("Code of the login").fill(code)
    page.get_by_label("Code of the login").press("Enter")
    shown = page.inner_text("dl")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Confirmed")
    return shown, page.inner_text("main")


async def test_a_passkey_at_the_address_of_the_station(areas: Areas, certificate: Tls, chromium: Chromium) -> None:
    """A person types the code at `/mfa`. The proof from the address of the station resists phishing."""
    asked = question(areas)
    async with served(areas, certificate) as (site, url):
        device = await register(areas, site.passkeys)
        page = await opened(site.stepups, asked, ADDRESS)
        work = partial(chromium.run, proves_at_an_address, url, page.code, passkey_of(device))
        shown, text = await trio.to_thread.run_sync(work)
        state = await site.stepups.state_of(asked.challenge_id, within_s=0)
    assert "vpn-1" in shown and STATION in shown and "Jan 1, 2026" in shown  # in the time zone of the browser
    assert "return to your device" in text and state == (State.PROVEN, Strength.PHISHING_RESISTANT)


def has_no_passkey(page: Page, link: str) -> tuple[str, bool]:
    """Open a link in a browser without a passkey. Return the message, and whether the button can be used again."""
    arrive(page)
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Use a passkey").click()
    message = page.get_by_role("alert").inner_text()
    return message, page.get_by_role("button", name="Use a passkey").is_enabled()


async def test_a_browser_without_the_passkey(areas: Areas, certificate: Tls, chromium: Chromium) -> None:
    """The page says that there was no passkey, and lets the person try again."""
    async with served(areas, certificate) as (site, url):
        await register(areas, site.passkeys)
        page = await opened(site.stepups, question(areas), CODE)
        work = partial(chromium.run, has_no_passkey, f"{url}/mfa/{plain(page.code)}")
        message, is_enabled = await trio.to_thread.run_sync(work)
    assert message.startswith("No passkey was used") and is_enabled


def works_without_scripts(page: Page, url: str, code: str, answers: Sequence[str]) -> list[str]:
    """Prove with codes of the app in a browser without JavaScript. Return the text of the page after each step."""
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(ignore_https_errors=True, java_script_enabled=False)
    context.set_extra_http_headers({"X-Forwarded-For": STATION})
    plain_page = context.new_page()
    plain_page.goto(f"{url}/mfa/{code}")
    plain_page.get_by_role("button", name="Continue").click()
    texts = [plain_page.inner_text("main")]
    for answer in answers:
        plain_page.get_by_label("Code of the app").fill(answer)
        plain_page.get_by_role("button", name="Confirm with the app").click()
        texts.append(plain_page.inner_text("main"))
    context.close()
    return texts


async def test_the_page_works_without_javascript(areas: Areas, certificate: Tls, chromium: Chromium) -> None:
    """A wrong and a right code of the app work. The form of the passkey says that it needs JavaScript."""
    right = TOTP(SEED).at(areas.clock() // SECOND)
    async with served(areas, certificate) as (site, url):
        await register(areas, site.passkeys)
        page = await opened(site.stepups, question(areas), UNBOUND)
        answers = ("000000" if right != "000000" else "000001", right)
        work = partial(chromium.run, works_without_scripts, url, plain(page.code), answers)
        first, wrong, done = await trio.to_thread.run_sync(work)
    assert "Passkeys need JavaScript" in first and "2026-01-01 00:00:00 UTC" in first
    assert "This code is wrong. You have 2 tries left." in wrong and "return to your device" in done


async def address_of(person: Person) -> str:
    """Return a long mail address of a person."""
    return f"{person.name}@{'department-' * 5}.example.com"


def violations(page: Page, url: str, codes: Sequence[str], passkey: Passkey) -> list[str]:
    """Return the violations of every kind of page."""
    found = list[str]()

    def check(name: str) -> None:
        found.extend(violations_of(page, name))

    def open_page(code: str) -> None:
        page.goto(f"{url}/mfa/{code}")
        page.get_by_role("button", name="Continue").click()

    arrive(page, [passkey])
    page.goto(f"{url}/mfa")
    check("form")
    page.goto(f"{url}/mfa/{codes[0]}")
    check("link")
    page.get_by_role("button", name="Continue").click()
    check("login")
    page.get_by_role("button", name="Use a passkey").click()
    page.locator(".digits").wait_for()
    check("digits")
    open_page(codes[1])
    page.get_by_label("Code of the app").fill("12")
    page.get_by_role("button", name="Confirm with the app").click()
    check("wrong code")
    page.get_by_role("button", name="This is not me").click()
    check("refused")
    page.set_extra_http_headers({"X-Forwarded-For": ELSEWHERE})
    open_page(codes[2])
    check("other address")
    page.set_extra_http_headers({"X-Forwarded-For": STATION})
    open_page(codes[3])
    check("mail")
    page.get_by_role("button", name="Send a code").click()
    check("sent")
    open_page("ABCDE23456")
    check("no code")
    return found


@pytest.mark.system
@needs_axe
async def test_no_page_has_a_violation(areas: Areas, certificate: Tls, chromium: Chromium) -> None:
    """People with a keyboard or a screen reader can use each page. Long names from packets do not widen it."""
    async with served(areas, certificate) as (site, url):
        device = await register(areas, site.passkeys)
        mails = MailFactor(Mails(), address_of, site.stepups, areas.vault)
        site.pages.add(mails)
        site.stepups.offer("mail", mails.has)
        users = ("ann", "ann", "bob", "eve")
        asked = [replace(question(areas, each, user=user), device=LONG) for each, user in enumerate(users)]
        fields = (CODE, CODE, ADDRESS, OwnFields(factors="mail"))
        codes = [plain((await opened(site.stepups, *each)).code) for each in zip(asked, fields, strict=True)]
        work = partial(chromium.logged, violations, url, codes, passkey_of(device))
        found, logged = await trio.to_thread.run_sync(work)
    assert found == []
    assert all("the server responded with a status of 40" in each for each in logged), logged
