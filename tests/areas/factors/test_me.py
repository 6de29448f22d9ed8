"""The pages /me: the sign-in, and what it permits."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.factors.bypass_codes.code import Wanted
from sallyport.areas.factors.me.session import FRESH_US, LIFE_US, MAX_WRONG
from sallyport.areas.factors.me.texts import WRONG
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered.station import StationKind
from sallyport.areas.mfa.fields import OwnFields
from sallyport.base.clock import SECOND
from tests.areas import Areas, SetClock, running_areas
from tests.areas.dynamic.nas import ack, nak, running_nas
from tests.areas.dynamic.world import device, session
from tests.areas.factors.authenticator import Authenticator
from tests.areas.factors.people import PASSWORD, SETTINGS, Browser, a_minute, running_site
from tests.areas.factors.stepups import opened, question, with_pages
from tests.areas.factors.test_remembered import seen

DONE = "was added"


@pytest.fixture
async def site(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas of a service with the site of people, and with the user ann."""
    async with running_site(tmp_path, clock) as areas:
        yield areas


async def link(areas: Areas, name: str = "ann") -> str:
    """Return an enrolment link of a user."""
    me = areas.app.me
    secret, _ = await me.links.make(await me.links.person(areas.domain, name))
    return me.link_to(secret)


async def enrolled(areas: Areas) -> tuple[Browser, Authenticator]:
    """Return the browser of ann after she has added a passkey by a link, and her authenticator."""
    browser, device = Browser(areas), Authenticator()
    await browser.open_link(await link(areas))
    assert DONE in await browser.add_passkey(device)
    return browser, device


async def actions(areas: Areas) -> list[tuple[str, str]]:
    """Return (action, kind of the actor) of the audit trail about ann."""
    sql = "select action, actor_kind from audit_trail where target like '%ann' and action <> 'user.add' order by id"
    return [(str(action), str(kind)) for action, kind in await areas.store.read(lambda tx: tx.rows(sql))]


async def test_a_link_leads_to_a_passkey_and_the_passkey_to_a_sign_in(site: Areas) -> None:
    """A person without a factor needs a link. Afterwards the password and the passkey suffice."""
    browser = Browser(site)
    assert "no second factor yet" in await browser.sign_in()
    browser, device = await enrolled(site)
    await browser.do("sign-out")
    assert "Sign in" in await browser.get()
    assert "Use a passkey" in await browser.sign_in()
    assert "phone" in await browser.use_passkey(device)
    assert browser.status == 200 and "Add a passkey" in browser.page and "Remove" in browser.page
    assert await actions(site) == [
        ("user.enrol", "service"),
        ("user.sign-in", "public"),
        ("user.passkey.add", "person"),
        ("user.sign-in", "person"),
    ]


async def test_an_app_proves_and_a_code_works_once(site: Areas) -> None:
    """The code of an app completes the sign-in. The same code does not complete another one."""
    browser = Browser(site)
    await browser.open_link(await link(site))
    seed = await browser.add_app()
    assert "You have an authenticator app" in browser.page
    a_minute(site)
    second = Browser(site)
    await second.sign_in()
    code = second.code(seed)
    assert "You have an authenticator app" in await second.do("code", code=code)
    third = Browser(site)
    await third.sign_in()
    assert "wrong, or was used before" in await third.do("code", code=code)


async def test_a_password_alone_shows_nothing(site: Areas) -> None:
    """Before the second factor there is no page of factors, and no form changes anything."""
    _, device = await enrolled(site)
    browser = Browser(site)
    await browser.sign_in()
    assert "One step is left" in await browser.get() and "phone" not in browser.page
    for wanted in ("add-passkey", "save-passkey", "remove-passkey", "add-app", "remove-app", "end", "not-me", "x"):
        await browser.do(wanted, id="1", code="123456", credential=device.get({"challenge": "AAAA"}))
        assert browser.status == 404, wanted
    assert len(await site.app.factors.passkeys.of_person(await site.app.me.links.person(site.domain, "ann"))) == 1


@pytest.mark.parametrize(
    ("user", "password"),
    [("ann", "wrong"), ("nobody", PASSWORD), ("", PASSWORD), ("ann", ""), ("x" * 300, "y"), ("ann", "p" * 200),
     ("ann\0", PASSWORD), ("ann@other", PASSWORD)],
)  # fmt: skip
async def test_a_wrong_name_and_a_wrong_password_look_alike(site: Areas, user: str, password: str) -> None:
    """The page does not say which of the two is wrong."""
    browser = Browser(site)
    assert WRONG in await browser.sign_in(user, password) and browser.status == 400


async def test_wrong_codes_lock_the_user_out(tmp_path: Path, clock: SetClock) -> None:
    """Wrong codes count too, whatever the sign-in to which they belong."""
    async with running_site(tmp_path, clock, lockout_failures=3) as areas:
        first = Browser(areas)
        await first.open_link(await link(areas))
        seed = await first.add_app()
        a_minute(areas)
        browser = Browser(areas)
        await browser.sign_in()
        for code in ("000000", "000001", "000002"):
            assert "wrong" in await browser.do("code", code=code)
        assert "too many failures" in (await browser.do("code", code=browser.code(seed))).lower()


async def test_wrong_codes_at_logins_lock_the_user_out(tmp_path: Path, clock: SetClock) -> None:
    """Wrong codes on the pages of several logins count together, although each login accepts only few."""
    async with running_site(tmp_path, clock, lockout_failures=4) as areas:
        browser, stepups = Browser(areas), with_pages(areas, "totp")
        await browser.open_link(await link(areas))
        seed = await browser.add_app()
        a_minute(areas)
        for number in range(3):
            asked = question(areas, number)
            page = await opened(stepups, asked, OwnFields(factors="totp"))
            for code in ("000000", "000001"):
                answer = await browser.post("/mfa", code=page.code, do="totp", answer=code)
            await stepups.end(asked.challenge_id)
            assert ("too many failures" if number == 2 else "is wrong") in answer.lower()
        page = await opened(stepups, question(areas, 9), OwnFields(factors="totp"))
        assert "Confirm with" in await browser.post("/mfa", code=page.code, do="totp", answer=browser.code(seed))
        assert WRONG in await Browser(areas).sign_in()


async def test_wrong_proofs_end_the_sign_in(site: Areas) -> None:
    """After MAX_WRONG wrong passkeys, the person types the password again."""
    await enrolled(site)
    browser, stranger = Browser(site), Authenticator()
    await browser.sign_in()
    for _ in range(MAX_WRONG):
        await browser.use_passkey(stranger)
    assert "Sign in again" in browser.page


async def test_an_app_does_not_change_the_factors_of_a_person_with_a_passkey(site: Areas) -> None:
    """A phished code buys no passkey. With the passkey, the same sign-in may change factors."""
    browser, device = await enrolled(site)
    seed = await browser.add_app()
    a_minute(site)
    other = Browser(site)
    await other.sign_in()
    await other.do("code", code=other.code(seed))
    assert "confirm with a passkey" in other.page and "Add a passkey" not in other.page
    assert "not strong enough" in await other.do("add-passkey") and other.status == 400
    await other.do("prove")
    await other.use_passkey(device)
    assert DONE in await other.add_passkey(Authenticator(), "second")


async def test_a_change_needs_a_fresh_proof(site: Areas) -> None:
    """After five minutes, factors are shown, and a change needs another proof. After half an hour, the sign-in ends."""
    browser, device = await enrolled(site)
    await browser.do("sign-out")
    await browser.sign_in()
    await browser.use_passkey(device)
    site.clock.now += FRESH_US
    assert "Add a passkey" not in await browser.get()
    assert "confirm first that it is you" in (await browser.do("add-app")).lower()
    await browser.do("prove")
    await browser.use_passkey(device)
    assert "Add a passkey" in browser.page
    site.clock.now += LIFE_US
    assert "Password" in await browser.get()


async def test_a_link_adds_and_does_not_remove(site: Areas) -> None:
    """A stolen link removes no factor. The last factor stays too."""
    await enrolled(site)
    other = Browser(site)
    await other.open_link(await link(site))
    assert "Add a passkey" in other.page and "Remove" not in other.page
    assert "not strong enough" in await other.do("remove-passkey", id="1")
    mine, device = Browser(site), Authenticator()
    await mine.open_link(await link(site))
    await mine.add_passkey(device, "second")
    await mine.do("prove")
    await mine.use_passkey(device)
    assert "was removed" in await mine.do("remove-passkey", id="1")
    assert "your last factor" in await mine.do("remove-passkey", id="2")
    assert "no such passkey" in await mine.do("remove-passkey", id="77") or "no passkey with this id" in mine.page


async def test_a_removal_ends_the_other_sign_ins(site: Areas) -> None:
    """The browser of the lost phone is signed out."""
    lost, device = await enrolled(site)
    browser = Browser(site)
    await browser.sign_in()
    await browser.use_passkey(device)
    await browser.add_passkey(Authenticator(), "second")
    await browser.do("remove-passkey", id="1")
    assert "was removed" in browser.page and "Password" in await lost.get()


async def test_not_me_ends_everything(site: Areas) -> None:
    """The person's sign-ins and links end, this one too."""
    browser, _ = await enrolled(site)
    open_link = await link(site)
    assert "change it now" in await browser.do("not-me")
    assert "Password" in await browser.get()
    assert "not valid" in await Browser(site).open_link(open_link)
    assert ("user.not_me", "person") in await actions(site)


async def test_a_step_changes_the_cookie(site: Areas) -> None:
    """A cookie that another person has planted is worthless after the sign-in."""
    browser = Browser(site)
    await browser.open_link(await link(site))
    seen = {cookie.value for cookie in browser._client.cookies.jar}
    await browser.do("sign-out")
    await browser.get()
    seen |= {cookie.value for cookie in browser._client.cookies.jar}
    assert len(seen) == 2


async def test_a_deleted_user_is_signed_out(site: Areas) -> None:
    """The next user of the name gets neither the sign-in nor the link."""
    browser, _ = await enrolled(site)
    old = await link(site)
    await site.remove_user(site.domain, "ann")
    await site.add_user(site.domain, "ann", PASSWORD.encode())
    assert "Password" in await browser.get()
    assert "not valid" in await Browser(site).open_link(old)


async def test_several_tenants_need_the_address_of_a_domain(site: Areas) -> None:
    """A realm does not choose between tenants, because a tenant could declare the realm of another one. The page names
    no domain, so that a stranger cannot list the domains of all tenants."""
    other = await site.tenancy.ensure_tenant(2, 1)
    await site.domains.add(other, "corp")
    browser = Browser(site)
    assert "Open the address" in await browser.sign_in("ann@corp")
    form = await browser.get(f"/me?domain={site.domain}")
    assert f'name="domain" value="{site.domain}"' in form and "corp" not in form
    assert WRONG not in await browser.sign_in(domain=str(site.domain))
    for number in ("77", "x", "9" * 30, "-1"):
        assert "Open the address" in await browser.sign_in(domain=number)


async def test_a_forwarded_password_cannot_be_checked(tmp_path: Path, clock: SetClock) -> None:
    """In a domain whose devices check the passwords, the page refuses the sign-in."""
    async with running_areas(tmp_path, clock, more=SETTINGS) as areas:
        domain = await areas.domains.add(areas.tenant, "nps", first_factor=FirstFactor.NONE)
        assert "cannot be checked on this page" in await Browser(areas).sign_in(domain=str(domain))


async def test_an_address_cannot_guess_for_ever(site: Areas) -> None:
    """Many wrong passwords of one address are refused, whatever their names. Time brings new tries."""
    browser = Browser(site, "198.51.100.9")
    for number in range(30):
        await browser.sign_in(f"user{number}", "wrong")
    assert "too many wrong passwords, codes or links" in await browser.sign_in() and browser.status == 429
    assert "no second factor" in await Browser(site).sign_in()
    site.clock.now += 60 * SECOND
    assert "no second factor" in await browser.sign_in()


async def test_a_person_ends_own_sessions_only(site: Areas) -> None:
    """The page lists the live sessions of the person, and asks the device to end one. A session of another user does
    not exist for the person. A device that refuses is named as a problem."""
    browser, _ = await enrolled(site)
    async with running_nas(ack) as nas:
        client = await site.client("127.0.0.1", coa_port=nas.port)
        place = await device(site, client, "127.0.0.1", NAS_IDENTIFIER=b"ap-1")
        own = await session(site, place, "s1", USER_NAME="ann@corp")
        other = await session(site, place, "s2", USER_NAME="bob")
        assert "End the session at" in await browser.get()
        assert "has ended already" in await browser.do("end", id=str(other)) and not nas.requests
        assert "The session was ended" in await browser.do("end", id=str(own)) and len(nas.requests) == 1
        for wrong in ("", "x", "9" * 30):
            assert "no such entry" in await browser.do("end", id=wrong)
    async with running_nas(nak(506)) as nas:
        await site.clients.update(site.tenant, client.id, {"coa_port": nas.port})
        again = await session(site, place, "s3", USER_NAME="ann")
        assert "did not end the session" in await browser.do("end", id=str(again))


async def test_own_logins_are_shown(site: Areas) -> None:
    """The page has the logins of the person within 30 days, and none of another user. Texts of packets are escaped."""
    browser, _ = await enrolled(site)
    sql = (
        "insert into events (at, domain_id, user_name, ip_address, client_ip, device_id, device_name, station, method, "
        "factor, decision, applied_decision, would_have_been, reason, latency_us) values (:at, :d, :user, '', '', 0, "
        ":name, '02-00-00-00-00-01', 'pap', 'local', 'reject', 'reject', '', '', 0)"
    )
    now, day = site.clock(), 86_400 * SECOND
    for at, user, name in ((now, "ann", "<b>vpn"), (now - 40 * day, "ann", "old"), (now, "bob", "other")):
        values = {"at": at, "d": site.domain, "user": user, "name": name}
        await site.store.write(lambda tx, values=values: tx.execute(sql, **values))  # type: ignore[misc]
    page = await browser.get()
    assert "&lt;b&gt;vpn" in page and "old" not in page and "other" not in page
    assert "Your devices" in page and page.count("02-00-00-00-00-01<br>") == 1


async def test_the_domain_chooses_factors_and_strength(site: Areas) -> None:
    """A factor that the domain does not accept proves nothing, and cannot be added. With `phishing_resistant`, a code
    changes nothing."""
    first = Browser(site)
    await first.open_link(await link(site))
    seed = await first.add_app()
    await site.providers.set(site.domain, "own", {"factors": "totp", "changeStrength": "phishing_resistant"}, 60)
    a_minute(site)
    browser = Browser(site)
    await browser.sign_in()
    await browser.do("code", code=browser.code(seed))
    assert "ask your administrator for an enrolment link" in browser.page
    assert "not strong enough" in await browser.do("remove-app")
    await browser.open_link(await link(site))
    assert "Replace the app" not in browser.page and "Add a passkey" not in browser.page
    assert "does not accept this factor" in await browser.do("add-passkey")
    await site.providers.set(site.domain, "own", {"factors": "passkey"}, 60)
    assert "no second factor yet" in await Browser(site).sign_in()


async def test_a_locked_user_changes_nothing(tmp_path: Path, clock: SetClock) -> None:
    """A lock-out also stops the sign-ins that exist."""
    async with running_site(tmp_path, clock, lockout_failures=2) as areas:
        browser, _ = await enrolled(areas)
        for number in range(2):
            await Browser(areas).sign_in(password=f"wrong {number}")
        assert "too many failures" in (await browser.do("add-passkey")).lower()


async def test_remembered_stations_are_shown_and_forgotten(site: Areas) -> None:
    """A person sees the own stations with place and time, and forgets one. The station of another person stays."""
    browser, _ = await enrolled(site)
    assert "Where you are not asked" not in await browser.get()
    remembered = site.app.factors.remembered
    certificate = {"kind": StationKind.CERTIFICATE, "station": "ab" * 32, "client_id": 0, "client_name": ""}
    others = {"person": Person(site.domain, "bob"), "station": "001a2b3c4d5f"}
    for changes in ({"client_name": "wifi <Berlin>"}, certificate, others):
        await remembered.keep(seen(site, **changes), 24)
    page = await browser.get()
    assert "00:1a:2b:3c:4d:5e" in page and "wifi &lt;Berlin&gt;" in page and "certificate abababababababab<" in page
    assert "00:1a:2b:3c:4d:5f" not in page
    (own, further), _ = await remembered.page(site.domain, "ann", 0, 10)
    (of_bob,), _ = await remembered.page(site.domain, "bob", 0, 10)
    assert "no such remembered station" in await browser.do("forget", id=str(of_bob.id))
    page = await browser.do("forget", id=str(own.id))
    assert "The next login there asks" in page and "00:1a:2b:3c:4d:5e" not in page
    assert await remembered.of_person(Person(site.domain, "ANN")) == [further]
    assert len((await remembered.page(site.domain, "bob", 0, 10))[0]) == 1
    sql = "select action, actor_kind from audit_trail where action = 'user.station.forget'"
    assert await site.store.read(lambda tx: tx.rows(sql)) == [("user.station.forget", "person")]


async def test_bypass_codes_of_a_person(site: Areas) -> None:
    """A person makes codes if the domain allows it, after a proof by an app or a passkey. A code signs in once, and
    makes no further codes."""
    browser, device = await enrolled(site)
    await browser.do("prove")
    await browser.use_passkey(device)
    assert "Bypass codes" not in browser.page
    assert "does not let you" in await browser.do("make-codes")
    await site.providers.set(site.domain, "own", {"ownCodes": "3"}, 60)
    assert "Make codes" in await browser.get()
    codes = re.findall(r"<code>(\d{4} \d{4})</code>", await browser.do("make-codes"))
    assert len(codes) == 3 and ("user.bypass_codes.make", "person") in await actions(site)
    other = Browser(site)
    await other.sign_in()
    assert "phone" in await other.do("code", code=codes[0])
    assert "not strong enough" in await other.do("make-codes")
    again = Browser(site)
    await again.sign_in()
    assert "wrong, or was used before" in await again.do("code", code=codes[0])


async def test_a_link_and_a_bypass_code_make_no_bypass_codes(site: Areas) -> None:
    """Otherwise a code of an operator for one day would buy codes for a year."""
    await site.providers.set(site.domain, "own", {"ownCodes": "3"}, 60)
    made = await site.app.factors.bypass_codes.make(site.domain, "ann", Wanted())
    browser = Browser(site)
    await browser.sign_in()
    await browser.do("code", code=made.codes[0])
    assert "Make codes" not in browser.page and "you have signed in with one" in await browser.do("make-codes")
    await browser.open_link(await link(site))
    assert "Make codes" not in browser.page and "not strong enough" in await browser.do("make-codes")


async def test_codes_cannot_be_guessed_for_ever(site: Areas) -> None:
    """Without lock-outs, too, the wrong codes of an address are limited, over all sign-ins."""
    first = Browser(site)
    await first.open_link(await link(site))
    await first.add_app()
    browser = Browser(site, "198.51.100.9")
    for number in range(30):
        if number % MAX_WRONG == 0:
            await browser.sign_in()
        assert "wrong" in await browser.do("code", code=f"{number:06}")
    assert "too many wrong passwords, codes or links" in await browser.sign_in()
    assert "Code of your app" in await Browser(site).sign_in()
