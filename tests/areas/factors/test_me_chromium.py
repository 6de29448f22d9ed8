"""The pages /me in real Chromium: its passkeys, without JavaScript, narrow and wide, light and dark, and the rules of
axe-core."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from playwright.sync_api import Page, expect
from pyotp import TOTP
from starlette.types import ASGIApp, Receive, Scope, Send

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered.station import SeenStation, StationKind
from sallyport.base.clock import SECOND
from sallyport.store.model import Tx
from sallyport.web.connections import Limits
from sallyport.web.server import Tls
from tests.areas import Areas, SetClock, running_areas
from tests.areas.factors.people import PASSWORD, app_of
from tests.areas.factors.test_pages_chromium import LONG, arrive
from tests.console.axe import violations_of
from tests.console.chromium import Chromium
from tests.peers.npm_verifiers import needs_axe
from tests.peers.programs import needs
from tests.web.serving import serving

pytestmark = [pytest.mark.peer, needs("chromium")]
HOSTILE = "<script>alert(1)</script>" + LONG
OWN = {
    "factors": "passkey,oidc,totp,bypass",
    "issuer": "https://id.example.com",
    "clientId": "pages",
    "clientSecret": "secret",
    "ownCodes": "3",
}


@asynccontextmanager
async def served(directory: Path, clock: SetClock, tls: Tls) -> AsyncIterator[tuple[Areas, str]]:
    """Serve the site over TLS on loopback, with the user ann. Yield the areas and the link of ann."""
    made = list[ASGIApp]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await made[0](scope, receive, send)

    async with serving(app, tls, Limits(drain_s=0.5)) as server:
        settings = {"public_url": f"https://localhost:{server.address.port}", "people_bind": "127.0.0.1:0"}
        async with running_areas(directory, clock, more=settings) as areas:
            made.append(app_of(areas))
            await areas.add_user(areas.domain, "ann", PASSWORD.encode())
            me = areas.app.me
            secret, _ = await me.links.make(await me.links.person(areas.domain, "ann"))
            yield areas, me.link_to(secret)


def add_login(areas: Areas) -> Callable[[Tx], object]:
    """Return a transaction that stores a login of ann, with hostile texts of its packet."""
    columns = (
        "at, domain_id, user_name, ip_address, client_ip, device_id, device_name, station, method, factor, decision, "
        "applied_decision, would_have_been, reason, latency_us"
    )
    sql = (
        f"insert into events ({columns}) values (:at, :d, 'ann', '', '', 0, :text, :text, 'pap', 'local', 'reject', "  # noqa: S608
        "'reject', '', 'wrong password', 0)"
    )
    return lambda tx: tx.execute(sql, at=areas.clock(), d=areas.domain, text=HOSTILE)


def open_link(page: Page, link: str, password: str = PASSWORD) -> None:
    """Open an enrolment link, continue, and type the password."""
    page.goto(link)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def sign_in(page: Page, url: str) -> None:
    """Sign in with the password."""
    page.goto(url)
    page.get_by_label("User name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")


def enrols_and_signs_in(page: Page, link: str) -> str:
    """Enrol a passkey by a link, sign out, and sign in with the password and the passkey. Return the last page."""
    arrive(page)
    open_link(page, link)
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_label("Name of the passkey").fill("my phone")
    page.get_by_role("button", name="Make the passkey").click()
    expect(page.get_by_role("status")).to_have_text("The passkey my phone was added.")
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, page.url)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="Passkeys")).to_be_visible()
    return page.inner_text("main")


async def test_a_passkey_is_used(tmp_path: Path, clock: SetClock, certificate: Tls, chromium: Chromium) -> None:
    """A person enrols by a link and signs in with the new passkey. Afterwards, factors may be changed."""
    async with served(tmp_path, clock, certificate) as (_, link):
        text = await trio.to_thread.run_sync(partial(chromium.run, enrols_and_signs_in, link))
    assert "my phone" in text and "Add a passkey" in text and "Remove" in text


def works_without_scripts(page: Page, link: str, now_s: int) -> str:
    """Add an app by a link, and sign in with it, in a browser without JavaScript. Return the last page."""
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(ignore_https_errors=True, java_script_enabled=False)
    plain = context.new_page()
    open_link(plain, link)
    plain.get_by_role("button", name="Add an app").click()
    app = TOTP(plain.locator("code").inner_text().replace(" ", ""))
    plain.get_by_label("Code").fill(app.at(now_s))
    plain.get_by_role("button", name="Confirm").click()
    plain.get_by_role("button", name="Sign out").click()
    sign_in(plain, plain.url)
    plain.get_by_label("Code of your app").fill(app.at(now_s + 30))  # the code of the next step is accepted too
    plain.get_by_role("button", name="Confirm").click()
    text = plain.inner_text("main")
    context.close()
    return text


async def test_an_app_needs_no_javascript(
    tmp_path: Path, clock: SetClock, certificate: Tls, chromium: Chromium
) -> None:
    """Link, app and sign-in work without scripts."""
    async with served(tmp_path, clock, certificate) as (areas, link):
        work = partial(chromium.run, works_without_scripts, link, areas.clock() // SECOND)
        assert "You have an authenticator app" in await trio.to_thread.run_sync(work)


def violations(page: Page, link: str) -> list[str]:
    """Return the violations of every kind of page."""
    found = list[str]()

    def check(name: str) -> None:
        found.extend(violations_of(page, name))

    arrive(page)
    page.goto(link)
    check("link")
    open_link(page, link, "wrong")
    check("wrong password")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    check("no factor")
    page.get_by_role("button", name="Add an app").click()
    check("app")
    page.get_by_role("link", name="Back").click()
    page.get_by_role("button", name="Add a passkey").click()
    check("passkey")
    page.get_by_label("Name of the passkey").fill("W" * 64)
    page.get_by_role("button", name="Make the passkey").click()
    page.get_by_role("status").wait_for()
    check("factors")
    page.get_by_role("button", name="Sign out").click()
    check("sign in")
    sign_in(page, page.url)
    check("proof")
    page.goto(page.url)
    check("continue")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Use a passkey").click()
    page.get_by_role("heading", name="Where you are not asked").wait_for()
    check("remembered stations")
    page.get_by_role("button", name="Make codes").click()
    check("codes")
    page.get_by_role("link", name="Back").click()
    page.get_by_role("button", name="A login was not me").click()
    check("not me")
    return found


@pytest.mark.system
@needs_axe
async def test_no_page_has_a_violation(tmp_path: Path, clock: SetClock, certificate: Tls, chromium: Chromium) -> None:
    """People with a keyboard or a screen reader can use each page. Hostile texts of packets stay texts."""
    async with served(tmp_path, clock, certificate) as (areas, link):
        await areas.store.write(add_login(areas))
        await areas.providers.set(areas.domain, "own", OWN, 60)
        seen = SeenStation(
            Person(areas.domain, "ann"),
            StationKind.MAC,
            "001a2b3c4d5e",
            1,
            HOSTILE[:253],
            "own",
            "the stamp of a password",
        )
        await areas.app.factors.remembered.keep(seen, 24)
        found, logged = await trio.to_thread.run_sync(partial(chromium.logged, violations, link))
    assert found == []
    assert all("the server responded with a status of 40" in each for each in logged), logged
