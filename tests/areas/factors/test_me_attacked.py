"""Attacks on the pages /me: what a stolen code, link or sign-in does not buy."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.factors.bypass_codes.code import Wanted
from sallyport.areas.factors.me.host import CheckedPassword
from sallyport.areas.factors.me.pages import AT_ONCE
from sallyport.areas.factors.me.service import LAST
from sallyport.areas.factors.me.texts import WRONG
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.login.first.checker import Tell
from sallyport.areas.login.first.page_passwords import PagePasswords
from sallyport.areas.login.login import Found, Reason
from sallyport.areas.policy.attempt import Attempt
from sallyport.areas.policy.lockouts.failures import Failure, LockoutKind
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Forbidden
from tests.areas import Areas, SetClock
from tests.areas.factors.authenticator import Authenticator
from tests.areas.factors.people import PASSWORD, Browser, a_minute, running_site
from tests.areas.factors.test_me import DONE, enrolled, link
from tests.areas.login.first.conftest import Book, kind


@pytest.fixture
async def site(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas of a service with the site of people, and with the user ann."""
    async with running_site(tmp_path, clock) as areas:
        yield areas


async def test_codes_add_no_first_passkey(site: Areas) -> None:
    """A code of an app and a bypass code add another app, and no passkey. A link adds a passkey."""
    first = Browser(site)
    await first.open_link(await link(site))
    seed = await first.add_app()
    made = await site.app.factors.bypass_codes.make(site.domain, "ann", Wanted())
    a_minute(site)
    for code in (first.code(seed), made.codes[0]):
        browser = Browser(site)
        await browser.sign_in()
        await browser.do("code", code=code)
        assert "Replace the app" in browser.page and "To add a passkey, ask your administrator" in browser.page
        assert "not strong enough" in await browser.do("add-passkey")
        assert "not strong enough" in await browser.do("save-passkey", credential="{}")
    await browser.open_link(await link(site))
    assert DONE in await browser.add_passkey(Authenticator())


async def test_a_passkey_of_a_former_host_still_protects_the_factors(site: Areas) -> None:
    """After a change of `public_url`, a code does not suffice to change the factors of a person with a passkey."""
    browser, _ = await enrolled(site)
    seed = await browser.add_app()
    await site.store.write(lambda tx: tx.execute("update passkeys set rp_id = 'former.example'"))
    a_minute(site)
    await browser.sign_in()
    await browser.do("code", code=browser.code(seed))
    assert "former address of this service" in browser.page and "ask your administrator" in browser.page
    assert "not strong enough" in await browser.do("add-app")
    assert "not strong enough" in await browser.do("remove-app")


def login_of(areas: Areas, name: str = "ann") -> Attempt:
    """Return a login of a user with another password each time."""
    passwords = PagePasswords(areas.app.login.pipeline, areas.store, areas.clock)
    login, domain = passwords._of_person(Person(areas.domain, name))
    return login.attempt(domain)


async def test_wrong_passwords_lock_the_user_out_at_me_only(tmp_path: Path, clock: SetClock) -> None:
    """A locked user has a wrong password, as it seems. A stranger at the Internet locks nobody out of the network. An
    operator ends the lock, and time does."""
    async with running_site(tmp_path, clock, lockout_failures=3) as areas:
        browser = Browser(areas)
        for end in ("operator", "time"):
            for number in range(3):
                assert WRONG in await browser.sign_in(password=f"wrong {end} {number}")
            assert WRONG in await browser.sign_in()
            assert await areas.lockouts.page(areas.domain, "", offset=0, limit=10) == ([], 0)
            assert areas.lockouts.refuses(login_of(areas)) is None
            if end == "operator":
                await areas.lockouts.unlock(areas.domain, LockoutKind.USER, "ann")
            else:
                areas.clock.now += 900 * SECOND
            assert "no second factor yet" in await browser.sign_in()


async def test_a_lock_of_logins_applies_at_me(tmp_path: Path, clock: SetClock) -> None:
    """Wrong passwords of logins lock the user out of the page too."""
    async with running_site(tmp_path, clock, lockout_failures=3) as areas:
        for _ in range(3):
            areas.lockouts.note_failure(login_of(areas), Failure.PASSWORD)
        assert WRONG in await Browser(areas).sign_in()


async def test_a_link_replaces_no_app(site: Areas) -> None:
    """A stolen link would otherwise end the factor of its owner. A code of the app permits to replace it."""
    first = Browser(site)
    await first.open_link(await link(site))
    seed = await first.add_app()
    a_minute(site)
    browser = Browser(site)
    await browser.open_link(await link(site))
    assert "Replace the app" not in browser.page and "Add a passkey" in browser.page
    assert "does not replace your app" in await browser.do("add-app")
    assert "does not replace your app" in await browser.do("save-app", code="123456")
    await browser.do("prove")
    await browser.do("code", code=browser.code(seed))
    assert "Replace the app" in browser.page and await browser.add_app() != seed


async def test_simultaneous_removals_leave_a_factor(site: Areas) -> None:
    """Each removal looks at the factors in its own transaction."""
    browser, device = await enrolled(site)
    await browser.add_passkey(Authenticator(), "second")
    second = Browser(site)
    await second.sign_in()
    await second.use_passkey(device)
    await browser.do("prove")
    await browser.use_passkey(device)
    own, person = site.app.me.own, Person(site.domain, "ann")
    signed_in = [await site.app.me.sessions.of(each.secret) for each in (browser, second)]
    refused = list[str]()

    async def remove(number: int) -> None:
        session = signed_in[number]
        assert session is not None
        try:
            await own.remove_passkey(session, number + 1)
        except Conflict as error:
            refused.append(str(error))

    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(remove, number)
    assert refused == [LAST] and len(await site.app.factors.passkeys.of_person(person)) == 1


async def test_a_user_who_loses_access_is_signed_out(site: Areas) -> None:
    """The sign-ins and the link of the user end in the transaction of the change."""
    browser, _ = await enrolled(site)
    open_link = await link(site)
    await site.store.write(lambda tx: site.revocations.revoke(tx, site.domain, ["ann"], "the account is disabled"))
    assert "Password" in await browser.get()
    assert "not valid" in await Browser(site).open_link(open_link)


async def test_an_address_delays_only_its_own_passwords(site: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords of one address wait. That of another address is checked before them."""
    passwords, waits, checked = site.app.me.me._parts.around.passwords, trio.Event(), list[str]()
    check = passwords.check

    async def slow(domain_id: int, user: str, password: str) -> CheckedPassword:
        checked.append(password)
        await waits.wait()
        return await check(domain_id, user, password)

    monkeypatch.setattr(passwords, "check", slow)
    async with trio.open_nursery() as nursery:
        for number in range(5 * AT_ONCE):
            nursery.start_soon(Browser(site, "198.51.100.9").sign_in, "ann", f"wrong {number}")
        await trio.testing.wait_all_tasks_blocked()
        assert len(checked) == AT_ONCE
        nursery.start_soon(Browser(site).sign_in)
        await trio.testing.wait_all_tasks_blocked()
        waits.set()
    assert checked.index(PASSWORD) < 3 * AT_ONCE  # the last one, if they were checked in the order of their arrival


class Directory:
    """A first factor that finds people. reason, password_at: what it tells of everybody."""

    reason = Reason.NONE
    password_at = "1"

    async def look_up(self, user: str, tell: Tell) -> tuple[Reason, Found]:
        """Find a person."""
        await trio.lowlevel.checkpoint()
        tell(f"found {user}")
        return self.reason, Found(password_at=self.password_at)


async def test_a_changed_account_ends_the_sign_ins_that_change_factors(
    site: Areas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a new password, or when the directory has disabled the account, a sign-in adds no factor. If the directory
    does not answer, the sign-in stays, and changes nothing."""
    site.first_kinds[FirstFactor.LDAP] = kind(Book())
    domain = site.domains.table.by_id[site.domain]
    await site.first_settings.set(domain, FirstFactor.LDAP, {"ldap": {"password": PASSWORD}})
    directory, own, person = Directory(), site.app.me.own, Person(site.domain, "ann")
    first = site.app.login.pipeline.first
    monkeypatch.setattr(type(first), "checker", lambda _first, _domain: directory)
    passwords = PagePasswords(site.app.login.pipeline, site.store, site.clock)
    for reason, password_at in ((Reason.NONE, "2"), (Reason.ACCOUNT_DISABLED, "1")):
        directory.reason, directory.password_at = Reason.NONE, "1"
        await site.app.me.sessions.begin(person, "secret", "", await passwords.stamp(person), with_link=lambda *_: True)
        session = await site.app.me.sessions.of("secret")
        assert session is not None
        await own.begin_app(session)
        directory.reason = Reason.FIRST_FACTOR_UNREACHABLE
        with pytest.raises(Conflict, match="cannot be checked now"):
            await own.begin_app(session)
        directory.reason, directory.password_at = reason, password_at
        with pytest.raises(Forbidden, match="your account has changed"):
            await own.begin_app(session)
        assert await site.app.me.sessions.of("secret") is None


async def test_another_local_password_ends_the_sign_ins_that_change_factors(site: Areas) -> None:
    """Whoever has signed in with the former password is signed out at the first change."""
    browser, _ = await enrolled(site)
    await site.store.write(lambda tx: tx.execute("update people_sessions set stamp = 'former'"))
    assert "password or your account has changed" in await browser.do("add-app")
    assert "Password" in await browser.get()
